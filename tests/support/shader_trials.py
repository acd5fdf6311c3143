"""A shader's trial: proposed by a seed, judged by the checker, and what it accepts is run with hostile values.

It runs as it is, with robust access to buffers assumed and any content of workgroup memory, and once more as the loader
rewrites it (`spirv_harden`): then no access may leave a buffer either, and no workgroup memory is read uncleared.

A *finding* is an accepted shader that breaks a promise when it runs, or one that makes the checker raise anything but
its one error. `shrink` drops instructions while the same kind of finding stays.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from random_shaders import Shader, generate
from spirv_interpreter import FUEL, Run, Setup
from spirv_memory import Adversary, Finding
from spirv_program import Program

from orchestrion.hal.backend import Entry
from orchestrion.hal.vulkan import spirv_check, spirv_harden
from orchestrion.hal.vulkan.spirv_selections import split_selections
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.spirv import EXT_BY_CODE, OP_BY_CODE

#: runs of an accepted shader as it is, each with other values
RUNS = 2
#: bytes of buffers; an element has 32 at most
SIZES = (32, 36, 48, 64)
#: (null initializers, clamps), as devices need it; a loop that clears is run for this many elements at most
REWRITES = ((True, True), (False, True), (True, False))
CLEARED = 700
#: type -> the HAL feature that it needs
NEEDS = {"u8": "int8", "u16": "int16", "u64": "int64", "f64": "float64"}
_WORDS = (0, 1, 2, 3, 31, 32, 0x7F, 0x80, 0xFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF, 0x7FC00000, 0x7F800000,
          0x4F000000, 0x3F800000, 0xBF800000)  # fmt: skip
_GRIDS = ((1, 1, 1), (2, 3, 1), (65535, 1, 65535))


class Trial(NamedTuple):
    """What became of a seed: `codes` and `extended` count the instructions of an accepted shader."""

    shader: Shader
    accepted: bool
    finding: str
    codes: list[int]
    extended: list[int]


def trial(seed: int) -> Trial:
    shader = generate(seed)
    codes: list[int] = []
    extended: list[int] = []
    try:
        summary = verified(shader.payload, shader.entries)
        if summary is None:
            return Trial(shader, False, "", codes, extended)
        program = Program(words_of(shader.payload))
        codes, extended = program.codes, program.extended
        compare(program, shader.entries, summary)
        run(program, shader.entries, seed)
        run_rewritten(program, shader, seed)
    except Finding as finding:
        return Trial(shader, True, str(finding), codes, extended)
    except Exception as error:  # the shader holds what the interpreter does not know
        return Trial(shader, True, f"interpreter: {type(error).__name__}: {error}", codes, extended)
    return Trial(shader, True, "", codes, extended)


def accepts(payload: bytes, entries: tuple[Entry, ...]) -> bool:
    """The checker's judgement; a `Finding` where it raises what it may not."""
    return verified(payload, entries) is not None


def verified(payload: bytes, entries: tuple[Entry, ...]) -> spirv_check.Summary | None:
    try:
        return spirv_check.verify(memoryview(payload), entries)
    except ModuleError:
        return None
    except Exception as error:
        raise Finding("checker", f"raises {type(error).__name__}: {error}") from error


def compare(program: Program, entries: tuple[Entry, ...], summary: spirv_check.Summary) -> None:
    """A `Finding` where the program needs what the checker's summary or its entry does not say."""
    missing = {NEEDS[row.name] for row in program.types.values() if row.name in NEEDS} - summary.features
    if missing:
        raise Finding("summary", f"needs {missing}")
    for entry in entries:
        function = program.entries[entry.name]
        if program.sizes[function] != entry.workgroup_size:
            raise Finding("summary", f"a workgroup of {program.sizes[function]}")
        used = (program.variables[id] for id in program.used[function])
        shared = sum(row.content.bytes for row in used if row.storage == "Workgroup")
        if shared > summary.shared_bytes[entry.name]:
            raise Finding("summary", f"{shared} bytes of workgroup memory")


def words_of(payload: bytes) -> list[int]:
    return np.frombuffer(payload, "<u4").tolist()  # type: ignore[no-any-return]


def run(program: Program, entries: tuple[Entry, ...], seed: int) -> None:
    """Runs each entry with hostile values; a `Finding` where it breaks a promise."""
    for number in range(RUNS):
        adversary = Adversary(RUNS * seed + number)
        for entry in entries:
            Run(program, setup(entry, RUNS * seed + number), adversary).entry(entry.name)


def run_rewritten(program: Program, shader: Shader, seed: int) -> None:
    """The same for the words that the loader makes of an accepted shader, on a device that bounds nothing."""
    lengths = [row.content.length for row in program.variables.values() if row.storage == "Workgroup"]
    null_initializers, clamp_buffers = REWRITES[seed % len(REWRITES)]
    payload = spirv_harden.harden(
        shader.payload,
        null_initializers=null_initializers or sum(lengths) > CLEARED,
        clamp_buffers=clamp_buffers,
        shared=bool(lengths),
    )
    rewritten = Program(words_of(split_selections(payload) if seed & 1 else payload))
    for entry in shader.entries:
        given = setup(entry, seed)
        given.robust, given.strict = not clamp_buffers, True
        Run(rewritten, given, Adversary(seed), 4 * FUEL).entry(entry.name)


def setup(entry: Entry, seed: int) -> Setup:
    """Buffers and parameters of extremes; the last workgroup of a grid."""
    rng = random.Random(seed)
    words = rng.choices(_WORDS, k=len(entry.bindings) * SIZES[-1] // 4 + entry.parameter_words)
    memory = np.array(words, "<u4").tobytes()
    buffers = []
    for binding in range(len(entry.bindings)):
        at, size = binding * SIZES[-1], SIZES[(seed + binding) % len(SIZES)]
        buffers.append(bytearray(memory[at : at + size]))
    grid = _GRIDS[seed % len(_GRIDS)]
    x, y, z = grid
    parameters = tuple(words[len(words) - entry.parameter_words :])
    read_only = frozenset(at for at, (access, _) in enumerate(entry.bindings) if access == "read")
    return Setup(buffers, parameters, (x - 1, y - 1, z - 1), grid, read_only=read_only)


def kind_of(shader: Shader, seed: int) -> str:
    """The kind of finding that a shader gives, "" where it gives none."""
    try:
        summary = verified(shader.payload, shader.entries)
        if summary is not None:
            program = Program(words_of(shader.payload))
            compare(program, shader.entries, summary)
            run(program, shader.entries, seed)
            run_rewritten(program, shader, seed)
    except Finding as finding:
        return finding.kind
    except Exception:  # as in `trial`
        return "interpreter"
    return ""


def shrink(shader: Shader, seed: int) -> Shader:
    """The shader without the instructions that its finding does not need."""
    kind = kind_of(shader, seed)

    def keeps(words: list[int]) -> bool:
        return kind_of(_with(shader, words), seed) == kind

    words, size = words_of(shader.payload), 32
    while size:
        words = _without(words, size, keeps)
        size //= 2
    return _with(shader, words)


def _with(shader: Shader, words: list[int]) -> Shader:
    return shader._replace(payload=np.array(words, "<u4").tobytes())


def _without(words: list[int], size: int, keeps: Callable[[list[int]], bool]) -> list[int]:
    """Drops runs of so many instructions, from the end on."""
    starts = instruction_starts(words)
    place = len(starts) - 1 - size
    while place >= 0:
        smaller = words[: starts[place]] + words[starts[place + size] :]
        if keeps(smaller):
            words = smaller
            starts = instruction_starts(words)
            place = min(place, len(starts) - size)
        place -= 1
    return words


def instruction_starts(words: list[int]) -> list[int]:
    """The word that each instruction starts at, and the end."""
    starts, at = [], 5
    while at < len(words):
        starts.append(at)
        at += words[at] >> 16
    return [*starts, at]


def text(payload: bytes) -> str:
    """The instructions, one a line: opcode's name and words."""
    words = words_of(payload)
    starts = instruction_starts(words)
    lines = []
    for at, end in zip(starts, starts[1:], strict=False):
        row = OP_BY_CODE.get(words[at] & 0xFFFF)
        name = row.name if row is not None else f"opcode {words[at] & 0xFFFF}"
        lines.append(f"{name} {' '.join(map(str, words[at + 1 : end]))}")
    return "\n".join(lines)


class Report:
    """Counts of many trials. `uses` has instructions, extended instructions and forms of accepted shaders."""

    def __init__(self) -> None:
        self.proposed = 0
        self.accepted = 0
        self.uses: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()  #: proposals in shaders that were refused
        self.passed: Counter[str] = Counter()  #: proposals in shaders that were accepted
        self.findings: dict[int, str] = {}

    def add(self, seed: int, made: Trial) -> None:
        self.proposed += 1
        (self.passed if made.accepted else self.refused).update(set(made.shader.proposals))
        if made.finding:
            self.findings[seed] = made.finding
        if made.accepted:
            self.accepted += 1
            self.uses.update([OP_BY_CODE[code].name for code in set(made.codes) if code in OP_BY_CODE])
            self.uses.update([EXT_BY_CODE[code].name for code in set(made.extended) if code in EXT_BY_CODE])
            self.uses.update(set(made.shader.forms))

    def merge(self, other: "Report") -> None:
        self.proposed += other.proposed
        self.accepted += other.accepted
        self.uses += other.uses
        self.refused += other.refused
        self.passed += other.passed
        self.findings |= other.findings


def trials(seeds: Iterable[int]) -> Report:
    report = Report()
    for seed in seeds:
        report.add(seed, trial(seed))
    return report
