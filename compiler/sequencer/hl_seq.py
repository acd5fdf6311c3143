"""The hl_seq dialect: one program per target profile; tensors became resources with a size and a lifetime.

`!hl_seq.resource<transient, 64>`: the lifetime is one of `LIFETIMES`, the size is bytes. Values are still SSA values
of whole resources: nobody has said yet where they lie. The exported signature stays in tensors; `import` and `export`
cross between the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from orchestrion.compiler.ir.attributes import DenseArray, DenseElements, StringAttr, SymbolRef
from orchestrion.compiler.ir.core import Operation, OpResult, Trait, Value
from orchestrion.compiler.ir.declare import attr, operand, operands, optional, region, result, results
from orchestrion.compiler.ir.dialect import Dialect
from orchestrion.compiler.ir.types import DialectType, TensorType, Type

LIFETIMES: Final[dict[str, str]] = {
    "constant": "made once, by a program initializer",
    "variable": "of a mutable global: lives as long as its context",
    "transient": "made and used inside one call",
    "external": "an argument or a result: the caller's",
}


def resource(lifetime: str, size: int) -> DialectType:
    """`!hl_seq.resource<lifetime, size>`."""
    return DialectType("hl_seq.resource", f"{lifetime}, {size}")


def is_resource(type: Type) -> bool:
    """a resource: !hl_seq.resource<lifetime, bytes>"""
    if not isinstance(type, DialectType) or type.name != "hl_seq.resource":
        return False
    lifetime, _, size = type.body.partition(", ")
    return lifetime in LIFETIMES and size.isdecimal()


def lifetime_of(type: Type) -> str:
    """The lifetime of a resource type."""
    assert isinstance(type, DialectType)
    return type.body.partition(", ")[0]


def size_of(type: Type) -> int:
    """The bytes of a resource type."""
    assert isinstance(type, DialectType)
    return int(type.body.partition(", ")[2])


class Program(Operation):
    """All that is compiled for one target profile, named by it."""

    name = "hl_seq.program"
    sym_name = attr(StringAttr)
    body = region()
    traits = frozenset({Trait.ISOLATED, Trait.SYMBOL, Trait.SYMBOL_TABLE, Trait.NO_TERMINATOR})


class Executable(Operation):
    """As `flow.executable`, now for one target."""

    name = "hl_seq.executable"
    sym_name = attr(StringAttr)
    body = region()
    traits = frozenset({Trait.ISOLATED, Trait.SYMBOL, Trait.SYMBOL_TABLE, Trait.NO_TERMINATOR})


class Import(Operation):
    """The storage of an argument."""

    name = "hl_seq.import"
    source = operand(TensorType)
    output = result(is_resource)
    traits = frozenset({Trait.PURE})


class Export(Operation):
    """A result over its storage, an external resource of its own."""

    name = "hl_seq.export"
    source = operand(is_resource)
    output = result(TensorType)
    traits = frozenset({Trait.PURE})

    def check(self) -> Iterator[str]:
        if is_resource(self.source.type) and lifetime_of(self.source.type) != "external":
            yield f"exports {self.source.type}, which is not external"


class Dispatch(Operation):
    """Runs an entry: arguments are read, outputs written in full, but a tied output only where it differs.

    `tied`: per output the argument that it is an update of, in the same memory, or -1. `in_place`: per output an
    argument whose memory it may take if nobody else needs that, or -1.
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
        """Tied outputs with their arguments."""
        return _pairs(self, self.tied)

    def reuses(self) -> Iterator[tuple[Value, OpResult]]:
        """Outputs with the arguments whose memory they may take."""
        return _pairs(self, self.in_place)

    def check(self) -> Iterator[str]:
        yield from check_pairs("tied", self.tied, self.arguments, self.outputs)
        yield from check_pairs("in_place", self.in_place, self.arguments, self.outputs)


def _pairs(op: Dispatch, indices: DenseArray | None) -> Iterator[tuple[Value, OpResult]]:
    for output, index in zip(op.outputs, indices.ints if indices is not None else ()):  # noqa: B905  may be absent
        if index >= 0:
            yield op.arguments[index], output


def check_pairs(
    name: str, indices: DenseArray | None, arguments: Sequence[Value], outputs: Sequence[Value]
) -> Iterator[str]:
    """What is wrong with `tied` or `in_place`: one argument per output or -1, none twice."""
    if indices is None:
        return
    named = [index for index in indices.ints if index >= 0]
    if len(indices) != len(outputs):
        yield f"{name} has {len(indices)} numbers for {len(outputs)} outputs"
    elif min(indices.ints, default=-1) < -1 or max(named, default=-1) >= len(arguments):
        yield f"{name} {list(indices.ints)} names arguments, of which there are {len(arguments)}"
    elif len(set(named)) != len(named):
        yield f"{name} {list(indices.ints)} names an argument twice"


class Clone(Operation):
    """A copy."""

    name = "hl_seq.clone"
    source = operand(is_resource)
    output = result(is_resource)
    traits = frozenset({Trait.PURE})


class Splat(Operation):
    """Memory filled with one value."""

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
