"""Helpers of the shipped libraries: attributes with defaults, checks of operands, access to SciPy.

All methods of a `Call` raise ValueError; the message states what is wrong, with both values.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from math import prod
from typing import Any

from orchestrion.hal.errors import LibraryUnavailable
from orchestrion.schema.hints import install
from orchestrion.schema.library_call import Value

from .registry import Spec

Attributes = Mapping[str, Value]
Shape = tuple[int, ...]

#: BLAS and LAPACK count in 32 bits
MAX_ELEMENTS = 2**31 - 1


def scipy_module(name: str) -> Any:
    """Imports a module of SciPy. It is imported when a program that needs it is loaded."""
    try:
        return import_module(f"scipy.{name}")
    except ImportError as error:
        raise LibraryUnavailable(f"needs SciPy ({error}): {install('libraries')}") from None


def settings(attributes: Attributes, defaults: Attributes) -> dict[str, Any]:
    """The attributes, completed by the defaults. An int is accepted for a float. Raises ValueError for an unknown
    attribute or a wrong type.
    """
    unknown = [key for key in attributes if key not in defaults]
    if unknown:
        raise ValueError(f"no attribute is called {', '.join(unknown)}; attributes are {', '.join(defaults) or 'none'}")
    found: dict[str, Any] = {}
    for key, default in defaults.items():
        value = attributes.get(key, default)
        if isinstance(default, float) and type(value) is int:
            value = float(value)
        if type(value) is not type(default):
            raise ValueError(f"attribute {key} must be a {type(default).__name__}, is {value!r}")
        found[key] = value
    return found


class Call:
    """The operands and results of a call. All have one floating-point type, unless a check states otherwise."""

    def __init__(self, inputs: Sequence[Spec], outputs: Sequence[Spec]) -> None:
        self.inputs = inputs
        self.outputs = outputs

    def count(self, least: int, most: int, results: int = 1) -> None:
        if not least <= len(self.inputs) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            raise ValueError(f"{len(self.inputs)} operands, expected {wanted}")
        if len(self.outputs) != results:
            raise ValueError(f"{len(self.outputs)} results, expected {results}")

    def floats(self, specs: Sequence[Spec]) -> None:
        """Check that all are f32, or all f64, and that each has 1 to 2**31 - 1 elements."""
        names = {spec.dtype.name for spec in specs}
        if names not in ({"float32"}, {"float64"}):
            raise ValueError(f"element types {', '.join(sorted(names))}: all must be float32, or all float64")
        for spec in specs:
            count = prod(spec.shape)
            if not 0 < count <= MAX_ELEMENTS:
                raise ValueError(f"{count} elements in shape {list(spec.shape)}, expected 1 to {MAX_ELEMENTS}")

    def rank(self, what: str, spec: Spec, rank: int) -> Shape:
        if len(spec.shape) != rank:
            raise ValueError(f"{what} has shape {list(spec.shape)}, expected rank {rank}")
        return spec.shape


def same(what: str, found: Shape, wanted: Shape) -> None:
    if found != wanted:
        raise ValueError(f"{what} has shape {list(found)}, expected {list(wanted)}")
