"""How an emitter turns any scalar op into primitives: the op itself, else its expansion, else a refusal by name."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import TypeVar

from orchestrion.schema import scalars
from orchestrion.schema.dtypes import BY_NAME, DType

from .emitter import Emitter, UnsupportedScalar
from .expand import EXPANSIONS
from .primitives import BY_OP_NAME, KINDS, Primitive

V = TypeVar("V")


class LoweringEmitter(Emitter[V]):
    """An emitter of primitives that takes every scalar op."""

    @abstractmethod
    def primitive(self, row: Primitive, operands: Sequence[V], result: DType) -> V:
        """Emit one primitive; the types are checked already."""

    def op(self, name: str, *operands: V, to: str | None = None) -> V:
        types = [BY_NAME[self.dtype(operand)] for operand in operands]
        row = BY_OP_NAME.get(name)
        if row is not None and len(types) == len(row.operands):
            result = _result(name, row.result, types, to)
            if row.accepts(types, result):
                return self.primitive(row, operands, result)
        return self._expand(name, operands, types, to)

    def _expand(self, name: str, operands: Sequence[V], types: Sequence[DType], to: str | None) -> V:
        scalar = scalars.BY_NAME.get(name)
        if scalar is None:
            known = "takes other types" if name in BY_OP_NAME else "is not a scalar op"
            raise UnsupportedScalar(f"{name} of ({', '.join(map(str, types))}) {known}")
        result = _result(name, scalar.result, types, to)
        signature = f"({', '.join(map(str, types))}) -> {result}"
        if not scalar.accepts(types, result):
            raise UnsupportedScalar(f"{name} does not take {signature}")
        function = EXPANSIONS.get((name, KINDS[types[-1].kind]))
        if function is None:
            raise UnsupportedScalar(f"no kernel computes {name} of {signature}")
        value: V = function(self, *operands, result.name) if scalar.result == "U" else function(self, *operands)
        return value


def _result(name: str, variable: str, types: Sequence[DType], to: str | None) -> DType:
    if variable == "i1":
        return BY_NAME["i1"]
    if variable == "T":
        return types[-1]
    if to is None:
        raise UnsupportedScalar(f"{name} needs the name of a result type")
    return BY_NAME[to]
