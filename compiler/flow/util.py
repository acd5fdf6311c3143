"""The util dialect: globals and initializers, used by every phase from flow to ll_seq.

A global with a value is a constant. One without is stored to exactly once, by the initializer of its kind, before any
function runs; a function only loads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from orchestrion.compiler.ir.attributes import DenseElements, StringAttr, SymbolRef
from orchestrion.compiler.ir.core import Operation, Trait
from orchestrion.compiler.ir.declare import attr, operand, optional, region, result
from orchestrion.compiler.ir.dialect import Dialect
from orchestrion.compiler.ir.types import Type

#: kind of initializer -> when it runs
KINDS: Final[dict[str, str]] = {
    "program": "once per loaded program: executables and constants, shared by all contexts",
    "context": "once per context: arena and recordings",
}


class Global(Operation):
    """A variable of the program, or a constant when it has a value."""

    name = "util.global"
    sym_name = attr(StringAttr)
    type = attr(Type)
    value = optional(DenseElements)
    traits = frozenset({Trait.SYMBOL})


class GlobalLoad(Operation):
    """The value of a global."""

    name = "util.global_load"
    ref = attr(SymbolRef)
    value = result()
    traits = frozenset({Trait.PURE})


class GlobalStore(Operation):
    """Gives a global its value."""

    name = "util.global_store"
    ref = attr(SymbolRef)
    value = operand()


class Initializer(Operation):
    """Code that runs before any function; see `KINDS`."""

    name = "util.initializer"
    kind = attr(StringAttr)
    body = region()
    traits = frozenset({Trait.ISOLATED})

    def check(self) -> Iterator[str]:
        if self.kind.value not in KINDS:
            yield f"kind {self.kind} is none of {', '.join(KINDS)}"


class Return(Operation):
    """Ends an initializer."""

    name = "util.return"
    traits = frozenset({Trait.TERMINATOR})


DIALECT = Dialect("util", [Global, GlobalLoad, GlobalStore, Initializer, Return])
