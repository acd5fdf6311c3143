"""Applies the rules of a phase to a module and collects all violations.

The rules of a phase are a table and a function. The table `children` has the op classes that may stand directly in an
op, by its class, or by its class and that of the op around it; the last row that fits counts. Any op may stand in an op
without a row. The function
`problems(op, tables)` yields messages about an op at a valid place. A message may rely on the op's own declaration and
checks, which are verified first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.dims import decided
from orchestrion.compiler.ir.symbols import SymbolTables
from orchestrion.compiler.pipeline import FIRST_PHASE

Kind = type[Operation]
Children = dict[Kind | tuple[Kind, Kind], tuple[Kind, ...]]
Problems = Callable[[Operation, SymbolTables], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one phase."""

    children: Children
    problems: Problems


def rules_of(phase: str) -> Rules:
    """`RULES` of the module in this package with the phase's name."""
    found: Rules = import_module(f"orchestrion.compiler.rules.{phase}").RULES
    return found


def find(module: Module, phase: str) -> list[Diagnostic]:
    """All violations of a phase's rules in a verified module, in text order."""
    rules, tables = rules_of(phase), SymbolTables()
    misplaced = [Diagnostic(message, op.loc, op.name) for op in module.walk() for message in _place(op, rules)]
    if misplaced:
        return misplaced
    return [
        Diagnostic(message, op.loc, op.name) for op in module.walk() for message in decided(rules.problems(op, tables))
    ]


def check(module: Module, phase: str) -> None:
    """Raises CompileError with all violations. For what a frontend read, the legality check does this instead."""
    if phase != FIRST_PHASE and (found := find(module, phase)):
        raise CompileError(found)


def _place(op: Operation, rules: Rules) -> Iterator[str]:
    parent = op.parent_op
    if parent is None:
        return
    rows = [row for row in rules.children.items() if _is_for(row[0], parent)]
    if rows and not isinstance(op, rows[-1][1]):
        yield f"may not stand in {parent.name}{f' @{parent.symbol}' if parent.symbol else ''} after this phase"


def _is_for(key: Kind | tuple[Kind, Kind], op: Operation) -> bool:
    """Whether a row of `children` is for this op."""
    kinds = key if isinstance(key, tuple) else (key,)
    return isinstance(op, kinds[0]) and isinstance(op.parent_op, kinds[1:] or object)
