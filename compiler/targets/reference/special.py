"""Special functions in tensor bytecode: an emitter whose ops are instructions on whole tensors.

An `unchecked_` primitive becomes the op that is defined for all operands. Elements cannot branch or loop: both sides of
a branch are computed, and a loop is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from orchestrion.compiler.ir.attributes import DenseElements
from orchestrion.compiler.ir.core import OpResult, Value
from orchestrion.compiler.ir.locations import Location
from orchestrion.compiler.ir.types import I1, TensorType, scalar
from orchestrion.compiler.scalars.emitter import Emitter, Number, UnsupportedScalar
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.structural import BroadcastInDim, Constant
from orchestrion.schema.dtypes import BY_NAME


class Writer(Protocol):
    """The interface by which instructions are written."""

    def build(
        self, name: str, loc: Location, operands: Sequence[Value], types: Sequence[object], **fields: object
    ) -> Sequence[OpResult]: ...

    def spread(self, value: Value, to: TensorType, loc: Location) -> Value: ...


class TensorEmitter(Emitter[Value]):
    """Emits instructions on tensors of one shape. `known`: operands whose elements all equal one number."""

    def __init__(self, writer: Writer, type: TensorType, loc: Location, known: dict[Value, Number]) -> None:
        self.writer = writer
        self.type = type
        self.loc = loc
        self._known = known
        self._constants: dict[tuple[int, str], Value] = {}

    def dtype(self, value: Value) -> str:
        return str(tensor_of(value).element)

    def bits(self, pattern: int, dtype: str) -> Value:
        made = self._constants.get((pattern, dtype))
        if made is None:
            one = TensorType((), scalar(dtype))
            data = DenseElements(one, pattern.to_bytes(BY_NAME[dtype].itemsize, "little"))
            (element,) = self.writer.build("constant", self.loc, (), [one], data=data)
            made = self.writer.spread(element, self.type.with_element(one.element), self.loc)
            self._constants[pattern, dtype] = made
        return made

    def known(self, value: Value) -> Number | None:
        return self._known.get(value)

    def loop(
        self, count: Value, start: Sequence[Value], body: Callable[[Sequence[Value]], Sequence[Value]]
    ) -> list[Value]:
        raise UnsupportedScalar("tensor bytecode has no loop per element")

    def op(self, name: str, *operands: Value, to: str | None = None) -> Value:
        name = name.removeprefix("unchecked_")
        element: Any = tensor_of(operands[-1]).element if to is None else scalar(to)
        if name.startswith("compare_"):
            element = I1
        (made,) = self.writer.build(name, self.loc, operands, [self.type.with_element(element)])
        return made


def known_number(value: Value) -> Number | None:
    """The number that all elements of a tensor equal, if the ops that computed it show that."""
    maker = value.defining_op
    while isinstance(maker, BroadcastInDim):
        maker = maker.operand_.defining_op
    if not isinstance(maker, Constant) or not maker.value.is_splat:
        return None
    elements = maker.value
    number: Number = np.frombuffer(bytes(elements.data), BY_NAME[str(elements.type.element)].numpy)[0].item()
    return number
