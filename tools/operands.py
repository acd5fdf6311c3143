"""The operands of an entry in the bindings that a device gets: one for each, or several that share a binding.

A module states the type of the tensor in each binding. Of a shared one it states the operands, as
`0 read tensor<4xf32> at 2 | 3 write tensor<4xf32> at 3`: the number among the entry's operands, access, type, and the
parameter word with the offset in bytes.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from orchestrion.compiler.ir.types import TensorType

from .layouts import tensor_type

_SHARED = re.compile(r"(\d+) (read|write|readwrite) (.*) at (\d+)")


class Operand(NamedTuple):
    """`type` is None if the module does not state a static one. `word`: the parameter word with its offset in the
    binding; None for offset 0.
    """

    type: TensorType | None
    text: str
    access: str
    binding: int
    word: int | None

    def start(self, parameters: bytes) -> int:
        """Its offset in the binding, in bytes, for the parameters of a dispatch."""
        return 0 if self.word is None else int.from_bytes(parameters[4 * self.word : 4 * self.word + 4], "little")


def operands_of(texts: Sequence[str], accesses: Sequence[str]) -> list[Operand]:
    """The operands of an entry in their order. `texts`: what the module states of each binding; `accesses`: of each
    binding.

    Types are None if the module states another number of bindings.
    """
    if len(texts) != len(accesses):
        texts = [""] * len(accesses)
    shared: dict[int, Operand] = {}
    own: list[Operand] = []
    for binding, (text, access) in enumerate(zip(texts, accesses, strict=True)):
        found = [_SHARED.fullmatch(one) for one in text.split(" | ")]
        for match in found:
            if match is not None:
                number, part, type, word = match.groups()
                shared[int(number)] = Operand(tensor_type(type), type, part, binding, int(word))
        if None in found:
            own.append(Operand(tensor_type(text), text, access, binding, None))
    rest = iter(own)
    return [shared[number] if number in shared else next(rest) for number in range(len(shared) + len(own))]
