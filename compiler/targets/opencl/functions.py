"""Functions that the kernels of an executable share: long expansions of scalar ops, each written once.

A function has one parameter per operand that is no constant. Its name consists of the scalar op and the types of its
operands. A number is appended if that name is taken by the function of other constants or by an entry.
"""

from collections.abc import Iterable

from orchestrion.compiler.kernel import dialect as k
from orchestrion.compiler.kernel.builder import Function, body_of
from orchestrion.schema.dtypes import BY_NAME

from .render import INDENT, BodyText
from .reserved import is_reserved
from .scalars import TYPES, literal

PARAMETERS = ("x", "y", "z")


class Functions:
    """The functions of an executable in the order of their first calls. `entries`: names of its entries."""

    def __init__(self, entries: Iterable[str]) -> None:
        self._taken = set(entries)
        self._names: dict[Function, str] = {}

    def callee(self, call: k.Call) -> str:
        """The name of the function of a call."""
        function = Function.of(call)
        if function not in self._names:
            self._names[function] = self._new_name(function)
        return self._names[function]

    def texts(self) -> list[str]:
        """The texts of the functions."""
        return [_text(function, name) for function, name in self._names.items()]

    def _new_name(self, function: Function) -> str:
        types = dict.fromkeys((*function.operands, function.result))
        name = base = "_".join((function.scalar, *types))
        number = 1
        while name in self._taken or is_reserved(name):
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name


def _callee(call: k.Call) -> str:
    raise AssertionError(f"the body of a function calls {call.scalar.value}")


def _text(function: Function, name: str) -> str:
    block = body_of(function).block
    operands, parameters = [], []
    for letter, dtype, bits in zip(PARAMETERS, function.operands, function.constants, strict=False):
        operands.append(letter if bits is None else literal(bits, BY_NAME[dtype]))
        if bits is None:
            parameters.append(letter)
    types = [TYPES[str(argument.type)] for argument in block.arguments]
    listed = ", ".join(f"const {type} {letter}" for type, letter in zip(types, parameters, strict=True))
    body = BodyText(block, parameters, _callee)
    assert isinstance(block.last, k.Yield)
    result = body.names[block.last.values[0]]
    lines = "\n".join((*body.lines, f"{INDENT}return {result};"))
    head = f"/* {function.scalar}({', '.join(operands)}) */\nstatic {TYPES[function.result]} {name}({listed})"
    return f"{head}\n{{\n{lines}\n}}\n"
