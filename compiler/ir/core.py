"""The IR graph: values, operations, blocks, regions. Every edit goes through methods that maintain the use lists.

Rules: a value knows its uses as (operation, operand index); an operation is in at most one block, a block in at most
one region; the operations of a block are a linked list, so that insertion and erasure take constant time; iteration
over a block and walks tolerate erasing the current operation. `declare.py` defines how operation classes declare their
fields.

`properties` hold what the op's declaration names (for an unregistered op, the text in `<{..}>`); `attributes` hold
everything else that is attached to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, overload

from .attributes import StringAttr
from .declare import Declaration, declaration_of
from .locations import UNKNOWN, Location, Tracked, origin_of
from .types import Attribute, Type

if TYPE_CHECKING:
    from .symbols import SymbolTables

A = TypeVar("A", bound=Attribute)
Op = TypeVar("Op", bound="Operation")


class Trait(Enum):
    """A property of an op class that passes can rely on."""

    PURE = "no effect beyond its results: may be erased when unused, merged with an equal one, moved"
    REMOVABLE = "may be erased when its results are unused, but two of them are not the same thing"
    TERMINATOR = "ends its block"
    ISOLATED = "its regions use no value from outside"
    SYMBOL = "has a `sym_name` that others refer to"
    SYMBOL_TABLE = "its one region is a scope of symbols"
    ONE_BLOCK = "each of its regions has one block"
    NO_TERMINATOR = "each of its regions has one block, which needs no terminator"
    CONSTANT = "no operands, one result, its value is in its properties"
    COMMUTATIVE = "the order of its two operands does not matter"

    # members are unique; Enum's own hash is slow Python code, and every op's traits are queried
    __hash__ = object.__hash__


class Value:
    """An SSA value. `uses` maps (operation, operand index) -> None, in the order in which the uses were made."""

    __slots__ = ("type", "uses")

    def __init__(self, type: Type) -> None:
        self.type = type
        self.uses: dict[tuple[Operation, int], None] = {}

    @property
    def loc(self) -> Location:
        """The location of the definition; unknown for a forward reference in the parser."""
        return UNKNOWN

    @property
    def defining_op(self) -> Operation | None:
        """The operation that has this result; None for a block argument."""
        return None

    @property
    def parent_block(self) -> Block | None:
        """The block in which it is defined."""
        raise NotImplementedError

    def replace_by(self, value: Value) -> None:
        """Replaces every use of this value by `value`."""
        if value is self:
            return
        loc = self.loc
        if isinstance(loc, Tracked):
            loc.origin.replaced(loc.origin, origin_of(value.loc))
        for operation, index in list(self.uses):
            operation.set_operand(index, value)

    def users(self) -> list[Operation]:
        """The operations that use it, each once."""
        return list(dict.fromkeys(operation for operation, _ in self.uses))


class OpResult(Value):
    """The `index`-th result of `owner`."""

    __slots__ = ("owner", "index")

    def __init__(self, owner: Operation, index: int, type: Type) -> None:
        self.type = type
        self.uses: dict[tuple[Operation, int], None] = {}
        self.owner = owner
        self.index = index

    @property
    def loc(self) -> Location:
        return self.owner.loc

    @property
    def defining_op(self) -> Operation | None:
        return self.owner

    @property
    def parent_block(self) -> Block | None:
        return self.owner.parent


class BlockArgument(Value):
    """The `index`-th argument of `block`."""

    __slots__ = ("block", "index", "_loc")

    def __init__(self, block: Block, index: int, type: Type, loc: Location = UNKNOWN) -> None:
        super().__init__(type)
        self.block = block
        self.index = index
        self._loc = loc

    @property
    def loc(self) -> Location:
        return self._loc

    @property
    def parent_block(self) -> Block | None:
        return self.block


class Operation:
    """An operation. Subclasses declare `name`, fields (see `declare.py`) and `traits`, and may override `check`."""

    __slots__ = (
        "_operands", "results", "properties", "attributes", "regions", "successors", "loc", "parent",
        "prev_op", "next_op",
    )  # fmt: skip

    name: str
    traits: ClassVar[frozenset[Trait]] = frozenset()
    declaration: ClassVar[Declaration] = Declaration()
    #: whether `check` depends on nothing but the types of operands and results
    checks_types: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.declaration = declaration_of(cls)

    def __init__(
        self,
        operands: Iterable[Value] = (),
        result_types: Iterable[Type] = (),
        properties: Mapping[str, Attribute] | None = None,
        attributes: Mapping[str, Attribute] | None = None,
        regions: Iterable[Region] = (),
        successors: Iterable[Block] = (),
        loc: Location = UNKNOWN,
    ) -> None:
        self._operands: list[Value] = list(operands)
        for index, value in enumerate(self._operands):
            value.uses[self, index] = None
        self.results: tuple[OpResult, ...] = tuple([OpResult(self, i, t) for i, t in enumerate(result_types)])
        self.properties: dict[str, Attribute] = dict(properties) if properties else {}
        self.attributes: dict[str, Attribute] = dict(attributes) if attributes else {}
        self.regions: list[Region] = list(regions)
        for region in self.regions:
            region.owner = self
        self.successors: list[Block] = list(successors)
        self.loc = loc
        self.parent: Block | None = None
        self.prev_op: Operation | None = None
        self.next_op: Operation | None = None

    @classmethod
    def build(cls, loc: Location = UNKNOWN, **fields: Any) -> Self:
        """A new operation from its declared fields by name.

        Operand fields take a Value (variadic ones a sequence), result fields a Type (variadic: a sequence), attribute
        fields an attribute or a Python value (see `attribute_of`; sizes for a `DenseArray`), region fields a Region,
        successor fields a Block.
        Optional fields may be omitted. Raises TypeError for a missing or unknown field.
        """
        return cls(**cls.declaration.arguments(cls.name, fields), loc=loc)

    # operands

    @property
    def operands(self) -> Sequence[Value]:
        """Read only: change them with `set_operand` and `set_operands`."""
        return self._operands

    def set_operand(self, index: int, value: Value) -> None:
        """Replaces one operand, and updates the use lists."""
        old = self._operands[index]
        old.uses.pop((self, index), None)
        self._operands[index] = value
        value.uses[self, index] = None

    def set_operands(self, values: Iterable[Value]) -> None:
        """Replaces all operands, and updates the use lists."""
        for index, value in enumerate(self._operands):
            value.uses.pop((self, index), None)
        self._operands = list(values)
        for index, value in enumerate(self._operands):
            value.uses[self, index] = None

    @property
    def result(self) -> OpResult:
        """The only result. Raises ValueError if there is not exactly one."""
        if len(self.results) != 1:
            raise ValueError(f"{self.name} has {len(self.results)} results, not one")
        return self.results[0]

    # attributes

    def get(self, name: str) -> Attribute | None:
        """The property of that name, else the attribute of that name, else None."""
        value = self.properties.get(name)
        return self.attributes.get(name) if value is None else value

    def get_as(self, name: str, kind: type[A]) -> A | None:
        """Same as `get`, but None if the value is of another class."""
        value = self.get(name)
        return value if isinstance(value, kind) else None

    @property
    def symbol(self) -> str | None:
        """Its `sym_name`; None if it has none."""
        value = self.properties.get("sym_name")
        return value.value if isinstance(value, StringAttr) else None

    def has(self, trait: Trait) -> bool:
        return trait in self.traits

    # place

    @property
    def parent_region(self) -> Region | None:
        """The region that contains it; None for a detached operation."""
        return self.parent.region if self.parent is not None else None

    @property
    def parent_op(self) -> Operation | None:
        """The operation whose region contains it; None at the top."""
        region = self.parent_region
        return region.owner if region is not None else None

    def enclosing(self) -> Iterator[Operation]:
        """This operation and those that contain it, inner before outer."""
        op: Operation | None = self
        while op is not None:
            yield op
            op = op.parent_op

    def is_inside(self, ancestor: Operation) -> bool:
        """Whether it is `ancestor` or nested in it."""
        return any(op is ancestor for op in self.enclosing())

    def detach(self) -> None:
        """Removes it from its block; it keeps its operands and uses."""
        block = self.parent
        if block is None:
            return
        if self.prev_op is None:
            block.first = self.next_op
        else:
            self.prev_op.next_op = self.next_op
        if self.next_op is None:
            block.last = self.prev_op
        else:
            self.next_op.prev_op = self.prev_op
        self.parent = self.prev_op = self.next_op = None

    def erase(self) -> None:
        """Removes it and drops all operands, in its regions as well. Raises ValueError if a result is still used."""
        for result in self.results:
            if result.uses:
                user = next(iter(result.uses))[0]
                raise ValueError(f"{self.name} erased while {user.name} still uses result {result.index}")
        self.detach_keeping_next()
        self.drop_uses()

    def replace_by(self, values: Sequence[Value]) -> None:
        """Replaces every use of its results by `values`, and erases it."""
        for old, new in zip(self.results, values, strict=True):
            old.replace_by(new)
        self.erase()

    def detach_keeping_next(self) -> None:
        """Same as `detach`, but an iteration at this operation can continue."""
        following = self.next_op
        self.detach()
        self.next_op = following

    def drop_uses(self) -> None:
        """Drops all operands, here and in the regions."""
        for op in self.walk() if self.regions else (self,):
            op.set_operands(())

    def inner_blocks(self) -> Iterator[Block]:
        """The blocks in its regions."""
        return (block for region in self.regions for block in region.blocks)

    def block_arguments(self) -> Iterator[BlockArgument]:
        """The arguments of the blocks in its regions."""
        return (argument for block in self.inner_blocks() for argument in block.arguments)

    @overload
    def walk(self) -> Iterator[Operation]: ...
    @overload
    def walk(self, kind: type[Op]) -> Iterator[Op]: ...
    def walk(self, kind: type[Operation] | None = None) -> Iterator[Operation]:
        """This operation and everything inside, or those of a class, outer before inner, in text order."""
        return _walk(self) if kind is None else (op for op in _walk(self) if isinstance(op, kind))

    def clone(self, mapping: dict[Value, Value] | None = None, blocks: dict[Block, Block] | None = None) -> Operation:
        """A deep copy, in no block. Operands are replaced by `mapping` (old -> new), which gets the new values."""
        mapping = {} if mapping is None else mapping
        blocks = {} if blocks is None else blocks
        operands = [mapping.get(value, value) for value in self._operands]
        types = [result.type for result in self.results]
        successors = [blocks.get(block, block) for block in self.successors]
        copy = self.like(operands, types, self.properties, self.attributes, (), successors, self.loc)
        for old, new in zip(self.results, copy.results, strict=True):
            mapping[old] = new
        for region in self.regions:
            copy.add_region(region.clone(mapping))
        return copy

    def like(self, *parts: Any) -> Operation:
        """A detached operation of the same name from the arguments of the constructor."""
        return type(self)(*parts)

    def add_region(self, region: Region) -> Region:
        region.owner = self
        self.regions.append(region)
        return region

    # declared checks

    def check(self) -> Iterator[str]:
        """The op's own rules beyond its declaration: yields one message per violation."""
        return iter(())

    def check_symbols(self, tables: SymbolTables) -> Iterator[str]:
        """Same as `check`, for symbols. The ops share tables: building one takes time linear in the scope."""
        return iter(())

    def __str__(self) -> str:
        from .printer import operation_text

        return operation_text(self)

    def __repr__(self) -> str:
        return f"<{self.name}>"


def _walk(top: Operation) -> Iterator[Operation]:
    yield top
    # the remaining ops of each level; nested generators would pass every op through all levels
    levels = [chain.from_iterable(top.inner_blocks())]
    while levels:
        op = next(levels[-1], None)
        if op is None:
            levels.pop()
            continue
        yield op
        if op.regions:
            levels.append(chain.from_iterable(op.inner_blocks()))


class UnregisteredOp(Operation):
    """An operation of an undeclared dialect or name, kept unchanged."""

    __slots__ = ("name",)

    def __init__(self, name: str, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.name = name

    def like(self, *parts: Any) -> Operation:
        return UnregisteredOp(self.name, *parts)


class Block:
    """Arguments, then operations in a linked list from `first` to `last`."""

    __slots__ = ("arguments", "first", "last", "region")

    def __init__(self, argument_types: Iterable[Type] = (), locs: Iterable[Location] | None = None) -> None:
        types = list(argument_types)
        places = list(locs) if locs is not None else [UNKNOWN] * len(types)
        self.arguments: list[BlockArgument] = [
            BlockArgument(self, i, t, loc) for i, (t, loc) in enumerate(zip(types, places, strict=True))
        ]
        self.first: Operation | None = None
        self.last: Operation | None = None
        self.region: Region | None = None

    def __iter__(self) -> Iterator[Operation]:
        op = self.first
        while op is not None:
            yield op
            op = op.next_op

    def __reversed__(self) -> Iterator[Operation]:
        op = self.last
        while op is not None:
            before = op.prev_op
            yield op
            op = before

    @property
    def ops(self) -> list[Operation]:
        """A copy of the list of operations, for loops that change the block."""
        return list(self)

    def of(self, kind: type[Op]) -> list[Op]:
        """A copy of the list of its operations of a class."""
        return [op for op in self if isinstance(op, kind)]

    @overload
    def walk(self) -> Iterator[Operation]: ...
    @overload
    def walk(self, kind: type[Op]) -> Iterator[Op]: ...
    def walk(self, kind: type[Operation] = Operation) -> Iterator[Operation]:
        """All operations inside, or those of a class, outer before inner, in text order."""
        return (op for top in self for op in _walk(top) if isinstance(op, kind))

    @property
    def parent_op(self) -> Operation | None:
        """The operation whose region contains the block; None for a detached block."""
        return self.region.owner if self.region is not None else None

    @property
    def end(self) -> Operation:
        """The last operation. Raises ValueError for an empty block."""
        if self.last is None:
            raise ValueError("block is empty")
        return self.last

    @property
    def terminator(self) -> Operation | None:
        """The last operation if it is declared a terminator or is unregistered, else None."""
        op = self.last
        return op if op is not None and (op.has(Trait.TERMINATOR) or isinstance(op, UnregisteredOp)) else None

    def append(self, op: Operation) -> None:
        """Inserts a detached operation at the end."""
        self.insert_before(op, None)

    def insert_before(self, op: Operation, anchor: Operation | None) -> None:
        """Inserts a detached operation before `anchor`, or at the end. Raises ValueError if it is in a block."""
        if op.parent is not None:
            raise ValueError(f"{op.name} is in a block already: detach it first")
        before = self.last if anchor is None else anchor.prev_op
        op.parent, op.prev_op, op.next_op = self, before, anchor
        if before is None:
            self.first = op
        else:
            before.next_op = op
        if anchor is None:
            self.last = op
        else:
            anchor.prev_op = op

    def take(self, ops: Iterable[Operation], anchor: Operation | None = None) -> None:
        """Moves operations from where they are to the place before `anchor` in this block; None: to the end."""
        for op in ops:
            op.detach()
            self.insert_before(op, anchor)

    def order_arguments(self, arguments: Iterable[BlockArgument]) -> None:
        """Keeps these of its arguments, in this order."""
        self.arguments = list(arguments)
        for index, argument in enumerate(self.arguments):
            argument.index = index

    def add_argument(self, type: Type, loc: Location = UNKNOWN) -> BlockArgument:
        argument = BlockArgument(self, len(self.arguments), type, loc)
        self.arguments.append(argument)
        return argument

    def erase_arguments(self, indices: Iterable[int]) -> None:
        """Erases unused arguments; later ones move up. Raises ValueError if one is still used."""
        gone = set(indices)
        for index in gone:
            if self.arguments[index].uses:
                user = next(iter(self.arguments[index].uses))[0]
                raise ValueError(f"argument {index} erased while {user.name} still uses it")
        self.order_arguments([argument for argument in self.arguments if argument.index not in gone])


class Region:
    """A list of blocks; the first is the entry."""

    __slots__ = ("blocks", "owner")

    def __init__(self, blocks: Iterable[Block] = ()) -> None:
        self.blocks: list[Block] = []
        self.owner: Operation | None = None
        for block in blocks:
            self.add(block)

    @property
    def block(self) -> Block:
        """The only block. Raises ValueError if there is not exactly one."""
        if len(self.blocks) != 1:
            raise ValueError(f"region has {len(self.blocks)} blocks, not one")
        return self.blocks[0]

    def add(self, block: Block) -> Block:
        block.region = self
        self.blocks.append(block)
        return block

    @overload
    def walk(self) -> Iterator[Operation]: ...
    @overload
    def walk(self, kind: type[Op]) -> Iterator[Op]: ...
    def walk(self, kind: type[Operation] = Operation) -> Iterator[Operation]:
        """All operations inside, or those of a class, outer before inner, in text order."""
        return (op for block in self.blocks for top in block for op in _walk(top) if isinstance(op, kind))

    def clone(self, mapping: dict[Value, Value] | None = None) -> Region:
        """A deep copy; `mapping` gets its arguments and results. Forward references inside are mapped as well."""
        mapping = {} if mapping is None else mapping
        copies: dict[Block, Block] = {}
        region = Region()
        for block in self.blocks:
            copy = region.add(Block([a.type for a in block.arguments], [a.loc for a in block.arguments]))
            copies[block] = copy
            mapping.update(zip(block.arguments, copy.arguments, strict=True))
        for block in self.blocks:
            for op in block:
                copies[block].append(op.clone(mapping, copies))
        for op in region.walk():
            for index, value in enumerate(op.operands):
                if value in mapping:
                    op.set_operand(index, mapping[value])
        return region
