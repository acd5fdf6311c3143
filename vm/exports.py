"""The exports of a module as callers see them."""

from orchestrion.schema.dtypes import BY_CODE
from orchestrion.schema.module import Module

from .function import Export, Value


def read_exports(module: Module) -> tuple[Export, ...]:
    """One per export, in the module's order."""
    strings, dims = module.strings, module.dims
    found = []
    for row in module.exports:
        arguments = [
            Value(strings[at.name], BY_CODE[at.dtype], tuple(dims[at.dims_start : at.dims_end]))
            for at in module.arguments[row.arguments_start : row.arguments_end]
        ]
        results = [
            Value(strings[at.name], BY_CODE[at.dtype], tuple(dims[at.dims_start : at.dims_end]))
            for at in module.results[row.results_start : row.results_end]
        ]
        aliases = [at.alias for at in module.results[row.results_start : row.results_end]]
        found.append(Export(strings[row.name], strings[row.doc], tuple(arguments), tuple(results), tuple(aliases)))
    return tuple(found)
