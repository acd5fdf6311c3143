"""The exports of a module as callers see them."""

from orchestrion.schema.dtypes import BY_CODE
from orchestrion.schema.module import Module
from orchestrion.schema.rows import Argument, Result

from .errors import MissingType
from .function import Export, Value


def read_exports(module: Module) -> tuple[Export, ...]:
    """One per export, in the module's order. `MissingType` where NumPy lacks an element type that a value has."""
    strings = module.strings
    found = []
    for row in module.exports:
        arguments = [_value(module, at) for at in module.arguments[row.arguments_start : row.arguments_end]]
        results = [_value(module, at) for at in module.results[row.results_start : row.results_end]]
        for value in (*arguments, *results):
            try:
                _ = value.dtype.numpy
            except ImportError as error:
                raise MissingType(f"{value.name!r} of {strings[row.name]!r}: {error}") from None
        aliases = [at.alias for at in module.results[row.results_start : row.results_end]]
        found.append(Export(strings[row.name], strings[row.doc], tuple(arguments), tuple(results), tuple(aliases)))
    return tuple(found)


def _value(module: Module, at: Argument | Result) -> Value:
    name, dtype, dims = module.strings[at.name], BY_CODE[at.dtype], tuple(module.dims[at.dims_start : at.dims_end])
    if not dims or min(dims) >= 0:
        return Value(name, dtype, dims)
    texts = [module.strings[module.expressions[-1 - dim]] for dim in dims if dim < 0]
    return Value(name, dtype, tuple([max(dim, -1) for dim in dims]), tuple(texts))
