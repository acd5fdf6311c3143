"""Kinds of bodies: what the ops of a dispatch compute. Fusion writes the kind on the entry; later passes read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral
from orchestrion.compiler.stablehlo.ops.custom_call import CustomCall

from .attention_bodies import Attention
from .fusion_reads import KIND_OF_HERO
from .row_bodies import taken_rows

#: the kind of a body that calls a library function, and computes nothing else
LIBRARY_CALL: Final = "library_call"
#: the kind of a body with two dots (`attention_bodies.py`)
ATTENTION: Final = "attention"
#: kind of a body -> the results that it computes
KINDS: Final[dict[str, str]] = {
    "elementwise": "each element of the results separately, including moved elements",
    "reduction": "each element by a reduction",
    "contraction": "each element by a dot",
    "rows": "each row separately, by one or more reductions and ops on their results",
    ATTENTION: "rows of a dot, reductions and ops on them, and a dot of these rows, made for some targets",
    "scatter": "updates of rows in the memory of the operand",
    "merge": "a step of a merge sort",
    "fft": "Fourier transforms of lines",
    "row_solve": "solutions of a triangular system, row by row",
    LIBRARY_CALL: "a call of a library function",
}
#: op -> the kind of a body with such an op: the heroes, and calls
_KIND_OF: Final[dict[type[Operation], str]] = KIND_OF_HERO | {CustomCall: LIBRARY_CALL}


def hero_of(ops: Sequence[Operation]) -> Operation | None:
    """The first op that decides the kind of a body; None in an elementwise body."""
    return next((op for op in ops if isinstance(op, tuple(_KIND_OF))), None)


def kind_of(ops: Sequence[Operation], results: Sequence[Value]) -> str:
    """The kind of a body with these ops, in order, and these results."""
    hero = hero_of(ops)
    if hero is None:
        return "elementwise"
    if isinstance(hero, DotGeneral) and Attention.of(ops, results) is not None:
        return ATTENTION
    return "rows" if taken_rows(ops, results) is not None else _KIND_OF[type(hero)]
