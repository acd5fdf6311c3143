"""A long run of random programs: each on both oracles and every device, in worker processes that may die.

`python tests/fuzz/long_run.py --programs=20000 --to=build/fuzz` (`make fuzz`) writes a line a program to
`<to>/<first>-<last>.jsonl`, keeps the text of each that went wrong beside it, and ends with counts. A worker says what
it is about to do before it does it, so that a step that ends the process is found, and left out for that program.

`--devices=swiftshader,least` runs the programs on Vulkan devices like those of phones, with the validation layer:
SwiftShader, and lavapipe restricted to the least features and limits. Doubles are refused there, by name.

`--devices=cpu --levels=x86-64-v4,x86-64-v2` runs them as native code: each program at one of these levels, in turn.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from cpu_devices import best_level  # noqa: E402
from named_devices import profiled  # noqa: E402
from oracle_process import Oracles  # noqa: E402
from random_judge import ORACLES, disagreements, faults, with_second_opinions  # noqa: E402
from random_programs import Program, generate  # noqa: E402

from orchestrion import compiler, vm  # noqa: E402
from orchestrion.hal.vulkan.driver import VulkanDriver  # noqa: E402
from orchestrion.vm.errors import NoProgram  # noqa: E402

#: device -> target
DEVICES = {
    "reference": "reference", "cpu": "cpu", "vulkan": "spirv", "opencl": "opencl", "swiftshader": "spirv",
    "least": "spirv",
}  # fmt: skip
#: those that programs run on unless told otherwise, and those that lack doubles
USUAL, LACKING = ("reference", "vulkan", "opencl"), ("swiftshader", "least")
SWIFTSHADER = Path(sys.prefix) / "swiftshader" / "vk_swiftshader_icd.json"
#: about how many ops a program has, by its seed
LENGTHS = (4, 5, 5, 6, 6, 8, 10, 16)
#: programs of one worker, whose memory grows with what XLA and the drivers keep
LIFETIME = 400


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--programs", type=int, default=20_000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--devices", default=",".join(USUAL), help=f"some of {', '.join(DEVICES)}")
    parser.add_argument("--levels", default=",".join(best_level()), help="instruction sets of device cpu, in turn")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no further workers after these")
    parser.add_argument("--to", type=Path, default=ROOT / "build" / "fuzz")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.to.mkdir(parents=True, exist_ok=True)
    devices, levels = given.devices.split(","), given.levels.split(",")
    if given.worker is not None:
        work(given.first, given.programs, given.to, set(given.worker.split()), devices, levels)
        return
    end = time.monotonic() + 60 * given.minutes
    chunks = range(given.first, given.first + given.programs, LIFETIME)
    with ThreadPoolExecutor(given.jobs) as pool:
        limits = [min(first + LIFETIME, given.first + given.programs) for first in chunks]
        started = partial(worker, to=given.to, devices=devices, levels=levels)
        runs = pool.map(lambda a, z: chunk(a, z, given.to, started) if time.monotonic() < end else [], chunks, limits)
        report([row for rows in runs for row in rows], devices)


def chunk(first: int, last: int, to: Path, started: Callable[..., subprocess.Popen[str]]) -> list[dict[str, Any]]:
    """The rows of the programs of these seeds, by as many workers as die."""
    rows: list[dict[str, Any]] = []
    without = ""
    with (to / f"{first}-{last}.jsonl").open("w") as journal:
        while first < last:
            doing, process = "", started(first, last - first, without)
            assert process.stdout is not None
            for line in process.stdout:
                if not line.startswith("{"):
                    doing = line.split()[1]
                    continue
                rows.append(json.loads(line))
                journal.write(line)
                journal.flush()
                first, without = rows[-1]["seed"] + 1, ""
            status = process.wait()
            if first < last:
                without += f" {doing}"
                print(f"seed {first}: {doing} ended the process ({status})", flush=True)
    return rows


def worker(
    first: int, count: int, without: str, to: Path, devices: list[str], levels: list[str]
) -> subprocess.Popen[str]:
    settings = {"ORCHESTRION_CACHE": "off", "ORCHESTRION_HOME": str(to / "home")}
    if any(name in LACKING for name in devices):
        settings |= {"ORCHESTRION_VULKAN_VALIDATION": "1", "VK_ADD_DRIVER_FILES": str(SWIFTSHADER)}
    command = [sys.executable, __file__, f"--first={first}", f"--programs={count}", f"--to={to}"]
    command += [f"--devices={','.join(devices)}", f"--levels={','.join(levels)}"]
    with (to / "stderr.txt").open("a") as errors:
        return subprocess.Popen([*command, f"--worker={without}"], env=os.environ | settings, stdout=subprocess.PIPE,
                                stderr=errors, text=True)  # fmt: skip


def work(first: int, count: int, to: Path, without: set[str], devices: list[str], levels: list[str]) -> None:
    """In a worker: these programs; the first one without steps that ended another worker."""
    oracles = Oracles()
    for seed in range(first, first + count):
        row = check(seed, to, oracles, without if seed == first else set(), devices, levels[seed % len(levels)])
        print(json.dumps(row), flush=True)
    oracles.close()


def check(seed: int, to: Path, oracles: Oracles, without: set[str], devices: list[str], level: str) -> dict[str, Any]:
    made = generate(random.Random(seed), LENGTHS[seed % len(LENGTHS)])
    row: dict[str, Any] = {"seed": seed, "ops": made.text.count('"stablehlo.') - made.text.count('"stablehlo.return')}

    def step(name: str, run: Callable[[], Any]) -> Any:
        """What a step gives, None where it failed, which the row then tells."""
        if name in without:
            row[name] = "ended the process"
            return None
        print("doing", name, flush=True)
        try:
            return run()
        except Exception as error:
            row[name] = f"{type(error).__name__}: {error}"[:600]
            return None

    wanted = {}
    for name in ORACLES:
        found = step(name, partial(oracles.ask, name, made.text, *made.arguments))
        if found is not None:
            row[name], wanted[name] = "ran", found
    row["differ"] = disagreements(made.results, wanted)
    sides: Counter[str] = Counter()
    targets = list(dict.fromkeys(DEVICES[device] for device in devices))
    module = step("compile", lambda: compiler.compile(made.text, targets=targets, target_cpu=level))
    for device in devices if module is not None and wanted else ():
        wrong = step(device, partial(run_on, device, module, made, oracles, wanted, sides, row))
        if wrong is not None:
            row[device] = wrong[:3] or "right"
    if row["differ"]:
        row["sides"] = sides
    if row["differ"] or any(row.get(name, "right") != "right" for name in ("compile", *devices)):
        (to / f"{seed}.mlir").write_text(made.text)
    return row


def run_on(
    device: str, module: bytes, made: Program, oracles: Oracles, wanted: dict[str, Any], sides: Counter[str],
    row: dict[str, Any],
) -> list[str]:  # fmt: skip
    try:
        program = load(module, device)
    except NoProgram as error:
        if device not in LACKING or "wants float64" not in str(error) and "wants int64, float64" not in str(error):
            raise
        row[f"{device}_refused"] = "float64"
        return []
    wrong = list(faults(program, made, wanted, sides))
    row[f"{device}_dispatches"] = sum(call["dispatches"] for call in program.statistics()["calls"])
    if wrong and len(wanted) < len(ORACLES):
        wanted |= with_second_opinions(oracles, made, wanted, {value for value, _ in wrong})
        wrong = list(faults(program, made, wanted, sides))
    return [message for _, message in wrong]


def load(module: bytes, device: str) -> vm.Program:
    """Loads the program. Native code is allowed where devices do not check their code."""
    if device not in LACKING:
        return vm.load(module, device=device, allow_native_code=True)
    with profiled("least" if device == "least" else None):
        named = "SwiftShader" if device == "swiftshader" else "llvmpipe"
        found = next(info.id for info in VulkanDriver().devices() if named in info.name)
        return vm.load(module, device=found)


def report(rows: list[dict[str, Any]], devices: list[str]) -> None:
    print(f"{len(rows)} programs, {sum(row['ops'] for row in rows)} ops")
    for name in ORACLES:
        print(f"{name}: ran {sum(row[name] == 'ran' for row in rows)}")
    print(f"oracles differ: {sum(bool(row['differ']) for row in rows)}")
    print(f"neither oracle ran: {sum(row['interpreter'] != 'ran' != row['xla'] for row in rows)}")
    print(f"refused by the compiler: {[row['seed'] for row in rows if 'compile' in row]}")
    for device in devices:
        outcomes = Counter(row[device] == "right" for row in rows if device in row)
        idle = sum(row.get(f"{device}_dispatches") == 0 for row in rows)
        refused = sum(f"{device}_refused" in row for row in rows)
        ran = sum(outcomes.values()) - refused
        print(
            f"{device}: ran {ran}, wrong {outcomes[False]}, {idle} without a dispatch, {refused} with doubles refused"
        )
        for row in rows:
            if row.get(device, "right") != "right":
                print(f"  seed {row['seed']}: {row[device]}")


if __name__ == "__main__":
    main()
