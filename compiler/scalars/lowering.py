"""How an emitter turns any scalar op into primitives: the op itself, its expansion, or a refusal that names it."""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import TypeVar

from orchestrion.schema import scalars
from orchestrion.schema.dtypes import BY_NAME, DType

from . import expand, math, narrow_floats, special
from .emitter import Emitter, UnsupportedScalar
from .expand import Expansion
from .math.number import Number
from .primitives import BY_OP_NAME, KINDS, Primitive

V = TypeVar("V")

#: the scalar ops that devices share, and those that the compiler expands for all of them
SCALAR_OPS: dict[str, scalars.ScalarOp] = scalars.BY_NAME | special.ROWS | narrow_floats.ROWS


class LoweringEmitter(Emitter[V]):
    """An emitter of primitives that accepts every scalar op."""

    @abstractmethod
    def primitive(self, row: Primitive, operands: Sequence[V], result: DType) -> V:
        """Emits one primitive whose types are checked."""

    def op(self, name: str, *operands: V, to: str | None = None) -> V:
        """Emits a scalar op or primitive; see `Emitter.op`."""
        way, result = _way(name, tuple(map(self.dtype, operands)), to)
        if isinstance(way, Primitive):
            return self.primitive(way, operands, result)
        return self.expanded(name, way, operands, result)

    def expanded(self, name: str, way: Expansion, operands: Sequence[V], result: DType) -> V:
        """Emits the expansion of a scalar op whose types are checked."""
        free = SCALAR_OPS[name].result == "U"
        numbers = [Number(self, operand) for operand in operands]
        value: V = (way(*numbers, result.name) if free else way(*numbers)).value
        return value


@cache
def _way(name: str, operands: tuple[str, ...], to: str | None) -> tuple[Primitive | Expansion, DType]:
    """The primitive for a scalar op on operands of these types, or its expansion, and the type of the result."""
    types = [BY_NAME[operand] for operand in operands]
    result = _result(name, types, to)
    row = BY_OP_NAME.get(name)
    if row is not None and row.accepts(types, result):
        return row, result
    message = refusal(name, types, result)
    if message:
        raise UnsupportedScalar(message)
    return EXPANSIONS[name, KINDS[types[-1].kind]], result


def refusal(name: str, types: Sequence[DType], result: DType) -> str | None:
    """Why no kernel can compute a scalar op on these types; None if one can."""
    signature = f"({', '.join(map(str, types))}) -> {result}"
    row, scalar = BY_OP_NAME.get(name), SCALAR_OPS.get(name)
    if row is not None and row.accepts(types, result):
        return None
    if scalar is None:
        return f"{name} is not a scalar op" if row is None else f"{name} does not take {signature}"
    if not scalar.accepts(types, result):
        return f"{name} does not take {signature}"
    return None if (name, KINDS[types[-1].kind]) in EXPANSIONS else f"no kernel computes {name} of {signature}"


def _result(name: str, types: Sequence[DType], to: str | None) -> DType:
    """The result type; `to` if the op does not determine it."""
    row = BY_OP_NAME.get(name) or SCALAR_OPS.get(name)
    if row is None:
        raise UnsupportedScalar(f"{name} is not a scalar op")
    if row.result != "U":
        return BY_NAME["i1"] if row.result == "i1" else types[-1]
    if to is None:
        raise UnsupportedScalar(f"{name} needs the name of a result type")
    return BY_NAME[to]


#: (op, kind of its last operand) -> its expansion
EXPANSIONS: dict[tuple[str, str], Expansion] = {
    **expand.EXPANSIONS,
    **narrow_floats.EXPANSIONS,
    **{(function.__name__, "f"): function for function in (*math.FUNCTIONS, *special.FUNCTIONS)},
}
