"""The flow dialect: tensors, dispatches, and executables as functions over tensors. One copy for all targets.

Rules: after the phase no arithmetic stands outside executables; a function holds `util.global_load`, `flow.dispatch`,
`flow.splat`, `flow.empty` and its return. A dispatch's workload is the number of elements that each of its results has.
"""

from __future__ import annotations

from collections.abc import Iterator

from orchestrion.compiler.ir.attributes import DenseArray, DenseElements, StringAttr, SymbolRef
from orchestrion.compiler.ir.core import Operation, Trait
from orchestrion.compiler.ir.declare import attr, operands, region, result, results
from orchestrion.compiler.ir.dialect import Dialect
from orchestrion.compiler.ir.types import TensorType


class DispatchRegion(Operation):
    """Ops that run as one dispatch; uses values from outside freely. Lives only between two passes of the phase."""

    name = "flow.dispatch_region"
    body = region()
    outputs = results(TensorType)


class Yield(Operation):
    """The values of the region it ends."""

    name = "flow.yield"
    values = operands(TensorType)
    traits = frozenset({Trait.TERMINATOR})


class Executable(Operation):
    """A scope of entry functions over tensors, for every target."""

    name = "flow.executable"
    sym_name = attr(StringAttr)
    body = region()
    traits = frozenset({Trait.ISOLATED, Trait.SYMBOL, Trait.SYMBOL_TABLE, Trait.NO_TERMINATOR})


class Dispatch(Operation):
    """Runs an entry on tensors; the workload is (x, y, z) invocations."""

    name = "flow.dispatch"
    entry = attr(SymbolRef)
    workload = attr(DenseArray)
    arguments = operands(TensorType)
    outputs = results(TensorType)
    traits = frozenset({Trait.PURE})

    def check(self) -> Iterator[str]:
        if len(self.workload) != 3:
            yield f"workload needs 3 numbers, has {len(self.workload)}"
        if len(self.entry.nested) != 1:
            yield f"entry {self.entry} must name an executable and an entry"


class Splat(Operation):
    """A tensor with the same value everywhere."""

    name = "flow.splat"
    value = attr(DenseElements)
    output = result(TensorType)
    traits = frozenset({Trait.PURE})


class Empty(Operation):
    """A tensor without elements."""

    name = "flow.empty"
    output = result(TensorType)
    traits = frozenset({Trait.PURE})

    def check(self) -> Iterator[str]:
        type = self.output.type
        if isinstance(type, TensorType) and type.is_static and type.num_elements:
            yield f"result {type} has elements"


DIALECT = Dialect("flow", [DispatchRegion, Yield, Executable, Dispatch, Splat, Empty])
