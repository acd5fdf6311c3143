"""`flow.scatter`: the only form of scatter that targets know; and updates in place.

A scatter and the update of a slice write only the updated elements, into the memory of the updated value. They are
called *updates in place*.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orchestrion.compiler.ir.attributes import BoolAttr
from orchestrion.compiler.ir.core import Operation, OpResult, Trait, Value
from orchestrion.compiler.ir.declare import operand, operands, optional, region, results
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.stablehlo.ops.base import StablehloOp
from orchestrion.compiler.stablehlo.ops.contraction import check_region
from orchestrion.compiler.stablehlo.ops.indexing import DynamicUpdateSlice
from orchestrion.schema import tensor_shapes

#: most updates of a group in one scatter with colliding rows; an invocation looks at all of them
MAX_COLLIDING_UPDATES: Final = 1 << 18


class Scatter(StablehloOp):
    """In every group g, for n = 0, 1, 2, ...: the row `indices[g, n]` of the operands becomes body(that row, row n of
    the updates), element by element. Indices out of range are skipped.

    Operands [groups, rows, row], indices [groups, updates], updates [groups, updates, row]. The body takes one scalar
    per operand, then one per update. `unique`: no two updates of a group have the same row.
    """

    name = "flow.scatter"
    inputs = operands(TensorType)
    indices = operand(TensorType)
    updates = operands(TensorType)
    unique = optional(BoolAttr)
    body = region()
    out = results(TensorType)
    traits = frozenset({Trait.PURE, Trait.ISOLATED})
    same_size = True

    @property
    def is_unique(self) -> bool:
        """Whether no two updates of a group have the same row."""
        return self.unique is not None and self.unique.value

    def infer(self) -> Sequence[TensorType]:
        types = self.by_rule(tensor_shapes.scatter)
        scalars = [type.with_shape(()) for type in types]
        check_region("body", self.body, scalars * 2, scalars)
        return types


#: an op that may be an update in place
Update = DynamicUpdateSlice | Scatter


def update_of(value: Value) -> Update | None:
    """The update in place that computes a value; None if there is none."""
    return value.owner if isinstance(value, OpResult) and isinstance(value.owner, Update) else None


def updated(result: Value) -> int:
    """The number of the operand that a result of an update replaces."""
    assert isinstance(result, OpResult)
    return result.index


def changes(op: Update) -> Value:
    """The elements that an update writes. If it has several tensors of them, the first."""
    return op.update if isinstance(op, DynamicUpdateSlice) else op.updates[0]


def updated_values(op: Operation) -> tuple[Value, ...]:
    """The values that an update changes: its first operands, as many as it has results. Empty for other ops."""
    return tuple(op.operands[: len(op.results)]) if isinstance(op, Update) else ()
