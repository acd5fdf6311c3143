"""The dictionary that describes a parameter, a value that a module names and does not hold. All phases use this form.

It has the parameter's `name`, its `type` for those who provide the value, and optionally the `value` that the program
had. It is the attribute `parameter` of globals and of the runtime's constants; `stablehlo/functions/parameters.py`
describes earlier phases.
"""

from __future__ import annotations

from .attributes import ELEMENT_BYTES, DenseElements, DictAttr, StringAttr
from .types import Attribute, TensorType


def parameter(name: str, type: TensorType, value: DenseElements | None = None) -> DictAttr:
    fields: dict[str, Attribute] = {"name": StringAttr(name), "type": type}
    return DictAttr.of(fields if value is None else {**fields, "value": value})


def name_of(attribute: Attribute | None) -> str:
    """The name in a parameter's dictionary."""
    name = attribute.get("name") if isinstance(attribute, DictAttr) else None
    assert isinstance(name, StringAttr), f"{attribute} is not a parameter"
    return name.value


def type_of(attribute: Attribute | None) -> TensorType:
    """The type of a parameter for those who provide its value."""
    type = attribute.get("type") if isinstance(attribute, DictAttr) else None
    assert isinstance(type, TensorType), f"{attribute} is not a parameter"
    return type


def value_of(attribute: Attribute | None) -> DenseElements | None:
    """The value that the program had; None if it had none."""
    value = attribute.get("value") if isinstance(attribute, DictAttr) else None
    return value if isinstance(value, DenseElements) else None


def problem(attribute: Attribute) -> str:
    """What is wrong with a parameter's dictionary; empty if nothing is."""
    if not isinstance(attribute, DictAttr) or not set(attribute.mapping) <= {"name", "type", "value"}:
        return f"{attribute} is not a dictionary of name, type and value"
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
    """The size of a parameter, in bytes."""
    type = type_of(attribute)
    return int(type.num_elements) * ELEMENT_BYTES[str(type.element)]
