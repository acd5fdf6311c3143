"""The hl_seq dialect: one program per target profile; tensors are resources with a size and a lifetime.

`!hl_seq.resource<transient, 64>`: a lifetime of `LIFETIMES` and a size in bytes. In functions with dynamic shapes the
size is an expression over the function's symbols: `!hl_seq.resource<transient, 16 * b>`. Values are still SSA values of
whole resources: no memory is assigned yet. The exported signature stays in tensors; `import` and `export` convert
between the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

from orchestrion.compiler.ir.attributes import DenseArray, DenseElements, StringAttr, SymbolRef
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation, OpResult, Trait, Value
from orchestrion.compiler.ir.declare import attr, operand, operands, optional, region, result, results
from orchestrion.compiler.ir.dialect import Dialect
from orchestrion.compiler.ir.dims_parser import parse_sizes
from orchestrion.compiler.ir.types import DialectType, TensorType, Type
from orchestrion.compiler.profiles import DEFAULT, profile_of

LIFETIMES: Final[dict[str, str]] = {
    "constant": "made once, by a program initializer",
    "variable": "of a mutable global: lives as long as its context",
    "transient": "made and used inside one call",
    "external": "an argument or a result: the caller's",
}


def resource(lifetime: str, size: int) -> DialectType:
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


def size_of(type: Type) -> int:
    """The size of a resource type, in bytes."""
    assert isinstance(type, DialectType)
    size = _bytes(type.body.partition(", ")[2])
    assert size is not None
    return size


def _bytes(text: str) -> int | None:
    return int(text) if text.isdecimal() else _expression(text)


@cache
def _expression(text: str) -> int | None:
    """The size that `text` states; None if it is no expression, or not in printed form."""
    try:
        found = parse_sizes(text)
    except ValueError:
        return None
    return found[0] if len(found) == 1 and str(found[0]) == text else None


class TargetProgram(Operation):
    """A program for one target profile and one machine. Its symbol names both, or only the profile for the default
    machine.
    """

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
    """The programs of a module, in its order."""
    return [op for op in module.block if isinstance(op, Program)]


class Executable(Operation):
    """Same as `flow.executable`, for one target."""

    name = "hl_seq.executable"
    sym_name = attr(StringAttr)
    body = region()
    traits = frozenset({Trait.ISOLATED, Trait.SYMBOL, Trait.SYMBOL_TABLE, Trait.NO_TERMINATOR})


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


class Dispatch(Operation):
    """Runs an entry: reads the arguments and writes every element of the outputs; of a tied output only the updated
    ones.

    `tied`: per output the index of the argument that it updates in the same memory, or -1. `in_place`: indices of the
    arguments whose memory the only output may take over if nothing else needs it.
    """

    name = "hl_seq.dispatch"
    entry = attr(SymbolRef)
    workload = attr(DenseArray)
    tied = optional(DenseArray)
    in_place = optional(DenseArray)
    arguments = operands(is_resource)
    outputs = results(is_resource)
    traits = frozenset({Trait.PURE})

    def updates(self) -> Iterator[tuple[Value, OpResult]]:
        """Yields (argument, tied output) pairs."""
        for output, index in zip(self.outputs, self.tied.ints if self.tied is not None else ()):  # noqa: B905
            if index >= 0:
                yield self.arguments[index], output

    def reuses(self) -> Iterator[tuple[Value, OpResult]]:
        """Yields (argument, output) pairs for the arguments whose memory the output may take over."""
        for index in self.in_place.ints if self.in_place is not None else ():
            yield self.arguments[index], self.outputs[0]

    def check(self) -> Iterator[str]:
        if self.tied is not None and len(self.tied) != len(self.outputs):
            yield f"tied has {len(self.tied)} numbers for {len(self.outputs)} outputs"
        if self.in_place is not None and len(self.outputs) != 1:
            yield f"in_place is for one output, there are {len(self.outputs)}"
        for name, indices in (("tied", self.tied), ("in_place", self.in_place)):
            named = [index for index in indices.ints if index != -1 or name != "tied"] if indices is not None else []
            if not all(0 <= index < len(self.arguments) for index in named) or len(set(named)) != len(named):
                yield f"{name} {list(named)} are not arguments, each once; there are {len(self.arguments)}"


class Clone(Operation):
    """Copies a resource."""

    name = "hl_seq.clone"
    source = operand(is_resource)
    output = result(is_resource)
    traits = frozenset({Trait.PURE})


class Splat(Operation):
    """A resource filled with one value."""

    name = "hl_seq.splat"
    value = attr(DenseElements)
    output = result(is_resource)
    traits = frozenset({Trait.PURE})


class Empty(Operation):
    """A resource of zero bytes."""

    name = "hl_seq.empty"
    output = result(is_resource)
    traits = frozenset({Trait.PURE})


DIALECT = Dialect("hl_seq", [Program, Executable, Import, Export, Dispatch, Clone, Splat, Empty])
