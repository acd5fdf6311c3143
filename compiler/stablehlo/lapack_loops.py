"""Calls of LAPACK as loops, for targets that have no libraries: those that have a row in `_ROUTINES`.

They are what JAX's linear algebra is made of; the other routines are left, and refused by their names. Results are
those of LAPACK up to rounding, `info` too. Here are `potrf`, `getrf` and `trsm`: `cholesky`, `solve`, `inv`, `det`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Final

from orchestrion.compiler.ir.attributes import BoolAttr, DialectAttr, DictAttr, StringAttr, dense_ints
from orchestrion.compiler.ir.core import Block, Operation, Region, Value
from orchestrion.compiler.ir.rewriter import Pattern, Rewriter
from orchestrion.compiler.ir.types import F32, F64, I32, TensorType

from .base import is_complex, tensor_of
from .build import compare, constant, elementwise
from .complex_parts import joined, parts_of
from .contraction import Reduce, Return
from .custom_call import CustomCall
from .indexing import Gather
from .linear_algebra import cholesky_of, fit, matrices, solved
from .loops import loop
from .movement import numbers, read, reshape, spread, total, write, zeros
from .real import Truth

Routine = Callable[[Operation, Rewriter, dict[str, bool]], list[Value] | None]


def expand(op: Operation, rewriter: Rewriter) -> bool:
    """Leaves alone what does not have the form it should."""
    if not isinstance(op, CustomCall) or not all(isinstance(x.type, TensorType) for x in (*op.operands, *op.results)):
        return False
    config, target = op.get_as("backend_config", DictAttr), op.get_as("call_target_name", StringAttr)
    name = target.value if target is not None else ""
    known, made_by = _ROUTINES.get(name, (None, None))
    if known is None or made_by is None or config is None or any(op.check()) or not set(config.mapping) <= set(known):
        return False
    elements = {tensor_of(value).element for value in op.operands}
    if not all(map(is_complex, op.operands)) and not elements <= {F32, F64}:
        return False
    flags = dict(known)
    for key, value in config.items:
        flags[key] = isinstance(value, BoolAttr) and value.value
    made = made_by(op, rewriter, flags)
    if made is None:
        return False
    rewriter.replace(op, made)
    return True


def of_complex(op: Operation, rewriter: Rewriter) -> bool:
    """Libraries are over real numbers: a call with complex ones becomes a loop on every target."""
    return any(map(is_complex, op.operands)) and expand(op, rewriter)


def _late(module: str, function: str) -> Routine:
    """A routine of a module that few programs need."""

    def call(op: Operation, rewriter: Rewriter, flags: dict[str, bool]) -> list[Value] | None:
        found: Routine = getattr(import_module(f"{__package__}.{module}"), function)
        return found(op, rewriter, flags)

    return call


def _trsm(op: Operation, rewriter: Rewriter, flags: dict[str, bool]) -> list[Value] | None:
    if (len(op.operands), len(op.results)) != (2, 1) or op.results[0].type != op.operands[1].type:
        return None
    a, b = op.operands
    if not fit(a, b, flags["left"]):
        return None
    return [solved(rewriter, a, b, flags["left"], flags["lower"], flags["trans_a"], False, flags["unit_diagonal"])]


def _potrf(op: Operation, rewriter: Rewriter, flags: dict[str, bool]) -> list[Value] | None:
    """The factor with the other triangle as it was; info is the number of the first pivot that is not positive."""
    if len(op.operands) != 1 or len(op.results) != 2:
        return None
    type = tensor_of(op.operands[0])
    if type.rank < 2 or type.shape[-1] != type.shape[-2] or not type.num_elements:
        return None
    wide = matrices(rewriter, op.operands[0])
    shape = tensor_of(wide).shape
    made = cholesky_of(rewriter, wide, flags["lower"])
    rows, columns = numbers(rewriter, shape, 1), numbers(rewriter, shape, 2)
    inside = compare(rewriter, "GE" if flags["lower"] else "LE", rows, columns)
    whole = elementwise(rewriter, "select", inside, made, wide)
    pivots = parts_of(rewriter, made)[0]
    positive = pivots.test("GT", 0.0).value
    fine = elementwise(rewriter, "or", positive, compare(rewriter, "NE", rows, columns))
    return [_shaped(rewriter, whole, op.results[0]), _shaped(rewriter, _first_bad(rewriter, fine), op.results[1])]


def _first_bad(rewriter: Rewriter, fine: Value) -> Value:
    """Counted from 1 along the rows of matrices, 0 where there is none."""
    batch, n, _ = tensor_of(fine).shape
    numbered = elementwise(rewriter, "add", numbers(rewriter, (batch, n, n), 1), _count(rewriter, 1, (batch, n, n)))
    none = _count(rewriter, n + 1, (batch, n, n))
    least = total(
        rewriter, elementwise(rewriter, "select", fine, none, numbered), (1, 2), "minimum", _count(rewriter, n + 1, ())
    )
    any_bad = compare(rewriter, "LE", least, _count(rewriter, n, (batch,)))
    return elementwise(rewriter, "select", any_bad, least, _count(rewriter, 0, (batch,)))


def _count(rewriter: Rewriter, value: int, shape: Sequence[int]) -> Value:
    return constant(rewriter, value, TensorType(tuple(shape), I32))


def _shaped(rewriter: Rewriter, value: Value, result: Value) -> Value:
    return reshape(rewriter, value, tensor_of(result).shape)


def _getrf(op: Operation, rewriter: Rewriter, flags: dict[str, bool]) -> list[Value] | None:
    """A turn finds the largest element of a column, exchanges two rows, and subtracts an outer product below."""
    if len(op.operands) != 1 or len(op.results) != 3:
        return None
    type = tensor_of(op.operands[0])
    if type.rank < 2 or not type.num_elements:
        return None
    wide = matrices(rewriter, op.operands[0])
    batch, rows, columns = tensor_of(wide).shape
    least = min(rows, columns)
    inits = [wide, _count(rewriter, 0, (batch, least)), _count(rewriter, 0, (batch,))]
    made = loop(rewriter, least, inits, _eliminate)
    return [_shaped(rewriter, value, result) for value, result in zip(made, op.results, strict=True)]


def _eliminate(rewriter: Rewriter, turn: Value, carried: list[Value]) -> Sequence[Value]:
    lu, pivots, info = carried
    batch, rows, columns = tensor_of(lu).shape
    zero, flat, line = _count(rewriter, 0, ()), (batch, rows), (batch, columns)
    column = reshape(rewriter, read(rewriter, lu, [zero, zero, turn], (batch, rows, 1)), flat)
    chosen = _largest(rewriter, column, turn)
    upper = reshape(rewriter, read(rewriter, lu, [zero, turn, zero], (batch, 1, columns)), line)
    pivot_row = _row(rewriter, lu, chosen)
    pivot = reshape(rewriter, read(rewriter, pivot_row, [zero, turn], (batch, 1)), (batch,))
    place, here = numbers(rewriter, flat, 1), spread(rewriter, turn, flat)
    exchanged = compare(rewriter, "EQ", place, spread(rewriter, chosen, flat, (0,)))
    head = reshape(rewriter, read(rewriter, upper, [zero, turn], (batch, 1)), (batch,))
    below = elementwise(rewriter, "select", exchanged, spread(rewriter, head, flat, (0,)), column)
    singular = compare(rewriter, "EQ", pivot, zeros(rewriter, tensor_of(pivot)))
    scale = elementwise(rewriter, "select", singular, _one(rewriter, pivot), pivot)
    below = elementwise(rewriter, "divide", below, spread(rewriter, scale, flat, (0,)))
    is_below = compare(rewriter, "GT", place, here)
    made = _updated(rewriter, lu, turn, (exchanged, upper), pivot_row, (is_below, below))
    count = elementwise(rewriter, "add", chosen, _count(rewriter, 1, (batch,)))
    pivots = write(rewriter, pivots, reshape(rewriter, count, (batch, 1)), [zero, turn])
    number = spread(rewriter, elementwise(rewriter, "add", turn, _count(rewriter, 1, ())), (batch,))
    first = elementwise(rewriter, "and", singular, compare(rewriter, "EQ", info, _count(rewriter, 0, (batch,))))
    return [made, pivots, elementwise(rewriter, "select", first, number, info)]


def _updated(
    rewriter: Rewriter,
    lu: Value,
    turn: Value,
    exchanged: tuple[Value, Value],
    pivot_row: Value,
    below: tuple[Value, Value],
) -> Value:
    """Rows exchanged; below the pivot, its column scaled, and right of that the product of the two subtracted."""
    shape = tensor_of(lu).shape
    down = [spread(rewriter, value, shape, (0, 1)) for value in (exchanged[0], *below)]
    across = [spread(rewriter, value, shape, (0, 2)) for value in (exchanged[1], pivot_row)]
    here = spread(rewriter, turn, shape)
    is_pivot = compare(rewriter, "EQ", numbers(rewriter, shape, 1), here)
    column = numbers(rewriter, shape, 2)
    moved = elementwise(rewriter, "select", down[0], across[0], lu)
    reduced = elementwise(rewriter, "subtract", moved, elementwise(rewriter, "multiply", down[2], across[1]))
    right = elementwise(rewriter, "select", compare(rewriter, "GT", column, here), reduced, moved)
    under = elementwise(rewriter, "select", compare(rewriter, "EQ", column, here), down[2], right)
    return elementwise(rewriter, "select", is_pivot, across[1], elementwise(rewriter, "select", down[1], under, moved))


def _one(rewriter: Rewriter, like: Value) -> Value:
    part = parts_of(rewriter, like)[0]
    return joined(rewriter, tensor_of(like), [part.of(1.0)])


def _largest(rewriter: Rewriter, column: Value, turn: Value) -> Value:
    """The row from `turn` on of the element of the greatest magnitude, the first of several, per batch. That of a
    complex one is the sum of its parts' magnitudes, as in BLAS."""
    shape = tensor_of(column).shape
    place = numbers(rewriter, shape, 1)
    open_ = compare(rewriter, "GE", place, spread(rewriter, turn, shape))
    sizes = [abs(part) for part in parts_of(rewriter, column)]
    whole = sizes[0] + sizes[1] if len(sizes) > 1 else sizes[0]
    size = Truth(rewriter, open_).pick(whole, -1.0).value
    scalars = [whole.type.with_shape(()), TensorType((), I32)]
    body = Block([*scalars, *scalars])
    end = Return.build(values=[], loc=rewriter.loc)
    body.append(end)
    inner = Rewriter({})
    inner.at(end)
    x, i, y, j = body.arguments
    larger = compare(inner, "GT", y, x)
    tie = elementwise(inner, "and", compare(inner, "EQ", y, x), compare(inner, "LT", j, i))
    takes = elementwise(inner, "or", larger, tie)
    end.set_operands([elementwise(inner, "select", takes, y, x), elementwise(inner, "select", takes, j, i)])
    inits = [constant(rewriter, -2.0, scalars[0]), _count(rewriter, 0, ())]
    types = [type.with_shape(shape[:1]) for type in scalars]
    reduced = rewriter.build(
        Reduce, inputs=[size, place], init_values=inits, dimensions=dense_ints(1), body=Region([body]), out=types
    )
    return elementwise(rewriter, "maximum", reduced.results[1], spread(rewriter, turn, shape[:1]))


def _row(rewriter: Rewriter, lu: Value, chosen: Value) -> Value:
    """Row `chosen` of each matrix."""
    batch, _, columns = tensor_of(lu).shape
    axes = (
        "offset_dims = [1], collapsed_slice_dims = [1], operand_batching_dims = [0], "
        "start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1"
    )
    return rewriter.build(
        Gather,
        operand_=lu,
        start_indices=chosen,
        dimension_numbers=DialectAttr("stablehlo.gather", axes),
        slice_sizes=dense_ints(1, 1, columns),
        out=tensor_of(lu).with_shape((batch, columns)),
    ).result


#: function -> its flags and what they are unless given, and what makes its results
_ROUTINES: Final[dict[str, tuple[dict[str, bool], Routine]]] = {
    "blas.trsm": ({"left": True, "lower": True, "trans_a": False, "unit_diagonal": False}, _trsm),
    "lapack.gehrd": ({"low": False, "high": False}, _late("hessenberg", "gehrd")),
    "lapack.geqrf": ({}, _late("lapack_factors", "geqrf")),
    "lapack.gesdd": ({}, _late("lapack_factors", "gesdd")),
    "lapack.getrf": ({}, _getrf),
    "lapack.orgqr": ({}, _late("lapack_factors", "orgqr")),
    "lapack.ormqr": ({"left": True, "trans": False}, _late("lapack_factors", "ormqr")),
    "lapack.potrf": ({"lower": True}, _potrf),
    "lapack.syevd": ({"lower": True}, _late("lapack_factors", "syevd")),
    "lapack.sytrd": ({"lower": True}, _late("hessenberg", "sytrd")),
}

PATTERNS: Final[dict[str, tuple[Pattern, ...]]] = {"stablehlo.custom_call": (expand,)}
