"""The trees of an export's arguments and results, as the export attribute `signature.tree` stores them.

    {"parameters": [["params", {"dict": [["b", 0], ["w", 1]]}], ["x", 2]], "keywords": 0, "result": {"tuple": [0, 1]}}

A whole number is a leaf: its position among the flat arguments or results. `null` is None. Containers are `{"list":
[...]}`, `{"tuple": [...]}`, `{"dict": [[key, node], ...]}` and, for an object of any other class, `{"record": "Adam",
"fields": [[name, accessor, node], ...]}`, where the accessor says how to get the child from the object: as an
attribute, as an item, or by its position among the children that JAX reports. `{"static": true}` is a value that was
fixed when the program was compiled. The last `keywords` parameters are keyword-only.

Leaves are in order, each position once. A file may be untrusted, so sizes and depth are limited.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, NoReturn

from .errors import ModuleError

#: the key of the attribute
KEY: Final = "signature.tree"
#: the most nested containers, and the most characters of the text
MAX_DEPTH: Final = 64
MAX_TEXT: Final = 16 << 20
ACCESSORS: Final = ("attribute", "item", "place")

Key = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Leaf:
    """An array: its position among the flat arguments or results."""

    place: int


@dataclass(frozen=True, slots=True)
class Nothing:
    """None."""


@dataclass(frozen=True, slots=True)
class Static:
    """A value that was fixed when the program was compiled. Callers may pass anything; results do not contain it."""


@dataclass(frozen=True, slots=True)
class Items:
    """A list or a tuple."""

    is_tuple: bool
    children: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Keyed:
    """A dict, with its keys in the order of the leaves."""

    keys: tuple[Key, ...]
    children: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """An object of another class: its name, and its children by name, each with one of `ACCESSORS`."""

    name: str
    fields: tuple[str, ...]
    accessors: tuple[str, ...]
    children: tuple[Node, ...]


Node = Leaf | Nothing | Static | Items | Keyed | Record


@dataclass(frozen=True, slots=True)
class Trees:
    """The trees of a function's parameters and result. The last `keywords` parameters are keyword-only."""

    parameters: tuple[tuple[str, Node], ...]
    keywords: int
    result: Node

    @property
    def is_flat(self) -> bool:
        """Whether this adds nothing to the flat signature: a leaf for each argument, and one result or a tuple."""
        flat = all(isinstance(node, Leaf) for _, node in self.parameters) and not self.keywords
        return flat and (isinstance(self.result, Leaf) or is_flat_tuple(self.result))

    @property
    def takes_arrays(self) -> bool:
        """Whether each parameter is one array."""
        return all(isinstance(node, Leaf) for _, node in self.parameters)


def is_flat_tuple(node: Node) -> bool:
    """Whether it is a tuple of several arrays, the form in which flat calls return several results."""
    if not isinstance(node, Items) or not node.is_tuple or len(node.children) == 1:
        return False
    return all(isinstance(child, Leaf) for child in node.children)


def leaves(node: Node) -> Iterator[int]:
    """The positions of a node's leaves, in order."""
    match node:
        case Leaf(place):
            yield place
        case Items(_, children) | Keyed(_, children) | Record(_, _, _, children):
            for child in children:
                yield from leaves(child)


def without(trees: Trees, removed: Collection[int]) -> Trees:
    """The trees of a function after removing some of its flat arguments. A parameter without remaining arrays is
    removed.
    """
    kept = iter(range(sum(len(list(leaves(node))) for _, node in trees.parameters) - len(removed)))
    parameters: list[tuple[str, Node]] = []
    keywords = trees.keywords
    for number, (name, node) in enumerate(trees.parameters):
        places = set(leaves(node))
        if places and places.issubset(removed):
            keywords -= number >= len(trees.parameters) - trees.keywords
        else:
            parameters.append((name, _renumbered(node, removed, kept)))
    return Trees(tuple(parameters), keywords, trees.result)


def _renumbered(node: Node, removed: Collection[int], kept: Iterator[int]) -> Node:
    match node:
        case Leaf(place):
            return Static() if place in removed else Leaf(next(kept))
        case Items(_, children) | Keyed(_, children) | Record(_, _, _, children):
            return replace(node, children=tuple([_renumbered(child, removed, kept) for child in children]))
    return node


def encode(trees: Trees) -> str:
    """The text of the attribute."""
    found = {
        "parameters": [[name, _encoded(node)] for name, node in trees.parameters],
        "keywords": trees.keywords,
        "result": _encoded(trees.result),
    }
    return json.dumps(found, separators=(",", ":"), allow_nan=False)


def _encoded(node: Node) -> Any:
    match node:
        case Leaf(place):
            return place
        case Nothing():
            return None
        case Static():
            return {"static": True}
        case Items(is_tuple, children):
            return {"tuple" if is_tuple else "list": [_encoded(child) for child in children]}
        case Keyed(keys, children):
            return {"dict": [[key, _encoded(child)] for key, child in zip(keys, children, strict=True)]}
        case Record(name, fields, accessors, children):
            rows = zip(fields, accessors, map(_encoded, children), strict=True)
            return {"record": name, "fields": [list(row) for row in rows]}


def decode(text: str, arguments: int, results: int) -> Trees:
    """Parses the trees of an export with this many flat arguments and results. Raises ModuleError if the text is
    malformed.
    """
    if len(text) > MAX_TEXT:
        _fail(f"{len(text)} characters, the limit is {MAX_TEXT}")
    try:
        found = json.loads(text, parse_constant=lambda name: _fail(f"{name} is no key"))
    except (ValueError, RecursionError) as error:
        _fail(f"not JSON: {str(error)[:200]}")
    if not isinstance(found, dict) or set(found) != {"parameters", "keywords", "result"}:
        _fail("an object of parameters, keywords and result expected")
    rows = _rows(found["parameters"], 2, "parameters")
    parameters = tuple([(_text(name, "the name of a parameter"), _decoded(node, 1)) for name, node in rows])
    keywords = found["keywords"]
    if type(keywords) is not int or not 0 <= keywords <= len(parameters):
        _fail(f"keywords is {str(keywords)[:40]}, a number of the parameters expected")
    names = [name for name, _ in parameters]
    if len(set(names)) < len(names):
        _fail("two parameters have one name")
    trees = Trees(parameters, keywords, _decoded(found["result"], 1))
    _check_places([place for _, node in parameters for place in leaves(node)], arguments, "arguments")
    _check_places(list(leaves(trees.result)), results, "results")
    return trees


def _check_places(places: list[int], count: int, what: str) -> None:
    if places != list(range(count)):
        _fail(f"the leaves are not the {count} {what} in order")


def _decoded(found: Any, depth: int) -> Node:
    if depth > MAX_DEPTH:
        _fail(f"nested more than {MAX_DEPTH} deep")
    if found is None:
        return Nothing()
    if type(found) is int:
        return Leaf(found)
    if not isinstance(found, dict):
        _fail(f"a node is {str(found)[:40]}")
    match sorted(found):
        case ["static"]:
            return Static()
        case ["list" | "tuple" as kind]:
            if not isinstance(found[kind], list):
                _fail(f"the items of a {kind} are no list")
            return Items(kind == "tuple", tuple([_decoded(child, depth + 1) for child in found[kind]]))
        case ["dict"]:
            rows = _rows(found["dict"], 2, "a dict")
            keys = tuple([_key(key) for key, _ in rows])
            if len(set(keys)) < len(keys):
                _fail("a dict has one key twice")
            return Keyed(keys, tuple([_decoded(child, depth + 1) for _, child in rows]))
        case ["fields", "record"]:
            return _record(found, depth)
        case kinds:
            _fail(f"no node has {', '.join(kinds)[:80]}")


def _record(found: dict[str, Any], depth: int) -> Record:
    rows = _rows(found["fields"], 3, "a record")
    fields = tuple([_text(name, "a field") for name, _, _ in rows])
    if len(set(fields)) < len(fields):
        _fail("a record has one field twice")
    accessors = tuple([accessor for _, accessor, _ in rows])
    if any(accessor not in ACCESSORS for accessor in accessors):
        _fail(f"an accessor is none of {', '.join(ACCESSORS)}")
    children = tuple([_decoded(child, depth + 1) for _, _, child in rows])
    return Record(_text(found["record"], "the name of a class"), fields, accessors, children)


def _rows(found: Any, width: int, what: str) -> list[list[Any]]:
    if not isinstance(found, list) or not all(isinstance(row, list) and len(row) == width for row in found):
        _fail(f"{what}: rows of {width} expected")
    return found


def _text(found: Any, what: str) -> str:
    if not isinstance(found, str):
        _fail(f"{what} is no text")
    return found


def _key(found: Any) -> Key:
    if not isinstance(found, str | int | float | bool):
        _fail("a key of a dict is no text, number or truth value")
    return found


def _fail(why: str) -> NoReturn:
    raise ModuleError(f"attribute {KEY}: {why}")
