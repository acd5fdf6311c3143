"""How large memory and recordings are made that shall serve further calls of other sizes.

The sizes of a call are values of expressions over symbols (`size_expressions.py`). A *capacity* is a value for each
symbol. A symbol with a declared greatest value gets that, if the memory is affordable; another one what the call
brings, and at least twice what it had before once a call outgrows that. So `n` growing sizes meet about log2(n)
capacities.
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

#: bytes that are affordable on any device, and the part of the device's memory that is on larger ones
AFFORDABLE_BYTES: Final = 64 << 20
AFFORDABLE_PART: Final = 16


def affordable(device: Device, size: int) -> bool:
    """Whether a declared bound may cost so many bytes: at most 64 MiB or a sixteenth of the device's memory, whichever
    is more, and half of what the limits leave.
    """
    if size > max(AFFORDABLE_BYTES, device.info.memory_bytes // AFFORDABLE_PART):
        return False
    room = device.allocator.room
    return room is None or size <= room // 2


class Capacity:
    """The capacity of one function's sizes. `expressions`: of each size; None where it is not known, which makes the
    size a symbol of its own.
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
        self._values: dict[str, int] = {}  #: the capacity

    @property
    def bounded(self) -> bool:
        """Whether a symbol has a declared greatest value."""
        return any([most is not None for most in self._greatest.values()])

    def grown(self, sizes: Sequence[int], declared: bool, doubled: bool) -> dict[str, int] | None:
        """A capacity for these sizes: of `declared` bounds; `doubled` where a symbol outgrew the one before.

        None where the sizes do not say what the symbols are.
        """
        values = self._solved(sizes)
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
        """The sizes for values of the symbols."""
        found = [expression.value(values) for expression in self._expressions]
        return None if None in found else tuple([size for size in found if size is not None])

    def keep(self, values: Mapping[str, int]) -> None:
        """These are the capacity from now on."""
        self._values = dict(values)

    def smaller(self, values: Mapping[str, int]) -> list[tuple[int, ...]]:
        """Sizes below a capacity, to try out: halves and three quarters of all symbols, and of each alone."""
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

    def _solved(self, sizes: Sequence[int]) -> dict[str, int] | None:
        """The symbols, from sizes that are symbols; None unless all sizes follow from them."""
        values: dict[str, int] = {}
        for expression, size in zip(self._expressions, sizes, strict=True):
            name = expression.symbol
            if name is not None:
                values[name] = max(size, values.get(name, 0))
        return values if self.sizes(values) == tuple(sizes) else None


def setup_expressions(program: LinkedProgram) -> dict[int, list[SizeExpression | None]]:
    """Of each function that an export calls with sizes of its arguments: what the signature says of them."""
    found: dict[int, list[SizeExpression | None]] = {}
    for export, code in zip(program.exports, program.entries, strict=True):
        axes = [_axes(value.shape, value.expressions) for value in export.arguments]
        for function, places in _measured(code):
            if function not in found:
                found[function] = [None if place is None else _of(axes, place) for place in places]
    return found


def _axes(shape: Sequence[int], expressions: Sequence[str]) -> list[SizeExpression | None]:
    texts = iter(expressions)
    return [read_size(next(texts)) if size < 0 else None for size in shape]


def _of(axes: Sequence[Sequence[SizeExpression | None]], place: tuple[int, int]) -> SizeExpression | None:
    argument, axis = place
    inside = argument < len(axes) and 0 <= axis < len(axes[argument])
    return axes[argument][axis] if inside else None


def _measured(code: Code) -> list[tuple[int, list[tuple[int, int] | None]]]:
    """Per call of a function whose results are kept: the function, and the argument and axis that each size is of."""
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
