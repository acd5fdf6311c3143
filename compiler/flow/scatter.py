"""`flow.scatter`: the one form of scatter that targets know, and what is common to it and an update of a slice.

Both write into the memory of what they update, and only what changes: they are *updates in place*.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orchestrion.compiler.ir.attributes import BoolAttr
from orchestrion.compiler.ir.core import Operation, OpResult, Trait, Value
from orchestrion.compiler.ir.declare import operand, operands, optional, region, results
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.stablehlo.ops.base import ShapeError, StablehloOp, dtype_of, tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import check_region
from orchestrion.compiler.stablehlo.ops.indexing import DynamicUpdateSlice
from orchestrion.schema import tensor_shapes

#: updates of a group in one scatter whose rows may meet: an invocation looks at each, many an iteration
MAX_COLLIDING_UPDATES: Final = 1 << 18


class Scatter(StablehloOp):
    """In every group g, for n = 0, 1, 2, ...: row `indices[g, n]` of the operands becomes the body of it and of row n
    of the updates, element by element, where there is such a row.

    Operands [groups, rows, row], indices [groups, updates], updates [groups, updates, row]. The body takes a scalar per
    operand for what is there, then one per operand for the update. `unique`: no row of a group is updated twice.
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
        return self.unique is not None and self.unique.value

    def infer(self) -> Sequence[TensorType]:
        types = [tensor_shapes.TensorType(dtype_of(value), tensor_of(value).shape) for value in self.operands]
        try:
            tensor_shapes.scatter(types)
        except tensor_shapes.ShapeError as error:
            raise ShapeError(str(error)) from None
        scalars = [tensor_of(value).with_shape(()) for value in self.inputs]
        check_region("body", self.body, scalars * 2, scalars)
        return [tensor_of(value) for value in self.inputs]


#: an op that may be an update in place
Update = DynamicUpdateSlice | Scatter


def update_of(value: Value) -> Update | None:
    """The update that makes a value, if one does."""
    return value.owner if isinstance(value, OpResult) and isinstance(value.owner, Update) else None


def updated(result: Value) -> int:
    """The number of the operand that a result of an update is in place of."""
    assert isinstance(result, OpResult)
    return result.index


def changes(op: Update) -> Value:
    """The elements that are written, or one of several tensors of them."""
    return op.update if isinstance(op, DynamicUpdateSlice) else op.updates[0]


def updated_values(op: Operation) -> tuple[Value, ...]:
    """What an update changes: its first operands, as many as it has results."""
    return tuple(op.operands[: len(op.results)]) if isinstance(op, Update) else ()
