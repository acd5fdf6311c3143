"""Functions that the kernels of an executable share: long expansions of scalar ops, each written once.

A function has one parameter per operand that is no constant. Its name consists of the scalar op and the types of its
operands, and the number of lanes of vectors. A number is appended if that name is taken by the function of other
constants or by an entry.
"""

from collections.abc import Callable, Iterable

from orchestrion.compiler.kernel import dialect as k
from orchestrion.compiler.kernel.code.builder import Function, body_of
from orchestrion.schema.dtypes import BY_NAME

from .body import INDENT, BodyText

PARAMETERS = ("x", "y", "z")


class Functions:
    """The functions of an executable in the order of their first calls. `entries`: names of its entries; `body`: number
    of lanes -> the class that renders the body; `is_reserved`: whether the language has a name already.
    """

    def __init__(
        self, entries: Iterable[str], body: Callable[[int], type[BodyText]], is_reserved: Callable[[str], bool]
    ) -> None:
        self._taken = set(entries)
        self._body = body
        self._is_reserved = is_reserved
        self._names: dict[tuple[Function, int], str] = {}

    def callee(self, call: k.Call) -> str:
        """The name of the function of a call."""
        key = Function.of(call), k.length_of(call.output)
        if key not in self._names:
            self._names[key] = self._new_name(*key)
        return self._names[key]

    def texts(self) -> list[str]:
        """The texts of the functions."""
        return [_text(function, name, self._body(lanes)) for (function, lanes), name in self._names.items()]

    def _new_name(self, function: Function, lanes: int) -> str:
        types = dict.fromkeys((*function.operands, function.result))
        name = base = "_".join((function.scalar, *types)) + (f"x{lanes}" if lanes > 1 else "")
        number = 1
        while name in self._taken or self._is_reserved(name):
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name


def _callee(call: k.Call) -> str:
    raise AssertionError(f"the body of a function calls {call.scalar.value}")


def _text(function: Function, name: str, renderer: type[BodyText]) -> str:
    language = renderer.language
    block = body_of(function, renderer.fuses).block
    operands, parameters = [], []
    for letter, dtype, bits in zip(PARAMETERS, function.operands, function.constants, strict=False):
        operands.append(letter if bits is None else language.literal(bits, BY_NAME[dtype]))
        if bits is None:
            parameters.append(letter)
    types = [language.types[str(argument.type)] for argument in block.arguments]
    listed = ", ".join(f"const {type} {letter}" for type, letter in zip(types, parameters, strict=True))
    body = renderer(_callee)
    body.names.update(zip(block.arguments, parameters, strict=True))
    body.ops(block)
    result = body.names[k.yielded(block)[0]]
    lines = "\n".join((*body.lines, f"{INDENT}return {result};"))
    result_type = f"{language.function} {language.types[function.result]}"
    head = f"/* {function.scalar}({', '.join(operands)}) */\n{result_type} {name}({listed})"
    return f"{head}\n{{\n{lines}\n}}\n"
