"""The dictionary of a parameter, a value that a module names and does not hold: one form in every phase.

It has the parameter's `name` and its `type` to those who give its value; `value` is the one that the program had, if
any. On globals and on constants of the runtime it is the attribute `parameter`; before there are globals see
`stablehlo/functions/parameters.py`.
"""

from __future__ import annotations

from .attributes import ELEMENT_BYTES, DenseElements, DictAttr, StringAttr
from .types import Attribute, TensorType


def parameter(name: str, type: TensorType, value: DenseElements | None = None) -> DictAttr:
    """The dictionary of a parameter."""
    fields: dict[str, Attribute] = {"name": StringAttr(name), "type": type}
    return DictAttr.of(fields if value is None else {**fields, "value": value})


def name_of(attribute: Attribute | None) -> str:
    """The name in a parameter's dictionary."""
    name = attribute.get("name") if isinstance(attribute, DictAttr) else None
    assert isinstance(name, StringAttr), f"{attribute} is no parameter"
    return name.value


def type_of(attribute: Attribute | None) -> TensorType:
    """The type of a parameter to those who give its value."""
    type = attribute.get("type") if isinstance(attribute, DictAttr) else None
    assert isinstance(type, TensorType), f"{attribute} is no parameter"
    return type


def value_of(attribute: Attribute | None) -> DenseElements | None:
    """The value that the program had."""
    value = attribute.get("value") if isinstance(attribute, DictAttr) else None
    return value if isinstance(value, DenseElements) else None


def problem(attribute: Attribute) -> str:
    """What is wrong with a parameter's dictionary; empty when nothing is."""
    if not isinstance(attribute, DictAttr) or not set(attribute.mapping) <= {"name", "type", "value"}:
        return f"{attribute} is no dictionary of name, type and value"
    name, type, value = (attribute.get(key) for key in ("name", "type", "value"))
    if not isinstance(name, StringAttr) or not name.value or "\0" in name.value:
        return f"a parameter is called {name}"
    if not isinstance(type, TensorType) or not type.is_static or not type.num_elements:
        return f"parameter {name} is of type {type}, must be of known size with elements"
    if str(type.element) not in ELEMENT_BYTES:
        return f"parameter {name} is of type {type}, which is not known"
    if value is not None and (not isinstance(value, DenseElements) or value.type != type):
        return f"parameter {name} of type {type} has a value of another type"
    return ""


def bytes_of(attribute: Attribute | None) -> int:
    """The bytes of a parameter."""
    type = type_of(attribute)
    return type.num_elements * ELEMENT_BYTES[str(type.element)]
