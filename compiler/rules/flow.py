"""Rules after the flow phase: no arithmetic outside executables, and bodies that every target can lower."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Final

from orchestrion.compiler import parts
from orchestrion.compiler.flow.attention_bodies import Attention
from orchestrion.compiler.flow.dialect import (
    Dispatch,
    Empty,
    Executable,
    HoistableDispatch,
    SetEncoding,
    Splat,
    UnsetEncoding,
    Yield,
)
from orchestrion.compiler.flow.fusion_reads import HEROES, is_free
from orchestrion.compiler.flow.groups import MAX_BINDINGS
from orchestrion.compiler.flow.layout import problem, storage_bytes, storage_elements
from orchestrion.compiler.flow.mark_in_place import candidates, is_by_rows
from orchestrion.compiler.flow.merge import Merge
from orchestrion.compiler.flow.row_bodies import rows_of
from orchestrion.compiler.flow.scatter import Scatter, changes, update_of, updated
from orchestrion.compiler.ir import util
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, BlockArgument, Operation, Value
from orchestrion.compiler.ir.dims import Shape, Size
from orchestrion.compiler.ir.parameters import bytes_of, name_of
from orchestrion.compiler.ir.symbols import SymbolTables
from orchestrion.compiler.ir.types import I32, FunctionType, TensorType, Type
from orchestrion.compiler.parts import parts_of
from orchestrion.compiler.stablehlo.ops.base import StablehloOp, is_supported
from orchestrion.compiler.stablehlo.ops.contraction import Reduce
from orchestrion.compiler.stablehlo.ops.control_flow import Choice, While
from orchestrion.compiler.stablehlo.ops.custom_call import CustomCall
from orchestrion.compiler.stablehlo.ops.flow_ops import LineFft, RowSolve
from orchestrion.compiler.stablehlo.ops.func import Func, Return
from orchestrion.compiler.stablehlo.ops.structural import BroadcastInDim, Constant, Reshape

from . import dims
from .blocks import blocks, branch_selector
from .encodings import encoded_values, hoistable, in_entry, is_encoded_entry_type
from .engine import Children, Rules
from .globals import store, stored_once
from .schedules import known_kind, without_schedules
from .stablehlo import REDUCER, has_functions, one_block, signature

#: Ops in functions and initializers, besides their terminators.
CODE: Final = (
    Dispatch, HoistableDispatch, Splat, Empty, util.GlobalLoad, util.GlobalStore, util.BranchOp, util.Assert,
    *util.HOST_OPS,
)  # fmt: skip
CHILDREN: Final[Children] = {
    Module: (Executable, util.Global, util.Initializer, Func, Module),
    Executable: (Func,),
    Func: (*CODE, Return),
    util.Initializer: (*CODE, util.Return),
    (Func, Executable): (StablehloOp, SetEncoding, UnsetEncoding, Return),
    HoistableDispatch: (StablehloOp, SetEncoding, UnsetEncoding, Yield),
    Reduce: REDUCER,
    Scatter: REDUCER,
}


def problems(op: Operation, tables: SymbolTables) -> Iterator[str]:
    yield from encoded_values(op)
    match op:
        case Module() if parts_of(op):
            yield from parts.problems(op)
        case Module():
            yield from has_functions(op)
            yield from stored_once(op)
            yield from same_ties(op)
        case util.Initializer() if op.kind.value != "program":
            yield f"is of kind {op.kind.value}, which comes later"
        case util.Initializer() if len(op.body.blocks) != 1:
            yield f"needs one block, has {len(op.body.blocks)}"
        case HoistableDispatch():
            yield from hoistable(op)
        case Func() if isinstance(op.parent_op, Executable):
            yield from entry(op, is_encoded_entry_type)
            yield from without_schedules(op.schedules)
        case Func():
            yield from signature(op)
            yield from dims.function_dims(op)
            yield from blocks(op.body)
            yield from _block_arguments(op)
        case util.CondBranch() | util.Switch():
            yield from branch_selector(op)
        case util.ImportedCallBranch():
            yield from imported_call(op, tables, operator.eq)
        case Dispatch():
            yield from dispatch(op, tables, operator.eq)
        case util.Global():
            yield from constant(op)
        case util.GlobalStore():
            yield from store(op, tables)
        case Splat():
            yield from _splat(op)


def entry(func: Func, allowed: Callable[[Type], bool], fused: bool = False) -> Iterator[str]:
    """An entry of an executable, over tensors of allowed types. `fused`: it may compute an attention."""
    yield from one_block(func, allowed)
    yield from dims.entry_dims(func)
    yield from known_kind(func.kind)
    if len(func.body.blocks) == 1:
        yield from body(func, fused)


def body(func: Func, fused: bool = False) -> Iterator[str]:
    """The contract with every target: one hero op or library call, a limited number of bindings, no empty tensors."""
    block = func.body.block
    yield from in_entry(block)
    results = block.end.operands
    if not results:
        yield "computes nothing"
        return
    if len(block.arguments) + len(results) > MAX_BINDINGS:
        yield f"binds {len(block.arguments) + len(results)} buffers, a dispatch has at most {MAX_BINDINGS}"
    calls = block.of(CustomCall)
    if calls:
        yield from _library_call(block, calls)
    elif not fused or Attention.of(block.ops[:-1], results) is None:
        yield from _sizes(block)
    for value in (*block.arguments, *results, *(result for op in block for result in op.results)):
        if _elements(value) == 0 and not (isinstance(value.defining_op, BroadcastInDim) and value not in results):
            yield f"holds {value.type}, which has no elements and is not a broadcast"
    for op in block:
        if isinstance(op, Choice | While):
            yield f"holds {op.name}: control flow must be between dispatches"
        if isinstance(op, Constant) and not op.value.is_splat:
            yield f"holds a constant {op.value.type} that is not a splat: it must be a global"


def _library_call(block: Block, calls: list[CustomCall]) -> Iterator[str]:
    """A library function takes and returns whole tensors in memory; only ops that read no memory stand beside it."""
    if len(calls) > 1:
        yield f"calls {len(calls)} library functions, at most one may be"
    for op in block.ops[:-1]:
        if not isinstance(op, CustomCall) and not is_free(op):
            yield f"calls library function {calls[0].function} beside {op.name}"
    made = calls[0].results
    if any(value not in made for value in block.end.operands):
        yield f"returns something other than the result of library function {calls[0].function}"


def _sizes(block: Block) -> Iterator[str]:
    """At most one hero, with as many elements as every result; or reductions of rows, all of the same rows."""
    results = block.end.operands
    if _all_sized(block) and rows_of(block.ops[:-1], results) is not None:
        return
    heroes = [op.results[0] for op in block if isinstance(op, HEROES)]
    yield from _of_hero(block)
    if len(heroes) > 1:
        yield f"has {len(heroes)} reductions, dots or scatters, at most one may be, or all reduce the same rows"
    sizes = [{_elements(value), *_window(value)} for value in (*results, *heroes)]
    if not set.intersection(*sizes):
        shown = ", ".join(map(str, sorted(set.union(*sizes))))
        yield f"results and hero differ in their number of elements: {shown}"


def _of_hero(block: Block) -> Iterator[str]:
    """A hero that writes its results itself is the only op that produces results."""
    for op in block:
        if isinstance(op, Merge | LineFft | RowSolve) and any(
            _shaped(value) not in op.results for value in block.end.operands
        ):
            yield f"returns something other than the result of {op.name}"


def _shaped(value: Value) -> Value:
    """The value behind reshapes."""
    while isinstance(value.defining_op, Reshape):
        value = value.defining_op.operand_
    return value


def _window(value: Value) -> Shape:
    """The shape of the elements that an in-place update of an argument writes."""
    update = update_of(value)
    if update is not None and isinstance(update.operands[updated(value)], BlockArgument):
        return (_elements(changes(update)),)
    return ()


def _elements(value: Value) -> Size:
    return value.type.num_elements if isinstance(value.type, TensorType) and value.type.is_known else -1


def dispatch(op: Dispatch, tables: SymbolTables, fits: Callable[[Type, Type], bool]) -> Iterator[str]:
    """The types of the dispatched values fit those of the entry, and so do the workload and the shared memory."""
    entry = tables.lookup(op, op.entry)
    if not isinstance(entry, Func):
        yield f"{op.entry} is not an entry of an executable"
        return
    type = entry.function_type
    given = FunctionType(tuple(v.type for v in op.arguments), tuple(v.type for v in op.outputs))
    groups = ((given.inputs, type.inputs), (given.results, type.results))
    if not all(len(have) == len(want) and all(map(fits, have, want)) for have, want in groups):
        yield f"{op.entry} is of type {type}, dispatched as {given}"
        return
    yield from _in_place(op, entry)
    if op.tied is not None:
        yield from _updates(op, entry, op.tied.ints)
    elif op.outputs and op.workload.sizes != (wanted := max(map(stored_elements, type.results), default=0), 1, 1):
        yield f"workload {list(op.workload.sizes)} must be [{wanted}, 1, 1], the elements of the largest result"


def _updates(op: Dispatch, entry: Func, tied: tuple[int, ...]) -> Iterator[str]:
    """A tied output is an update of its argument, used by nothing else in the entry; the workload is its size."""
    if len(entry.body.blocks) != 1:
        return  # reported at the entry
    last = entry.body.block.end
    for output, index in enumerate(tied):
        result = last.operands[output]
        update = update_of(result)
        wanted = stored_elements(entry.function_type.results[output])
        if index >= 0:
            argument = entry.entry.arguments[index]
            is_only = list(result.uses) == [(last, output)]
            if update is None or not is_only or list(argument.uses) != [(update, updated(result))]:
                yield f"result {output} of the entry is not an update of argument {index} that nothing else uses"
                continue
            wanted = _elements(changes(update))
        if op.workload.sizes != (wanted, 1, 1):
            yield f"workload {list(op.workload.sizes)} must be [{wanted}, 1, 1] for result {output}"


def _in_place(op: Dispatch, entry: Func) -> Iterator[str]:
    """An argument may give its memory to the result only if the entry reads its element i just for result element i."""
    given = op.in_place
    if given is None or len(entry.body.blocks) != 1 or not _all_sized(entry.body.block):
        return
    allowed = candidates(entry.body.block, is_by_rows(entry)) if op.tied is None else []
    if not set(given.ints) <= set(allowed) or len(set(given.ints)) != len(given):
        yield f"in_place {list(given.ints)} must be of {allowed}, the arguments that may give their memory, each once"


def _all_sized(block: Block) -> bool:
    """Whether all sizes are known; if not, another message reports it."""
    return all(_elements(value) >= 0 for op in block for value in (*op.operands, *op.results))


def same_ties(scope: Operation) -> Iterator[str]:
    """An entry has one ABI: all its dispatches tie the same arguments, or none."""
    first: dict[str, str] = {}
    for op in scope.walk(Dispatch):
        entry, tied = str(op.entry), str(op.tied)
        if first.setdefault(entry, tied) != tied:
            yield f"{entry} is dispatched with tied = {first[entry]} and with tied = {tied}"


def stored_elements(type: Type) -> Size:
    """The number of elements in memory, or -1 if unknown."""
    known = isinstance(type, TensorType) and type.is_known and not problem(type)
    return storage_elements(type) if known else -1  # type: ignore[arg-type]


def _block_arguments(func: Func) -> Iterator[str]:
    """A block argument is a supported tensor with elements, or a number on the host."""
    for index, block in enumerate(func.body.blocks[1:], 1):
        for argument in block.arguments:
            if argument.type != I32 and not (is_supported(argument.type) and _elements(argument) != 0):
                yield f"block {index} takes {argument.type}: must be a supported tensor with elements, or i32"


def constant(op: util.Global) -> Iterator[str]:
    """A global in a tensor phase: its value has the global's type."""
    if not isinstance(op.type, TensorType) or not (is_supported(op.type) or is_encoded_entry_type(op.type)):
        yield f"is of type {op.type}, which is not supported"
    elif op.value is not None and op.value.type != op.type:
        yield f"is of type {op.type}, its value of type {op.value.type}"
    elif not op.type.is_static:
        yield f"is of type {op.type}, whose size depends on a call"
    elif op.parameter is not None and bytes_of(op.parameter) != storage_bytes(op.type):
        yield f"is of type {op.type}, which differs in size from parameter {name_of(op.parameter)}"
    elif not op.type.num_elements:
        yield f"is of type {op.type}, which has no elements: create it where it is used"


def imported_call(
    op: util.ImportedCallBranch, tables: SymbolTables, fits: Callable[[Type, Type], bool]
) -> Iterator[str]:
    """The globals of the call are mutable, and their types fit those of the function."""
    types = (*op.function_type.inputs, *op.function_type.results)
    for ref, type in zip(op.globals, types, strict=False):
        variable = tables.lookup(op, ref)
        if not isinstance(variable, util.Global) or variable.mutable is None:
            yield f"{ref} is not a mutable global"
        elif not fits(variable.type, type):
            yield f"{ref} is of type {variable.type}, {op.callee.value} takes or gives {type}"


def _splat(op: Splat) -> Iterator[str]:
    type = op.output.type
    if not isinstance(type, TensorType) or op.value.type != type.with_shape(()):
        yield f"value of type {op.value.type} does not fill {type}"


RULES: Final = Rules(CHILDREN, problems)
