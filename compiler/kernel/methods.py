"""Finds the method for each op of `kernel`, in classes that render the IR or rewrite it."""

from collections.abc import Callable
from typing import Any

from . import dialect as k

#: ops whose methods do not have their names
_METHODS = {
    "for": "loop",
    "while": "repeat",
    "if": "branch",
    "yield": "nothing",
    "return": "nothing",
    "vector": "make_vector",
}


def methods_of(renderer: type[Any]) -> dict[str, Callable[[Any, Any], None]]:
    """Op of `kernel` -> the method of a class that renders it: that of its name, or `scalar_op` for scalar ops.
    Ops without a method are left out.
    """
    short = {name: name.removeprefix("kernel.") for name in k.DIALECT.ops}
    named = {name: getattr(renderer, _METHODS.get(last, last), None) for name, last in short.items()}
    named |= dict.fromkeys((op.name for op in k.SCALARS.values()), renderer.scalar_op)
    return {name: method for name, method in named.items() if method is not None}
