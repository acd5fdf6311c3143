"""Converts the type of an imported function to the form of the module file."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrion.compiler.ir.types import FunctionType, TensorType, Type
from orchestrion.schema import imported
from orchestrion.schema.dtypes import BY_NAME


def tensors_of(type: FunctionType) -> imported.FunctionType:
    """The function type as the module file states it."""
    return imported.FunctionType(_tensors(type.inputs), _tensors(type.results))


def _tensors(types: Iterable[Type]) -> tuple[imported.TensorType, ...]:
    found = []
    for type in types:
        assert isinstance(type, TensorType)
        found.append(imported.TensorType(BY_NAME[str(type.element)], type.static_shape))
    return tuple(found)
