"""Chooses the sizes for which memory and recordings are made, so that they serve later calls of other sizes.

The sizes of a call are values of expressions over symbols (`size_expressions.py`). A *capacity* is a value for each
symbol. A symbol with a declared greatest value gets that value, if the memory for it is affordable. Another symbol gets
its value in the call, and at least twice its value before when a call exceeds that. So `n` growing sizes lead to about
log2(n) capacities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from orchestrion.schema.isa import Effect

from .operands import constant
from .size_expressions import SizeExpression, read_size

if TYPE_CHECKING:
    from orchestrion.hal.device import Device

    from .code import Code
    from .linker import LinkedProgram

#: bytes that are affordable on any device
AFFORDABLE_BYTES: Final = 64 << 20
#: on a larger device, one part in so many of its memory is affordable
AFFORDABLE_PART: Final = 16


def affordable(device: Device, size: int) -> bool:
    """Whether `size` bytes may be allocated for a declared bound: at most 64 MiB or a sixteenth of the device's memory,
    whichever is more, and at most half of the bytes that the limits leave.
    """
    if size > max(AFFORDABLE_BYTES, device.info.memory_bytes // AFFORDABLE_PART):
        return False
    room = device.allocator.room
    return room is None or size <= room // 2


class Capacity:
    """The capacity for the sizes of one function.

    `expressions`: the expression of each size. A size whose expression is not known (None) is a symbol of its own.
    """

    __slots__ = ("_expressions", "_greatest", "_values")

    def __init__(self, expressions: Sequence[SizeExpression | None]) -> None:
        named = [
            SizeExpression.of_symbol(f"#{place}") if found is None else found for place, found in enumerate(expressions)
        ]
        self._expressions = named
        self._greatest: dict[str, int | None] = {}
        for expression in named:
            self._greatest.update(expression.symbols)
        self._values: dict[str, int] = {}  #: the capacity: a value for each symbol

    @property
    def bounded(self) -> bool:
        """Whether any symbol has a declared greatest value."""
        return any([most is not None for most in self._greatest.values()])

    def grown(self, sizes: Sequence[int], declared: bool, doubled: bool) -> dict[str, int] | None:
        """A capacity for these sizes. None if the values of the symbols do not follow from the sizes.

        `declared`: a symbol gets its declared greatest value. `doubled`: a symbol without one that exceeds the capacity
        gets at least twice its value in the capacity.
        """
        values = self._solve(sizes)
        if values is None:
            return None
        found = {}
        for name, value in values.items():
            most, before = self._greatest[name], self._values.get(name, 0)
            if declared and most is not None:
                value = max(value, most)
            elif doubled:
                value = before if value <= before else max(value, 2 * before)
                value = value if most is None else max(min(value, most), values[name])
            found[name] = value
        return found

    def sizes(self, values: Mapping[str, int]) -> tuple[int, ...] | None:
        """The sizes for these values of the symbols. None if an expression has no value."""
        found = [expression.value(values) for expression in self._expressions]
        return None if None in found else tuple([size for size in found if size is not None])

    def set(self, values: Mapping[str, int]) -> None:
        """Make these values the capacity."""
        self._values = dict(values)

    def smaller_sizes(self, values: Mapping[str, int]) -> list[tuple[int, ...]]:
        """Sizes below a capacity, to find the entries that smaller sizes take: all symbols, and each symbol alone, are
        halved again and again, and multiplied by three quarters.
        """
        found: dict[tuple[int, ...], None] = {}
        groups = [list(values)] if len(values) < 2 else [list(values), *[[name] for name in values]]
        for names in groups:
            part = max([values[name] for name in names], default=0)
            shift = 0
            while part >> shift:
                for numerator in (4, 3):
                    tried = dict(values) | {name: max(1, values[name] * numerator >> shift + 2) for name in names}
                    sizes = self.sizes(tried)
                    if sizes is not None:
                        found[sizes] = None
                shift += 1
        return list(found)

    def _solve(self, sizes: Sequence[int]) -> dict[str, int] | None:
        """The values of the symbols, read from sizes that are a symbol. None unless all sizes follow from them."""
        values: dict[str, int] = {}
        for expression, size in zip(self._expressions, sizes, strict=True):
            name = expression.symbol
            if name is not None:
                values[name] = max(size, values.get(name, 0))
        return values if self.sizes(values) == tuple(sizes) else None


def setup_expressions(program: LinkedProgram) -> dict[int, list[SizeExpression | None]]:
    """The expressions of the sizes of each function that an export calls with sizes of its arguments, by ordinal."""
    found: dict[int, list[SizeExpression | None]] = {}
    for export, code in zip(program.exports, program.entries, strict=True):
        axes = [_axes(value.shape, value.expressions) for value in export.arguments]
        for function, places in _argument_sizes(code):
            if function not in found:
                found[function] = [None if place is None else _expression_at(axes, place) for place in places]
    return found


def _axes(shape: Sequence[int], expressions: Sequence[str]) -> list[SizeExpression | None]:
    texts = iter(expressions)
    return [read_size(next(texts)) if size < 0 else None for size in shape]


def _expression_at(axes: Sequence[Sequence[SizeExpression | None]], place: tuple[int, int]) -> SizeExpression | None:
    argument, axis = place
    inside = argument < len(axes) and 0 <= axis < len(axes[argument])
    return axes[argument][axis] if inside else None


def _argument_sizes(code: Code) -> list[tuple[int, list[tuple[int, int] | None]]]:
    """For each `call.cached`: the function, and the argument and axis whose size each of its arguments is."""
    calls = []
    numbers: dict[int, int] = {}
    measured: dict[int, tuple[int, int]] = {}
    parameters = {register: place for place, register in enumerate(code.parameters)}
    operands: Any
    for instruction in code.decoded:
        _, row, operands = instruction
        if row.effect is Effect.CONSTANT:
            value = constant(instruction)
            if isinstance(value, int):
                numbers[operands[-1]] = value
        elif row.effect is Effect.NATIVE and code.link.names[operands[0]] == "hal.view.dim":
            (view, axis), results = operands[1], operands[2]
            if view in parameters and axis in numbers:
                measured[results[0]] = parameters[view], numbers[axis]
        elif row.effect is Effect.CACHED:
            calls.append((operands[0], [measured.get(register) for register in operands[1]]))
    return calls
