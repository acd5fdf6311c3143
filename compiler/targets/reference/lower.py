"""Lowers the tensor body of an `ll_seq.entry` to tensor bytecode ops, in place: a StableHLO op becomes one or two rows.

The bytecode differs from StableHLO as follows. A splat constant is one element and a broadcast. Scalar operands of
`select` and `clamp` are broadcast. Reshapes of scalars in a reducer vanish. Special functions are expanded. All ops
without a row are reported at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.flow.dialect import SetEncoding, UnsetEncoding, Windows
from orchestrion.compiler.flow.layout import has_layout
from orchestrion.compiler.flow.merge import Merge
from orchestrion.compiler.flow.scatter import Scatter
from orchestrion.compiler.ir import dims
from orchestrion.compiler.ir.attributes import DenseElements, attribute_of, dense_ints
from orchestrion.compiler.ir.core import Block, Operation, OpResult, Region, Value
from orchestrion.compiler.ir.declare import Field
from orchestrion.compiler.ir.locations import Location
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.scalars.lowering import EXPANSIONS
from orchestrion.compiler.scalars.math.number import Number
from orchestrion.compiler.scalars.primitives import KINDS
from orchestrion.compiler.sequencer.in_place import updates_in_place
from orchestrion.compiler.sequencer.ll_seq import End, Entry, LoadInput, StoreOutput
from orchestrion.compiler.stablehlo.builders.tensors import Made, Tensor, replace
from orchestrion.compiler.stablehlo.ops import contraction, indexing, structural
from orchestrion.compiler.stablehlo.ops.base import is_supported, tensor_of
from orchestrion.compiler.stablehlo.ops.custom_call import CustomCall
from orchestrion.compiler.stablehlo.ops.elementwise import Elementwise
from orchestrion.compiler.stablehlo.ops.flow_ops import LineFft, RowSolve, Size
from orchestrion.schema import scalars

from .dialect import OPS, Yield
from .encodings import Emit, pack, stored, unpack
from .ffts import transformed
from .merges import merged
from .row_solves import solved
from .special import TensorEmitter, known_number

Rule = Callable[["_Lowering", Any, Sequence[Value]], Sequence[Value]]

#: op that becomes StableHLO first -> the function from the op and its operands to its results
_EXPANSIONS: Final[dict[type[Operation], Callable[..., Made]]] = {Merge: merged, LineFft: transformed, RowSolve: solved}
#: ops that do not change a scalar
_SHAPES_ONLY: Final = (structural.Reshape, structural.BroadcastInDim, structural.Transpose, structural.Reverse)


def lower_entry(entry: Entry) -> None:
    """Replaces the body. Raises CompileError with a diagnostic for each op that has no instruction."""
    old = entry.body.block
    for op in [op for op in old if type(op) in _EXPANSIONS]:
        rewriter = Rewriter({})
        rewriter.at(op)
        replace(op, rewriter, _EXPANSIONS[type(op)](op, *(Tensor(rewriter, value) for value in op.operands)))
    problems = list(_diagnose(old))
    if problems:
        raise CompileError(problems)
    block = Block([argument.type for argument in old.arguments], [argument.loc for argument in old.arguments])
    lowering = _Lowering(block, dict(zip(old.arguments, block.arguments, strict=True)))
    updates = {store: op for store, op in updates_in_place(old).items() if isinstance(op, indexing.DynamicUpdateSlice)}
    unneeded = {op for update in updates.values() for op in (update, update.operand_.defining_op)}
    for op in old:
        if op in updates:
            _store_slice(lowering, op, updates[op])
        elif op not in unneeded:
            lowering.lower(op)
    for op in reversed(old):
        op.erase()
    entry.body.blocks.clear()
    entry.body.add(block)
    entry.workgroup_size = dense_ints(1, 1, 1)


def _diagnose(block: Block, inside: bool = False) -> Iterator[Diagnostic]:
    """A diagnostic for each op without a lowering. `inside`: the block is a reducer, which computes scalars only."""
    for op in block:
        tensors = [value.type for value in (*op.operands, *op.results) if isinstance(value.type, TensorType)]
        types = [str(type) for type in tensors if not is_supported(type) and not _may_be(type, op)]
        if types:
            yield Diagnostic(
                f"no tensor bytecode for values of type {', '.join(dict.fromkeys(types))}", op.loc, op.name
            )
        elif not _known(op, inside):
            yield Diagnostic(f"no tensor bytecode computes this op{' inside a reducer' * inside}", op.loc, op.name)
        elif isinstance(op, contraction.Reduce | Scatter):
            yield from _diagnose(op.body.block, True)


def _may_be(type: TensorType, op: Operation) -> bool:
    """Whether the op may hold a tensor of a type with a layout."""
    return isinstance(op, LoadInput | StoreOutput | SetEncoding | UnsetEncoding) and has_layout(type)


def _known(op: Operation, inside: bool) -> bool:
    if inside:
        of_scalars = all(isinstance(value.type, TensorType) and not value.type.shape for value in op.results)
        return of_scalars and isinstance(op, (Elementwise, structural.Constant, contraction.Return, *_SHAPES_ONLY))
    return isinstance(op, Elementwise) or (type(op) in _RULES and not isinstance(op, contraction.Return))


class _Lowering:
    """Writes instructions into a block. `values`: value of the old block -> new value."""

    def __init__(self, block: Block, values: dict[Value, Value]) -> None:
        self.block = block
        self.values = values

    def lower(self, op: Operation) -> None:
        """Lowers one op."""
        operands = [self.values[value] for value in op.operands]
        for old, new in zip(op.results, self._lowered(op, operands), strict=True):
            self.values[old] = new

    def emit(self, name: str, like: Operation, operands: Sequence[Value], **fields: object) -> Sequence[OpResult]:
        """An instruction with the results and location of `like`."""
        types = [result.type for result in like.results]
        return self.build(name, like.loc, operands, types, **fields)

    def build(
        self, name: str, loc: Location, operands: Sequence[Value], types: Sequence[object], **fields: object
    ) -> Sequence[OpResult]:
        """An instruction with results of these types."""
        cls = OPS[name]
        declared = [field for field in cls.declaration.operand]
        named = _named(declared, operands)
        out = {} if cls.row.writes else {"out": types}
        op = cls.build(loc=loc, **named, **out, **fields)
        self.block.append(op)
        return op.results

    def spread(self, value: Value, to: TensorType, loc: Location) -> Value:
        """The value, broadcast to the shape of `to` if it is a scalar."""
        assert isinstance(value.type, TensorType)
        if value.type.shape == to.shape:
            return value
        wide = value.type.with_shape(to.shape)
        return self.build("broadcast_in_dim", loc, [value], [wide], axes=dense_ints())[0]

    def _lowered(self, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
        if isinstance(op, Elementwise):
            whole = op.results[0].type
            assert isinstance(whole, TensorType)
            values = [self.spread(value, whole, op.loc) for value in operands]
            if op.scalar.name not in scalars.BY_NAME:
                return [self._expanded(op, whole, values)]
            return self.emit(op.scalar.name, op, values)
        if isinstance(op, _SHAPES_ONLY) and not _rank(op.operands[0]) and not _rank(op.results[0]):
            return operands
        return _RULES[type(op)](self, op, operands)

    def _expanded(self, op: Elementwise, type: TensorType, values: Sequence[Value]) -> Value:
        """An op of the compiler, which has no instruction, as arithmetic."""
        numbers = zip(values, map(known_number, op.operands), strict=True)
        known = {value: number for value, number in numbers if number is not None}
        emitter, row = TensorEmitter(self, type, op.loc, known), op.scalar
        way = EXPANSIONS[row.name, KINDS[next(iter(row.kinds))]]
        to = [str(type.element)] if row.result == "U" else []
        made: Value = way(*(Number(emitter, value) for value in values), *to).value
        return made


def _named(fields: Sequence[Field], operands: Sequence[Value]) -> dict[str, object]:
    """The operands by field. The variadic field takes the rest."""
    named: dict[str, object] = {}
    rest = list(operands)
    for position, field in enumerate(fields):
        count = len(rest) - (len(fields) - position - 1)
        named[field.name], rest = (rest[:count], rest[count:]) if field.variadic else (rest[0], rest[1:])
    assert not rest, f"{len(rest)} operands too many"
    return named


def _rank(value: Value) -> int:
    assert isinstance(value.type, TensorType)
    return value.type.rank


def _row(name: str, fields: Callable[[Any], dict[str, object]]) -> Rule:
    """The rule of an op that is the row `name`. `fields`: those of the row, from the op."""
    return lambda lowering, op, operands: lowering.emit(name, op, operands, **fields(op))


def _renamed(name: str, **fields: str) -> Rule:
    """The rule of an op that is the row `name`, with other names of fields."""
    return _row(name, lambda op: {field: getattr(op, source) for field, source in fields.items()})


def _constant(lowering: _Lowering, op: structural.Constant, operands: Sequence[Value]) -> Sequence[Value]:
    """A splat becomes one element and a broadcast."""
    elements = op.value
    if not elements.is_splat or not elements.type.shape:
        return lowering.emit("constant", op, (), data=elements)
    one = DenseElements(elements.type.with_shape(()), elements.data)
    scalar = lowering.build("constant", op.loc, (), [one.type], data=one)[0]
    return [lowering.spread(scalar, elements.type, op.loc)]


def _body(op: contraction.Reduce | Scatter) -> Region:
    old = op.body.block
    block = Block([argument.type for argument in old.arguments], [argument.loc for argument in old.arguments])
    inner = _Lowering(block, dict(zip(old.arguments, block.arguments, strict=True)))
    for one in old:
        inner.lower(one)
    return Region([block])


def _store_slice(lowering: _Lowering, store: Operation, op: indexing.DynamicUpdateSlice) -> None:
    """An update in place. The updated value is not loaded."""
    values = [lowering.values[value] for value in (*op.operands[1:], store.operands[1])]
    lowering.build("store_slice", op.loc, values, (), whole=dense_ints(*tensor_of(op.out).shape))


def _axes_of_dot(op: contraction.DotGeneral) -> dict[str, object]:
    axes = op.dimensions
    return {
        "left_batch": dense_ints(*axes.lhs_batch),
        "right_batch": dense_ints(*axes.rhs_batch),
        "left_contract": dense_ints(*axes.lhs_contract),
        "right_contract": dense_ints(*axes.rhs_contract),
    }


def _axes_of_gather(op: indexing.Gather) -> dict[str, object]:
    axes = asdict(op.axes).items()
    named = {name: attribute_of(value) if isinstance(value, int) else dense_ints(*value) for name, value in axes}
    return {"slice_sizes": op.slice_sizes, **named}


def _yield(lowering: _Lowering, op: contraction.Return, operands: Sequence[Value]) -> Sequence[Value]:
    lowering.block.append(Yield.build(values=operands, loc=op.loc))
    return ()


def _load_input(lowering: _Lowering, op: LoadInput, operands: Sequence[Value]) -> Sequence[Value]:
    return lowering.build("load_input", op.loc, operands, [stored(tensor_of(op.value))])


def _set_encoding(lowering: _Lowering, op: SetEncoding, operands: Sequence[Value]) -> Sequence[Value]:
    return [pack(_shaped(lowering, op), operands[0], tensor_of(op.output))]


def _unset_encoding(lowering: _Lowering, op: UnsetEncoding, operands: Sequence[Value]) -> Sequence[Value]:
    return [unpack(_shaped(lowering, op), operands[0], tensor_of(op.source))]


def _shaped(lowering: _Lowering, op: Operation) -> Emit:
    """A function that emits instructions on tensors of the element type of the op, given the shapes of results."""
    element = tensor_of(op.results[0]).element

    def emit(name: str, operands: Sequence[Value], shape: Sequence[dims.Size], **fields: object) -> Value:
        return lowering.build(name, op.loc, operands, [TensorType(tuple(shape), element)], **fields)[0]

    return emit


def _end(lowering: _Lowering, op: End, operands: Sequence[Value]) -> Sequence[Value]:
    lowering.block.append(End.build(loc=op.loc))
    return ()


#: op -> the function that emits its instructions
_RULES: Final[dict[type[Operation], Rule]] = {
    LoadInput: _load_input,
    StoreOutput: _renamed("store_output"),
    End: _end,
    SetEncoding: _set_encoding,
    UnsetEncoding: _unset_encoding,
    structural.Constant: _constant,
    Size: _renamed("number", number="value"),
    structural.Iota: _renamed("iota", axis="iota_dimension"),
    structural.BroadcastInDim: _renamed("broadcast_in_dim", axes="broadcast_dimensions"),
    structural.Reshape: _renamed("reshape"),
    structural.Transpose: _renamed("transpose", axes="permutation"),
    structural.Slice: _renamed("slice", starts="start_indices", limits="limit_indices", strides="strides"),
    structural.Pad: _renamed("pad", low="edge_padding_low", high="edge_padding_high", interior="interior_padding"),
    structural.Concatenate: _renamed("concatenate", axis="dimension"),
    structural.Reverse: _renamed("reverse", axes="dimensions"),
    Scatter: _row("scatter", lambda op: {"body": _body(op)}),
    Windows: _renamed("windows", axes="axes", sizes="sizes", strides="strides", dilations="dilations"),
    indexing.DynamicSlice: _renamed("dynamic_slice", sizes="slice_sizes"),
    indexing.DynamicUpdateSlice: _renamed("dynamic_update_slice"),
    indexing.Gather: _row("gather", _axes_of_gather),
    contraction.Reduce: _row("reduce", lambda op: {"axes": op.dimensions, "body": _body(op)}),
    contraction.DotGeneral: _row("dot_general", _axes_of_dot),
    contraction.Return: _yield,
    CustomCall: _row("library_call", lambda op: {"function": op.call_target_name, "config": op.backend_config}),
}
