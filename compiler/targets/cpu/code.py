"""Lines of LLVM IR of one function: names of values, labels, and nodes that join values of two ways."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

#: the note of a loop that LLVM must not unroll
ROLLED: Final = "!0"
#: most iterations of a loop that are joined
MOST_JOINED: Final = 8
#: what assembly says that may write any memory
_WRITES = "~{memory}"


def joined(most: int, count: int | None, limit: int = MOST_JOINED) -> int:
    """How many iterations of a loop are joined. `count`: those of the loop, if that is known. A number that divides it
    leaves none for other code; it is `most` unless another one, up to `limit`, divides.
    """
    numbers = [most, *range(limit, 2, -1)] if count is not None else [most]
    return next((number for number in numbers if not (count or 0) % number), most)


def joins(number: int) -> str:
    """The note of a loop of which LLVM joins as many iterations."""
    return f"!{2 * number}"


def notes(joins: bool) -> str:
    """The metadata of a text that the notes of loops name. `joins`: iterations of some are joined."""
    lines = ["!0 = distinct !{!0, !1}", '!1 = !{!"llvm.loop.unroll.disable"}']
    for number in range(2, MOST_JOINED + 1) if joins else ():
        note, count = 2 * number, 2 * number + 1
        lines += [
            f"!{note} = distinct !{{!{note}, !{count}}}",
            f'!{count} = !{{!"llvm.loop.unroll.count", i32 {number}}}',
        ]
    return "\n".join(lines)


@dataclass(slots=True)
class Code:
    """The lines of a function. `label`: the basic block that is being written. `prologue`: lines of the first block
    that reserve memory on the stack. `is_rare`: the code that is being written hardly ever runs, so it is small.
    """

    lines: list[str] = field(default_factory=list)
    prologue: list[str] = field(default_factory=list)
    label: str = "entry"
    is_rare: bool = False
    _count: int = 0

    def new(self, prefix: str = "v") -> str:
        """A name that no other value or block has."""
        self._count += 1
        return f"{prefix}{self._count}"

    def set(self, text: str) -> str:
        """A value: the result of an instruction."""
        name = f"%{self.new()}"
        self.lines.append(f"  {name} = {text}")
        return name

    def opaque(self, type: str, value: str) -> str:
        """A value of which LLVM does not know how it is computed, so that it is computed where the text says."""
        return self.set(f'call {type} asm "", "=r,0"({type} {value})')

    def held(self, type: str, values: list[str], in_order: bool = False) -> list[str]:
        """Vectors that are all computed in front of this place, each in a register, before any of them is used.
        `in_order`: loads stay in front of it or behind it, too.
        """
        types, places = ", ".join([type] * len(values)), [*(["=x"] * len(values)), *map(str, range(len(values)))]
        places += [_WRITES] if in_order else []
        given = ", ".join(f"{type} {value}" for value in values)
        found = self.set(f'call {{ {types} }} asm sideeffect "", "{",".join(places)}"({given})')
        return [self.set(f"extractvalue {{ {types} }} {found}, {number}") for number in range(len(values))]

    def keep_order(self) -> None:
        """Loads stay in front of this place, or behind it."""
        self.do(f'call void asm sideeffect "", "{_WRITES}"()')

    def do(self, text: str) -> None:
        """An instruction without a result."""
        self.lines.append(f"  {text}")

    def shuffle(self, type: str, x: str, lanes: Iterable[int], y: str = "poison") -> str:
        """The vector of some lanes of two vectors of a type, those of `y` behind those of `x`."""
        mask = [f"i32 {lane}" for lane in lanes]
        return self.set(f"shufflevector {type} {x}, {type} {y}, <{len(mask)} x i32> <{', '.join(mask)}>")

    def spread(self, scalar: str, type: str, lanes: int) -> str:
        """A vector with a scalar in all lanes."""
        wide = f"<{lanes} x {type}>"
        one = self.set(f"insertelement {wide} poison, {type} {scalar}, i64 0")
        return self.set(f"shufflevector {wide} {one}, {wide} poison, <{lanes} x i32> zeroinitializer")

    def in_parts(
        self, scalar: str, lanes: int, most: int, vectors: Sequence[str], of: Callable[[int, Sequence[str]], str]
    ) -> str:
        """The vector that a function gives for vectors of elements of a type, called for parts of up to `most` lanes.
        `of`: takes a number of lanes, and vectors of so many.
        """
        if lanes <= most:
            return of(lanes, vectors)
        type, half, parts = f"<{lanes} x {scalar}>", lanes // 2, list[str]()
        for first in (0, half):
            given = [self.shuffle(type, vector, range(first, first + half)) for vector in vectors]
            parts.append(self.in_parts(scalar, half, most, given, of))
        return self.shuffle(f"<{half} x {scalar}>", parts[0], range(lanes), parts[1])

    def together(self, type: str, parts: list[str], lanes: int) -> str:
        """A vector of parts of a type, with as many lanes each."""
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [self.shuffle(type, x, range(2 * lanes), y) for x, y in pairs]
            type, lanes = f"<{2 * lanes} x {type.split()[-1]}", 2 * lanes
        return parts[0]

    def prefetch(self, address: str, write: bool = False) -> None:
        """Prefetches the cache line of an address. `write`: it is written next."""
        self.do(f"call void @llvm.prefetch.p0(ptr {address}, i32 {int(write)}, i32 3, i32 1)")

    def begin(self, label: str) -> None:
        """Begins a basic block."""
        self.lines.append(f"{label}:")
        self.label = label

    def jump(self, label: str) -> None:
        """Ends a basic block."""
        self.do(f"br label %{label}")

    def fork(self, condition: str, yes: str, no: str) -> None:
        """Ends a basic block by a condition."""
        self.do(f"br i1 {condition}, label %{yes}, label %{no}")

    def join(self, type: str, *ways: tuple[str, str]) -> str:
        """The value that comes from the basic block before this one. `ways`: values and labels."""
        return self.set(f"phi {type} " + ", ".join(f"[ {value}, %{label} ]" for value, label in ways))

    def either(
        self, condition: str, yes: Callable[[], list[str]], no: Callable[[], list[str]], types: Iterable[str]
    ) -> list[str]:
        """The values of these types that one of two functions, which write the arms of a branch, returns."""
        labels, done, ways = [self.new("yes"), self.new("no")], self.new("done"), list[tuple[list[str], str]]()
        self.fork(condition, *labels)
        for label, arm in zip(labels, (yes, no), strict=True):
            self.begin(label)
            ways.append((arm(), self.label))
            self.jump(done)
        self.begin(done)
        return [self.join(type, *((values[at], label) for values, label in ways)) for at, type in enumerate(types)]

    def reserve(self, type: str) -> str:
        """The address of new memory on the stack, for the whole function."""
        name = f"%{self.new('s')}"
        self.prologue.append(f"  {name} = alloca {type}, align 64")
        return name

    @contextmanager
    def counting(
        self, type: str, lower: str, upper: str, step: str, wraps: bool = True, note: str = ""
    ) -> Iterator["Loop"]:
        """A loop whose counter goes from `lower` below `upper`. Its body is written inside. `note`: metadata of
        the jump back.
        """
        loop = Loop(self, type, upper)
        yield loop.open(lower)
        note = ROLLED if self.is_rare else note
        loop.close(
            f"add {'' if wraps else 'nuw '}{type} {loop.counter}, {step}", f", !llvm.loop {note}" if note else ""
        )


class Loop:
    """A loop that is being written: `counter`, and values that each iteration hands to the next one."""

    def __init__(self, code: Code, type: str, upper: str) -> None:
        self.code, self.type, self.upper = code, type, upper
        self.head, self.body, self.done = code.new("head"), code.new("body"), code.new("done")
        self.counter = ""
        self._carried: list[tuple[int, str, str]] = []
        self._next: list[str] = []

    def open(self, lower: str) -> "Loop":
        """Begins the block in which the condition is checked."""
        before = self.code.label
        self.code.jump(self.head)
        self.code.begin(self.head)
        self._before = before
        self.counter = self._node(self.type, lower)
        return self

    def carry(self, type: str, start: str) -> str:
        """A value that the first iteration gets as `start`."""
        return self._node(type, start)

    def run(self) -> None:
        """Begins the body."""
        condition = self.code.set(f"icmp ult {self.type} {self.counter}, {self.upper}")
        self.code.fork(condition, self.body, self.done)
        self.code.begin(self.body)

    def yield_values(self, values: list[str]) -> None:
        """The values for the next iteration, in the order of `carry`."""
        self._next = values

    def close(self, step: str, note: str) -> None:
        """Ends the body, and begins the block behind the loop. `note`: metadata of the jump back."""
        following = self.code.set(step)
        end = self.code.label
        for (line, type, start), value in zip(self._carried, [following, *self._next], strict=True):
            name = self.code.lines[line].split(" = ")[0]
            self.code.lines[line] = f"{name} = phi {type} [ {start}, %{self._before} ], [ {value}, %{end} ]"
        self.code.do(f"br label %{self.head}{note}")
        self.code.begin(self.done)

    def _node(self, type: str, start: str) -> str:
        name = self.code.set("phi")
        self._carried.append((len(self.code.lines) - 1, type, start))
        return name
