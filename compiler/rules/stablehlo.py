"""Rules after the stablehlo phase: functions of one block, of supported StableHLO ops with their regions, without
calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from orchestrion.compiler import parts
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.symbols import SymbolTables
from orchestrion.compiler.ir.types import Type
from orchestrion.compiler.ir.util import Assert, ImportedCall
from orchestrion.compiler.parts import parts_of
from orchestrion.compiler.stablehlo.ops.base import StablehloOp, is_supported
from orchestrion.compiler.stablehlo.ops.contraction import Reduce
from orchestrion.compiler.stablehlo.ops.contraction import Return as RegionReturn
from orchestrion.compiler.stablehlo.ops.control_flow import Choice, While
from orchestrion.compiler.stablehlo.ops.custom_call import CustomCall
from orchestrion.compiler.stablehlo.ops.dynamic import ASSERTION, DynamicOp
from orchestrion.compiler.stablehlo.ops.elementwise import Elementwise
from orchestrion.compiler.stablehlo.ops.func import Func, Return
from orchestrion.compiler.stablehlo.ops.scatter import Scatter
from orchestrion.compiler.stablehlo.ops.sort import Sort
from orchestrion.compiler.stablehlo.ops.structural import Constant
from orchestrion.compiler.stablehlo.ops.windowed import ReduceWindow, SelectAndScatter

from .dims import function_dims
from .engine import Children, Rules

REDUCER: Final = (Elementwise, Constant, RegionReturn)
CHILDREN: Final[Children] = {
    Module: (Func, Module),
    Func: (StablehloOp, Assert, ImportedCall, Return),
    Reduce: REDUCER,
    ReduceWindow: REDUCER,
    SelectAndScatter: REDUCER,
    Scatter: REDUCER,
    Sort: REDUCER,
    Choice: (StablehloOp, ImportedCall, RegionReturn),
    While: (StablehloOp, ImportedCall, RegionReturn),
}


def problems(op: Operation, tables: SymbolTables) -> Iterator[str]:
    match op:
        case Module() if parts_of(op):
            yield from parts.problems(op)
        case Module():
            yield from has_functions(op)
        case Func():
            yield from one_block(op)
            yield from function_dims(op)
        case StablehloOp() if any(not is_supported(value.type) for value in (*op.operands, *op.results)):
            yield "has an operand or result of a type that is not supported"
        case DynamicOp():
            yield "computes its shape, which is known from this phase on"
        case CustomCall() if op.function == ASSERTION:
            yield f"is an assertion about shapes: it is {Assert.name} from this phase on"


def has_functions(scope: Operation) -> Iterator[str]:
    """A module has at least one function."""
    if not any(isinstance(op, Func) for op in scope.regions[0].block):
        yield "has no function"


def one_block(func: Func, allowed: Callable[[Type], bool] = is_supported) -> Iterator[str]:
    """A body of one block over tensors of allowed types."""
    if len(func.body.blocks) != 1:
        yield f"needs a body of one block, has {len(func.body.blocks)}"
    yield from signature(func, allowed)


def signature(func: Func, allowed: Callable[[Type], bool] = is_supported) -> Iterator[str]:
    """Arguments and results are tensors of allowed types."""
    for type in (*func.function_type.inputs, *func.function_type.results):
        if not allowed(type):
            yield f"has an argument or result of type {type}, which is not supported"


RULES: Final = Rules(CHILDREN, problems)
