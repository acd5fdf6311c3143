"""expand-quantized: replaces quantized values by their integers, and arithmetic on them by arithmetic on those.

Sums, products, dots and convolutions of quantized values are computed in integers (`integer_arithmetic.py`), unless the
option `quantized` is "float". Other elementwise ops compute with the numbers that their operands represent, and
quantize the result, as StableHLO's specification writes. `uniform_quantize` and `uniform_dequantize` convert between
numbers and integers. Data movement moves integers. Callers pass and get integers of the storage type. An unknown
quantized type stays, and is refused by its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.attributes import DenseElements
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import DYNAMIC, I32, DialectType, FunctionType, TensorType, Type, scalar
from orchestrion.compiler.options import Options
from orchestrion.compiler.stablehlo.builders.tensors import Tensor, concatenate, splat
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.dynamic import DynamicBroadcastInDim, GetDimensionSize
from orchestrion.compiler.stablehlo.ops.elementwise import OPS
from orchestrion.compiler.stablehlo.ops.quantized_types import Quantized, quantization_of
from orchestrion.compiler.stablehlo.ops.structural import BroadcastInDim, Constant
from orchestrion.schema.dtypes import BY_NAME, FLOAT_FORMATS

from .integer_arithmetic import IntegerArithmetic, constant

QUANTIZE: Final = "stablehlo.uniform_quantize"
DEQUANTIZE: Final = "stablehlo.uniform_dequantize"
#: Elementwise ops that do not interpret their elements.
_MOVES: Final = frozenset({"stablehlo.select", "stablehlo.bitcast_convert"})
#: Ops on the numbers that quantized elements represent.
_COMPUTES: Final = (frozenset(OPS) - _MOVES) | {"stablehlo.dot_general", "stablehlo.dot", "stablehlo.convolution"}


def run(module: Module, options: Options) -> None:
    known: dict[Value, Quantized] = {}
    wrong = list(_collect(module, known))
    if wrong:
        raise CompileError(wrong)
    if not known:
        return
    ops = list(module.walk())
    for value, row in known.items():
        value.type = _stored(value.type, row)
    integers = IntegerArithmetic(known, options.float_sums) if options.quantized == "integer" else None
    for op in ops:
        given = op.properties.get("function_type")
        if isinstance(given, FunctionType):
            op.properties["function_type"] = _signature(given)
        if any(value in known for value in (*op.operands, *op.results)):
            _expand(op, known, integers)
    for op in list(module.walk()):
        if isinstance(op, BroadcastInDim) and not tensor_of(op.out).is_known:
            _measure(op)


def _measure(op: BroadcastInDim) -> None:
    """Replaces a broadcast to unknown sizes, which an expansion made, by one to the sizes of a value that it meets."""
    sizes, values = tensor_of(op.out).shape, [value for user in op.out.users() for value in user.operands]
    made_before = (value for value in values if not isinstance(value.defining_op, BroadcastInDim))
    like = next((value for value in made_before if tensor_of(value).shape == sizes), None)
    if like is None:
        return
    rewriter = Rewriter.before(op)
    numbers = []
    for axis, size in enumerate(sizes):
        if size == DYNAMIC:
            found = rewriter.build(GetDimensionSize, operand_=like, dimension=axis, out=TensorType((), I32)).results[0]
            numbers.append(Tensor(rewriter, found).reshape(1))
        else:
            numbers.append(splat(rewriter, size, TensorType((1,), I32)))
    made = rewriter.build(
        DynamicBroadcastInDim,
        operand_=op.operand_,
        output_dimensions=concatenate(numbers, 0).value,
        broadcast_dimensions=op.broadcast_dimensions,
        out=op.out.type,
    )
    rewriter.replace(op, made.results)


def _collect(module: Module, known: dict[Value, Quantized]) -> Iterator[Diagnostic]:
    """Collects the quantized values; yields a diagnostic for each whose shape does not fit its scales."""
    for op in module.walk():
        for value in (*op.results, *op.block_arguments()):
            type = value.type
            if not isinstance(type, TensorType) or not isinstance(type.element, DialectType):
                continue
            row = quantization_of(type)
            if row is not None:
                known[value] = row
                if problem := row.problem(type):
                    yield Diagnostic(problem, op.loc, op.name)


def _stored(type: Type, row: Quantized) -> Type:
    assert isinstance(type, TensorType)
    return type.with_element(scalar(row.storage))


def _signature(type: FunctionType) -> FunctionType:
    def stored(types: tuple[Type, ...]) -> tuple[Type, ...]:
        rows = [quantization_of(item) for item in types]
        return tuple([item if row is None else _stored(item, row) for item, row in zip(types, rows, strict=True)])

    return FunctionType(stored(type.inputs), stored(type.results))


def _expand(op: Operation, known: dict[Value, Quantized], integers: IntegerArithmetic | None) -> None:
    if op.parent is None:
        return
    rewriter = Rewriter.before(op)
    result = None if integers is None else integers.expand(op, rewriter)
    if result is not None:
        known[result.value] = known[op.results[0]]
        rewriter.replace(op, [result.value])
    elif op.name in (QUANTIZE, DEQUANTIZE):
        if len(op.operands) == len(op.results) == 1:
            _between(op, rewriter, known)
    elif op.name in _COMPUTES and len(op.results) == 1:
        operands = [_number(rewriter, value, known) for value in op.operands]
        made = rewriter.insert(op.clone(dict(zip(op.operands, operands, strict=True))))
        row = known.get(op.results[0])
        if row is not None:
            made.results[0].type = tensor_of(op.results[0]).with_element(scalar(row.expressed))
        _replace(rewriter, op, made.results[0], known)


def _between(op: Operation, rewriter: Rewriter, known: dict[Value, Quantized]) -> None:
    """A conversion from numbers or other integers to integers, or from integers to numbers."""
    number = _number(rewriter, op.operands[0], known)
    row, out = known.get(op.results[0]), op.results[0].type
    if not isinstance(number.type, TensorType) or not isinstance(out, TensorType) or number.type.shape != out.shape:
        return
    wanted = row.expressed if row is not None else str(out.element)
    _replace(rewriter, op, Tensor(rewriter, number).convert(wanted).value, known)


def _replace(rewriter: Rewriter, op: Operation, number: Value, known: dict[Value, Quantized]) -> None:
    """Replaces the op by a number, quantized if its result is."""
    row = known.get(op.results[0])
    if row is not None:
        number = quantize(Tensor(rewriter, number), row).value
        known[number] = row
    rewriter.replace(op, [number])


def _number(rewriter: Rewriter, value: Value, known: dict[Value, Quantized]) -> Value:
    row = known.get(value)
    return value if row is None else dequantize(Tensor(rewriter, value), row).value


def dequantize(stored: Tensor, row: Quantized) -> Tensor:
    """The numbers that integers of the storage type represent."""
    if any(row.zero_points):
        wide = "i64" if BY_NAME[row.storage].bits > 16 else "i32"
        stored = stored.convert(wide)
        stored = stored - constant(stored, row.zero_points, row.axis)
    number = stored.convert(row.expressed)
    return number * _numbers(number, row, row.scales, row.expressed)


def quantize(number: Tensor, row: Quantized) -> Tensor:
    """The integers of the storage type for numbers of the expressed type: the zero point is added, then rounded."""
    scaled = number / _numbers(number, row, row.scales, row.expressed)
    if any(row.zero_points):
        scaled = scaled + _numbers(number, row, row.zero_points, row.expressed)
    inside = scaled.op("maximum", row.least).op("minimum", row.most)
    return inside.op("round_nearest_even").convert(row.storage)  # which saturates


def _numbers(like: Tensor, row: Quantized, values: Sequence[float], element: str) -> Tensor:
    """One of the values, in this element type, for each element of a tensor."""
    shape = () if row.axis is None else (len(values),)
    elements = DenseElements(TensorType(shape, scalar(element)), _packed(values, element))
    made = like.build(Constant, value=elements, out=elements.type)
    return made.broadcast(like.shape, () if row.axis is None else (row.axis,))


def _packed(values: Sequence[float], element: str) -> bytes:
    if element in FLOAT_FORMATS:
        size = BY_NAME[element].itemsize
        return b"".join(FLOAT_FORMATS[element].rounded(value).to_bytes(size, "little") for value in values)
    return np.array(values, BY_NAME[element].numpy).tobytes()
