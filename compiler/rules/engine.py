"""Applies the rules of a phase to a module and collects all violations.

The rules of a phase are two functions. `children(op)` returns the op classes that may stand directly in `op`, or None
if any may. `problems(op, tables)` yields messages about an op at a valid place. A message may rely on the op's own
declaration and checks, which are verified first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation, Trait
from orchestrion.compiler.ir.dims import decided
from orchestrion.compiler.ir.symbols import SymbolTables
from orchestrion.compiler.pipeline import FIRST_PHASE

Children = Callable[[Operation], tuple[type[Operation], ...] | None]
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
    if op.has(Trait.NO_TERMINATOR) and len(op.regions[0].blocks) != 1:
        yield f"needs one block, has {len(op.regions[0].blocks)}"
    parent = op.parent_op
    if parent is None:
        return
    allowed = rules.children(parent)
    if allowed is not None and not isinstance(op, allowed):
        yield f"may not stand in {parent.name}{f' @{parent.symbol}' if parent.symbol else ''} after this phase"
