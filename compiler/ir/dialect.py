"""Dialects: named sets of operation classes, found by the prefix of an op's name and imported at first use.

A dialect is one file (or a few, by family) whose last object is `DIALECT = Dialect("name", ops_in(globals()))`, and one
row in `DIALECTS` below.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, Final

from .core import Operation

#: Dialect name -> the module whose `DIALECT` declares it.
DIALECTS: Final[dict[str, str]] = {
    "builtin": "orchestrion.compiler.ir.builtin",
    "func": "orchestrion.compiler.stablehlo.ops.func",
    "stablehlo": "orchestrion.compiler.stablehlo.ops.dialect",
    "chlo": "orchestrion.compiler.stablehlo.ops.chlo",
    "flow": "orchestrion.compiler.flow.dialect",
    "util": "orchestrion.compiler.ir.util",
    "hl_seq": "orchestrion.compiler.sequencer.hl_seq",
    "ll_seq": "orchestrion.compiler.sequencer.ll_seq",
    "vm": "orchestrion.compiler.bytecode.vm",
    "kernel": "orchestrion.compiler.kernel.dialect",
    "tensor_bytecode": "orchestrion.compiler.targets.reference.dialect",
}


class Dialect:
    """A dialect's name and its operation classes by full name."""

    def __init__(self, name: str, ops: Iterable[type[Operation]]) -> None:
        self.name = name
        self.ops: dict[str, type[Operation]] = {}
        for cls in ops:
            if not cls.name.startswith(name + ".") or cls.name in self.ops:
                raise ValueError(f"{cls.__name__}: name {cls.name} is not new in dialect {name}")
            self.ops[cls.name] = cls


def ops_in(*namespaces: Mapping[str, Any]) -> Iterator[type[Operation]]:
    """The operation classes that files define under names of their own. `namespaces`: the global names of each file."""
    for namespace in namespaces:
        for cls in namespace.values():
            if isinstance(cls, type) and cls.__module__ == namespace["__name__"] and "name" in vars(cls):
                yield cls


_loaded: dict[str, Dialect | None] = {}


def dialect(name: str) -> Dialect | None:
    """The dialect of that name; None if it is not declared."""
    if name not in _loaded:
        path = DIALECTS.get(name)
        _loaded[name] = import_module(path).DIALECT if path is not None else None
    return _loaded[name]


def op_class(name: str) -> type[Operation] | None:
    """The class of an op by its full name (`dialect.op`); None if it is unregistered."""
    found = dialect(name.partition(".")[0])
    return found.ops.get(name) if found is not None else None
