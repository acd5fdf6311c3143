"""Converts between trees of arrays (dicts, lists, tuples, objects with fields) and flat lists of arrays.

`schema.trees` defines the trees of a function. `flattener` and `builder` make fast functions for one tree; they handle
plain containers and arrays. `flatten` handles all other values, and raises an error that says what is wrong. An object
with fields (a named tuple, a dataclass, an equinox module) may be given as it is or as a dict of its fields. It is
returned as a dict, since the runtime does not have its class.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from orchestrion.schema.trees import Items, Keyed, Leaf, Node, Nothing, Record, Static, leaves

from .array import DeviceArray
from .errors import CallerTypeError, CallerValueError


def flatten(node: Node, value: Any, path: str, found: list[Any]) -> None:
    """Append the arrays of a value to `found`, in order. `CallerError` names the path of a wrong container."""
    match node:
        case Leaf():
            if isinstance(value, Mapping) or value is None:
                raise CallerTypeError(f"{path}: expected an array, got {_kind(value)}")
            found.append(value)
        case Keyed(keys, children):
            _check_keys(node, value, path)
            for key, child in zip(keys, children, strict=True):
                flatten(child, value.get(key), f"{path}[{key!r}]", found)
        case Items(is_tuple, children):
            if not isinstance(value, list | tuple):
                raise CallerTypeError(f"{path}: expected a {'tuple' if is_tuple else 'list'}, got {_kind(value)}")
            if len(value) != len(children):
                raise CallerValueError(f"{path}: expected {len(children)} items, got {len(value)}")
            for place, child in enumerate(children):
                flatten(child, value[place], f"{path}[{place}]", found)
        case Record():
            _flatten_record(node, value, path, found)
        case Nothing():
            if value is not None:
                raise CallerTypeError(f"{path}: expected None, got {_kind(value)}")
        case Static():
            pass


def _flatten_record(node: Record, value: Any, path: str, found: list[Any]) -> None:
    if type(value) is dict and "place" not in node.accessors or set(node.fields) == _keys(value):
        expected = [name for name, child in zip(node.fields, node.children, strict=True) if not is_static(child)]
        missing = [name for name in expected if name not in value]
        unexpected = [name for name in value if name not in node.fields]
        if missing or unexpected:
            fields = f"the fields of {node.name} ({', '.join(expected)})"
            raise CallerTypeError(f"{path}: expected {fields}, the dict {_difference(missing, unexpected)}")
        for name, child in zip(node.fields, node.children, strict=True):
            flatten(child, value.get(name), f"{path}[{name!r}]", found)
        return
    placed = _placed(node, value, path) if "place" in node.accessors else []
    for place, (name, accessor, child) in enumerate(zip(node.fields, node.accessors, node.children, strict=True)):
        try:
            if accessor == "attribute":
                one = getattr(value, name)
            else:
                one = value[name] if accessor == "item" else placed[place]
        except (AttributeError, KeyError, IndexError, TypeError):
            if isinstance(child, Leaf) and len(node.children) == 1 and hasattr(value, "dtype"):
                found.append(value)  # the only array of such an object, as nnx.to_pure_dict gives it for a Param
                return
            raise CallerTypeError(f"{path}: expected {node.name} or a dict of its fields, got {_kind(value)}") from None
        flatten(child, one, f"{path}.{name}" if accessor == "attribute" else f"{path}[{name!r}]", found)


def is_static(node: Node) -> bool:
    """Whether a node has no array and no None, so a dict may omit it."""
    match node:
        case Static():
            return True
        case Items(_, children) | Keyed(_, children) | Record(_, _, _, children):
            return bool(children) and all(map(is_static, children))
    return False


def _keys(value: Any) -> set[Any] | None:
    return set(value) if type(value) is dict else None


def _placed(node: Record, value: Any, path: str) -> list[Any]:
    """The children of an object of a class that only JAX can flatten."""
    jax = sys.modules.get("jax")
    if jax is None:
        raise CallerTypeError(f"{path}: expected a dict of the fields of {node.name}, got {_kind(value)}")
    return list(jax.tree.leaves(value, is_leaf=lambda one: one is not value))


def _check_keys(node: Keyed, value: Any, path: str) -> None:
    if not isinstance(value, Mapping):
        raise CallerTypeError(f"{path}: expected a dict, got {_kind(value)}")
    rows = zip(node.keys, node.children, strict=True)
    missing = [key for key, child in rows if key not in value and not is_static(child)]
    unexpected = [key for key in value if key not in node.keys]
    if missing or unexpected:
        raise CallerTypeError(f"{path}: the dict {_difference(missing, unexpected)}")


def _difference(missing: Sequence[Any], unexpected: Sequence[Any]) -> str:
    """The missing and the unexpected keys of a dict, in words."""
    said = [f"lacks {', '.join(map(repr, missing))}"] if missing else []
    said += [f"has {', '.join(map(repr, unexpected))} besides"] if unexpected else []
    return " and ".join(said)


def flattener(nodes: Sequence[Node]) -> Callable[[Sequence[Any]], list[Any] | None]:
    """A function that gives the arrays of a list of values, one per node, in order. It gives None if `flatten` has to
    decide.
    """
    steps = [_collector(node) for node in nodes]

    def arrays(values: Sequence[Any]) -> list[Any] | None:
        found: list[Any] = []
        try:
            for step, value in zip(steps, values):  # noqa: B905  one per parameter
                step(value, found)
        except _NotPlain:
            return None
        return found if _ARRAYS.issuperset(map(type, found)) else None

    return arrays


class _NotPlain(Exception):
    """A value is not a plain container of the right form."""


_Collector = Callable[[Any, list[Any]], None]


def _collector(node: Node) -> _Collector:
    match node:
        case Leaf():
            return _collect_array
        case Keyed(keys, children):
            return _keyed_collector(keys, [_collector(child) for child in children])
        case Items(_, children):
            return _items_collector([_collector(child) for child in children])
        case Static():
            return _collect_nothing
    return _refuse if isinstance(node, Record) else _collect_none


def _collect_array(value: Any, found: list[Any]) -> None:
    found.append(value)


def _keyed_collector(keys: tuple[Any, ...], children: Sequence[_Collector]) -> _Collector:
    rows = list(zip(keys, children, strict=True))
    holds_arrays = all(child is _collect_array for child in children)

    def collect(value: Any, found: list[Any]) -> None:
        if type(value) is not dict or len(value) != len(rows):
            raise _NotPlain
        try:
            if holds_arrays:
                found += [value[key] for key in keys]
                return
            for key, child in rows:
                child(value[key], found)
        except KeyError:
            raise _NotPlain from None

    return collect


def _items_collector(children: Sequence[_Collector]) -> _Collector:
    def collect(value: Any, found: list[Any]) -> None:
        if type(value) not in (tuple, list) or len(value) != len(children):
            raise _NotPlain
        for child, one in zip(children, value):  # noqa: B905  the lengths were compared
            child(one, found)

    return collect


def _refuse(value: Any, found: list[Any]) -> None:
    raise _NotPlain


def _collect_nothing(value: Any, found: list[Any]) -> None:
    pass


def _collect_none(value: Any, found: list[Any]) -> None:
    if value is not None:
        raise _NotPlain


#: classes of values that are surely arrays
_ARRAYS = frozenset({np.ndarray, DeviceArray})


def builder(node: Node) -> Callable[[Sequence[Any]], Any]:
    """A function that builds the tree of a node from a sequence of arrays, in which each leaf has its place."""
    match node:
        case Leaf(place):
            return itemgetter(place)
        case Keyed(keys, children):
            return _dict_builder(keys, children)
        case Items(is_tuple, children):
            kind, parts = tuple if is_tuple else list, [builder(child) for child in children]
            return lambda arrays: kind([child(arrays) for child in parts])
        case Record(_, fields, _, children):
            rows = [row for row in zip(fields, children, strict=True) if not is_static(row[1])]
            return _dict_builder([name for name, _ in rows], [child for _, child in rows])
    return lambda arrays: None


def _dict_builder(keys: Sequence[Any], children: Sequence[Node]) -> Callable[[Sequence[Any]], Any]:
    if children and all(isinstance(child, Leaf) for child in children):
        places = [place for child in children for place in leaves(child)]  # consecutive numbers
        start, end = places[0], places[-1] + 1
        return lambda arrays: dict(zip(keys, arrays[start:end]))  # noqa: B905  as many
    rows = list(zip(keys, map(builder, children), strict=True))
    return lambda arrays: {key: child(arrays) for key, child in rows}


def tree_text(node: Node, values: Sequence[object]) -> str:
    """A tree as text, with a value for each leaf: `{'w': f32[4,3], 'parts': (f32[3], None)}`."""
    match node:
        case Leaf(place):
            return str(values[place])
        case Nothing():
            return "None"
        case Items(is_tuple, children):
            inner = ", ".join([tree_text(child, values) for child in children])
            if not is_tuple:
                return f"[{inner}]"
            return f"({inner},)" if len(children) == 1 else f"({inner})"
        case Keyed(keys, children):
            rows = [f"{key!r}: {tree_text(child, values)}" for key, child in zip(keys, children, strict=True)]
            return f"{{{', '.join(rows)}}}"
        case Record(name, fields, _, children):
            rows = [f"{field}={tree_text(child, values)}" for field, child in zip(fields, children, strict=True)]
            return f"{name}({', '.join(rows)})"
        case Static():
            return "..."


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__
