"""What fuzz targets share: how one is loaded, how inputs are mutated, and one run of a target within limits.

A target is a file of `tests/fuzz/targets/`. It states one property of inputs from outside, and has:

- `one_input(data: bytes)`: raises when the property does not hold. Only documented errors of the input are caught.
- `seeds() -> Iterable[bytes]`: inputs that are accepted, or nearly.
- `mutate(choose, data) -> bytes`, optional: a change that knows the structure of the input.
- `repair(data) -> bytes`, optional: makes checksums and sizes fit again; called after nine of ten mutations.
- `POOL`, optional: bytes strings that the generic mutator inserts.
- `MAX_BYTES`, `SECONDS`, `MEMORY`, optional: the limits of one input. `MEMORY` 0: none (drivers map what they like).
- `ready() -> str`, optional: why the target cannot run here, or an empty string.

`Run` counts inputs, stands guard over each, and keeps one input per distinct failure.
"""

import importlib.util
import mmap
import os
import random
import resource
import signal
import struct
import time
import traceback
from collections.abc import Callable, Iterable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from mutate_numbers import INTERESTING, Impossible, damaged

ROOT = Path(__file__).parents[2]
TARGETS = ROOT / "tests" / "fuzz" / "targets"
FINDINGS = ROOT / "tests" / "fuzz" / "findings"
#: defaults of a target: bytes of an input, CPU seconds that one may take, bytes that the process may grow by
MAX_BYTES, SECONDS, MEMORY = 4096, 5.0, 1 << 30
#: CPU seconds after which an input that does not end is ended with its process
HANG = 30.0
#: of so many mutations one is left unrepaired
UNREPAIRED = 10

Mutator = Callable[[random.Random, bytes], bytes]


class Target(NamedTuple):
    """A file of `targets/`, with defaults for what it does not say."""

    name: str
    doc: str
    one_input: Callable[[bytes], object]
    seeds: Callable[[], Iterable[bytes]]
    mutate: Mutator | None
    repair: Callable[[bytes], bytes] | None
    pool: tuple[bytes, ...]
    most_bytes: int
    seconds: float
    memory: int
    ready: Callable[[], str]


def names() -> list[str]:
    return sorted(path.stem for path in TARGETS.glob("*.py"))


def load(name: str) -> Target:
    """A target by its name, or by the path of a file elsewhere."""
    path = Path(name) if name.endswith(".py") else TARGETS / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"fuzz_target_{path.stem}", path)
    assert spec is not None and spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    given = partial(getattr, module)
    return Target(
        path.stem,
        (module.__doc__ or "").strip(),
        module.one_input,
        module.seeds,
        given("mutate", None),
        given("repair", None),
        tuple(given("POOL", ())),
        given("MAX_BYTES", MAX_BYTES),
        given("SECONDS", SECONDS),
        given("MEMORY", MEMORY),
        given("ready", lambda: ""),
    )


class Broken(Exception):
    """The property of a target does not hold."""


def check(holds: object, message: str) -> None:
    """`assert` that is there under -O too."""
    if not holds:
        raise Broken(message)


# mutation


def mutated(choose: random.Random, data: bytes, others: list[bytes], pool: tuple[bytes, ...] = ()) -> bytes:
    """A change that knows nothing of the structure."""
    for _ in range(choose.choice((1, 1, 1, 2, 4))):
        data = _edited(choose, data, others, pool)
    return data


def _edited(choose: random.Random, data: bytes, others: list[bytes], pool: tuple[bytes, ...]) -> bytes:
    at = choose.randrange(len(data) + 1)
    end = min(len(data), at + choose.choice((1, 1, 2, 4, 8, 32)))
    match choose.randrange(8):
        case 0:
            return data[:at] + data[end:]
        case 1:
            return data[:at] + choose.randbytes(choose.choice((1, 2, 4, 8))) + data[at:]
        case 2:
            return data[:at] + data[at:end] * choose.choice((2, 2, 3, 8)) + data[end:]
        case 3:
            other = choose.choice(others)
            start = choose.randrange(len(other) + 1)
            return data[:at] + other[start : start + choose.choice((1, 4, 16, 64, 4096))] + data[end:]
        case 4 if pool:
            return data[:at] + choose.choice(pool) + data[choose.choice((at, end)) :]
        case 5:
            number = choose.choice(INTERESTING)
            word = str(number).encode() if choose.random() < 0.5 else (number % 2**64).to_bytes(8, "little")
            return data[:at] + word + data[choose.choice((at, end)) :]
        case _:
            try:
                return damaged(choose, data)
            except Impossible:
                return data + choose.randbytes(4)


def words_mutated(choose: random.Random, data: bytes, width: int) -> bytes:
    """A change of whole words of `width` bytes: replaced, removed, doubled, moved."""
    words = [data[at : at + width] for at in range(0, len(data) // width * width, width)]
    if not words:
        return data
    for _ in range(choose.choice((1, 1, 2, 4))):
        at, other = (choose.randrange(len(words)) for _ in range(2))
        match choose.randrange(5):
            case 0 if len(words) > 1:
                del words[at]
            case 1:
                words.insert(at, words[other])
            case 2:
                words[at] = words[other]
            case 3:
                words[at] = (choose.choice(INTERESTING) % (1 << 8 * width)).to_bytes(width, "little")
            case _:
                number = int.from_bytes(words[at], "little") + choose.choice((-1, 1, 1 << choose.randrange(8 * width)))
                words[at] = (number % (1 << 8 * width)).to_bytes(width, "little")
    return b"".join(words)


def tokens_mutated(choose: random.Random, tokens: list[str], pool: list[str]) -> list[str]:
    """Tokens left out, doubled, exchanged, put in; mostly by one that begins alike."""
    tokens = list(tokens)
    for _ in range(choose.choice((1, 1, 1, 2, 3))):
        if not tokens:
            return [choose.choice(pool)]
        at = choose.randrange(len(tokens))
        match choose.randrange(7):
            case 0:
                del tokens[at]
            case 1:
                tokens.insert(at, choose.choice(pool))
            case 2:
                other = choose.randrange(len(tokens))
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 3:
                start = choose.randrange(len(tokens))
                tokens[at:at] = tokens[start : start + choose.choice((1, 3, 10))]
            case _:
                alike = [token for token in choose.choices(pool, k=40) if token[:1] == tokens[at][:1]]
                tokens[at] = choose.choice(alike or pool)
    return tokens


def mutant(target: Target, choose: random.Random, data: bytes, others: list[bytes], plain: Mutator | None) -> bytes:
    """The next input made of `data`. `plain` replaces the generic mutator (atheris has one of its own)."""
    made = _by_structure(target, choose, data) if choose.random() < 0.6 else None
    if made is None:
        generic = plain is None or choose.random() < 0.3
        made = mutated(choose, data, others, target.pool) if generic else plain(choose, data)
    if target.repair is not None and choose.randrange(UNREPAIRED):
        made = target.repair(made)
    return made[: target.most_bytes]


def _by_structure(target: Target, choose: random.Random, data: bytes) -> bytes | None:
    """None where the target has no mutator, or where it finds nothing to change."""
    try:
        return None if target.mutate is None else target.mutate(choose, data)
    except Impossible:
        return None


# one run


class State(NamedTuple):
    """What a run has done, read by whoever started it, also after it was killed."""

    executions: int
    current: bytes


_STATE = struct.Struct("<QQ")


def read_state(path: Path) -> State:
    data = path.read_bytes()
    executions, length = _STATE.unpack_from(data)
    return State(executions, data[_STATE.size : _STATE.size + length])


class Unended(Exception):
    """Raised by a target: something in the process works on that nobody can end. Another process goes on."""


class Run:
    """Inputs of one target, one after the other, in this process. `folder` gets state and findings."""

    def __init__(self, target: Target, folder: Path) -> None:
        self.target, self.folder = target, folder
        self.executions = 0
        self.found: set[str] = set()  #: names of the findings
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "state"
        path.write_bytes(bytes(_STATE.size + target.most_bytes))
        with path.open("r+b") as file:
            self._state = mmap.mmap(file.fileno(), 0)

    def limit(self) -> None:
        """A blow-up of memory is a MemoryError, and so a finding; an input that does not end ends the process."""
        if self.target.memory:
            with open("/proc/self/statm") as file:
                used = int(file.read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + self.target.memory,) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGPROF, signal.SIG_DFL)

    def one(self, data: bytes) -> None:
        """Run one input; what goes wrong is kept as a finding, and does not leave."""
        self._state[: _STATE.size + len(data)] = _STATE.pack(self.executions, len(data)) + data
        self.executions += 1
        signal.setitimer(signal.ITIMER_PROF, HANG)
        started = time.process_time()
        try:
            self.target.one_input(data)
        except Unended:
            os._exit(0)
        except Exception as error:
            self._keep(data, error)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        taken = time.process_time() - started
        if taken > self.target.seconds:
            self._keep(data, Broken(f"{taken:.1f} s of CPU for {len(data)} bytes, {self.target.seconds:g} allowed"))

    def _keep(self, data: bytes, error: Exception) -> None:
        """One input per type of error and place, the first that was met."""
        frames = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in frames if not frame.filename.endswith("fuzzing.py")] or frames
        where = f"{ours[-1].filename}:{ours[-1].lineno}" if ours else "slow"
        name = f"{type(error).__name__}-{sha256(where.encode()).hexdigest()[:8]}"
        if name in self.found:
            return
        self.found.add(name)
        (self.folder / f"{name}.bin").write_bytes(data)
        text = "".join(traceback.format_exception(error))
        (self.folder / f"{name}.txt").write_text(text, errors="backslashreplace")


def plainly(target: Target, run: Run, seconds: float, seed: int, first: bool = False) -> int:
    """Mutants of the seeds, without feedback, with `first` until there is a finding. Gives the number of seeds."""
    end = time.monotonic() + seconds
    seeds = list(target.seeds())
    choose = random.Random(f"{target.name}/{seed}")
    run.limit()
    for data in seeds:
        run.one(data[: target.most_bytes])
    while time.monotonic() < end and not (first and run.found):
        data = choose.choice(seeds)
        for _ in range(choose.choice((1, 1, 2, 5))):
            data = mutant(target, choose, data, seeds, None)
        run.one(data)
    return len(seeds)


def guided(target: Target, run: Run, seconds: float, seed: int, first: bool = False) -> None:
    """With atheris, whose modules are instrumented already, with `first` until there is a finding. Does not return:
    libFuzzer ends the process.
    """
    import atheris

    corpus = run.folder / "corpus"
    corpus.mkdir(exist_ok=True)
    seeds = [data[: target.most_bytes] for data in target.seeds()]
    for data in seeds:
        (corpus / sha256(data).hexdigest()[:20]).write_bytes(data)

    def plain(choose: random.Random, data: bytes) -> bytes:
        return bytes(atheris.Mutate(data, target.most_bytes))

    def custom(data: bytes, most: int, number: int) -> bytes:
        return mutant(target, random.Random(number), bytes(data), seeds, plain)[:most]

    def one(data: bytes) -> None:
        run.one(data)
        if first and run.found:
            os._exit(0)

    options = [
        "fuzz",
        f"-max_total_time={max(1, round(seconds))}",
        f"-seed={seed + 1}",
        f"-max_len={target.most_bytes}",
        f"-artifact_prefix={run.folder}/",
        "-rss_limit_mb=0",
        "-timeout=120",
        "-reload=0",
        "-print_final_stats=1",
        str(corpus),
    ]
    atheris.Setup(options, one, custom_mutator=custom)
    run.limit()
    atheris.Fuzz()


def has_atheris() -> bool:
    return importlib.util.find_spec("atheris") is not None and os.name == "posix"
