"""The signatures of a module's exports."""

from math import prod
from typing import NamedTuple

from orchestrion.hal.allocator import padded_size
from orchestrion.schema.dtypes import BY_CODE, DType
from orchestrion.schema.module import Module
from orchestrion.schema.rows import Argument, Result
from orchestrion.schema.trees import KEY

from .errors import MissingType
from .tensors import describe


class Value(NamedTuple):
    """An argument or result. `shape`: a dynamic dimension is -1. `expressions`: a text for each dynamic dimension."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    expressions: tuple[str, ...] = ()

    def __str__(self) -> str:
        return describe(self.dtype, self.shape, self.expressions)


class Export(NamedTuple):
    """The signature of an exported function. It is the same in all programs of a module.

    `aliases`: for each result, the number of the argument whose memory it may use, or a number that no argument has.
    """

    name: str
    doc: str
    arguments: tuple[Value, ...]
    results: tuple[Value, ...]
    aliases: tuple[int, ...]
    #: the text of the trees of arguments and results (`schema.trees`); empty if both are flat
    trees: str = ""

    @property
    def is_dynamic(self) -> bool:
        """Whether an argument or result has dynamic dimensions."""
        return any([-1 in value.shape for value in (*self.arguments, *self.results)])

    @property
    def slot_bytes(self) -> int:
        """The bytes of device memory for the slots of a context, without those of dynamic shapes."""
        found = 0
        for value in (*self.arguments, *self.results):
            if -1 not in value.shape:
                found += padded_size(value.dtype.itemsize * prod(value.shape))
        return found

    def __str__(self) -> str:
        arguments = ", ".join(f"{value.name}: {value}" for value in self.arguments)
        return f"{self.name}({arguments}) -> ({', '.join(map(str, self.results))})"


def read_exports(module: Module) -> tuple[Export, ...]:
    """The exports of a module, in its order. `MissingType` if NumPy lacks the element type of an argument or result."""
    strings = module.strings
    found = []
    for ordinal, row in enumerate(module.exports):
        arguments = [_value(module, at) for at in module.arguments[row.arguments_start : row.arguments_end]]
        results = [_value(module, at) for at in module.results[row.results_start : row.results_end]]
        for value in (*arguments, *results):
            try:
                _ = value.dtype.numpy
            except ImportError as error:
                raise MissingType(f"{value.name!r} of {strings[row.name]!r}: {error}") from None
        aliases = [at.alias for at in module.results[row.results_start : row.results_end]]
        trees = module.export_attribute(ordinal, KEY) if row.attributes_end > row.attributes_start else None
        found.append(
            Export(
                strings[row.name],
                strings[row.doc],
                tuple(arguments),
                tuple(results),
                tuple(aliases),
                trees if isinstance(trees, str) else "",
            )
        )
    return tuple(found)


def _value(module: Module, at: Argument | Result) -> Value:
    name, dtype, dims = module.strings[at.name], BY_CODE[at.dtype], tuple(module.dims[at.dims_start : at.dims_end])
    if not dims or min(dims) >= 0:
        return Value(name, dtype, dims)
    texts = [module.strings[module.expressions[-1 - dim]] for dim in dims if dim < 0]
    return Value(name, dtype, tuple([max(dim, -1) for dim in dims]), tuple(texts))
