"""Finds the batch dimension of a function, for `Predictor` and `vm-batch`.

A *row* is one input: an array per argument. An argument with the same value for all inputs is *fixed* and has no rows.
The rank of the rows decides:

- If rows have one dimension less than the arguments, the leading dimension of each argument and result is the batch. It
  has one static size, or one symbol.
- If rows have the rank of the arguments, the function has no batch dimension, and each row is one call.

Rows of a batch must not influence each other, since batches are padded and cut. That is not checked here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from orchestrion.schema.errors import ModuleError
from orchestrion.schema.trees import Keyed, Leaf, Node, decode

from .errors import CallerValueError
from .exports import Export, Value
from .size_expressions import read_size


class BatchAxis(NamedTuple):
    """The number of rows of a call: from `least` to `most`, where None is no bound. `batched`: whether the arguments
    have a batch dimension; if not, each row is one call.
    """

    batched: bool
    least: int
    most: int | None

    @property
    def size(self) -> int | None:
        """The size of all batches; None if several sizes are possible."""
        return self.most if self.least == self.most else None


class Names(NamedTuple):
    """The names of columns, in the order of the flat arguments and results."""

    arguments: tuple[str, ...]
    results: tuple[str, ...]


def column_names(export: Export) -> Names:
    """The names of arguments and results. If the only argument, or the result, is a dict of arrays, the keys
    are used.
    """
    arguments = tuple([value.name or f"argument{place}" for place, value in enumerate(export.arguments)])
    results = tuple([value.name or f"result{place}" for place, value in enumerate(export.results)])
    if not export.trees:
        return Names(arguments, results)
    trees = decode(export.trees, len(arguments), len(results))
    only = trees.parameters[0][1] if len(trees.parameters) == 1 else None
    return Names(_keys(only) or arguments, _keys(trees.result) or results)


def _keys(node: Node | None) -> tuple[str, ...] | None:
    if not isinstance(node, Keyed) or not all(isinstance(child, Leaf) for child in node.children):
        return None
    return tuple(map(str, node.keys)) if all(isinstance(key, str) for key in node.keys) else None


def find_axis(export: Export, names: Names, fixed: Collection[str], ranks: Mapping[str, int]) -> BatchAxis:
    """The batch dimension of a function. `fixed`: names of fixed arguments. `ranks`: the rank of rows, by argument
    name.

    `CallerError` if a rank does not fit its argument, or arguments and results have no common batch dimension.
    """
    rows = [(name, value) for name, value in zip(names.arguments, export.arguments, strict=True) if name not in fixed]
    if not rows:
        raise CallerValueError(f"{export.name!r}: all arguments are fixed, none is left for the rows of a batch")
    missing = {name: len(value.shape) - ranks[name] for name, value in rows}
    for name, value in rows:
        if missing[name] not in (0, 1):
            batch = f"rank {len(value.shape) - 1}, for batches, or " if value.shape else ""
            raise CallerValueError(
                f"{name}: expected rows of {batch}rank {len(value.shape)} for {value}, got {ranks[name]}"
            )
    if not any(missing.values()):
        return BatchAxis(False, 1, 1)
    whole = next((name for name, value in rows if not missing[name]), None)
    if whole is not None:
        batched = next(name for name, value in rows if missing[name])
        raise CallerValueError(
            f"rows of {batched} lack the leading dimension of the argument, and rows of {whole} have it"
        )
    return _common_axis(export, names, rows)


def _common_axis(export: Export, names: Names, rows: Sequence[tuple[str, Value]]) -> BatchAxis:
    """The batch dimension if rows have one dimension less than the arguments."""
    first_name, first = rows[0]
    symbol = _leading_symbol(first)
    for name, value in (*rows[1:], *zip(names.results, export.results, strict=True)):
        if not value.shape or value.shape[0] != first.shape[0] or _leading_symbol(value) != symbol:
            raise CallerValueError(f"no batch dimension is common to {first_name}: {first} and {name}: {value}")
    if first.shape[0] >= 0:
        if not first.shape[0]:
            raise CallerValueError(f"{first_name}: {first} has a batch dimension of 0")
        return BatchAxis(True, first.shape[0], first.shape[0])
    expression = read_size(first.expressions[0])
    if symbol is None or expression is None:
        raise CallerValueError(
            f"{first_name}: the leading dimension of {first} is not a symbol, so a batch cannot have any size"
        )
    for value in export.arguments:
        _refuse_other_uses(value, symbol, any(value is row for _, row in rows))
    return BatchAxis(True, max(expression.least.get(symbol, 1), 1), expression.symbols[symbol])


def _leading_symbol(value: Value) -> str | None:
    if not value.shape or value.shape[0] >= 0:
        return None
    expression = read_size(value.expressions[0])
    return None if expression is None else expression.symbol


def _refuse_other_uses(value: Value, symbol: str, leads: bool) -> None:
    """`CallerError` if another dimension depends on the number of rows: then rows depend on each other."""
    for text in value.expressions[1 if leads else 0 :]:
        expression = read_size(text)
        if expression is not None and symbol in expression.symbols:
            raise CallerValueError(f"{value.name}: {value}: {symbol} is not only the leading dimension")


def checked_names(export: Export) -> Names:
    """As `column_names`. `CallerError` if the module's trees are malformed, or two columns have the same name."""
    try:
        names = column_names(export)
    except ModuleError as error:
        raise CallerValueError(f"{export.name!r}: {error}") from error
    for kind, found in (("arguments", names.arguments), ("results", names.results)):
        twice = next((name for name in found if found.count(name) > 1), None)
        if twice is not None:
            raise CallerValueError(f"{export.name!r}: two {kind} have the name {twice!r}")
    return names
