"""Bodies of entries for tests of schedules: text of `ll_seq`, arrays for its bindings, and what NumPy computes of them.

A `Draft` is a body in the making. Each op is written down and computed at once, in NumPy and in row-major order, so
that the oracle knows nothing of loops, tiles or layouts. Sizes are numbers, or expressions over symbols, which have one
number in a dispatch.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from stablehlo_text import DTYPES, ints

from orchestrion.compiler.ir.dims import DEFAULT_GREATEST, Dim, evaluate, symbol

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Value:
    """`array`: what it is, in the shape of its type. `near`: computed by what NumPy rounds in another way."""

    name: str
    shape: Shape
    dtype: str
    array: Array
    near: bool = False

    @property
    def is_float(self) -> bool:
        return self.dtype.startswith("f")


@dataclass(frozen=True)
class Layout:
    """A layout in memory as `flow.layout` has it: groups of axes, the tile of each group, which groups are inner."""

    axes: tuple[tuple[int, ...], ...]
    tiles: tuple[int, ...]
    inner: tuple[int, ...]

    def __str__(self) -> str:
        axes = [list(group) for group in self.axes]
        return f"#util.layout<axes = {axes}, tiles = {list(self.tiles)}, inner = {list(self.inner)}>"

    def stored(self, array: Array) -> Array:
        """The elements in the order of memory, zeros in the padding."""
        array = array.transpose([axis for group in self.axes for axis in group])
        shape, sizes = iter(array.shape), list[int]()
        for group in self.axes:
            sizes.append(prod(next(shape) for _ in group))
        counts = [-(-size // tile) for size, tile in zip(sizes, self.tiles, strict=True)]
        whole = [(0, count * tile - size) for count, tile, size in zip(counts, self.tiles, sizes, strict=True)]
        array = np.pad(array.reshape(sizes), whole)
        array = array.reshape([part for pair in zip(counts, self.tiles, strict=True) for part in pair])
        rest = [group for group in range(len(sizes)) if group not in self.inner]
        order = [2 * group for group in range(len(sizes))] + [2 * group + 1 for group in (*self.inner, *rest)]
        return np.ascontiguousarray(array.transpose(order))


@dataclass(frozen=True)
class Case:
    """An entry: its text, the arrays of its bindings before a dispatch and what they hold behind it.

    `wanted`: per binding None if it is only read, else the array in the order of memory and whether it is near.
    `symbols`: name -> size of this dispatch, in the order of parameters.
    """

    kind: str
    text: str
    bindings: tuple[tuple[str, Array], ...]
    wanted: tuple[tuple[Array, bool] | None, ...]
    symbols: dict[str, int]


@dataclass
class Draft:
    """A body in the making."""

    rng: random.Random
    #: name -> its size in this dispatch, its row of `dims`
    symbols: dict[str, tuple[int, str]] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    #: access, type, length in bytes as text, array before, (array behind, near)
    bindings: list[tuple[str, str, Array, tuple[Array, bool] | None]] = field(default_factory=list)
    count: int = 0

    # types and data

    def symbol(self, size: int, least: int = 1, greatest: int = DEFAULT_GREATEST) -> int:
        """A new symbol with that size in this dispatch."""
        name = f"d{len(self.symbols)}"
        most = "" if greatest == DEFAULT_GREATEST else f"greatest = {greatest} : i64, "
        self.symbols[name] = size, f'{{{most}least = {least} : i64, name = "{name}"}}'
        return symbol(name, least, greatest)

    def sizes(self, shape: Shape) -> tuple[int, ...]:
        """The numbers of a shape in this dispatch."""
        values = {name: size for name, (size, _) in self.symbols.items()}
        return tuple(evaluate(size, values) for size in shape)

    def type(self, shape: Shape, dtype: str, layout: Layout | None = None) -> str:
        dims = ", ".join(str(size) for size in shape if isinstance(size, Dim))
        text = "".join("?x" if isinstance(size, Dim) else f"{size}x" for size in shape) + dtype
        sizes, encoding = f", #util.dims<{dims}>" if dims else "", "" if layout is None else f", {layout}"
        return f"tensor<{text}{sizes}{encoding}>"

    def data(self, shape: Shape, dtype: str) -> Array:
        numbers = np.random.default_rng(self.rng.getrandbits(32))
        sizes = self.sizes(shape)
        if dtype.startswith("f"):
            return numbers.standard_normal(sizes).astype(DTYPES[dtype])
        if dtype == "i1":
            return numbers.random(sizes) < 0.5
        return numbers.integers(-50, 50, sizes).astype(DTYPES[dtype])

    def length(self, shape: Shape, dtype: str) -> str:
        """Bytes in row-major order, as an attribute."""
        length = prod(shape) * np.dtype(DTYPES[dtype]).itemsize
        return f"#util.dims<{length}>" if isinstance(length, Dim) else f"{length} : i64"

    # bindings

    def argument(self, shape: Shape, dtype: str, array: Array | None = None) -> Value:
        """A tensor that is read."""
        array = self.data(shape, dtype) if array is None else array
        self._binding("read", self.length(shape, dtype), array, None)
        return self._loaded(len(self.bindings) - 1, shape, dtype, array)

    def encoded_argument(self, shape: tuple[int, ...], dtype: str, layout: Layout) -> Value:
        """A tensor that is read and does not lie in row-major order."""
        array = self.data(shape, dtype)
        stored = layout.stored(array)
        self._binding("read", f"{stored.nbytes} : i64", stored, None)
        loaded, value = self._name(), Value(self._name(), shape, dtype, array)
        encoded = self.type(shape, dtype, layout)
        self.lines.append(
            f'{loaded} = "ll_seq.load_input"(%b{len(self.bindings) - 1}) : (!ll_seq.binding) -> {encoded}'
        )
        self.lines.append(f'{value.name} = "flow.unset_encoding"({loaded}) : ({encoded}) -> {self.type(shape, dtype)}')
        return value

    def result(self, value: Value) -> None:
        """A tensor that is written."""
        self._binding("write", self.length(value.shape, value.dtype), np.zeros_like(value.array), value)
        self._store(value.name, self.type(value.shape, value.dtype))

    def encoded_result(self, value: Value, layout: Layout) -> None:
        """A tensor that is written in another order."""
        stored = layout.stored(value.array)
        self._binding("write", f"{stored.nbytes} : i64", np.zeros_like(stored), None)
        access, length, before, _ = self.bindings[-1]
        self.bindings[-1] = access, length, before, (stored, value.near)
        name, encoded = self._name(), self.type(value.shape, value.dtype, layout)
        plain = self.type(value.shape, value.dtype)
        self.lines.append(f'{name} = "flow.set_encoding"({value.name}) : ({plain}) -> {encoded}')
        self._store(name, encoded)

    def updated_in_place(self, shape: tuple[int, ...], update: Value) -> None:
        """A tensor in which `update` replaces a slice, at starts that are read."""
        array = self.data(shape, update.dtype)
        starts = [self.argument((), "i32", np.asarray(self.rng.randint(-2, size), np.int32)) for size in shape]
        behind = array.copy()
        sizes = self.sizes(update.shape)
        places = [
            min(max(int(one.array), 0), whole - size) for one, whole, size in zip(starts, shape, sizes, strict=True)
        ]
        behind[tuple(slice(at, at + size) for at, size in zip(places, sizes, strict=True))] = update.array
        at, text = len(self.bindings), self.type(shape, update.dtype)
        self._binding("readwrite", self.length(shape, update.dtype), array, None)
        self.bindings[at] = (*self.bindings[at][:3], (behind, update.near))
        loaded, name = self._loaded(at, shape, update.dtype, array), self._name()
        given = ", ".join([loaded.name, update.name, *(one.name for one in starts)])
        types = ", ".join([text, self.type(update.shape, update.dtype), *(["tensor<i32>"] * len(starts))])
        self.lines.append(f'{name} = "stablehlo.dynamic_update_slice"({given}) : ({types}) -> {text}')
        self._store(name, text)

    def scattered_in_place(self, groups: int, rows: int, row: int, updates: int, dtype: str) -> None:
        """Rows of a tensor to which others are added."""
        array = self.data((groups, rows, row), dtype)
        places = np.asarray([[self.rng.randint(-1, rows) for _ in range(updates)] for _ in range(groups)], np.int32)
        indices, changes = self.argument((groups, updates), "i32", places), self.argument((groups, updates, row), dtype)
        behind = array.copy()
        for group in range(groups):
            for number, place in enumerate(places[group]):
                if 0 <= place < rows:
                    behind[group, place] += changes.array[group, number]
        at, text = len(self.bindings), self.type((groups, rows, row), dtype)
        self._binding("readwrite", self.length((groups, rows, row), dtype), array, None)
        self.bindings[at] = (*self.bindings[at][:3], (behind, False))
        loaded, name = self._loaded(at, array.shape, dtype, array), self._name()
        scalar = f"tensor<{dtype}>"
        body = (
            f'({{ ^bb0(%x: {scalar}, %y: {scalar}): %z = "stablehlo.add"(%x, %y) : ({scalar}, {scalar}) -> {scalar} '
            f'"stablehlo.return"(%z) : ({scalar}) -> () }})'
        )
        types = f"({text}, {self.type(indices.shape, 'i32')}, {self.type(changes.shape, dtype)}) -> {text}"
        given = f"({loaded.name}, {indices.name}, {changes.name})"
        self.lines.append(f'{name} = "flow.scatter"{given} {body} : {types}')
        self._store(name, text)

    def _binding(self, access: str, length: str, before: Array, value: Value | None) -> None:
        self.bindings.append((access, length, before, None if value is None else (value.array, value.near)))

    def _store(self, name: str, text: str) -> None:
        at = len(self.bindings) - 1
        self.lines.append(f'"ll_seq.store_output"({name}, %b{at}) : ({text}, !ll_seq.binding) -> ()')

    def _loaded(self, binding: int, shape: Shape, dtype: str, array: Array) -> Value:
        value, text = Value(self._name(), shape, dtype, array), self.type(shape, dtype)
        self.lines.append(f'{value.name} = "ll_seq.load_input"(%b{binding}) : (!ll_seq.binding) -> {text}')
        return value

    # ops

    def _name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def op(
        self, name: str, operands: Sequence[Value], shape: Shape, dtype: str, array: Array,
        attributes: str = "", near: bool | None = None, region: str = "",
    ) -> Value:  # fmt: skip
        """Appends an op of one result."""
        is_near = any(one.near for one in operands) if near is None else near
        value = Value(self._name(), shape, dtype, np.asarray(array, DTYPES[dtype], order="C"), is_near)
        self.emit(name, operands, [value], attributes, region)
        return value

    def emit(
        self, name: str, operands: Sequence[Value], results: Sequence[Value], attributes: str = "", region: str = ""
    ) -> None:
        left, given = ", ".join(one.name for one in results), ", ".join(one.name for one in operands)
        types = ", ".join(self.type(one.shape, one.dtype) for one in operands)
        outs = ", ".join(self.type(one.shape, one.dtype) for one in results)
        properties = f" <{{{attributes}}}>" if attributes else ""
        body = f" ({region})" if region else ""
        self.lines.append(f'{left} = "{name}"({given}){properties}{body} : ({types}) -> ({outs})')

    def apply(self, name: str, *operands: Value, near: bool | None = None) -> Value:
        """An elementwise op that NumPy has, of operands of one shape and type."""
        with np.errstate(all="ignore"):
            array = ELEMENTWISE[name](*(one.array for one in operands))
        first = operands[0]
        return self.op(f"stablehlo.{name}", operands, first.shape, first.dtype, array, near=near)

    def constant(self, value: float, dtype: str) -> Value:
        array = np.asarray(value, DTYPES[dtype])
        text = f"dense<0x{array.tobytes()[::-1].hex().upper()}> : tensor<{dtype}>"
        return self.op("stablehlo.constant", [], (), dtype, array, f"value = {text}")

    def broadcast(self, value: Value, shape: Shape, axes: Sequence[int]) -> Value:
        """`axes`: where the axes of the value are in the shape."""
        sizes = self.sizes(shape)
        own = self.sizes(value.shape)
        wide = value.array.reshape([own[list(axes).index(at)] if at in axes else 1 for at in range(len(sizes))])
        attributes = f"broadcast_dimensions = {ints(axes)}"
        return self.op(
            "stablehlo.broadcast_in_dim", [value], shape, value.dtype, np.broadcast_to(wide, sizes), attributes
        )

    def transpose(self, value: Value, order: Sequence[int]) -> Value:
        shape = tuple(value.shape[axis] for axis in order)
        attributes = f"permutation = {ints(order)}"
        return self.op("stablehlo.transpose", [value], shape, value.dtype, value.array.transpose(order), attributes)

    def reduce(
        self, values: Sequence[Value], starts: Sequence[Value], dims: Sequence[int], reducer: "Reducer"
    ) -> list[Value]:
        """Folds along some axes, in row-major order, the initial values in front."""
        kept = [axis for axis in range(len(values[0].shape)) if axis not in dims]
        shape = tuple(values[0].shape[axis] for axis in kept)
        arrays = [
            one.array.transpose([*kept, *sorted(dims)]).reshape(*self.sizes(shape), -1 if one.array.size else 0)
            for one in values
        ]
        folded = reducer.folded(arrays, [one.array for one in starts])
        near = any(one.near for one in values) or reducer.is_near and values[0].is_float
        results = [
            Value(self._name(), shape, one.dtype, np.asarray(array, DTYPES[one.dtype]), near)
            for one, array in zip(values, folded, strict=True)
        ]
        region = reducer.region([one.dtype for one in values])
        self.emit("stablehlo.reduce", [*values, *starts], results, f"dimensions = {ints(sorted(dims))}", region)
        return results

    def case(self, kind: str) -> Case:
        """The entry."""
        dims = f", dims = [{', '.join(row for _, row in self.symbols.values())}]" if self.symbols else ""
        rows = ", ".join(f'{{access = "{access}", length = {length}}}' for access, length, *_ in self.bindings)
        names = ", ".join(f"%b{at}: !ll_seq.binding" for at in range(len(self.bindings)))
        body = "\n    ".join([*self.lines, '"ll_seq.end"() : () -> ()'])
        text = (
            '"ll_seq.executable"() <{sym_name = "test"}> ({\n'
            f'  "ll_seq.entry"() <{{bindings = [{rows}]{dims}, sym_name = "entry", workload = array<i64: 1, 1, 1>}}> '
            "({\n"
            f"  ^bb0({names}):\n    {body}\n  }}) : () -> ()\n}}) : () -> ()\n"
        )
        return Case(
            kind,
            text,
            tuple((access, before) for access, _, before, _ in self.bindings),
            tuple(behind for *_, behind in self.bindings),
            {name: size for name, (size, _) in self.symbols.items()},
        )


ELEMENTWISE: dict[str, Callable[..., Array]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "negate": np.negative, "abs": np.abs, "exponential": np.exp, "tanh": np.tanh, "divide": np.divide,
    "rsqrt": lambda x: 1 / np.sqrt(x), "and": np.bitwise_and, "xor": np.bitwise_xor,
}  # fmt: skip


@dataclass(frozen=True)
class Reducer:
    """`lines` of the region over %x0, %y0 and so on, of which `out` are returned; `step` is the same in NumPy.

    `is_near`: the sum of floats depends on the order.
    """

    lines: tuple[str, ...]
    out: tuple[str, ...]
    step: Callable[[Sequence[Array], Sequence[Array]], Sequence[Array]]
    is_near: bool = False

    def region(self, dtypes: Sequence[str]) -> str:
        types = [f"tensor<{dtype}>" for dtype in dtypes]
        names = [f"%{side}{at}: {one}" for side in "xy" for at, one in enumerate(types)]
        lines = [line.replace("$", types[0]) for line in self.lines]
        outs = f'"stablehlo.return"({", ".join(self.out)}) : ({", ".join(types)}) -> ()'
        return f"{{ ^bb0({', '.join(names)}): {' '.join([*lines, outs])} }}"

    def folded(self, arrays: Sequence[Array], starts: Sequence[Array]) -> list[Array]:
        """Along the last axis; sums of floats in f64."""
        wide = [one.astype(np.float64) if self.is_near and one.dtype.kind == "f" else one for one in arrays]
        values = [
            np.broadcast_to(start.astype(one.dtype), one.shape[:-1]) for start, one in zip(starts, wide, strict=True)
        ]
        for at in range(wide[0].shape[-1]):
            values = list(self.step(values, [one[..., at] for one in wide]))
        return values


def _one(name: str) -> str:
    return f'%z0 = "stablehlo.{name}"(%x0, %y0) : ($, $) -> $'


def _greater(x: Sequence[Array], y: Sequence[Array]) -> Sequence[Array]:
    holds = x[0] >= y[0]
    return [np.where(holds, a, b) for a, b in zip(x, y, strict=True)]


#: name -> reducer; `affine` composes maps n -> a * n + b and is not commutative, as `first` and `last` are not
REDUCERS: dict[str, Reducer] = {
    "add": Reducer((_one("add"),), ("%z0",), lambda x, y: [x[0] + y[0]], True),
    "multiply": Reducer((_one("multiply"),), ("%z0",), lambda x, y: [x[0] * y[0]], True),
    "maximum": Reducer((_one("maximum"),), ("%z0",), lambda x, y: [np.maximum(x[0], y[0])]),
    "minimum": Reducer((_one("minimum"),), ("%z0",), lambda x, y: [np.minimum(x[0], y[0])]),
    "first": Reducer((), ("%x0",), lambda x, y: [x[0]]),
    "last": Reducer((), ("%y0",), lambda x, y: [y[0]]),
    "affine": Reducer(
        (
            '%z0 = "stablehlo.multiply"(%x0, %y0) : ($, $) -> $',
            '%t = "stablehlo.multiply"(%x1, %y0) : ($, $) -> $',
            '%z1 = "stablehlo.add"(%t, %y1) : ($, $) -> $',
        ),
        ("%z0", "%z1"),
        lambda x, y: [x[0] * y[0], x[1] * y[0] + y[1]],
        True,
    ),
    "argmax": Reducer(
        (
            '%c = "stablehlo.compare"(%x0, %y0) <{comparison_direction = #stablehlo<comparison_direction GE>}> : '
            "($, $) -> tensor<i1>",
            '%z0 = "stablehlo.select"(%c, %x0, %y0) : (tensor<i1>, $, $) -> $',
            '%z1 = "stablehlo.select"(%c, %x1, %y1) : (tensor<i1>, $, $) -> $',
        ),
        ("%z0", "%z1"),
        _greater,
    ),
}  # fmt: skip
