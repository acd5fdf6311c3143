"""Parses MLIR's generic syntax to IR.

`parse` reads one module. Operations of declared dialects get their classes, others become `UnregisteredOp`. Attributes
that a declaration names are properties wherever the text states them. The location of an operation without `loc(..)` is
its place in the text. Values may be used before their definition; the verifier checks dominance. Malformed text raises
one `ParseError` with line and column, and no other exception.
"""

from __future__ import annotations

from collections.abc import Iterator

from orchestrion.compiler.errors import ParseError

from .attribute_parser import AttributeParser
from .builtin import Module
from .core import Block, Operation, Region, Trait, UnregisteredOp, Value
from .dialect import op_class
from .garbage import collection_paused
from .locations import UNKNOWN, FileLoc, Location
from .nesting import check_nesting
from .types import Type


def parse(text: str, filename: str = "<text>", keep_elided: bool = False) -> Module:
    """The module in `text`; operations outside of a module are put into one. Raises ParseError.

    `keep_elided`: keep omitted elements as text, for a caller that has them from elsewhere.
    """
    check_nesting(text, filename)
    try:
        with collection_paused():
            return Parser(text, filename, keep_elided).module()
    except RecursionError:  # aliases that refer to each other have no brackets; or the caller's own stack is deep
        raise ParseError("nested too deeply for Python's recursion limit", filename, 1, 1) from None


class _Forward(Value):
    """Placeholder for a value that is used before its definition."""

    __slots__ = ("token",)

    def __init__(self, type: Type, token: int) -> None:
        super().__init__(type)
        self.token = token


class Parser(AttributeParser):
    """Parses operations, blocks and regions."""

    def __init__(self, text: str, filename: str, keep_elided: bool = False) -> None:
        super().__init__(text, filename, keep_elided)
        self._values: dict[str, Value] = {}
        self._defined: list[str] = []
        self._forward: dict[str, _Forward] = {}
        self._blocks: dict[str, tuple[Block, int]] = {}
        self._classes: dict[str, type[Operation] | None] = {}
        self._without_loc: list[tuple[Operation, int]] = []

    def module(self) -> Module:
        """Parses the whole text to one module. Raises ParseError."""
        self._read_resources()
        ops: list[Operation] = []
        while token := self.tokens[self.at]:
            if token in self._aliases:
                self._skip_alias()
            elif token == "{-#":
                self._skip_resources()
            else:
                ops.append(self.operation())
        self._check_forward()
        self._check_blocks()
        self._check_expansion()
        for op, index in self._without_loc:
            op.loc = self.place(index)
        if len(ops) == 1 and isinstance(ops[0], Module):
            return ops[0]
        module = Module.empty(FileLoc(self.filename, 1, 1))
        for op in ops:
            module.block.append(op)
        return module

    def _skip_alias(self) -> None:
        """Parses an alias's definition, so that a malformed one is an error even if it is unused."""
        name = self.next()
        self.expect("=")
        if name[0] == "!":
            self.type()
        elif self.tokens[self.at] == "loc":
            self.location()
        else:
            self.attribute()

    # operations

    def operation(self) -> Operation:
        """Parses one operation in generic form. Raises ParseError."""
        tokens = self.tokens
        start = self.at
        names = self._result_names() if tokens[start][:1] == "%" else []
        at_name = self.at
        token = tokens[at_name]
        if token[:1] != '"':
            self.fail(f"expected an operation in generic form, found {self.shown}")
        self.at += 1
        cls = self._class(token)
        operand_names = self._items("(", ")", self._operand_name)
        successors = self._successors() if tokens[self.at] == "[" else []
        properties = self.dictionary("<{", "}>") if tokens[self.at] == "<{" else {}
        regions = self._regions(cls) if tokens[self.at] == "(" else []
        attributes = self.dictionary("{", "}") if tokens[self.at] == "{" else {}
        self.expect(":")
        signature = self.function_type()
        if len(signature.inputs) != len(operand_names):
            self.fail(f"{len(operand_names)} operands, but {len(signature.inputs)} operand types", at_name)
        operands = [self._use(n, t, i) for (n, i), t in zip(operand_names, signature.inputs, strict=True)]
        has_loc = tokens[self.at] == "loc"
        loc: Location = self.location() if has_loc else UNKNOWN
        for name in cls.declaration.property_names if cls is not None and attributes else ():
            if name in attributes and name not in properties:
                properties[name] = attributes.pop(name)
        parts = (operands, signature.results, properties, attributes, regions, successors, loc)
        op = UnregisteredOp(self.unquote(token), *parts) if cls is None else cls(*parts)
        if not has_loc:
            self._without_loc.append((op, at_name))
        self._name_results(op, names, start)
        return op

    def _class(self, token: str) -> type[Operation] | None:
        if token not in self._classes:
            self._classes[token] = op_class(self.unquote(token))
        return self._classes[token]

    def _result_names(self) -> list[tuple[str, int]]:
        """Parses `%a, %b:2 =` to names with counts."""
        names: list[tuple[str, int]] = []
        while not names or self.accept(","):
            name = self.next()
            if name[:1] != "%" or "#" in name:
                self.fail(f"expected the name of a result, found {name!r}", self.at - 1)
            names.append((name, self._count() if self.accept(":") else 1))
        self.expect("=")
        return names

    def _name_results(self, op: Operation, names: list[tuple[str, int]], start: int) -> None:
        if sum(count for _, count in names) != len(op.results) and names:
            self.fail(f"{op.name} has {len(op.results)} results, {sum(c for _, c in names)} are named", start)
        index = 0
        for name, count in names:
            for offset in range(count):
                key = name if count == 1 else f"{name}#{offset}"
                self._define(key, op.results[index], start)
                index += 1
            if count > 1:
                self._define(name, op.results[index - count], start)

    def _operand_name(self) -> tuple[str, int]:
        """Parses `%a` to the name and its token index."""
        token = self.tokens[self.at]
        if token[:1] != "%":
            self.fail(f"expected an operand, found {self.shown}")
        self.at += 1
        return token, self.at - 1

    def _use(self, name: str, type: Type, token: int) -> Value:
        value = self._values.get(name)
        if value is None:
            value = self._values[name] = self._forward[name] = _Forward(type, token)
            self._defined.append(name)
        elif value.type is not type and value.type != type:
            self.fail(f"{name} is of type {value.type}, used as {type}", token)
        return value

    def _define(self, name: str, value: Value, token: int) -> None:
        old = self._values.get(name)
        if old is None:
            self._values[name] = value
            self._defined.append(name)
            return
        if name not in self._forward:
            self.fail(f"{name} is defined twice", token)
        if old.type != value.type:
            self.fail(f"{name} is of type {value.type}, used before as {old.type}", token)
        del self._forward[name]
        old.replace_by(value)
        self._values[name] = value

    def _check_forward(self) -> None:
        """Fails if a used value was never defined."""
        for name, value in self._forward.items():
            self.fail(f"{name} is not defined", value.token)

    # regions

    def _regions(self, cls: type[Operation] | None) -> list[Region]:
        isolated = cls is not None and Trait.ISOLATED in cls.traits
        if not isolated:
            return self._items("(", ")", self._region)
        values, defined, forward = self._values, self._defined, self._forward
        self._values, self._defined, self._forward = {}, [], {}
        regions = self._items("(", ")", self._region)
        if cls is not None and Trait.SYMBOL not in cls.traits:
            self._take_from(values)
        self._check_forward()
        self._values, self._defined, self._forward = values, defined, forward
        return regions

    def _take_from(self, outer: dict[str, Value]) -> None:
        """Lets a region of an op that is isolated only in our IR use values from outside."""
        for name, value in list(self._forward.items()):
            found = outer.get(name)
            if found is not None and found.type == value.type:
                del self._forward[name]
                value.replace_by(found)

    def _region(self) -> Region:
        self.expect("{")
        region = Region()
        outer_blocks, self._blocks = self._blocks, {}
        mark = len(self._defined)
        if self.tokens[self.at] not in ("}", ""):
            if self.tokens[self.at][:1] != "^":
                self._block_body(region.add(Block()))
            while self.tokens[self.at][:1] == "^":
                self._block(region)
        self.expect("}")
        self._check_blocks()
        self._blocks = outer_blocks
        self._leave(mark)
        return region

    def _check_blocks(self) -> None:
        for name, (block, token) in self._blocks.items():
            if block.region is None:
                self.fail(f"block {name} is not defined", token)

    def _leave(self, mark: int) -> None:
        """Drops the definitions of a region; forward references stay, to be defined further out."""
        kept = [name for name in self._defined[mark:] if name in self._forward]
        for name in self._defined[mark:]:
            if name not in self._forward:
                del self._values[name]
        self._defined[mark:] = kept

    def _block(self, region: Region) -> None:
        start = self.at
        block = self._block_named(self.next(), start)
        if block.region is not None:
            self.fail(f"block {self.tokens[start]} is defined twice", start)
        region.add(block)
        if self.tokens[self.at] == "(":
            self._items("(", ")", lambda: self._argument(block))
        self.expect(":")
        self._block_body(block)

    def _argument(self, block: Block) -> None:
        index = self.at
        name = self.next()
        if name[:1] != "%" or "#" in name:
            self.fail(f"expected the name of a block argument, found {name!r}", index)
        self.expect(":")
        type = self.type()
        loc = self.location() if self.tokens[self.at] == "loc" else UNKNOWN
        self._define(name, block.add_argument(type, loc), index)

    def _block_body(self, block: Block) -> None:
        tokens = self.tokens
        while tokens[self.at][:1] in ("%", '"'):
            block.append(self.operation())
        if tokens[self.at][:1] not in ("}", "^"):
            self.fail(f"expected an operation in generic form, '}}' or a block, found {self.shown}")

    def _block_named(self, name: str, token: int) -> Block:
        if name not in self._blocks:
            self._blocks[name] = (Block(), token)
        return self._blocks[name][0]

    def _successors(self) -> list[Block]:
        def read() -> Block:
            if self.tokens[self.at][:1] != "^":
                self.fail(f"expected a block, found {self.shown}")
            return self._block_named(self.next(), self.at - 1)

        return self._items("[", "]", read)

    # resources

    def _read_resources(self) -> None:
        """Parses the resource section, which follows the text that refers to it."""
        if "{-#" not in self.tokens:
            return
        here, self.at = self.at, self.tokens.index("{-#") + 1
        for section in self._keys("#-}"):
            self.expect("{")
            for group in self._keys("}"):
                self.expect("{")
                for key in self._keys("}"):
                    token = self.next()
                    if section == "dialect_resources" and group == "builtin":
                        self.resources[key] = self._blob(token)
        self.at = here

    def _keys(self, end: str) -> Iterator[str]:
        """Yields the keys of `key: value, ...` up to `end`; the current token is then the value."""
        while not self.accept(end):
            token = self.next()
            if not token:
                self.fail(f"expected '{end}', found {self.shown}")
            self.expect(":")
            yield self.unquote(token) if token[0] == '"' else token
            if self.tokens[self.at] != end:
                self.expect(",")

    def _blob(self, token: str) -> bytes:
        """Parses `"0x` + 4 bytes of alignment + the data in hex."""
        try:
            data = bytes.fromhex(token[3:-1]) if token.startswith('"0x') else b""
        except ValueError:
            data = b""
        if len(data) < 4:
            self.fail("expected a resource: a string of 0x, 8 digits of alignment and data", self.at - 1)
        return data[4:]

    def _skip_resources(self) -> None:
        while self.next() not in ("#-}", ""):
            pass
