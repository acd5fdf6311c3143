"""Functions that a module imports from other modules: their names and types in the file.

An import such as `encoder.encode` has the VM signature `(hal.view, ...) -> ()`: views of its arguments, then of its
results, which the caller allocates. The module attribute `imports.encoder.encode` holds the tensor types, for example
`f32[4,8], i32[] -> f32[4,16]`, so that the loader can compare them with the export that it finds. Readers of format 1.0
refuse such a module by the name of the import.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from .dtypes import BY_NAME, DType
from .errors import ModuleError

#: prefix of the attributes' keys; only the compiler writes them
PREFIX = "imports."
#: modules of the runtime, which no module from a file may replace
NATIVE_MODULES = frozenset({"hal"})
#: the VM type of each argument and result
VIEW = "hal.view"

_TENSOR = re.compile(r"([a-z][A-Za-z0-9]*)\[((?:[0-9]{1,18}(?:,[0-9]{1,18})*)?)\]")


class TensorType(NamedTuple):
    """An element type and a static shape."""

    dtype: DType
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


class FunctionType(NamedTuple):
    """The tensor types of a function's arguments and results."""

    arguments: tuple[TensorType, ...]
    results: tuple[TensorType, ...]

    def __str__(self) -> str:
        return f"{', '.join(map(str, self.arguments))} -> {', '.join(map(str, self.results))}"

    @property
    def signature(self) -> str:
        """The VM signature of the import."""
        return f"({', '.join([VIEW] * (len(self.arguments) + len(self.results)))}) -> ()"


def parse_function_type(text: str) -> FunctionType:
    """Parses the text that `str` returns. Raises ModuleError for any other text."""
    arguments, arrow, results = text.partition("->")
    if not arrow:
        raise ModuleError(f"type of an imported function {text[:80]!r} has no '->'")
    return FunctionType(tuple(_tensors(arguments, text)), tuple(_tensors(results, text)))


def _tensors(part: str, text: str) -> Iterable[TensorType]:
    rest = part.strip()
    while rest:
        found = _TENSOR.match(rest)
        dtype = None if found is None else BY_NAME.get(found[1])
        if found is None or dtype is None:
            raise ModuleError(f"type of an imported function {text[:80]!r}: expected a tensor type at {rest[:20]!r}")
        yield TensorType(dtype, tuple([int(size) for size in found[2].split(",") if size]))
        rest = rest[found.end() :]
        if rest:
            if not rest.startswith(", "):
                raise ModuleError(f"type of an imported function {text[:80]!r}: expected ', ' at {rest[:20]!r}")
            rest = rest[2:]
            if not rest:
                raise ModuleError(f"type of an imported function {text[:80]!r} ends with a comma")
