"""Functions that the entries of an image share: long expansions of scalar ops, for one value or for vectors."""

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.kernel import dialect as k
from orchestrion.compiler.kernel.code.builder import Function, body_of
from orchestrion.schema.dtypes import BY_NAME, FLOAT

from .body import Body
from .code import Code
from .forms import VARYING, Forms
from .levels import Level
from .scalars import suffix, type_of

#: scalar op on floats -> the intrinsic with its meaning
INTRINSICS = {"maximum": "maximum", "minimum": "minimum"}
#: scalar op -> its instructions, on levels that have them; `{n}` and `{e}` make types those of vectors
_HALVES = {
    "decode_f16": ("bitcast {n}i16{e} {x} to {n}half{e}", "fpext {n}half{e} {x} to {n}float{e}"),
    "encode_f16": ("fptrunc {n}float{e} {x} to {n}half{e}", "bitcast {n}half{e} {x} to {n}i16{e}"),
    "round_to_f16": ("fptrunc {n}float{e} {x} to {n}half{e}", "fpext {n}half{e} {x} to {n}float{e}"),
}
#: most ops of a function whose calls become copies of it: a call moves every vector to memory and back
MOST_COPIED = 64


class Functions:
    """The functions of an image in the order of their first calls."""

    def __init__(self, level: Level) -> None:
        self.level = level
        self._names: dict[tuple[Function, int], str] = {}

    def callee(self, call: k.Call, lanes: int) -> str:
        """The name of the function of a call, on vectors of that many lanes."""
        key = Function.of(call), lanes
        return self._names.setdefault(key, f"f{len(self._names)}")

    def texts(self) -> list[str]:
        """The texts of the functions."""
        return [self._text(function, lanes, name) for (function, lanes), name in self._names.items()]

    def _text(self, function: Function, lanes: int, name: str) -> str:
        body = body_of(function, self.level.fused, self.level.scales, self.level.asks)
        block, code = body.block, Code()
        forms = Forms(lanes, dict.fromkeys(block.arguments, VARYING))
        forms.visit(block)
        names: dict[Value, str] = {argument: f"%a{number}" for number, argument in enumerate(block.arguments)}
        parameters = ", ".join(f"{type_of(k.dtype_of(value), lanes)} {name}" for value, name in names.items())
        dtype = BY_NAME[function.result]
        type, intrinsic = type_of(dtype, lanes), INTRINSICS.get(function.scalar)
        if intrinsic is not None and dtype.kind == FLOAT and len(names) == 2:
            result = code.set(f"call {type} @llvm.{intrinsic}.{suffix(dtype, lanes)}({parameters})")
        elif self.level.halves and function.scalar in _HALVES:
            result = "%a0"
            for line in _HALVES[function.scalar]:
                start, end = (f"<{lanes} x ", ">") if lanes > 1 else ("", "")
                result = code.set(line.format(n=start, e=end, x=result))
        else:
            made = Body(code, forms, dict(names), _callee, self.level)
            made.ops(block)
            result = made.vector(k.yielded(block)[0])
        code.do(f"ret {type} {result}")
        copied = "alwaysinline " if body.length <= MOST_COPIED else ""
        head = f"define internal {type} @{name}({parameters}) {copied}#0 {{"
        return "\n".join([head, "entry:", *code.lines, "}", ""])


def _callee(call: k.Call, lanes: int) -> str:
    raise AssertionError(f"the body of a function calls {call.scalar.value}")
