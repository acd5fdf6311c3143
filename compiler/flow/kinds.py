"""Kinds of bodies: what the ops of a dispatch are together. Fusion writes the kind on the entry, all others read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral, Reduce
from orchestrion.compiler.stablehlo.ops.custom_call import CustomCall

from .fft import LineFft
from .merge import Merge
from .row_bodies import taken_rows
from .row_solve import RowSolve
from .scatter import Scatter

#: kind -> what bodies of it compute
KINDS: Final[dict[str, str]] = {
    "elementwise": "each element of the results by itself, also of elements that are moved",
    "reduction": "each element from a reduction",
    "contraction": "each element from a dot",
    "rows": "rows of tensors through one or several reductions, and on with the results, each row by itself",
    "scatter": "updates of rows, in the memory of the operand",
    "merge": "a step of a merge sort",
    "fft": "Fourier transforms of lines",
    "row_solve": "rows of a triangular system",
    "library_call": "a library function",
}
#: op -> the kind of a body that has one
_HEROES: Final[dict[type[Operation], str]] = {
    Reduce: "reduction",
    DotGeneral: "contraction",
    Scatter: "scatter",
    Merge: "merge",
    LineFft: "fft",
    RowSolve: "row_solve",
    CustomCall: "library_call",
}


def hero_of(ops: Sequence[Operation]) -> Operation | None:
    """The op that decides the kind of a body; None in an elementwise one. Rows may have several: the first."""
    return next((op for op in ops if isinstance(op, tuple(_HEROES))), None)


def kind_of(ops: Sequence[Operation], results: Sequence[Value]) -> str:
    """The kind of a body of these ops, in their order, with these results."""
    hero = hero_of(ops)
    if hero is None:
        return "elementwise"
    return "rows" if taken_rows(ops, results) is not None else _HEROES[type(hero)]
