"""Files of schedules, which `vm-tune` writes and `vm-compile --schedules=FILE` reads.

    orchestrion-schedules 1
    # main_dispatch_0: 1,250.0 us -> 810.2 us
    schedule opencl cpu 0123456789abcdef0123456789abcdef [tile(m, 4), tile(n, 16), bind(grid, invocation, 32)]

The first line is the header with the version of the format; a reader refuses other versions. A line that begins with
`#` is a comment. Each other line is a choice: its kind, target, machine, digest of the body, and schedules of an entry,
those with a condition first. One space separates fields. A body has at most one choice per target and machine.
`digest_of` defines what a digest covers.

Files are untrusted: `parse` accepts a file or raises CompileError with its name and line. The pass `choose-schedules`
checks whether a schedule fits a body.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.ir.attributes import DialectAttr, StringAttr
from orchestrion.compiler.ir.printer import operation_text
from orchestrion.compiler.kernel.schedule import ATTRIBUTE, Schedule, ScheduleError
from orchestrion.compiler.kernel.schedule import parse as parse_schedule
from orchestrion.compiler.stablehlo.ops.func import Func
from orchestrion.schema import files

#: the only version that a reader accepts; a change of the format or of what a digest covers needs a new version
HEADER: Final = "orchestrion-schedules 1"
#: most bytes of a file, characters of a line, choices of a file, schedules of a choice
MAX_BYTES, MAX_LINE, MAX_CHOICES, MAX_SCHEDULES = 4 << 20, 8192, 1 << 16, 32
#: hexadecimal digits of a digest
DIGITS: Final = 32
_CHOICE: Final = re.compile(
    rf"schedule (?P<target>[A-Za-z0-9_.-]+) (?P<machine>[A-Za-z0-9_.-]+) (?P<digest>[0-9a-f]{{{DIGITS}}})"
    r"(?P<schedules>(?: \[[^\[\]]*\])+)"
)
_BRACKETS: Final = re.compile(r"\[[^\[\]]*\]")

#: target, machine, digest of a body
Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class SavedChoice:
    """The schedules of a body for a target and machine, those with a condition first. `line`: its line in the file, 0
    if it was not read from one. `notes`: comments in front of it, which are not read back.
    """

    target: str
    machine: str
    digest: str
    schedules: tuple[Schedule, ...]
    line: int = field(default=0, compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)

    @property
    def key(self) -> Key:
        """Target, machine, and digest of the body."""
        return self.target, self.machine, self.digest

    def __str__(self) -> str:
        texts = (one.attribute.body for one in self.schedules)
        return " ".join(["schedule", self.target, self.machine, self.digest, *texts])


@dataclass(frozen=True, slots=True)
class ScheduleFile:
    """The choices of a file in its order. `name`: its name in messages."""

    name: str
    choices: tuple[SavedChoice, ...]

    def place(self, choice: SavedChoice) -> str:
        """File and line of a choice."""
        return f"{self.name}:{choice.line}"

    def text(self) -> str:
        """The text of the file: choices in the order of their keys, with their notes as comments."""
        lines = [HEADER]
        for choice in sorted(self.choices, key=lambda one: one.key):
            lines += [f"# {' '.join(note.split())}" for note in choice.notes]
            lines.append(str(choice))
        return "".join(f"{line}\n" for line in lines)


class SavedSchedules:
    """The choices of a file during the compilation of one module. Records which of them are used."""

    def __init__(self, file: ScheduleFile) -> None:
        self.file = file
        self._choices = {choice.key: choice for choice in file.choices}
        self._taken: set[Key] = set()

    def take(self, target: str, machine: str, digest: str) -> SavedChoice | None:
        """The choice for a body; None if the file has none."""
        found = self._choices.get((target, machine, digest))
        if found is not None:
            self._taken.add(found.key)
        return found

    def unused(self) -> Iterator[SavedChoice]:
        """The choices that no entry used, in the order of the file."""
        return (choice for choice in self.file.choices if choice.key not in self._taken)

    def unused_text(self, programs: Iterable[tuple[str, str]]) -> str:
        """A warning about unused choices for the targets and machines of `programs`; empty if there are none. Choices
        for other targets belong to other compilations of the program.
        """
        there = set(programs)
        places = [self.file.place(choice) for choice in self.unused() if (choice.target, choice.machine) in there]
        if not places:
            return ""
        more = f" and {len(places) - 3} more" if len(places) > 3 else ""
        return f"schedules that no body of the program has are not used: {', '.join(places[:3])}{more}"


def digest_of(func: Func, kind: str, tied: Sequence[int]) -> str:
    """The digest of a body. It covers the text without names, locations and schedules, the kind, and which results use
    the memory of which arguments.

    `tied`: per result an argument, or -1; may be empty if there are only -1.
    """
    copy = func.clone({})
    assert isinstance(copy, Func)
    copy.sym_name = StringAttr("")
    for name in ("schedules", "kind"):
        copy.properties.pop(name, None)
    ties = tuple(tied) or (-1,) * len(func.function_type.results)
    return sha256(f"{kind}\n{ties}\n{operation_text(copy)}".encode()).hexdigest()[:DIGITS]


def read(path: str | os.PathLike[str]) -> ScheduleFile:
    """The choices of a file. Raises CompileError if it cannot be read or is invalid."""
    name = os.fspath(path)
    try:
        return parse(files.read_whole(path), name)
    except OSError as error:
        raise CompileError(f"{name}: {error.strerror or error}") from None


def parse(data: bytes, name: str) -> ScheduleFile:
    """The choices in the bytes of a file. `name`: its name in messages. Raises CompileError with the line if they are
    invalid.
    """
    if len(data) > MAX_BYTES:
        raise CompileError(f"{name}: a file of schedules has {MAX_BYTES} bytes at most, this one has {len(data)}")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise _wrong(name, data.count(b"\n", 0, error.start) + 1, "the line is no UTF-8") from None
    lines = text.removesuffix("\n").split("\n")
    if lines[0].rstrip("\r") != HEADER:
        raise _wrong(
            name, 1, f"the first line is not {HEADER!r}: this is no file of schedules, or one of another version"
        )
    found: dict[Key, SavedChoice] = {}
    for number, line in enumerate(lines[1:], 2):
        choice = _choice(line.rstrip("\r"), name, number)
        if choice is None:
            continue
        if (first := found.setdefault(choice.key, choice)) is not choice:
            raise _wrong(name, number, f"the line chooses for the same body, target and machine as line {first.line}")
        if len(found) > MAX_CHOICES:
            raise _wrong(name, number, f"the line is one choice too many: a file has {MAX_CHOICES} at most")
    return ScheduleFile(name, tuple(found.values()))


def _choice(line: str, name: str, number: int) -> SavedChoice | None:
    """The choice of a line; None for a comment or an empty line."""
    if len(line) > MAX_LINE:
        raise _wrong(name, number, f"the line has {len(line)} characters, {MAX_LINE} are the most")
    if not line.strip() or line.startswith("#"):
        return None
    match = _CHOICE.fullmatch(line)
    if match is None:
        raise _wrong(name, number, f"{line[:80]!r} is not of the form 'schedule TARGET MACHINE DIGEST [STEP, ...]'")
    texts = _BRACKETS.findall(match["schedules"])
    if len(texts) > MAX_SCHEDULES:
        raise _wrong(name, number, f"the line has {len(texts)} schedules, {MAX_SCHEDULES} are the most")
    try:
        schedules = tuple(parse_schedule(DialectAttr(ATTRIBUTE, text)) for text in texts)
    except ScheduleError as error:
        raise _wrong(name, number, str(error)) from None
    return SavedChoice(match["target"], match["machine"], match["digest"], schedules, number)


def _wrong(name: str, line: int, message: str) -> CompileError:
    return CompileError(f"{name}:{line}: {message}")
