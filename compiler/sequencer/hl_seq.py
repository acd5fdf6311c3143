"""The hl_seq dialect: one program per target profile; tensors are resources with a size and a lifetime.

`!hl_seq.resource<transient, 64>`: a lifetime of `LIFETIMES` and a size in bytes. In functions with dynamic shapes the
size is an expression over the function's symbols: `!hl_seq.resource<transient, 16 * b>`. Values are still SSA values of
whole resources: no memory is assigned yet. The exported signature stays in tensors; `import` and `export` convert
between the two. Executables, dispatches, splats and empty tensors are ops of the flow dialect, over resources.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

from orchestrion.compiler.ir.attributes import StringAttr
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation, Trait
from orchestrion.compiler.ir.declare import attr, operand, optional, region, result
from orchestrion.compiler.ir.dialect import Dialect, ops_in
from orchestrion.compiler.ir.dims import Size
from orchestrion.compiler.ir.dims_parser import parse_sizes
from orchestrion.compiler.ir.types import DialectType, TensorType, Type
from orchestrion.compiler.profiles import DEFAULT, profile_of

LIFETIMES: Final[dict[str, str]] = {
    "constant": "made once, by a program initializer",
    "variable": "of a mutable global: lives as long as its context",
    "transient": "made and used inside one call",
    "external": "an argument or a result: the caller's",
}


def resource(lifetime: str, size: Size) -> DialectType:
    """The type `!hl_seq.resource<lifetime, size>`; `size` is in bytes."""
    return DialectType("hl_seq.resource", f"{lifetime}, {size}")


def is_resource(type: Type) -> bool:
    """a resource: !hl_seq.resource<lifetime, bytes>"""
    if not isinstance(type, DialectType) or type.name != "hl_seq.resource":
        return False
    lifetime, _, size = type.body.partition(", ")
    return lifetime in LIFETIMES and _bytes(size) is not None


def lifetime_of(type: Type) -> str:
    """The lifetime of a resource type: a key of `LIFETIMES`."""
    assert isinstance(type, DialectType)
    return type.body.partition(", ")[0]


def size_of(type: Type) -> Size:
    """The size of a resource type, in bytes."""
    assert isinstance(type, DialectType)
    size = _bytes(type.body.partition(", ")[2])
    assert size is not None
    return size


def _bytes(text: str) -> Size | None:
    return int(text) if text.isdecimal() else _expression(text)


@cache
def _expression(text: str) -> Size | None:
    """The size that `text` states; None if it is no expression, or not in printed form."""
    try:
        found = parse_sizes(text)
    except ValueError:
        return None
    return found[0] if len(found) == 1 and str(found[0]) == text else None


class TargetProgram(Operation):
    """A program for a target profile and a machine. Its symbol names both, or the profile for the default machine."""

    sym_name = attr(StringAttr)
    machine = optional(StringAttr)

    @property
    def machine_name(self) -> str:
        """Name of the machine, a key of `profiles.MACHINES`."""
        return DEFAULT if self.machine is None else self.machine.value

    @property
    def profile(self) -> str:
        """Name of the target profile, taken from the program's symbol."""
        return profile_of(self.sym_name.value, self.machine_name)


class Program(TargetProgram):
    """Everything that is compiled for one target profile and one machine."""

    name = "hl_seq.program"
    body = region()
    traits = frozenset({Trait.ISOLATED, Trait.SYMBOL, Trait.SYMBOL_TABLE, Trait.NO_TERMINATOR})


def programs_of(module: Module) -> list[Program]:
    return module.block.of(Program)


class Import(Operation):
    """The resource of an argument."""

    name = "hl_seq.import"
    source = operand(TensorType)
    output = result(is_resource)
    traits = frozenset({Trait.PURE})


class Export(Operation):
    """A result of the function over its external resource."""

    name = "hl_seq.export"
    source = operand(is_resource)
    output = result(TensorType)
    traits = frozenset({Trait.PURE})

    def check(self) -> Iterator[str]:
        if is_resource(self.source.type) and lifetime_of(self.source.type) != "external":
            yield f"exports {self.source.type}, which is not external"


class Clone(Operation):
    """Copies a resource."""

    name = "hl_seq.clone"
    source = operand(is_resource)
    output = result(is_resource)
    traits = frozenset({Trait.PURE})


DIALECT = Dialect("hl_seq", ops_in(globals()))
