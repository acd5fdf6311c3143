"""Fuzz targets: each in a process of its own, with limits, guided by coverage where atheris is installed.

    python tests/fuzz/run.py --target=all --time=600 --seed=0 --jobs=1      (`make fuzz-targets TIME=600`)
    python tests/fuzz/run.py --target=ir --input=build/fuzz/ir/X.bin        (one input again, with its traceback)

A line per target: executions, executions a second, inputs in the corpus, edges and features reached, findings.
`build/fuzz/<target>/` keeps the corpus and, per finding, the input (`.bin`) and what was said (`.txt`). Status 1: there
are findings. A process that crashes or hangs is a finding too; its input is kept, and the target goes on with the next
seed. Without atheris, inputs are mutants of the seeds and nothing is known of coverage.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[2]
# the tree's own packages come first: an editable install's import hook cannot be instrumented
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / ".types"), str(ROOT / "examples")]

import fuzzing  # noqa: E402

# what targets compile is not for the trust store and cache of the user; SwiftShader is a second Vulkan device
SWIFTSHADER = Path(sys.prefix) / "swiftshader" / "vk_swiftshader_icd.json"
os.environ.setdefault("ORCHESTRION_HOME", str(ROOT / "build" / "fuzz" / "home"))
os.environ.setdefault("ORCHESTRION_CACHE", str(ROOT / "build" / "fuzz" / "cache"))
if SWIFTSHADER.exists():
    os.environ.setdefault("VK_ADD_DRIVER_FILES", str(SWIFTSHADER))

#: seconds beyond its time that a process may take to start, to build its seeds and to end
GRACE = 180.0
#: processes of one target that may die before the rest of its time is given up
DEATHS = 20
_STATUS = re.compile(r"cov: (\d+) ft: (\d+) corp: (\d+)")


@dataclass
class Outcome:
    """What became of a target."""

    target: str
    seconds: float = 0.0
    executions: int = 0
    corpus: str = "-"
    edges: str = "-"
    features: str = "-"
    findings: list[str] = field(default_factory=list)
    skipped: str = ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="all", help=f"all, a path, or of: {', '.join(fuzzing.names())}")
    parser.add_argument("--time", type=float, default=60, help="seconds per target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time")
    parser.add_argument("--to", type=Path, default=ROOT / "build" / "fuzz")
    parser.add_argument("--plain", action="store_true", help="mutation alone, also where atheris is installed")
    parser.add_argument("--first", action="store_true", help="end a target at its first finding")
    parser.add_argument("--input", type=Path, help="run one input in this process")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.input is not None:
        fuzzing.load(given.target).one_input(given.input.read_bytes())
        return 0
    plain = given.plain or not fuzzing.has_atheris()
    if given.child:
        child(given.target, given.to, given.time, given.seed, plain, given.first)
        return 0
    names = fuzzing.names() if given.target == "all" else given.target.split(",")
    print(f"{given.time:g} s a target, seed {given.seed}, {'plain mutation' if plain else 'atheris'}")
    print(row("target", "executions", "a second", "corpus", "edges", "features", "findings"), flush=True)
    found = 0
    with ThreadPoolExecutor(given.jobs) as pool:
        for outcome in pool.map(lambda name: fuzz(name, given.to, given.time, given.seed, plain, given.first), names):
            show(outcome)
            found += len(outcome.findings)
    return 1 if found else 0


def row(*cells: object) -> str:
    return f"{cells[0]!s:<16}" + "".join(f"{cell!s:>12}" for cell in cells[1:])


def show(outcome: Outcome) -> None:
    if outcome.skipped:
        print(f"{outcome.target:<16}  skipped: {outcome.skipped}", flush=True)
        return
    rate = round(outcome.executions / max(outcome.seconds, 0.001))
    cells = outcome.corpus, outcome.edges, outcome.features, len(outcome.findings)
    print(row(outcome.target, outcome.executions, rate, *cells), flush=True)
    for line in outcome.findings:
        print(f"    {line}", flush=True)


def child(name: str, to: Path, seconds: float, seed: int, plain: bool, first: bool) -> None:
    """One process of a target. What it imports is instrumented for atheris."""
    if plain:
        target = fuzzing.load(name)
        run = fuzzing.Run(target, to / target.name)
        print(f"seeds: {fuzzing.plainly(target, run, seconds, seed, first)}")
        return
    import atheris

    with atheris.instrument_imports(include=["orchestrion"], enable_loader_override=False):
        target = fuzzing.load(name)
    fuzzing.guided(target, fuzzing.Run(target, to / target.name), seconds, seed, first)


def fuzz(name: str, to: Path, seconds: float, seed: int, plain: bool, first: bool) -> Outcome:
    """Processes of one target until its time is over, or with `first` until there is a finding."""
    target = fuzzing.load(name)
    outcome = Outcome(target.name, skipped=target.ready())
    if outcome.skipped:
        return outcome
    folder = to / target.name
    folder.mkdir(parents=True, exist_ok=True)
    for old in [*folder.glob("*.bin"), *folder.glob("*.txt")]:
        old.unlink()
    end = time.monotonic() + seconds
    for attempt in range(DEATHS):
        left = end - time.monotonic()
        if left < 1 and attempt:
            break
        began = time.monotonic()
        flags = ["--plain"] * plain + ["--first"] * first
        died = process(name, to, left, seed + attempt, flags, folder, outcome)
        outcome.seconds += min(time.monotonic() - began, left)
        if died:
            keep_death(folder, died)
        if first:
            break
    outcome.findings = [described(path) for path in sorted(folder.glob("*.bin"))]
    return outcome


def process(name: str, to: Path, seconds: float, seed: int, flags: list[str], folder: Path, outcome: Outcome) -> str:
    """One process; adds what it did to the outcome. Gives what killed it, or nothing."""
    (folder / "state").unlink(missing_ok=True)
    command = [sys.executable, str(Path(__file__).resolve()), "--child", f"--target={name}", f"--to={to}"]
    command += [f"--time={seconds}", f"--seed={seed}", *flags]
    with (folder / "log").open("w+b") as log:
        try:
            status = subprocess.run(command, stdout=log, stderr=log, timeout=seconds + GRACE, check=False).returncode
        except subprocess.TimeoutExpired:
            status = None
        log.seek(0)
        said = log.read().decode(errors="replace")
    if (folder / "state").exists():
        outcome.executions += fuzzing.read_state(folder / "state").executions + 1
    if seen := _STATUS.findall(said):
        outcome.edges, outcome.features, outcome.corpus = seen[-1]
    elif seeds := re.search(r"seeds: (\d+)", said):
        outcome.corpus = seeds[1]
    if status == 0:
        return ""
    reason = "hangs" if status is None else f"exit status {status}"
    if status is not None and status < 0:
        reason = f"killed by {signal.Signals(-status).name}"
    return f"{reason}\n{said[-3000:]}"


def keep_death(folder: Path, died: str) -> None:
    state = folder / "state"
    data = fuzzing.read_state(state).current if state.exists() else b""
    name = f"death-{sha256(data).hexdigest()[:8]}"
    (folder / f"{name}.bin").write_bytes(data)
    (folder / f"{name}.txt").write_text(died)


def described(path: Path) -> str:
    """The finding's file, and the line that says most."""
    lines = path.with_suffix(".txt").read_text(errors="replace").strip().splitlines() or ["?"]
    line = lines[0] if path.name.startswith("death") else lines[-1]
    return f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}: {line[:160]}"


if __name__ == "__main__":
    sys.exit(main())
