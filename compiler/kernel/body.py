"""Bodies: the computation of an entry as schedules see it, with its kind, its ops, and its iteration domain.

A body is made from an entry of the phase `hl_seq`, which is a function over tensors, or of the phase `ll_seq`, whose
ops load from bindings and store to them. Bindings are numbered: inputs first, then outputs that are not tied to an
input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod
from typing import Final

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.flow.attention_bodies import Attention
from orchestrion.compiler.flow.fusion_reads import elements
from orchestrion.compiler.flow.kinds import ATTENTION, hero_of, kind_of
from orchestrion.compiler.flow.scatter import update_of
from orchestrion.compiler.ir.attributes import ArrayAttr, StringAttr
from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.ir.dims import Shape, Size, dim_max, is_dynamic
from orchestrion.compiler.ir.locations import UNKNOWN
from orchestrion.compiler.kernel.elements.encodings import stored_shape
from orchestrion.compiler.kernel.elements.rules import shape_of
from orchestrion.compiler.kernel.elementwise.dynamic_rows import DynamicRows
from orchestrion.compiler.kernel.elementwise.padded_lines import PaddedLines
from orchestrion.compiler.kernel.elementwise.result_lines import ResultLines
from orchestrion.compiler.kernel.elementwise.transposed import Across
from orchestrion.compiler.sequencer.in_place import updates_in_place
from orchestrion.compiler.sequencer.ll_seq import BINDING, End, Entry, LoadInput, Part, StoreOutput
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral, Reduce
from orchestrion.compiler.stablehlo.ops.func import Func
from orchestrion.compiler.stablehlo.ops.function_dims import dim_definitions
from orchestrion.compiler.stablehlo.ops.indexing import DynamicUpdateSlice
from orchestrion.compiler.stablehlo.ops.structural import BroadcastInDim, Transpose

#: dimensions of iteration domains
DIMENSIONS: Final[dict[str, str]] = {
    "e": "elements of the results in the order of memory: all parallel dimensions as one",
    "t": "elements of elementwise results along an axis that is contiguous in an operand, but not their last",
    "b": "batches of a dot, parallel",
    "m": "rows of the result of a dot, or rows of a body of kind `rows`, parallel",
    "n": "columns of the result of a dot, parallel",
    "k": "reduced elements",
}
#: from this number of elements on, element indices have 64 bits
WIDE_INDEX: Final = 1 << 31

ABI: Final = (LoadInput, StoreOutput, End)


@dataclass(frozen=True, slots=True)
class Extents:
    """The shape of the result of a dot in three parts: batch axes, free axes of the left operand, of the right
    operand.
    """

    batch: Shape
    left: Shape
    right: Shape

    @classmethod
    def of(cls, dot: DotGeneral) -> Extents:
        """The extents of a dot."""
        shape, dims = shape_of(dot.out), dot.dimensions
        first = len(dims.lhs_batch)
        second = first + len(dims.free(len(shape_of(dot.lhs)), True))
        return cls(shape[:first], shape[first:second], shape[second:])

    @property
    def sizes(self) -> dict[str, Size]:
        """Dimension -> extent, for those of the result."""
        return {"b": prod(self.batch), "m": self.rows, "n": self.columns}

    @property
    def rows(self) -> Size:
        """Number of rows of a matrix of the result."""
        return prod(self.left)

    @property
    def columns(self) -> Size:
        """Number of columns of a matrix of the result."""
        return prod(self.right)


@dataclass(frozen=True, slots=True)
class Output:
    """A value of the body and the number of the binding that it is written to. `window`: the update of a slice in place
    that the value belongs to; None if the value fills the binding.
    """

    value: Value
    binding: int
    window: DynamicUpdateSlice | None = None


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that ops compute. `count`: their number; `results`: the values that are written."""

    ops: Sequence[Operation]
    count: Size
    results: Sequence[Value]

    def length_of(self, value: Value) -> Size:
        """Elements per row of a value."""
        return elements(value) // self.count

    @property
    def passes(self) -> list[list[Value]]:
        """The values that each pass over a row reads: the operands of each reduction, then the results."""
        return [*(list(op.inputs) for op in self.ops if isinstance(op, Reduce)), list(self.results)]

    @property
    def reduced(self) -> list[Size]:
        """Elements per row of each reduction."""
        return [self.length_of(values[0]) for values in self.passes[:-1]]

    @property
    def lengths(self) -> list[Size]:
        """Elements per row of each reduction and of each result."""
        return [*self.reduced, *map(self.length_of, self.results)]

    @property
    def length(self) -> Size:
        """The greatest of `lengths`."""
        return reduce(dim_max, self.lengths)


@dataclass(frozen=True)
class Body:
    """The computation of an entry.

    `kind`: one of `flow.kinds.KINDS`. `inputs`: value -> number of its binding. `symbols`: names of the symbols of its
    sizes, in the order of the dispatch parameters.
    """

    kind: str
    ops: Sequence[Operation]
    inputs: Mapping[Value, int]
    outputs: Sequence[Output]
    symbols: Sequence[str]

    @classmethod
    def of_function(cls, func: Func, tied: Sequence[int]) -> Body:
        """The body of an entry of `hl_seq`. `tied`: per result the argument whose memory it uses, or -1."""
        block = func.entry
        *ops, terminator = block.ops
        outputs, next_binding = [], len(block.arguments)
        for value, argument in zip(terminator.operands, tied or (-1,) * len(terminator.operands), strict=True):
            update = None if argument < 0 else update_of(value)
            binding = argument
            if argument < 0:
                binding, next_binding = next_binding, next_binding + 1
            window = update if isinstance(update, DynamicUpdateSlice) else None
            outputs.append(Output(value if window is None else window.update, binding, window))
        inputs: dict[Value, int] = {argument: argument.index for argument in block.arguments}
        return cls(_kind(func.kind, ops, outputs), ops, inputs, outputs, _symbols(func.dims))

    @classmethod
    def of_entry(cls, entry: Entry | Part) -> Body:
        """The body of an entry or a part of `ll_seq`.

        Raises CompileError if a binding is loaded from and stored to without an update in place.
        """
        block = entry.body.block
        ops = [op for op in block if not isinstance(op, ABI)]
        number: dict[Value, int] = {argument: argument.index for argument in block.arguments}
        updates = updates_in_place(block)
        outputs = []
        for op in block:
            if isinstance(op, StoreOutput):
                update = updates.get(op)
                window = update if isinstance(update, DynamicUpdateSlice) else None
                outputs.append(Output(op.value if window is None else window.update, number[op.binding], window))
        inputs: dict[Value, int] = {op.value: number[op.binding] for op in block if isinstance(op, LoadInput)}
        dims = entry.dims if isinstance(entry, Entry) else None
        return cls(_kind(entry.kind, ops, outputs), ops, inputs, outputs, _symbols(dims))

    @cached_property
    def hero(self) -> Operation | None:
        """The op that decides the kind; None in an elementwise body."""
        return hero_of(self.ops)

    @cached_property
    def results(self) -> list[Value]:
        """The values that are written."""
        return [output.value for output in self.outputs]

    @cached_property
    def largest_result(self) -> Size:
        """Number of elements of the largest result in memory."""
        largest: Size = 0
        for value in self.results:
            largest = dim_max(largest, count_of(value))
        return largest

    @cached_property
    def rows(self) -> Rows:
        """The rows of a body of kind `rows`."""
        assert self.hero is not None
        return Rows(self.ops, elements(self.hero.results[0]), self.results)

    @cached_property
    def extents(self) -> Mapping[str, Size]:
        """Dimension -> extent. A dot has `b`, `m` and `n` only if all results have as many elements as its result."""
        hero = self.hero
        match self.kind:
            case "elementwise":
                return {"e": self.largest_result} | ({} if self.across is None else {"t": self.across.extent})
            case "reduction" | "contraction":
                assert hero is not None
                found = {"e": self.largest_result, "k": reduced(hero)}
                if isinstance(hero, DotGeneral) and self.has_one_size:
                    found |= Extents.of(hero).sizes
                return found
            case _ if self.attention is not None:
                return Extents.of(self.attention.product).sizes | {"k": reduced(self.attention.product)}
            case "rows":
                return {"m": self.rows.count, "k": self.rows.length}
            case _:
                return {}

    @cached_property
    def writes_inputs(self) -> bool:
        """Whether a result is written to the binding of an input."""
        return any(output.binding in self.inputs.values() for output in self.outputs)

    @cached_property
    def across(self) -> Across | None:
        """How an elementwise body reads an operand across; None if it does not, or writes to an input."""
        if self.kind != "elementwise" or self.writes_inputs:
            return None
        if not any(isinstance(op, Transpose | BroadcastInDim) for op in self.ops):
            return None
        return Across.of(self.results)

    @cached_property
    def attention(self) -> Attention | None:
        """The dots of a body of kind `attention`; None in any other body."""
        return Attention.of(self.ops, self.results) if self.kind == ATTENTION else None

    @cached_property
    def padding(self) -> PaddedLines | None:
        """The lines of an elementwise body that pads a tensor; None if it does not."""
        if self.kind != "elementwise" or len(self.outputs) != 1 or self.writes_inputs:
            return None
        return PaddedLines.of(self.outputs[0].value)

    @cached_property
    def dynamic_rows(self) -> DynamicRows | None:
        """The rows of dynamic size of an elementwise body; None if it has none."""
        return DynamicRows.of(self.results) if self.kind == "elementwise" else None

    @cached_property
    def lines(self) -> ResultLines | None:
        """The lines of results of which invocations compute one each; None if there are none, or if the body writes to
        an input.
        """
        if self.kind not in ("elementwise", "reduction", "contraction") or self.writes_inputs:
            return None
        return ResultLines.of(self.ops, self.results, [*self.inputs])

    @property
    def has_one_size(self) -> bool:
        """Whether all results have as many elements as the result of the hero."""
        assert self.hero is not None
        return all(count_of(value) == count_of(self.hero.results[0]) for value in self.results)

    @property
    def index_type(self) -> str:
        """The type of element indices. Calls check that dynamic sizes fit it."""
        values = [*self.inputs, *(value for op in self.ops for value in op.results)]
        sizes = (prod(stored_shape(value)) for value in values)
        most = max((size for size in sizes if not is_dynamic(size)), default=0)
        return "ui64" if most >= WIDE_INDEX else "ui32"

    def block(self) -> Block:
        """An empty block with an argument per binding."""
        count = max([*self.inputs.values(), *(output.binding for output in self.outputs)], default=-1) + 1
        return Block([BINDING] * count)


def reduced(hero: Operation) -> Size:
    """Number of elements that one result of a reduction or a dot combines."""
    axes = hero.dimensions.ints if isinstance(hero, Reduce) else ()
    if isinstance(hero, DotGeneral):
        axes = hero.dimensions.lhs_contract
    return prod(shape_of(hero.operands[0])[axis] for axis in axes)


def count_of(value: Value) -> Size:
    """Number of elements in memory, padding included."""
    return prod(stored_shape(value))


def _kind(given: StringAttr | None, ops: Sequence[Operation], outputs: Sequence[Output]) -> str:
    """The kind that fusion wrote, checked against the ops. Text written by hand may have none."""
    found = kind_of(ops, [output.value for output in outputs])
    if given is not None and given.value != found:
        loc = ops[0].loc if ops else UNKNOWN
        raise CompileError([Diagnostic(f"the entry is of kind {found}, its attribute says {given.value}", loc)])
    return found


def _symbols(dims: ArrayAttr | None) -> list[str]:
    return [symbol.name for symbol, _ in dim_definitions(dims)]
