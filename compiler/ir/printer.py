"""Prints IR in MLIR's generic syntax, such that `parse` gives the same IR and `jaxlib.mlir` can read it.

The text is deterministic: values are numbered in text order, keys are sorted, locations are numbered and resources
named by content. Shared locations are aliases at the top (`#loc1 = loc(..)`), large constants are in the resource
section at the end. A value number is reused only out of the first one's scope, even for a reader that does not know
which ops are isolated.
"""

from __future__ import annotations

from collections.abc import Sequence

from .attributes import Resources, entries_text, quote
from .core import Block, Operation, UnregisteredOp, Value
from .locations import UNKNOWN, Location, Tracked
from .types import results_text

#: The alignment before the bytes of a resource: a power of two, little endian.
ALIGNMENT = bytes((64, 0, 0, 0))


def print_module(op: Operation, locations: bool = True) -> str:
    """The text of a top-level operation, usually a module. Without `locations` it is shorter, and they are lost."""
    printer = _Printer(locations)
    printer.top(op)
    parts = [f"{alias} = loc({text})\n" for alias, text in printer.definitions]
    parts += printer.parts
    if printer.resources:
        parts.append(_resource_section(printer.resources))
    return "".join(parts)


def operation_text(op: Operation) -> str:
    """One operation for people: without locations, and with constants as resources without their bytes."""
    printer = _Printer(False)
    printer.top(op)
    return "".join(printer.parts).rstrip("\n")


def _resource_section(resources: Resources) -> str:
    prefix = ALIGNMENT.hex()
    lines = [f'      {name}: "0x{prefix}{bytes(resources[name].data).hex().upper()}"' for name in sorted(resources)]
    return "\n{-#\n  dialect_resources: {\n    builtin: {\n" + ",\n".join(lines) + "\n    }\n  }\n#-}\n"


class _Printer:
    def __init__(self, locations: bool) -> None:
        self.locations = locations
        self.parts: list[str] = []
        self.resources: Resources = {}
        self.definitions: list[tuple[str, str]] = []
        self._names: dict[Value, str] = {}
        self._blocks: dict[Block, str] = {}
        self._aliases: dict[Location, str] = {}
        self._alias_of_object: dict[int, str] = {}

    def top(self, op: Operation) -> None:
        self._number_regions(op, self._number(op.results, 0))
        self._operation(op, "")

    def _operation(self, op: Operation, indent: str) -> None:
        add = self.parts.append
        add(indent)
        if len(op.results) == 1:
            add(f"{self._names[op.results[0]]} = ")
        elif op.results:
            add(f"{self._names[op.results[0]].partition('#')[0]}:{len(op.results)} = ")
        name = quote(op.name) if isinstance(op, UnregisteredOp) else f'"{op.name}"'
        add(f"{name}({', '.join([self._name(value) for value in op.operands])})")
        if op.successors:
            add(f"[{', '.join([self._blocks.get(block, '^outside') for block in op.successors])}]")
        if op.properties:
            add(f" <{{{entries_text(op.properties, self.resources)}}}>")
        if op.regions:
            self._regions(op, indent)
        if op.attributes:
            add(f" {{{entries_text(op.attributes, self.resources)}}}")
        inputs = ", ".join([str(value.type) for value in op.operands])
        add(f" : ({inputs}) -> {results_text(tuple([result.type for result in op.results]))}")
        if self.locations:
            add(f" loc({self._location(op.loc)})")
        add("\n")

    def _number(self, values: Sequence[Value], number: int) -> int:
        """Names the results of an operation (several share a number) or a block argument; returns the next number."""
        if len(values) == 1:
            self._names[values[0]] = f"%{number}"
        for index, value in enumerate(values if len(values) > 1 else ()):
            self._names[value] = f"%{number}#{index}"
        return number + bool(values)

    def _number_regions(self, op: Operation, start: int) -> None:
        """Numbers a region's own values first, and nested regions above them, so that no number shadows another."""
        for region in op.regions:
            number = start
            for index, block in enumerate(region.blocks):
                self._blocks[block] = f"^bb{index}"
                for argument in block.arguments:
                    number = self._number((argument,), number)
                for inner in block:
                    number = self._number(inner.results, number)
            for block in region.blocks:
                for inner in block:
                    if inner.regions:
                        self._number_regions(inner, number)

    def _name(self, value: Value) -> str:
        name = self._names.get(value)
        if name is None:  # defined outside of the printed op
            name = self._names[value] = f"%outside{len(self._names)}"
        return name

    def _regions(self, op: Operation, indent: str) -> None:
        self.parts.append(" (")
        for index, region in enumerate(op.regions):
            self.parts.append(", {\n" if index else "{\n")
            for position, block in enumerate(region.blocks):
                if position or block.arguments or block.first is None:
                    self._label(block, indent)
                for inner in block:
                    self._operation(inner, indent + "  ")
            self.parts.append(f"{indent}}}")
        self.parts.append(")")

    def _label(self, block: Block, indent: str) -> None:
        arguments = []
        for argument in block.arguments:
            loc = f" loc({self._location(argument.loc)})" if self.locations and argument.loc.known else ""
            arguments.append(f"{self._names[argument]}: {argument.type}{loc}")
        listed = f"({', '.join(arguments)})" if arguments else ""
        self.parts.append(f"{indent}{self._blocks[block]}{listed}:\n")

    def _location(self, loc: Location) -> str:
        """An alias for every location but `unknown`; children are defined before their parents."""
        if isinstance(loc, Tracked):
            loc = loc.place
        if loc is UNKNOWN:
            return "unknown"
        alias = self._alias_of_object.get(id(loc))
        if alias is not None:
            return alias
        alias = self._aliases.get(loc)
        if alias is None:
            for child in loc.children():
                self._location(child)
            alias = f"#loc{len(self._aliases) + 1}"
            self.definitions.append((alias, loc.text(self._aliases)))
            self._aliases[loc] = alias
        self._alias_of_object[id(loc)] = alias
        return alias
