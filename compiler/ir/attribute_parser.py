"""Parses tokens to types, attributes and locations.

Aliases (`#loc1 = loc(..)`, `!t = tensor<..>`) are resolved at their first use, wherever they are defined. Types and
attributes that are one token are cached by their text. Malformed text raises ParseError; well-formed text of unknown
meaning is kept as text.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Final, TypeVar

from .aliases import MAX_EXPANDED, MAX_EXPANDED_TOTAL
from .attributes import (
    ELEMENT_BYTES,
    ELIDED,
    ArrayAttr,
    BoolAttr,
    DenseArray,
    DenseElements,
    DialectAttr,
    DictAttr,
    DimArray,
    FloatAttr,
    IntegerAttr,
    RawAttr,
    StringAttr,
    SymbolRef,
    UnitAttr,
)
from .dims import Dim, Shape
from .dims_parser import parse_sizes
from .elements import bytes_of_body, bytes_of_numbers, float_bits, integer_of
from .lexer import NUMBER, STRING, Tokens
from .locations import UNKNOWN, CallSiteLoc, FileLoc, FusedLoc, Location, NameLoc
from .types import (
    DIMS,
    DYNAMIC,
    F64,
    I64,
    Attribute,
    DialectType,
    FunctionType,
    RawType,
    ScalarType,
    TensorType,
    TupleType,
    Type,
    scalar,
)

T = TypeVar("T")

_SCALAR: Final = re.compile(r"(?:[su]?i[0-9]+|f[0-9]+\w*|bf16|tf32|index|none)\Z")
_COMPLEX: Final = re.compile(r"complex<\s*(f32|f64)\s*>\Z")
_RAW_TYPE: Final = re.compile(r"(?:memref|vector|complex|none)<")
_RAW_ATTR: Final = re.compile(r"(?:affine_map|affine_set|strided|sparse|opaque)<")
_DIMS: Final = re.compile(r"((?:(?:[0-9]+|\?)\s*x\s*)*)(.*)\Z", re.S)
_WORD: Final = re.compile(r"[A-Za-z_!][\w.$]*(?:<.*>)?\Z", re.S)
_ALIAS_IN_BODY: Final = re.compile(STRING.pattern + r"|[#!][A-Za-z_][\w$]*+(?![\w$.<])")
_MAX_DIM: Final = 2**63 - 1


class AttributeParser(Tokens):
    """Parses types, attributes and locations at the current token."""

    def __init__(self, text: str, filename: str, keep_elided: bool = False) -> None:
        super().__init__(text, filename)
        self._keep_elided = keep_elided
        self.resources: dict[str, bytes] = {}
        self._types: dict[str, Type] = {}
        self._attributes: dict[str, Attribute] = {}
        self._locations: dict[str, Location] = {}
        self._aliases = self._find_aliases()
        self._open: set[str] = set()
        self._expanded: dict[str, int] = {}

    def _find_aliases(self) -> dict[str, int]:
        """Alias -> index of the first token of its definition. A `#word` before `=` is always a definition."""
        tokens = self.tokens
        found: dict[str, int] = {}
        for index in [i for i, token in enumerate(tokens) if token == "="]:
            name = tokens[index - 1] if index else ""
            if name[:1] in ("#", "!"):
                if name in found:
                    self.fail(f"{name} is defined twice", index - 1)
                found[name] = index + 1
        return found

    def _alias(self, name: str, read: Callable[[], T]) -> T:
        """Calls `read` at the alias's definition, once, and returns the result."""
        start = self._aliases.get(name)
        if start is None:
            self.fail(f"{name} is not defined", self.at - 1)
        if name in self._open:
            self.fail(f"{name} is defined by itself", self.at - 1)
        self._open.add(name)
        here, self.at = self.at, start
        value = read()
        self._measure(name, self.tokens[start : self.at])
        self.at = here
        self._open.discard(name)
        return value

    def _measure(self, name: str, tokens: list[str]) -> None:
        """Records the expanded length of an alias. Fails above MAX_EXPANDED."""
        if name in self._expanded:
            return
        size = sum(map(len, tokens)) + self._inner(tokens)
        if size > MAX_EXPANDED:
            self.fail(f"{name} stands for more than {MAX_EXPANDED} characters")
        self._expanded[name] = size

    def _inner(self, tokens: list[str]) -> int:
        """Total expanded length of the aliases among some tokens."""
        found, known = 0, self._expanded
        for token in tokens:
            if token in known:
                found += known[token]
            elif "<" in token and ("#" in token or "!" in token):
                found += sum(known.get(match[0], 0) for match in _ALIAS_IN_BODY.finditer(token))
        return found

    def _check_expansion(self) -> None:
        """Fails if all uses of aliases exceed MAX_EXPANDED_TOTAL. Locations do not count: each is printed once."""
        if max(self._expanded.values(), default=0) < 1000:
            return
        self._expanded = {name: size for name, size in self._expanded.items() if name not in self._locations}
        if self._inner(self.tokens) > MAX_EXPANDED_TOTAL:
            self.fail(f"the aliases stand for more than {MAX_EXPANDED_TOTAL} characters", 0)

    def _expand(self, body: str) -> str:
        """The body of a dialect attribute or type with its aliases expanded."""
        if not self._aliases or "#" not in body and "!" not in body:
            return body

        def plain(match: re.Match[str]) -> str:
            name = match[0]
            if name not in self._aliases:
                return name
            read: Callable[[], Attribute] = self.type if name[0] == "!" else self.attribute
            return self._alias(name, read).text()

        return _ALIAS_IN_BODY.sub(plain, body)

    # types

    def type(self) -> Type:
        """Parses a type. Raises ParseError."""
        token = self.tokens[self.at]
        found = self._types.get(token)
        if found is not None:
            self.at += 1
            return found
        if token == "(":
            return self.function_type()
        self.at += 1
        found = self._type_of(token)
        if found is None:
            self.at -= 1
            self.fail(f"expected a type, found {self.shown}")
        self._types[token] = found
        return found

    def _type_of(self, token: str) -> Type | None:
        if token.startswith("tensor<"):
            return self._tensor(token[7:-1])
        if token.startswith("!"):
            if token in self._aliases:
                return self._alias(token, self.type)
            return DialectType(*self._of_dialect(token))
        if _SCALAR.match(token):
            return scalar(token)
        if number := _COMPLEX.match(token):
            return scalar(f"complex<{number[1]}>")
        if token.startswith("tuple<"):
            return self._tuple(token[6:-1].strip())
        return RawType(self._expand(token)) if _RAW_TYPE.match(token) else None

    def _split(self, token: str) -> tuple[str, str]:
        """The word before the bracket, and the text inside."""
        word, _, body = token.partition("<")
        return word, body[:-1]

    def _of_dialect(self, token: str) -> tuple[str, str]:
        """The name and the expanded body of a type or an attribute of a dialect."""
        name, body = self._split(token)
        if "." not in name and not body:
            self.fail(f"{token} is not defined", self.at - 1)
        return name[1:], self._expand(body)

    def _tuple(self, rest: str) -> TupleType:
        elements = []
        while rest:
            element, comma, rest = _split_top(rest)
            found = self._type_of(element)
            if found is None or comma and not rest.strip():
                self.fail(f"expected a type, found '{element if found is None else rest}'", self.at - 1)
            elements.append(found)
            rest = rest.strip()
        return TupleType(tuple(elements))

    def _tensor(self, body: str) -> TensorType:
        match = _DIMS.match(body.strip())
        assert match is not None, "the pattern matches any text"
        dims = [part.strip() for part in match[1].split("x")[:-1]]
        shape = tuple(DYNAMIC if part == "?" else int(part[:20]) for part in dims)
        if any(size > _MAX_DIM for size in shape):
            self.fail("a dimension does not fit 64 bits", self.at - 1)
        element, _, encoding = _split_top(match[2])
        found = self._types.get(element)
        if found is None and _WORD.match(element) and not element.startswith("tensor"):
            found = self._type_of(element)
        if found is None:
            self.fail(f"expected an element type, found '{element}'", self.at - 1)
        self._types[element] = found
        encoding = self._expand(encoding.strip())
        if encoding.startswith(DIMS):
            return TensorType(self._sized(shape, self._sizes(encoding[len(DIMS) : -1])), found)
        return TensorType(shape, found, encoding)

    def _sized(self, shape: tuple[int, ...], sizes: Shape) -> Shape:
        """The shape with an expression for each `?`."""
        if shape.count(DYNAMIC) != len(sizes) or not all(isinstance(size, Dim) for size in sizes):
            self.fail(f"{len(sizes)} expressions for {shape.count(DYNAMIC)} dynamic dimensions", self.at - 1)
        rest = iter(sizes)
        return tuple(next(rest) if size == DYNAMIC else size for size in shape)

    def _sizes(self, text: str) -> Shape:
        try:
            return parse_sizes(text)
        except ValueError as error:
            self.fail(str(error), self.at - 1)

    def function_type(self) -> FunctionType:
        """Parses `(a, b) -> c`. Raises ParseError."""
        inputs = self.types()
        self.expect("->")
        if self.tokens[self.at] == "(":
            return FunctionType(inputs, self.types())
        return FunctionType(inputs, (self.type(),))

    def types(self) -> tuple[Type, ...]:
        """Parses `(a, b)`."""
        return tuple(self._items("(", ")", self.type))

    # attributes

    def attribute(self) -> Attribute:
        """Parses an attribute. Raises ParseError."""
        token = self.tokens[self.at]
        found = self._attributes.get(token)
        if found is not None:
            self.at += 1
            return found
        first = token[:1]
        if first == '"':
            self.at += 1
            return StringAttr(self.unquote(token))
        if first == "[":
            return ArrayAttr(tuple(self._items("[", "]", self.attribute)))
        if first == "{":
            return DictAttr.of(self.dictionary("{", "}"))
        if first == "@":
            return self._symbol()
        if first == "-" or first.isdecimal():
            return self._number()
        if token.startswith(("dense<", "dense_resource<")):
            return self._dense()
        self.at += 1
        found = self._single(token)
        if found is None:
            self.at -= 1
            return self.type()
        self._attributes[token] = found
        return found

    def _single(self, token: str) -> Attribute | None:
        """The attribute for the token that was consumed; None if it needs more tokens."""
        if token in _WORDS:
            return _WORDS[token]
        if token.startswith("array<"):
            return self._array(token[6:-1])
        if token.startswith("#"):
            if token in self._aliases:
                return self._alias(token, self.attribute)
            if token.startswith(DIMS):
                return DimArray(self._sizes(self._expand(token[len(DIMS) : -1])))
            return DialectAttr(*self._of_dialect(token))
        return RawAttr(self._expand(token)) if _RAW_ATTR.match(token) else None

    def _items(self, start: str, end: str, read: Callable[[], T]) -> list[T]:
        self.expect(start)
        if self.accept(end):
            return []
        items = [read()]
        while self.accept(","):
            items.append(read())
        self.expect(end)
        return items

    def dictionary(self, start: str, end: str) -> dict[str, Attribute]:
        """Parses named entries between brackets; a name without a value is a unit attribute."""
        entries: dict[str, Attribute] = {}

        def entry() -> None:
            token = self.next()
            if token[:1] == '"':
                key = self.unquote(token)
            elif token[:1].isalpha() or token[:1] == "_":
                key = token
            else:
                self.fail(f"expected the name of an attribute, found {token!r}", self.at - 1)
            if key in entries:
                self.fail(f"{key} is given twice", self.at - 1)
            entries[key] = self.attribute() if self.accept("=") else UnitAttr()

        self._items(start, end, entry)
        return entries

    def _symbol(self) -> SymbolRef:
        path = [self._symbol_name()]
        while self.accept("::"):
            path.append(self._symbol_name())
        return SymbolRef(path[0], tuple(path[1:]))

    def _symbol_name(self) -> str:
        token = self.tokens[self.at]
        if len(token) < 2 or token[0] != "@":
            self.fail(f"expected a symbol, found {self.shown}")
        self.at += 1
        return self.unquote(token[1:]) if token[1] == '"' else token[1:]

    def _number(self) -> Attribute:
        start = self.at
        token = self.next()
        if NUMBER.fullmatch(token) is None:
            self.fail(f"expected an attribute, found {token!r}", start)
        is_hex = "x" in token
        is_float = not is_hex and any(c in token for c in ".eE")
        kind: Type = F64 if is_float else I64
        if self.accept(":"):
            kind = self.type()
        name = str(kind)
        try:
            if isinstance(kind, ScalarType) and name[0] in "ft" or name == "bf16":
                return FloatAttr(float_bits(token, name), kind)
            if isinstance(kind, ScalarType) and not is_float:
                value = integer_of(token, name)
                return BoolAttr(value != 0) if name == "i1" else IntegerAttr(value, kind)
        except (ValueError, OverflowError, struct.error) as error:
            self.fail(f"{token[:40]} is not of type {name}: {str(error)[:120]}", start)
        self.fail(f"{token[:40]} cannot be of type {name}", start)

    def _array(self, body: str) -> DenseArray:
        name, _, numbers = body.partition(":")
        kind = scalar(name.strip())
        try:
            data = bytes_of_numbers(numbers, kind.name)
        except (ValueError, OverflowError, struct.error, KeyError) as error:
            self.fail(f"array<{body[:40]}>: {error}", self.at - 1)
        size = ELEMENT_BYTES[kind.name]
        elements = DenseElements(TensorType((len(data) // size + 1,), kind), data + bytes(size))
        return DenseArray(elements.scalars()[:-1], kind)

    def _dense(self) -> Attribute:
        start = self.at
        head, body = self._split(self.next())
        self.expect(":")
        kind = self.type()
        if not isinstance(kind, TensorType) or not kind.is_static:
            if isinstance(kind, RawType):
                return RawAttr(f"{head}<{body}> : {kind}")
            self.fail(f"elements need a tensor of a static shape, found {kind}", start)
        if str(kind.element) not in ELEMENT_BYTES or self._keep_elided and body == ELIDED:
            return RawAttr(f"{head}<{body}> : {kind}")
        try:
            data = self._resource(body) if head == "dense_resource" else bytes_of_body(body, kind)
            return DenseElements(kind, data)
        except (ValueError, OverflowError, struct.error) as error:
            self.fail(str(error), start)

    def _resource(self, body: str) -> bytes:
        key = self.unquote(body) if body[:1] == '"' else body.strip()
        if key == ELIDED:
            raise ValueError("the elements were left out when the text was printed")
        if key not in self.resources:
            raise ValueError(f"resource {key} is not in the text's resource section")
        return self.resources[key]

    # locations

    def location(self) -> Location:
        self.expect("loc")
        self.expect("(")
        token = self.tokens[self.at]
        found = self._locations.get(token) if token[:1] == "#" else None
        if found is not None:
            self.at += 1
        else:
            found = self._location()
        self.expect(")")
        return found

    def _location(self) -> Location:
        token = self.next()
        if token[:1] == "#" and token in self._aliases:
            if token not in self._locations:
                self._locations[token] = self._alias(token, self.location)
            return self._locations[token]
        if token[:1] == '"':
            return self._file_or_name(self.unquote(token))
        if token == "unknown":
            return UNKNOWN
        if token == "callsite":
            self.expect("(")
            callee = self._location()
            self.expect("at")
            caller = self._location()
            self.expect(")")
            return CallSiteLoc(callee, caller)
        if token == "fused" or token.startswith("fused<"):
            return FusedLoc(tuple(self._items("[", "]", self._location)), self._expand(token[6:-1]))
        self.fail(f"expected a location, found {token!r}", self.at - 1)

    def _file_or_name(self, text: str) -> Location:
        if self.accept("("):
            child = self._location()
            self.expect(")")
            return NameLoc(text, child)
        if not self.accept(":"):
            return NameLoc(text)
        line = self._count()
        self.expect(":")
        column = self._count()
        if not self.accept("to"):
            return FileLoc(text, line, column)
        end_line = line if self.tokens[self.at] == ":" else self._count()
        self.expect(":")
        return FileLoc(text, line, column, end_line, self._count())

    def _count(self) -> int:
        token = self.tokens[self.at]
        if not token.isdecimal() or len(token) > 10:
            self.fail(f"expected a line or column, found {self.shown}")
        self.at += 1
        return int(token)


def _split_top(text: str) -> tuple[str, str, str]:
    """The text up to the first comma outside brackets, the comma, and the rest."""
    depth = 0
    for index, char in enumerate(text):
        if char == "," and depth == 0:
            return text[:index].strip(), ",", text[index + 1 :]
        depth += (char == "<") - (char == ">")
    return text.strip(), "", ""


_WORDS: Final[dict[str, Attribute]] = {"true": BoolAttr(True), "false": BoolAttr(False), "unit": UnitAttr()}
