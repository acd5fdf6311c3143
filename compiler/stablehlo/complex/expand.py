"""expand-complex: represents every complex tensor by two real tensors, its parts.

First, elementwise ops are expressed on parts, between `real`, `imag` and `complex`. Then values are split op by op in
text order, through control flow and the regions of reductions and sorts: a complex operand, result or region argument
becomes two, the real part first. At function boundaries, a tensor `S x complex<f32>` becomes one of `S x 2 x f32`,
which has the same bytes; `orchestrion.type` keeps the original type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from orchestrion.compiler.ir.attributes import DenseElements
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, BlockArgument, Operation, Value
from orchestrion.compiler.ir.dims import Size
from orchestrion.compiler.ir.rewriter import Rewriter, rewrite
from orchestrion.compiler.ir.types import TensorType, Type
from orchestrion.compiler.stablehlo.builders.tensors import Tensor, expansion
from orchestrion.compiler.stablehlo.complex.parts import interleaved, separated
from orchestrion.compiler.stablehlo.ops import elementwise, func, structural
from orchestrion.compiler.stablehlo.ops.base import is_complex, part_type, rebuilt, tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral, Reduce
from orchestrion.compiler.stablehlo.ops.contraction import Return as RegionReturn
from orchestrion.compiler.stablehlo.ops.control_flow import Case, If, While
from orchestrion.compiler.stablehlo.ops.fourier import Fft
from orchestrion.compiler.stablehlo.ops.indexing import DynamicSlice, DynamicUpdateSlice, Gather
from orchestrion.compiler.stablehlo.ops.scatter import Scatter
from orchestrion.compiler.stablehlo.ops.sort import Sort
from orchestrion.compiler.stablehlo.ops.structural import Concatenate, Constant, Iota, Reshape, Slice
from orchestrion.compiler.stablehlo.ops.windowed import Convolution, ReduceWindow

Parts = dict[Value, tuple[Value, Value]]
Rule = Callable[[Any, Rewriter, Parts], Sequence[Value]]


def run(module: Module) -> None:
    if not any(_involves_complex(op) for op in module.walk()):
        return
    from orchestrion.compiler.stablehlo.fft.expand import expand_fft

    from .functions import PATTERNS  # few programs need the formulas

    rewrite(module, {**PATTERNS, Fft.name: (expand_fft,)})
    for op in module.block:
        assert isinstance(op, func.Func), "nothing else is legal"
        _split_function(op)
    rewrite(module, {Concatenate.name: (expansion(_merge_interleaving, 2),)})


def _involves_complex(op: Operation) -> bool:
    """Whether an op has complex operands or results, or takes parts of a real number."""
    return isinstance(op, elementwise.Part) or any(map(is_complex, (*op.operands, *op.results, *op.block_arguments())))


def _split_function(function: func.Func) -> None:
    parts, block = Parts(), function.entry
    first = block.first
    assert first is not None, "it returns"
    rewriter = Rewriter.before(first)
    arguments = list(block.arguments)
    for argument in arguments:
        if is_complex(argument):
            real, imag = separated(Tensor(rewriter, _retyped(block, argument)))
            parts[argument] = real.value, imag.value
    type = function.function_type
    inputs, results = (tuple(_interleaved(item) for item in items) for items in (type.inputs, type.results))
    func.set_types(function, inputs, results)
    _split_block(block, rewriter, parts)


def _retyped(block: Block, argument: BlockArgument) -> BlockArgument:
    """Replaces a block argument by one of the new type. The old argument keeps its uses."""
    made = BlockArgument(block, argument.index, _interleaved(argument.type), argument.loc)
    block.arguments[argument.index] = made
    return made


def _interleaved(type: Type) -> Type:
    """The real type with the same bytes as a complex tensor."""
    if isinstance(type, TensorType) and str(type.element).startswith("complex<"):
        return part_type(type).with_shape((*type.shape, 2))
    return type


def _merge_interleaving(op: Concatenate, left: Tensor, right: Tensor) -> Tensor | None:
    """Parts that were sliced from one tensor and are concatenated again are a transpose of that tensor."""
    cuts = [found for x in (left, right) if (found := _cut(x.value)) is not None]
    if len(cuts) != 2 or cuts[0][0] is not cuts[1][0]:
        return None
    (source, axis, first), (_, other, second) = cuts
    shape, to = tensor_of(source).shape, op.dimension.value
    if (axis, first, second) != (other, 0, 1) or shape[axis] != 2:
        return None
    order = [place for place in range(len(shape)) if place != axis]
    order.insert(to, axis)
    return Tensor(left.rewriter, source).transpose(*order)


def _cut(value: Value) -> tuple[Value, int, Size] | None:
    """If a value is one index of an axis of a tensor, reshaped or not: the tensor, the axis and the index."""
    maker = value.defining_op
    while isinstance(maker, Reshape):
        maker = maker.operand_.defining_op
    if not isinstance(maker, Slice) or any(step != 1 for step in maker.strides.sizes):
        return None
    shape, kept = tensor_of(maker.operand_).shape, tensor_of(maker.out).shape
    axes = [axis for axis, (size, left) in enumerate(zip(shape, kept, strict=True)) if size != left]
    if len(axes) != 1 or kept[axes[0]] != 1:
        return None
    return maker.operand_, axes[0], maker.start_indices.sizes[axes[0]]


def _split_block(block: Block, rewriter: Rewriter, parts: Parts) -> None:
    """Replaces complex values in a block whose arguments are already split."""
    ops = block.ops
    for op in ops:
        for inner in op.inner_blocks():
            _split_arguments(op, inner, parts)
            _split_block(inner, rewriter, parts)
        if any(map(is_complex, (*op.operands, *op.results))):
            rewriter.at(op, op.loc)
            _split_op(op, rewriter, parts)
    for op in reversed(ops):
        if any(map(is_complex, op.results)):
            op.erase()


def _split_arguments(op: Operation, block: Block, parts: Parts) -> None:
    """Replaces each complex argument by two."""
    old = block.arguments
    if not any(map(is_complex, old)):
        return
    block.arguments = []
    pairs = len(old) // 2 if isinstance(op, Sort) else 0
    groups = [old[2 * i : 2 * i + 2] for i in range(pairs)] if pairs else [[argument] for argument in old]
    for group in groups:
        if not is_complex(group[0]):
            for argument in group:
                argument.index = len(block.arguments)
                block.arguments.append(argument)
            continue
        type = part_type(tensor_of(group[0]))
        halves = [[block.add_argument(type, argument.loc) for argument in group] for _ in range(2)]
        parts.update({argument: (re, im) for argument, re, im in zip(group, *halves, strict=True)})


def _split_op(op: Operation, rewriter: Rewriter, parts: Parts) -> None:
    if isinstance(op, func.Return):
        packed = {x: interleaved([Tensor(rewriter, y) for y in parts[x]]).value for x in op.operands if x in parts}
        op.set_operands([packed.get(x, x) for x in op.operands])
    elif isinstance(op, RegionReturn):
        op.set_operands(_flat(op.operands, parts))
    else:
        made = iter(_RULES[type(op)](op, rewriter, parts))
        for result in op.results:
            if is_complex(result):
                parts[result] = next(made), next(made)
            else:
                result.replace_by(next(made))
        if not any(map(is_complex, op.results)):
            op.erase()


def _flat(values: Iterable[Value], parts: Parts) -> list[Value]:
    """Replaces each complex value by its two parts."""
    return [part for value in values for part in (parts[value] if is_complex(value) else (value,))]


def _part(op: Operation, rewriter: Rewriter, parts: Parts) -> Sequence[Value]:
    return [parts[op.operands[0]][isinstance(op, elementwise.Imag)]]


def _constant(op: Constant, rewriter: Rewriter, parts: Parts) -> Sequence[Value]:
    type = part_type(tensor_of(op.out))
    element = str(type.element)
    array = op.value.array()
    values = (DenseElements.of(part, element) for part in (array.real, array.imag))
    return [rewriter.build(Constant, value=value, out=type).result for value in values]


def _iota(op: Iota, rewriter: Rewriter, parts: Parts) -> Sequence[Value]:
    type = part_type(tensor_of(op.out))
    real = rewriter.build(Iota, iota_dimension=op.iota_dimension, out=type).result
    return [real, Tensor(rewriter, real).of(0.0).value]


def _on_parts(op: Operation, rewriter: Rewriter, operands: Sequence[Value]) -> Value:
    """The op on some parts of its operands."""
    types = [part_type(tensor_of(result)) for result in op.results]
    return rewriter.insert(rebuilt(op, operands, types)).results[0]


def _moved(op: Operation, rewriter: Rewriter, parts: Parts) -> Sequence[Value]:
    """Applies a data movement op to both parts."""
    both = ([parts[x][index] if is_complex(x) else x for x in op.operands] for index in range(2))
    return [_on_parts(op, rewriter, operands) for operands in both]


def _spread(op: Operation, rewriter: Rewriter, parts: Parts) -> Sequence[Value]:
    """Rebuilds an op and its regions with two values per complex value."""
    types = []
    for result in op.results:
        type = tensor_of(result)
        types += [part_type(type)] * 2 if is_complex(result) else [type]
    return rewriter.insert(rebuilt(op, _flat(op.operands, parts), types)).results


def _product(op: Operation, rewriter: Rewriter, parts: Parts) -> Sequence[Value]:
    """Four real products: with only three, cancellation would destroy the smaller part."""
    lhs, rhs = (parts[value] for value in op.operands)

    def product(left: int, right: int) -> Tensor:
        return Tensor(rewriter, _on_parts(op, rewriter, [lhs[left], rhs[right]]))

    return [(product(0, 0) - product(1, 1)).value, (product(0, 1) + product(1, 0)).value]


_MOVES: Final = (*(set(structural.OPS.values()) - {Constant, Iota}), DynamicSlice, DynamicUpdateSlice, Gather)
_SPREADS: Final = (Reduce, ReduceWindow, Scatter, Sort, If, Case, While)

_RULES: Final[dict[type[Operation], Rule]] = {
    elementwise.Real: _part,
    elementwise.Imag: _part,
    elementwise.Complex: lambda op, rewriter, parts: op.operands,
    elementwise.BitcastConvert: lambda op, rewriter, parts: parts[op.operands[0]],
    Constant: _constant,
    Iota: _iota,
    DotGeneral: _product,
    Convolution: _product,
    **dict.fromkeys(_MOVES, _moved),
    **dict.fromkeys(_SPREADS, _spread),
}
#: Non-elementwise ops that accept complex numbers; the legality check refuses others.
OPS: Final = frozenset({Fft, *_RULES})
