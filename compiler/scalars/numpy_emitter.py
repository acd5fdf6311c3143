"""An emitter that computes over NumPy arrays at once, primitive by primitive, as a device does.

It evaluates constants of a program for ops whose only meaning is their expansion, and tests run expansions with it,
without a device. Constants are arrays of rank 0; arrays broadcast against each other.
"""

from collections.abc import Callable, Sequence

import numpy as np

from orchestrion.schema.dtypes import BY_NAME, BY_NUMPY, DType
from orchestrion.schema.scalar_meanings import Array

from .emitter import Number
from .lowering import LoweringEmitter
from .primitives import Primitive


class NumpyEmitter(LoweringEmitter[Array]):
    """`counts`: primitive -> number of times it was emitted, which is the length of an expansion."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def dtype(self, value: Array) -> str:
        return BY_NUMPY[value.dtype].name

    def bits(self, pattern: int, dtype: str) -> Array:
        row = BY_NAME[dtype]
        return np.array(pattern, dtype=f"<u{row.itemsize}").view(row.numpy)

    def known(self, value: Array) -> Number | None:
        return value[()].item() if value.ndim == 0 else None

    def primitive(self, row: Primitive, operands: Sequence[Array], result: DType) -> Array:
        self.counts[row.name] = self.counts.get(row.name, 0) + 1
        return row.evaluate(operands, result)

    def loop(
        self, count: Array, start: Sequence[Array], body: Callable[[Sequence[Array]], Sequence[Array]]
    ) -> list[Array]:
        carried = list(start)
        for iteration in range(int(np.max(count, initial=0))):
            going = np.asarray(iteration < count)
            carried = [self.select(going, new, old) for new, old in zip(body(carried), carried, strict=True)]
        return carried
