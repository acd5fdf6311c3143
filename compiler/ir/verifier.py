"""Checks IR against its rules and reports all violations, each with its location.

Rules: every op matches its declaration (counts, types, properties, regions); blocks end in a terminator, and contain no
other; branches stay in their region and never lead to the entry block; definitions dominate uses, and uses do not cross
isolated ops; symbols are unique in their scope, and references resolve; then each op's own `check`. Unregistered ops
must satisfy only the general rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from orchestrion.compiler.errors import CompileError, Diagnostic, InternalError

from .attributes import DimArray, RawAttr, SymbolRef
from .core import Operation, Trait, UnregisteredOp, Value
from .declare import Property, size_attr
from .dims import decided
from .dominance import Dominance
from .symbols import SymbolTables, references


def problems(top: Operation) -> Iterator[tuple[Operation, str]]:
    """All violations in `top` and inside, with the op concerned, in text order."""
    dominance, tables, accepted = Dominance(), SymbolTables(), set[tuple[object, ...]]()
    for op in top.walk():
        found = [
            f"operand {index} {problem}"
            for index, value in enumerate(op.operands)
            if (problem := dominance.problem(value, op)) is not None
        ]
        plain = op.checks_types and not (op.properties or op.regions or op.successors)
        types = [value.type for value in chain(op.operands, op.results)] if plain else ()
        key = (op.__class__, len(op.operands), *types)
        if not plain or found or key not in accepted:
            found += _messages(op, tables)
            # an op's own rules may rely on the general ones
            found += () if found else decided(chain(op.check(), op.check_symbols(tables)))
            accepted.update((key,) if plain and not found else ())
        for message in found:
            yield op, message


def verify(top: Operation) -> list[Diagnostic]:
    """All violations as diagnostics; empty if the IR is valid."""
    return [Diagnostic(message, op.loc, op.name) for op, message in problems(top)]


def check_input(top: Operation) -> None:
    """Raises CompileError with all violations in a program from outside."""
    if found := verify(top):
        raise CompileError(found)


def check_body(module: Operation) -> None:
    """Raises CompileError unless a module has exactly one block: passes that take any input rely on it."""
    blocks = [len(region.blocks) for region in module.regions]
    if blocks != [1]:
        raise CompileError([Diagnostic(f"needs one region of one block, has blocks {blocks}", module.loc, module.name)])


def check_own(top: Operation, made_by: str) -> None:
    """Raises InternalError with all violations in IR that the compiler made."""
    if found := verify(top):
        raise InternalError(made_by, found)


def _messages(op: Operation, tables: SymbolTables) -> Iterator[str]:
    if op.regions or op.successors or Trait.TERMINATOR in op.traits:
        yield from _terminators(op)
    if op.has(Trait.SYMBOL_TABLE):
        yield from _duplicates(op)
    if isinstance(op, UnregisteredOp):
        return
    yield from declaration_problems(op)
    for ref in references(op) if op.properties else ():
        if tables.lookup(op, ref) is None:
            yield f"symbol {ref} is not defined"


def declaration_problems(op: Operation) -> Iterator[str]:
    """The mismatches between a registered op and its declaration. If there are none, typed accessors may be used."""
    yield from _counts_and_types(op)
    if op.properties or op.declaration.attribute:
        yield from _properties(op)


def _terminators(op: Operation) -> Iterator[str]:
    if op.has(Trait.TERMINATOR) and op.next_op is not None:
        yield f"ends its block but {op.next_op.name} follows"
    if op.successors and op.next_op is not None and not op.has(Trait.TERMINATOR):
        yield f"has successors but {op.next_op.name} follows"
    for index, target in enumerate(op.successors):
        if target.region is not op.parent_region:
            yield f"successor {index} is a block of another region"
        elif target.region is not None and target is target.region.blocks[0]:
            yield f"successor {index} is the entry block, to which nothing may go"
    if op.regions and (op.has(Trait.ONE_BLOCK) or op.has(Trait.NO_TERMINATOR)):
        counts = [len(region.blocks) for region in op.regions]
        yield from (f"needs one block, has {count}" for count in counts if count != 1)
    if op.has(Trait.NO_TERMINATOR) or isinstance(op, UnregisteredOp):
        return
    for number, region in enumerate(op.regions):
        for index, block in enumerate(region.blocks):
            if block.terminator is None:
                last = "is empty" if block.last is None else f"ends in {block.last.name}, no terminator"
                yield f"region {number} block {index} {last}"


def _duplicates(op: Operation) -> Iterator[str]:
    seen: set[str] = set()
    for block in op.inner_blocks():
        for inner in block:
            name = inner.symbol
            if name is not None and name in seen:
                yield f"symbol {SymbolRef(name)} is defined twice"
            if name is not None:
                seen.add(name)


def _counts_and_types(op: Operation) -> Iterator[str]:
    declaration = op.declaration
    held: tuple[tuple[str, Sequence[Value]], ...] = (("operand", op.operands), ("result", op.results))
    for kind, values in held:
        try:
            fields = declaration.fields_of(op, kind, len(values))
        except ValueError as error:
            yield str(error)
            continue
        for field, value in zip(fields, values, strict=True):
            if not field.allows(value.type):
                yield f"{kind} {field.name} is of type {value.type}, must be: {field.wanted}"
    for kind, total in (("region", len(op.regions)), ("successor", len(op.successors))):
        if not total and not declaration.positional[kind].fields:
            continue
        try:
            declaration.sizes(op, kind, total)
        except ValueError as error:
            yield str(error)


def _properties(op: Operation) -> Iterator[str]:
    for field in op.declaration.attribute:
        assert isinstance(field, Property | size_attr), "the kinds of attribute field"
        value = op.properties.get(field.name)
        if value is None:
            if field.required:
                yield f"property {field.name} is missing"
        elif isinstance(value, RawAttr):
            yield f"property {field.name} is {str(value)[:60]}, whose element type is not supported"
        elif not isinstance(value, field.cls):
            wanted = "size" if isinstance(field, size_attr) else field.cls.__name__
            yield f"property {field.name} must be a {wanted}, is {str(value)[:60]}"
        elif isinstance(field, size_attr) and isinstance(value, DimArray) and len(value) != 1:
            yield f"property {field.name} must be one size, is {str(value)[:60]}"
    known = op.declaration.property_names
    for name in op.properties:
        if name not in known:
            yield f"unknown property {name}"
