"""refine-shapes: turns the sizes that a program computes into expressions in its types.

Only for programs with dynamic dimensions, as `jax.export` writes them for symbolic ones, or with ops of computed shape;
calls are inlined first. Assertions about the arguments determine the symbols (`symbols.py`), and computations on them
every other shape (`shape_values.py`). Ops with computed shapes become ops of fixed shape (`dynamic.py`), assertions
become `util.assert`, and a scalar that is a size becomes `flow.size`. From here on, sizes are expressions instead of
numbers, and the program is otherwise like any other. A malformed op is left for the legality check. Raises
CompileError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir import dims
from orchestrion.compiler.ir.attributes import ArrayAttr, DenseElements, DimArray, StringAttr, SymbolRef
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, BlockArgument, Operation, UnregisteredOp, Value
from orchestrion.compiler.ir.dims import Dim, UndecidedError, symbol
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.symbols import SymbolTables
from orchestrion.compiler.ir.types import DYNAMIC, I64, FunctionType, TensorType, Type
from orchestrion.compiler.ir.util import Assert
from orchestrion.compiler.ir.verifier import problems
from orchestrion.compiler.options import Options
from orchestrion.compiler.parts import common_lapack_calls
from orchestrion.compiler.stablehlo.builders.tensors import Tensor, splat
from orchestrion.compiler.stablehlo.expansions.expand import expand_all
from orchestrion.compiler.stablehlo.expansions.random_bits import RNG_BIT_GENERATOR
from orchestrion.compiler.stablehlo.expansions.top_k import TOP_K
from orchestrion.compiler.stablehlo.functions.calls import CallGraph
from orchestrion.compiler.stablehlo.functions.inline import inline_calls
from orchestrion.compiler.stablehlo.ops import dynamic
from orchestrion.compiler.stablehlo.ops.base import ShapeError, StablehloOp, tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import Return as RegionReturn
from orchestrion.compiler.stablehlo.ops.control_flow import Choice, While
from orchestrion.compiler.stablehlo.ops.custom_call import SHAPES, CustomCall
from orchestrion.compiler.stablehlo.ops.dynamic import DynamicReduceWindow
from orchestrion.compiler.stablehlo.ops.elementwise import BitcastConvert, Clamp, Elementwise
from orchestrion.compiler.stablehlo.ops.flow_ops import Size
from orchestrion.compiler.stablehlo.ops.func import Func, Return
from orchestrion.compiler.stablehlo.ops.function_dims import dims_attribute, measured_name
from orchestrion.compiler.stablehlo.ops.indexing import DynamicSlice
from orchestrion.compiler.stablehlo.ops.structural import Concatenate, Pad, Reshape
from orchestrion.compiler.stablehlo.ops.windowed import Convolution, ReduceWindow
from orchestrion.schema.dtypes import BY_NAME

from .shape_values import Comparison, Element, ShapeValues, Unknown
from .symbols import Solution, measured, names_in_message, solve


def run(module: Module, options: Options) -> None:
    if not any(map(_is_dynamic, module.walk())):
        return
    _name_windows(module)
    if any(problems(module)) or CallGraph(module).callees_first()[1]:
        return
    inline_calls(module)
    for op in module.block:
        if isinstance(op, Func) and len(op.body.blocks) == 1:
            _Refiner(op).run()
    expand_all(module, common_lapack_calls(options))  # ops whose shapes were unknown before


def _name_windows(module: Module) -> None:
    """Turns a `custom_call` that reduces windows into an op, whose reducer is the function that the call names."""
    tables = SymbolTables()
    for op in [op for op in module.walk() if op.get("call_target_name") == StringAttr(DynamicReduceWindow.name)]:
        called = op.get_as("called_computations", ArrayAttr)
        target = called.items[0] if called is not None and len(called) == 1 else None
        reducer = tables.lookup(op, target) if isinstance(target, SymbolRef) else None
        if (
            not isinstance(reducer, Func)
            or len(reducer.body.blocks) != 1
            or (len(op.operands), len(op.results)) != (7, 1)
        ):
            continue  # refused in this form
        body = reducer.body.clone()
        last = body.block.last
        if isinstance(last, Return):
            Builder.before(last).build(RegionReturn, values=last.operands)
            last.erase()
        types = [result.type for result in op.results]
        made = Builder.before(op).insert(DynamicReduceWindow(op.operands, types, regions=[body], loc=op.loc))
        op.results[0].replace_by(made.out)
        op.erase()


def _is_dynamic(op: Operation) -> bool:
    if isinstance(op, dynamic.DynamicOp) or _is_assertion(op) or SHAPES in op.attributes:
        return True
    if isinstance(op, Func):
        signature = op.get_as("function_type", FunctionType)
        return signature is not None and any(map(_is_unknown, signature.inputs))
    return any(_is_unknown(result.type) for result in op.results)


def _is_unknown(type: Type) -> bool:
    return isinstance(type, TensorType) and not type.is_known


def _is_assertion(op: Operation) -> bool:
    return op.name == CustomCall.name and op.get("call_target_name") == StringAttr(dynamic.ASSERTION)


class _Refiner:
    """Refines one function. `values` knows sizes in terms of symbols, `asserted` in terms of measured sizes."""

    def __init__(self, func: Func) -> None:
        self.func = func
        self.values = ShapeValues(_size_of)
        self.asserted: dict[Operation, tuple[Comparison, dims.Shape] | None] = {}
        self.called: dict[dims.Size, str] = {}

    def run(self) -> None:
        entry = self.func.entry
        names = measured([argument.type for argument in entry.arguments])
        asserted = list(self._assertions(entry))
        solution = solve(names, asserted, self.called)
        for argument in entry.arguments:
            argument.type = _solved(argument.index, argument.type, solution)
        self.block(entry)
        last = entry.last
        returned = last.operands if isinstance(last, Return) else ()
        types = [argument.type for argument in entry.arguments], [value.type for value in returned]
        self.func.function_type = FunctionType(tuple(types[0]), tuple(types[1]))
        if solution.symbols:
            self.func.dims = dims_attribute(solution.symbols)

    def _assertions(self, entry: Block) -> Iterator[Comparison]:
        """The function's assertions about measured sizes."""
        values = ShapeValues(_measured(entry))
        for op in entry:
            values.evaluate(op)
            if not _is_assertion(op):
                continue
            condition, *numbers = (values.of(operand)[:1] for operand in op.operands)
            shown = tuple(number for found in numbers for number in found if isinstance(number, int | Dim))
            message = op.get("error_message")
            if len(shown) != len(numbers) or not isinstance(message, StringAttr):
                raise _refusal(op, "asserts with numbers that are not sizes of arguments, or without a message")
            self.called |= names_in_message(message.value, shown)
            match condition:
                case (Comparison() as said,):
                    self.asserted[op] = said, shown
                    yield said
                case (int(holds),):
                    if not holds:
                        raise _refusal(op, f"asserts what no call can satisfy: {_message_text(message.value, shown)}")
                    self.asserted[op] = None
                case _:
                    raise _refusal(op, "asserts something other than a comparison of sizes of arguments")

    def block(self, block: Block) -> None:
        for op in block:
            try:
                self.op(op)
            except (ShapeError, UndecidedError) as error:
                raise _refusal(op, str(error)) from None

    def op(self, op: Operation) -> None:
        if _is_assertion(op):
            self._assert(op)
            return
        if isinstance(op, dynamic.DynamicOp):
            value = _RULES[type(op)](self, op, Rewriter.before(op))
            op.results[0].replace_by(value)
            op.erase()
            return
        self._retype(op)
        self.values.evaluate(op)
        if len(op.results) == 1 and not isinstance(op, Size):
            self._as_number(op.results[0])

    def _as_number(self, value: Value) -> None:
        """Replaces a scalar that is a size by an op that makes it."""
        size = self.values.of(value)
        if isinstance(value.type, TensorType) and not value.type.shape and size and isinstance(size[0], Dim):
            op = value.defining_op
            assert op is not None and op.next_op is not None, "a terminator follows"
            value.replace_by(self.number(Rewriter.before(op.next_op, op.loc), size[0], value.type))

    def number(self, rewriter: Rewriter, size: dims.Size, type: TensorType) -> Value:
        """A size as a scalar of an integer type."""
        made = splat(rewriter, size, type).value
        assert made.defining_op is not None
        self.values.evaluate(made.defining_op)
        return made

    def _assert(self, op: Operation) -> None:
        if op not in self.asserted:
            raise _refusal(op, "asserts inside of a region, or in a function that others call")
        said = self.asserted[op]
        if said is not None:
            comparison, numbers = said
            Builder.before(op).build(
                Assert,
                predicate=comparison.direction.lower(),
                lhs=DimArray((comparison.lhs,)),
                rhs=DimArray((comparison.rhs,)),
                numbers=DimArray(numbers),
                message=op.get("error_message"),
            )
        op.erase()

    def _retype(self, op: Operation) -> None:
        """Updates the result types of an op with known operand types."""
        if isinstance(op, While):
            for region in op.regions:
                for argument, init in zip(region.block.arguments, op.operands, strict=True):
                    argument.type = init.type
                self.block(region.block)
            types: Sequence[Type] = [value.type for value in op.operands]
        elif isinstance(op, Choice):
            for region in op.regions:
                self.block(region.block)
            types = [value.type for value in op.regions[0].block.end.operands]
        elif not any(_is_unknown(result.type) for result in op.results) and SHAPES not in op.attributes:
            return
        elif isinstance(op, BitcastConvert):
            types = [_recast(tensor_of(op.results[0]), tensor_of(op.operands[0]))]
        elif isinstance(op, Elementwise):
            types = [tensor_of(op.results[0]).with_shape(tensor_of(op.operands[op.subject]).shape)]
        elif isinstance(op, CustomCall):
            types = self._of_call(op)
        elif isinstance(op, StablehloOp):
            types = op.infer()
        else:
            types = [_like(result.type, op) for result in op.results]
        for result, type in zip(op.results, types, strict=True):
            result.type = _check_stated(result.type, type)

    def _of_call(self, op: CustomCall) -> Sequence[Type]:
        """The result types of a call. Operands that only state them are dropped."""
        stated = [tensor_of(result) for result in op.results]
        rule = _by_shapes if SHAPES in op.attributes else _CALLS.get(op.function)
        if rule is None:
            return [_like(type, op) for type in stated]
        types, kept = rule(self, op, stated)
        op.attributes.pop(SHAPES, None)
        op.set_operands(op.operands[:kept])
        return types

    def shape(self, value: Value) -> dims.Shape:
        """A list of sizes that is the shape of a result. Raises ShapeError."""
        found = self.sizes(value)
        if any(not isinstance(size, Dim) and size < 0 for size in found):
            raise ShapeError(f"has a result of shape {list(found)}, with sizes below 0")
        return found

    def sizes(self, value: Value) -> dims.Shape:
        """A list of sizes. Raises ShapeError."""
        found = self.values.sizes(value)
        if found is None:
            raise ShapeError("its sizes depend on the values of tensors, which is not supported; only on other sizes")
        return found

    def scalar(self, rewriter: Rewriter, value: Value, index: int) -> Value:
        """Element `index` of a list, as a scalar."""
        element, source = self.values.of(value)[index], value.defining_op
        type = tensor_of(value).with_shape(())
        if isinstance(element, int | Dim):
            return self.number(rewriter, element, type)
        if isinstance(source, Reshape) and not tensor_of(source.operand_).shape:
            return source.operand_
        if isinstance(source, Concatenate):
            for part in source.inputs:
                if index < tensor_of(part).num_elements:
                    return self.scalar(rewriter, part, index)
                index -= int(tensor_of(part).num_elements)
        return Tensor(rewriter, value).slice((index,), (index + 1,)).reshape().value


def _size_of(value: Value, axis: int) -> dims.Size | None:
    type = value.type
    if not isinstance(type, TensorType) or not 0 <= axis < type.rank:
        return None
    return None if type.shape[axis] == DYNAMIC else type.shape[axis]


def _measured(entry: Block) -> Callable[[Value, int], dims.Size | None]:
    """A function that returns the size of a value's axis: a number, or the measured size of an argument."""

    def size(value: Value, axis: int) -> dims.Size | None:
        known = _size_of(value, axis)
        is_argument = isinstance(value, BlockArgument) and value.block is entry
        return symbol(measured_name(value.index, axis)) if known is None and is_argument else known  # type: ignore[attr-defined]

    return size


def _solved(argument: int, type: Type, solution: Solution) -> Type:
    """The type of an argument in terms of symbols."""
    if not isinstance(type, TensorType) or type.is_known:
        return type
    if type.encoding:
        raise CompileError(f"argument {argument} is {type}: encoding {type.encoding} is not supported")
    return type.with_shape(
        tuple(
            solution.sizes[measured_name(argument, axis)] if size == DYNAMIC else size
            for axis, size in enumerate(type.shape)
        )
    )


def _like(stated: Type, op: Operation) -> Type:
    """The result type of an unregistered op: the type of an operand of the same rank."""
    if (
        isinstance(stated, TensorType)
        and isinstance(op, UnregisteredOp)
        and op.name.startswith(("chlo.", "stablehlo."))
    ):
        for value in op.operands:
            if isinstance(value.type, TensorType) and value.type.rank == stated.rank:
                return stated.with_shape(value.type.shape)
    if _is_unknown(stated):
        raise ShapeError(f"has a result of type {stated}, whose sizes are unknown")
    return stated


def _recast(stated: TensorType, given: TensorType) -> TensorType:
    """The type of a bitcast's result: a last axis of parts is added or removed."""
    own, other = (BY_NAME[str(type.element)].bits for type in (stated, given))
    if own < other:
        return stated.with_shape((*given.shape, other // own))
    return stated.with_shape(given.shape[:-1] if own > other else given.shape)


def _check_stated(stated: Type, found: Type) -> Type:
    """`found`, if the type in the program does not contradict it. Raises ShapeError."""
    if isinstance(stated, TensorType) and isinstance(found, TensorType):
        fits = (
            stated.rank == found.rank
            and stated.element == found.element
            and all(x in (DYNAMIC, y) for x, y in zip(stated.shape, found.shape, strict=False))
        )
        if not fits:
            raise ShapeError(f"has a result of type {stated}, which must be {found}")
    return found


def _message_text(message: str, numbers: Sequence[dims.Size]) -> str:
    """The text of an assertion with its numbers."""
    for place, number in enumerate(numbers):
        message = message.replace(f"{{{place}}}", str(number))
    return message


def _refusal(op: Operation, message: str) -> CompileError:
    return CompileError([Diagnostic(message, op.loc, op.name)])


# What a call states about its result types: returns the types, and how many of its operands remain


def _by_shapes(refiner: _Refiner, op: CustomCall, stated: Sequence[TensorType]) -> tuple[Sequence[Type], int]:
    """The last operands are the shapes of the results."""
    listed, kept = op.attributes[SHAPES], len(op.operands) - len(stated)
    wanted = [*range(kept, len(op.operands))]
    found = None
    if isinstance(listed, DenseElements) and listed.type == TensorType((len(wanted),), I64):
        found = listed.array().tolist()
    if found != wanted or kept < 0:
        raise ShapeError(f"{SHAPES} must be the indices of its last operands, {wanted}, is {listed}")
    shapes = [refiner.shape(operand) for operand in op.operands[kept:]]
    return [type.with_shape(shape) for type, shape in zip(stated, shapes, strict=True)], kept


def _by_count(refiner: _Refiner, op: CustomCall, stated: Sequence[TensorType]) -> tuple[Sequence[Type], int]:
    """`top_k`: the second operand is the number of wanted elements along the last axis."""
    _known_form(op)
    given, count = tensor_of(op.operands[0]).shape, refiner.shape(op.operands[1])
    return [type.with_shape((*given[:-1], *count)) for type in stated], 1


def _by_shape(refiner: _Refiner, op: CustomCall, stated: Sequence[TensorType]) -> tuple[Sequence[Type], int]:
    """`rng_bit_generator`: the state keeps its type, the second operand is the shape of the numbers."""
    _known_form(op)
    return [tensor_of(op.operands[0]), stated[1].with_shape(refiner.shape(op.operands[1]))], 1


def _known_form(op: CustomCall) -> None:
    if (len(op.operands), len(op.results)) != (2, 2):
        raise ShapeError(f"calls {op.function} with {len(op.operands)} operands for {len(op.results)} results, not 2")


_CALLS: Final[dict[str, Callable[..., tuple[Sequence[Type], int]]]] = {TOP_K: _by_count, RNG_BIT_GENERATOR: _by_shape}


# The replacements of ops with computed shapes


def _dimension_size(refiner: _Refiner, op: dynamic.GetDimensionSize, rewriter: Rewriter) -> Value:
    size = _size_of(op.operand_, op.dimension.value)
    if size is None:
        raise ShapeError(f"dimension {op.dimension.value} is not an axis of {op.operand_.type}")
    return refiner.number(rewriter, size, tensor_of(op.out))


def _shaped(op: Operation, shape: dims.Shape) -> Type:
    """The result type of an op, with these sizes."""
    stated = op.results[0].type
    assert isinstance(stated, TensorType)
    return _check_stated(stated, stated.with_shape(shape))


def _static_form(refiner: _Refiner, op: dynamic.DynamicOp, rewriter: Rewriter) -> Value:
    """The op of fixed shape, from its own type if that is known, else from the lists or the shape in operands."""
    cls, names = dynamic.STATIC_FORMS[type(op)]
    if names:
        lists = {name: refiner.sizes(getattr(op, name)) for name in names}
        return _build_inferred(op, rewriter, cls, **dynamic.static_fields(op, lists))
    stated = op.results[0].type
    out = _shaped(op, refiner.shape(op.operands[-1])) if _is_unknown(stated) else stated
    return rewriter.build(cls, **dynamic.static_fields(op, {}), out=out).results[0]


def _build_inferred(
    op: Operation, rewriter: Rewriter, kind: type[StablehloOp], stated: Type | None = None, **fields: Any
) -> Value:
    """Builds an op whose type follows from its fields; it must not contradict that of `op`, or `stated`."""
    made = rewriter.build(kind, out=stated or op.results[0].type, **fields)
    (found,) = made.infer()
    made.results[0].type = _check_stated(made.results[0].type, found)
    return made.results[0]


def _slice(refiner: _Refiner, op: dynamic.RealDynamicSlice, rewriter: Rewriter) -> Value:
    """Bounds that are sizes give a slice; an unknown start with a known length gives a dynamic slice."""
    of = refiner.values.of
    starts, limits, strides = of(op.start_indices), of(op.limit_indices), refiner.sizes(op.strides)
    if all(isinstance(bound, int | Dim) for bound in (*starts, *limits)):
        return _static_form(refiner, op, rewriter)
    sizes = [_length(start, limit) for start, limit in zip(starts, limits, strict=True)]
    if None in sizes or any(stride != 1 for stride in strides):
        raise ShapeError("its size depends on the values of tensors, which is not supported; only on other sizes")
    starting = _unclamped(refiner, op, sizes)
    scalars = [refiner.scalar(rewriter, starting, index) for index in range(len(starts))]
    return _build_inferred(op, rewriter, DynamicSlice, operand_=op.operand_, start_indices=scalars, slice_sizes=sizes)


def _length(start: Element, limit: Element) -> dims.Size | None:
    if isinstance(start, Unknown) and isinstance(limit, Unknown):
        return limit.more - start.more if start.name == limit.name else None
    known = isinstance(start, int | Dim) and isinstance(limit, int | Dim)
    return limit - start if known else None  # type: ignore[operator]


def _unclamped(refiner: _Refiner, op: dynamic.RealDynamicSlice, sizes: Sequence[dims.Size | None]) -> Value:
    """The start indices, without a clamp that a dynamic slice also does."""
    maker, shape = op.start_indices.defining_op, tensor_of(op.operand_).shape
    if not isinstance(maker, Clamp):
        return op.start_indices
    low, high = refiner.values.sizes(maker.min), refiner.values.sizes(maker.max)
    last = tuple(whole - size for whole, size in zip(shape, sizes, strict=True) if size is not None)
    return maker.operand_ if low == (0,) * len(sizes) and high == last else op.start_indices


def _convolution(refiner: _Refiner, op: dynamic.DynamicConv, rewriter: Rewriter) -> Value:
    """Symbolic padding is added to the operand first."""
    amounts, lhs = refiner.sizes(op.padding), op.lhs
    fields: dict[str, Any] = dict(op.properties)
    if any(isinstance(amount, Dim) for amount in amounts):
        lhs = _padded(op, rewriter, amounts)
        amounts = (0,) * len(amounts)
    type = TensorType((len(amounts) // 2, 2), I64)
    padding = DenseElements(
        type, b"".join(amount.to_bytes(8, "little", signed=True) for amount in dims.numbers(amounts))
    )
    return _build_inferred(op, rewriter, Convolution, lhs=lhs, rhs=op.rhs, padding=padding, **fields)


def _padded(op: dynamic.DynamicConv, rewriter: Rewriter, amounts: Sequence[dims.Size]) -> Value:
    if op.lhs_dilation is not None and set(op.lhs_dilation.sizes) != {1}:
        raise ShapeError("pads a dilated operand by a symbolic amount, which is not supported")
    type = tensor_of(op.lhs)
    low, high = (list[dims.Size]([0] * type.rank) for _ in range(2))
    axes = op.axes
    for number, axis in enumerate(axes.spatial):
        low[axes.lhs.index(axis)], high[axes.lhs.index(axis)] = amounts[2 * number : 2 * number + 2]
    return Tensor(rewriter, op.lhs).pad(low, high).value


def _reduce_window(refiner: _Refiner, op: DynamicReduceWindow, rewriter: Rewriter) -> Value:
    """The window's padding is added to the operand first: its extent may be symbolic."""
    windows = (op.window_dimensions, op.window_strides, op.base_dilations, op.window_dilations)
    sizes, strides, base, dilations = map(refiner.sizes, windows)
    amounts, type = refiner.sizes(op.padding), tensor_of(op.operand_)
    padded = _build_inferred(
        op,
        rewriter,
        Pad,
        type.with_shape((DYNAMIC,) * type.rank),
        operand_=op.operand_,
        padding_value=op.init_value,
        edge_padding_low=amounts[0::2],
        edge_padding_high=amounts[1::2],
        interior_padding=[step - 1 for step in base],
    )
    made = rewriter.build(
        ReduceWindow,
        inputs=[padded],
        init_values=[op.init_value],
        window_dimensions=sizes,
        window_strides=strides,
        window_dilations=dilations,
        body=op.body.clone(),
        out=[op.out.type],
    )
    made.results[0].type = _check_stated(op.out.type, made.infer()[0])
    return made.results[0]


#: Op -> builder of the value that replaces it.
_RULES: Final[dict[type[Operation], Callable[[_Refiner, Any, Rewriter], Value]]] = {
    **dict.fromkeys(dynamic.STATIC_FORMS, _static_form),
    dynamic.GetDimensionSize: _dimension_size,
    dynamic.RealDynamicSlice: _slice,
    dynamic.DynamicConv: _convolution,
    DynamicReduceWindow: _reduce_window,
}
