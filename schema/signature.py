"""Function signatures as text: `(hal.view, i32, i64*) -> hal.buffer`.

    signature := "(" [item {"," item}] ")" "->" results        results := type | "(" [type {"," type}] ")"
    item      := type | last                                   last    := type "*" | "(" type {"," type} ")" "*"

- The last item may have a star: that type, or that group, is repeated any number of times, including none.
- A type is a number type or a ref type: `any`, `buffer`, `list<i32>` .. `list<any>`, or a native module's dotted name.
- A ref of any type may be null; the callee defines what null means.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from .errors import ModuleError

NUMBER_TYPES = ("i32", "i64", "f32", "f64")
BUILTIN_REF_TYPES = ("any", "buffer", "list<i32>", "list<i64>", "list<f32>", "list<f64>", "list<any>")

_TOKEN = re.compile(r"\s*(->|[(),*]|[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*(?:<[a-z0-9]+>)?)")
_NATIVE_TYPE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)+")


def is_ref_type(name: str) -> bool:
    return name in BUILTIN_REF_TYPES or _NATIVE_TYPE.fullmatch(name) is not None


def is_value_type(name: str) -> bool:
    return name in NUMBER_TYPES or is_ref_type(name)


def bank_of(type_name: str) -> str:
    """The register bank of a value type."""
    return type_name if type_name in NUMBER_TYPES else "ref"


class Shape(NamedTuple):
    """A list of values: type names, the bank number of each (that of a ref is after those of the number types), and
    position and type of the refs.
    """

    types: tuple[str, ...]
    banks: list[int]
    refs: tuple[tuple[int, str], ...]


def shape_of(types: tuple[str, ...]) -> Shape:
    """The shape of valid value types."""
    refs = tuple([(place, name) for place, name in enumerate(types) if name not in _BANKS])
    return Shape(types, [_BANKS.get(name, len(_BANKS)) for name in types], refs)


_BANKS = {name: bank for bank, name in enumerate(NUMBER_TYPES)}
#: the largest number of arguments for which a signature caches their shape, because signatures live for ever
_MAX_SHAPED = 64


@dataclass(frozen=True, slots=True)
class Signature:
    """`arguments`, then any number of repetitions of `repeated` (empty: none), with `results`."""

    arguments: tuple[str, ...]
    repeated: tuple[str, ...]
    results: tuple[str, ...]
    _shapes: dict[int, Shape] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __str__(self) -> str:
        items = list(self.arguments)
        if self.repeated:
            items.append(f"{self.repeated[0]}*" if len(self.repeated) == 1 else f"({', '.join(self.repeated)})*")
        results = self.results[0] if len(self.results) == 1 else f"({', '.join(self.results)})"
        return f"({', '.join(items)}) -> {results}"

    def expand(self, count: int) -> tuple[str, ...] | None:
        """The types of `count` arguments; None if the signature does not allow that number."""
        extra = count - len(self.arguments)
        if extra == 0:
            return self.arguments
        if extra < 0 or not self.repeated or extra % len(self.repeated):
            return None
        return self.arguments + self.repeated * (extra // len(self.repeated))

    def shape(self, count: int) -> Shape | None:
        """As `expand`, with the shape of the types."""
        found = self._shapes.get(count)
        if found is not None:
            return found
        types = self.expand(count)
        if types is None:
            return None
        found = shape_of(types)
        if count <= _MAX_SHAPED:
            self._shapes[count] = found
        return found

    @property
    def given(self) -> Shape:
        """The shape of the results."""
        return self._shapes.get(-1) or self._shapes.setdefault(-1, shape_of(self.results))


class _Reader:
    """A recursive-descent parser of one signature."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def error(self, wanted: str) -> ModuleError:
        return ModuleError(f"signature {self.text!r}: {wanted} expected at column {self.at + 1}")

    def peek(self) -> str:
        match = _TOKEN.match(self.text, self.at)
        return match.group(1) if match else ""

    def accept(self, token: str) -> bool:
        match = _TOKEN.match(self.text, self.at)
        if match is None or match.group(1) != token:
            return False
        self.at = match.end()
        return True

    def expect(self, token: str) -> None:
        if not self.accept(token):
            raise self.error(repr(token))

    def type(self) -> str:
        token = self.peek()
        if not is_value_type(token):
            raise self.error("a type")
        self.expect(token)
        return token

    def types(self) -> tuple[str, ...]:
        """Parses types after an opening parenthesis, up to the closing one."""
        if self.accept(")"):
            return ()
        found = [self.type()]
        while self.accept(","):
            found.append(self.type())
        self.expect(")")
        return tuple(found)

    def arguments(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        found: list[str] = []
        self.expect("(")
        if self.accept(")"):
            return (), ()
        while True:
            group = self.types() if self.accept("(") else (self.type(),)
            if self.accept("*"):
                if not group:
                    raise self.error("a type in the group before '*'")
                self.expect(")")
                return tuple(found), group
            if len(group) != 1:
                raise self.error("'*'")
            found += group
            if self.accept(")"):
                return tuple(found), ()
            self.expect(",")


def parse_signature(text: str) -> Signature:
    """Parses a signature. Raises ModuleError, which names the column of a mistake."""
    return _known(text) if len(text) <= _REMEMBERED else _read(text)


#: the longest text whose signature is cached, so that a process that opens many files does not keep huge ones
_REMEMBERED = 1000


def _read(text: str) -> Signature:
    reader = _Reader(text)
    arguments, repeated = reader.arguments()
    reader.expect("->")
    results = reader.types() if reader.accept("(") else (reader.type(),)
    if text[reader.at :].strip():
        raise reader.error("the end")
    return Signature(arguments, repeated, results)


_known = lru_cache(maxsize=1024)(_read)
