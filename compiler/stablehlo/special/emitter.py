"""An emitter of elementwise StableHLO: what is written over `Number`s becomes ops on whole tensors.

An `unchecked_` primitive becomes the op that has a meaning everywhere. An element has no branch and no loop of its own
in StableHLO: of a branch both sides are computed, a loop is refused.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import TensorType, scalar
from orchestrion.compiler.kernel.emitter import Emitter, Number, UnsupportedScalar
from orchestrion.compiler.stablehlo.base import tensor_of
from orchestrion.compiler.stablehlo.build import bitcast, compare, constant, converted, elementwise
from orchestrion.schema.dtypes import BY_NAME, FLOAT


class StablehloEmitter(Emitter[Value]):
    """Emits ops on tensors of one shape through a rewriter; a constant is a splat, made once."""

    def __init__(self, rewriter: Rewriter, type: TensorType) -> None:
        self.rewriter = rewriter
        self.type = type
        self._constants: dict[tuple[int, str], Value] = {}

    def dtype(self, value: Value) -> str:
        return str(tensor_of(value).element)

    def bits(self, pattern: int, dtype: str) -> Value:
        made = self._constants.get((pattern, dtype))
        if made is None:
            number = _float_of(pattern, dtype) if BY_NAME[dtype].kind == FLOAT else pattern
            made = constant(self.rewriter, number, self.type.with_element(scalar(dtype)))
            self._constants[pattern, dtype] = made
        return made

    def known(self, value: Value) -> Number | None:
        return None

    def branch(
        self, condition: Value, yes: Callable[[], Sequence[Value]], no: Callable[[], Sequence[Value]]
    ) -> list[Value]:
        return [self.select(condition, x, y) for x, y in zip(yes(), no(), strict=True)]

    def loop(
        self, count: Value, start: Sequence[Value], body: Callable[[Sequence[Value]], Sequence[Value]]
    ) -> list[Value]:
        raise UnsupportedScalar("a loop per element is no elementwise StableHLO")

    def op(self, name: str, *operands: Value, to: str | None = None) -> Value:
        plain = name.removeprefix("unchecked_")
        if plain.startswith("compare_"):
            return compare(self.rewriter, plain.removeprefix("compare_").upper(), *operands)
        if to is not None:
            return {"bitcast": bitcast, "convert": converted}[plain](self.rewriter, operands[0], to)
        return elementwise(self.rewriter, plain, *operands)


def _float_of(pattern: int, dtype: str) -> float:
    row = BY_NAME[dtype]
    number: float = struct.unpack("<f" if row.bits == 32 else "<d", pattern.to_bytes(row.itemsize, "little"))[0]
    return number
