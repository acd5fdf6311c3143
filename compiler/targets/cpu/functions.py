"""Functions that the entries of an image share: long expansions of scalar ops, for one value or for vectors."""

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.kernel import dialect as k
from orchestrion.compiler.kernel.builder import Function, body_of

from .body import Body
from .code import Code
from .forms import VARYING, Forms
from .scalars import type_of


class Functions:
    """The functions of an image in the order of their first calls."""

    def __init__(self) -> None:
        self._names: dict[tuple[Function, int], str] = {}

    def callee(self, call: k.Call, lanes: int) -> str:
        """The name of the function of a call, on vectors of that many lanes."""
        key = Function.of(call), lanes
        return self._names.setdefault(key, f"f{len(self._names)}")

    def texts(self) -> list[str]:
        """The texts of the functions."""
        return [_text(function, lanes, name) for (function, lanes), name in self._names.items()]


def _callee(call: k.Call, lanes: int) -> str:
    raise AssertionError(f"the body of a function calls {call.scalar.value}")


def _text(function: Function, lanes: int, name: str) -> str:
    block, code = body_of(function).block, Code()
    forms = Forms(lanes, dict.fromkeys(block.arguments, VARYING))
    forms.visit(block)
    names: dict[Value, str] = {argument: f"%a{number}" for number, argument in enumerate(block.arguments)}
    body = Body(code, forms, dict(names), _callee)
    body.ops(block)
    assert isinstance(block.last, k.Yield)
    result = block.last.values[0]
    type = type_of(k.dtype_of(result), lanes)
    parameters = ", ".join(f"{type_of(k.dtype_of(value), lanes)} {name}" for value, name in names.items())
    code.do(f"ret {type} {body.vector(result)}")
    return "\n".join([f"define internal {type} @{name}({parameters}) #0 {{", "entry:", *code.lines, "}", ""])
