"""The kernel of `flow.fft`: a workgroup transforms one line, or several short ones, in passes through shared memory.

A pass handles one factor of the length. The first pass loads its numbers, and the last one writes them. In between they
stay at their places in shared memory, with a barrier behind each pass, so a line needs no second array. An invocation
transforms as many numbers as the factor, a stride apart, rotates them, and writes them back (decimation in frequency).
The results are then ordered by their reversed digits, and an invocation of the last pass reads its numbers in that
order.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import Size, typical
from orchestrion.compiler.kernel.elements.elemental import Elemental, ElementalCode
from orchestrion.compiler.kernel.elements.index import Index, delinearize
from orchestrion.compiler.kernel.elements.rules import element_of, shape_of
from orchestrion.compiler.scalars.math.number import Number
from orchestrion.compiler.stablehlo.ops.base import dtype_of
from orchestrion.compiler.stablehlo.ops.flow_ops import LineFft, longest, radices

from .dft import Complex, Dft

#: possible workgroup sizes; a workgroup has no more invocations than its largest pass keeps busy
LANES_PER_WORKGROUP = (16, 32, 64, 128)
#: least lines of a workgroup if neighbouring numbers belong to different lines, so that memory is read in runs
SIDE_BY_SIDE = 8


@dataclass(frozen=True, slots=True)
class Shares:
    """Lines per workgroup, invocations per workgroup, and number of lines."""

    lines: int
    lanes: int
    total: Size

    @property
    def groups(self) -> Size:
        """Number of workgroups."""
        return -(-self.total // self.lines)


def shares(op: LineFft) -> Shares:
    """How a dispatch of an op shares its lines."""
    shape, length = shape_of(op.operand_), op.length
    total = prod(shape[: op.axis]) * prod(shape[op.axis + 1 : -1])
    busy = length // (radices(length) or (1,))[0]
    room = longest(dtype_of(op.operand_).itemsize)
    wanted = max(LANES_PER_WORKGROUP[-2] // busy, SIDE_BY_SIDE if _is_across(op) else 1)
    lines = 1
    while 2 * lines <= wanted and 2 * lines * length <= room and lines < typical(total):
        lines *= 2
    lanes = next((count for count in LANES_PER_WORKGROUP if count >= busy * lines), LANES_PER_WORKGROUP[-1])
    return Shares(lines, lanes, total)


def _is_across(op: LineFft) -> bool:
    """Whether neighbouring numbers belong to different lines."""
    return prod(shape_of(op.operand_)[op.axis + 1 : -1]) != 1


def invocations(op: LineFft) -> Size:
    """Number of invocations of a dispatch."""
    found = shares(op)
    return found.groups * found.lanes


def emit(elemental: Elemental, op: LineFft, bindings: Mapping[Value, Value]) -> None:
    """Appends the code of a workgroup. `bindings`: where the result is written."""
    (binding,) = bindings.values()
    _Lines(elemental, op, binding, shares(op)).emit()


@dataclass(slots=True)
class _Lines(ElementalCode):
    """The transform of one op. `shared`: the parts of the numbers of all lines of the workgroup."""

    op: LineFft
    binding: Value
    shares: Shares
    shared: Sequence[Value] = ()

    @property
    def dtype(self) -> str:
        return element_of(self.op.operand_)

    @property
    def factors(self) -> tuple[int, ...]:
        return radices(self.op.length) or ()

    @property
    def dft(self) -> Dft:
        return Dft(1 if self.op.inverse.value else -1)

    def emit(self) -> None:
        size = 1 << (self.shares.lines * self.op.length - 1).bit_length()
        count = 2 if len(self.factors) > 1 else 0
        self.shared = [self.builder.shared(size, self.dtype) for _ in range(count)]
        for number, radix in enumerate(self.factors):
            if number:
                self.builder.barrier()
            self._each(self.shares.lines * self.op.length // radix, partial(self._butterfly, number))

    def _each(self, count: int, body: Callable[[Value], None]) -> None:
        """Runs the body for each of `count` items, which the invocations share."""
        b, lanes = self.builder, self.shares.lanes
        if count > lanes:
            with b.words(count, b.local_id(), lanes) as place:
                body(place)
        elif count < lanes:
            with b.when(b.op("compare_lt", b.local_id(), b.word(count))):
                body(b.local_id())
        else:
            body(b.local_id())

    def _butterfly(self, number: int, place: Value) -> None:
        """One transform of a pass: of numbers `step` apart, in a block that later passes divide."""
        b, length, radix = self.builder, self.op.length, self.factors[number]
        block = length // prod(self.factors[:number])
        step, is_last = block // radix, number == len(self.factors) - 1
        line, place = self._line(place, length // radix)
        if is_last:
            first, turn = b.op("multiply", self._reversed(place), b.word(radix)), b.word(0)
        else:
            turn = b.op("unchecked_remainder", place, b.word(step)) if number else place
            first = b.place(b.op("subtract", place, turn), radix, turn)
        places = [b.op("add", first, b.word(k * step)) for k in range(radix)]
        load = self._shared if number else self._given
        values = self.dft.of([load(line, at) for at in places])
        if is_last:
            self._write(line, place, values)
            return
        for k, (at, value) in enumerate(zip(places, values, strict=True)):
            if k:
                value = value * self._root(b.op("multiply", turn, b.word(k * (length // block))))
            for part, array in zip((value.real, value.imag), self.shared, strict=True):
                b.store_shared(part.value, array, self._address(line, at))

    def _line(self, butterfly: Value, count: int) -> tuple[Value, Value]:
        """The line of the workgroup that a butterfly belongs to, and its number among the `count` butterflies of the
        line.
        """
        lines = self.shares.lines
        if _is_across(self.op):
            place, line = delinearize(self.builder, butterfly, (count, lines))
        else:
            line, place = delinearize(self.builder, butterfly, (lines, count))
        return line, place

    def _reversed(self, place: Value) -> Value:
        """The block of the last pass whose first result has this number: the number with its digits reversed."""
        b = self.builder
        block, rest = b.word(0), place
        for radix in self.factors[:-1]:
            digit = b.op("unchecked_remainder", rest, b.word(radix))
            block = b.place(block, radix, digit)
            rest = b.op("unchecked_divide", rest, b.word(radix))
        return block

    # numbers

    def _given(self, line: Value, place: Value) -> Complex:
        """A number of the operand. Lines behind the last one repeat it, so that all invocations reach the barriers."""
        b = self.builder
        number = b.op("minimum", self._number(line), b.index(self.shares.total - 1))
        parts = [self.elemental.element(self.op.operand_, at) for at in self._at(self.op.operand_, number, place)]
        return self._complex(parts[0], parts[1] if len(parts) == 2 else b.const(0.0, self.dtype))

    def _complex(self, real: Value, imag: Value) -> Complex:
        return Complex(Number(self.builder, real), Number(self.builder, imag))

    def _root(self, at: Value) -> Complex:
        b, roots = self.builder, self.op.roots
        place = b.index(at)
        parts = (Index(b, shape_of(roots), [place, b.index(part)]) for part in range(2))
        return self._complex(*(self.elemental.element(roots, at) for at in parts))

    def _shared(self, line: Value, place: Value) -> Complex:
        return self._complex(*(self.builder.load_shared(array, self._address(line, place)) for array in self.shared))

    def _address(self, line: Value, place: Value) -> Value:
        """The position of a number of a line in the shared arrays."""
        b = self.builder
        return b.inside(self.shared[0], b.place(line, self.op.length, place))

    def _write(self, line: Value, place: Value, values: Sequence[Complex]) -> None:
        """Writes those of the results `place`, `place + step`, ... that the op has."""
        b, out, step = self.builder, self.op.out, self.op.length // len(values)
        wanted, number = shape_of(out)[self.op.axis], self._number(line)
        with b.when(b.op("compare_lt", number, b.index(self.shares.total))):
            for k, value in enumerate(values):
                if k * step >= wanted:
                    break
                at = b.op("add", place, b.word(k * step))
                with b.when(b.op("compare_lt", at, b.word(wanted)) if (k + 1) * step > wanted else None):
                    value = value.scaled(1.0 / self.op.length) if self.op.inverse.value else value
                    for part, index in zip((value.real, value.imag), self._at(out, number, at), strict=False):
                        b.store(part.value, self.binding, index.linear)

    # places

    def _number(self, line: Value) -> Value:
        """The number of a line among all lines."""
        b = self.builder
        first = b.op("multiply", b.workgroup_id(), b.index(self.shares.lines))
        return b.op("add", first, b.index(line))

    def _at(self, value: Value, number: Value, place: Value) -> list[Index]:
        """The indices of the parts of a number of a line."""
        b, axis, shape = self.builder, self.op.axis, shape_of(value)
        others = delinearize(b, number, shape[:axis] + shape[axis + 1 : -1])
        place = b.index(place)
        return [Index(b, shape, [*others[:axis], place, *others[axis:], b.index(part)]) for part in range(shape[-1])]
