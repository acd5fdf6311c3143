"""The flow dialect: tensors, dispatches, and executables as functions over tensors, one copy for all targets.

Rules: after the phase no tensor arithmetic is outside of executables. A function holds dispatches, splats, empty
tensors, loads and stores of globals, host numbers (loop counters), and branches between its blocks. An initializer
holds the same in one block (`rules/flow.py` has the list). The workload of a dispatch is the number of elements of each
of its results, padding included, or of the update of a tied result.

Programs of the phase `hl_seq` have the same executables, dispatches, splats and empty tensors, over resources.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestrion.compiler.ir.attributes import DenseArray, DenseElements, StringAttr, SymbolRef
from orchestrion.compiler.ir.core import Block, Operation, OpResult, Region, Trait, Value
from orchestrion.compiler.ir.declare import attr, operand, operands, optional, region, result, results
from orchestrion.compiler.ir.dialect import Dialect, ops_in
from orchestrion.compiler.ir.types import DialectType, TensorType, Type
from orchestrion.compiler.stablehlo.ops import elementwise, flow_ops
from orchestrion.compiler.stablehlo.ops.base import OperandOp
from orchestrion.compiler.stablehlo.ops.func import Func
from orchestrion.schema import tensor_shapes

from . import merge, scatter
from .layout import problem


def is_data(type: Type) -> bool:
    """a tensor, or a resource"""
    return isinstance(type, TensorType) or (isinstance(type, DialectType) and type.name == "hl_seq.resource")


class DispatchRegion(Operation):
    """Ops that run as one dispatch. It may use values from outside. It exists only between two passes of the phase.

    `updates`: per output 1 if it is an update in the memory of its operand (`scatter.py`), else 0.
    """

    name = "flow.dispatch_region"
    updates = optional(DenseArray)
    body = region()
    outputs = results(TensorType)


class Yield(Operation):
    """Ends a region with its values."""

    name = "flow.yield"
    values = operands(TensorType)
    traits = frozenset({Trait.TERMINATOR})


class HoistableDispatch(Operation):
    """Pure ops that run as one dispatch, in an initializer if all values that they use are constant.

    It may use values from outside. It mostly holds one `set_encoding`.
    """

    name = "flow.hoistable_dispatch"
    body = region()
    outputs = results(TensorType)
    traits = frozenset({Trait.PURE})


class SetEncoding(Operation):
    """The same elements in another order in memory, which may still be symbolic; padding is zero."""

    name = "flow.set_encoding"
    source = operand(TensorType)
    output = result(TensorType)
    traits = frozenset({Trait.PURE})

    def check(self) -> Iterator[str]:
        yield from _encodes(self.source.type, self.output.type)


class UnsetEncoding(Operation):
    """The elements of an encoded tensor, in the order of its shape."""

    name = "flow.unset_encoding"
    source = operand(TensorType)
    output = result(TensorType)
    traits = frozenset({Trait.PURE})

    def check(self) -> Iterator[str]:
        yield from _encodes(self.output.type, self.source.type)


def _encodes(plain: Type, encoded: Type) -> Iterator[str]:
    """Checks that the two types differ only in that one has an encoding."""
    assert isinstance(plain, TensorType) and isinstance(encoded, TensorType)
    if plain.encoding or not encoded.encoding or (plain.shape, plain.element) != (encoded.shape, encoded.element):
        yield f"{encoded} must be {plain} with an encoding"
    elif encoded.num_elements == 0:
        yield f"{encoded} has no elements"
    elif message := problem(encoded):
        yield message


class Windows(OperandOp):
    """The windows of a tensor along some axes, of `sizes` elements: element j of window i along an axis is element i *
    stride + j * dilation. The axes of j are appended to those of the operand. A convolution sums over them.
    """

    name = "flow.windows"
    axes = attr(DenseArray)
    sizes = attr(DenseArray)
    strides = attr(DenseArray)
    dilations = attr(DenseArray)

    def infer(self) -> Sequence[TensorType]:
        windows = (x.sizes for x in (self.sizes, self.strides, self.dilations))
        return self.by_rule(tensor_shapes.windows, self.axes.ints, *windows)


class Executable(Operation):
    """A scope of entry functions over tensors, for every target."""

    name = "flow.executable"
    sym_name = attr(StringAttr)
    body = region()
    traits = frozenset({Trait.ISOLATED, Trait.SYMBOL, Trait.SYMBOL_TABLE, Trait.NO_TERMINATOR})

    @classmethod
    def of(cls, entry: Func, name: str) -> Executable:
        """A new executable with one entry. Both get the name."""
        executable = cls.build(sym_name=name, body=Region([Block()]), loc=entry.loc)
        executable.body.block.append(entry)
        executable.rename(name)
        return executable

    @property
    def entry(self) -> Func:
        """The only entry, as the phase `flow` makes it."""
        (entry,) = self.body.block
        assert isinstance(entry, Func)
        return entry

    def rename(self, name: str) -> None:
        self.sym_name = self.entry.sym_name = StringAttr(name)


class Dispatch(Operation):
    """Runs an entry: reads the arguments and writes every element of the outputs; of a tied output only the updated
    ones. The workload is (x, y, z) invocations.

    `tied`: per output the number of the argument whose memory it updates, or -1. The workload is then that of the
    update. The argument keeps its value: other readers get a copy. `in_place`: arguments whose memory the only output
    may use, if nobody else needs it.
    """

    name = "flow.dispatch"
    entry = attr(SymbolRef)
    workload = attr(DenseArray)
    tied = optional(DenseArray)
    in_place = optional(DenseArray)
    arguments = operands(is_data)
    outputs = results(is_data)
    traits = frozenset({Trait.PURE})

    def updates(self) -> Iterator[tuple[Value, OpResult]]:
        """Yields (argument, tied output) pairs."""
        for output, index in zip(self.outputs, self.tied.ints if self.tied is not None else ()):  # noqa: B905
            if index >= 0:
                yield self.arguments[index], output

    def reuses(self) -> Iterator[tuple[Value, OpResult]]:
        """Yields (argument, output) pairs for the arguments whose memory the output may take over."""
        for index in self.in_place.ints if self.in_place is not None else ():
            yield self.arguments[index], self.outputs[0]

    def check(self) -> Iterator[str]:
        if len(self.workload) != 3:
            yield f"workload needs 3 numbers, has {len(self.workload)}"
        if len(self.entry.nested) != 1:
            yield f"entry {self.entry} must name an executable and an entry"
        if self.tied is not None:
            yield from self._tied(self.tied.ints)

    def _tied(self, indices: tuple[int, ...]) -> Iterator[str]:
        named = [index for index in indices if index != -1]
        if len(indices) != len(self.outputs):
            yield f"tied has {len(indices)} numbers for {len(self.outputs)} outputs"
        elif any(not 0 <= index < len(self.arguments) for index in named):
            yield f"tied {list(indices)} names arguments, of which there are {len(self.arguments)}"
        elif len(set(named)) != len(named):
            yield f"tied {list(indices)} names an argument twice"
        for output, index in zip(self.outputs, indices, strict=False):
            tensors = isinstance(output.type, TensorType) and 0 <= index < len(self.arguments)
            if tensors and output.type != self.arguments[index].type:
                yield f"output of type {output.type} is tied to argument {index} of type {self.arguments[index].type}"


class Splat(Operation):
    """A tensor with the same value everywhere."""

    name = "flow.splat"
    value = attr(DenseElements)
    output = result(is_data)
    traits = frozenset({Trait.PURE})


class Empty(Operation):
    """A tensor without elements."""

    name = "flow.empty"
    output = result(is_data)
    traits = frozenset({Trait.PURE})

    def check(self) -> Iterator[str]:
        type = self.output.type
        if isinstance(type, TensorType) and type.is_static and type.num_elements:
            yield f"result {type} has elements"


_ELEMENTWISE = [op for name, op in elementwise.OPS.items() if name.startswith("flow.")]

DIALECT = Dialect("flow", [*_ELEMENTWISE, *ops_in(globals(), vars(scatter), vars(merge), vars(flow_ops))])
