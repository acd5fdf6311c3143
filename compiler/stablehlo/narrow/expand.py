"""expand-narrow: replaces types that no device computes on by wider ones, with arithmetic in f32 or i8.

A value of a narrow type has up to two forms, each made at its definition when it is first needed. The *stored* form is
its bits in ui8 or ui16; for an integer, the number in i8 or ui8. The *wide* form of a float is the number in f32. A
computed value is wide first, so that a chain of ops stays in f32, rounded after each op (`floats.py`). A value that
comes from memory, is carried by a loop, gathered or sorted is stored first. Ops are changed in place.

- Elementwise ops round once. Their operands are exact, and f32 has more than twice the bits of each type plus two, so
  `add`, `subtract`, `multiply`, `divide` and `sqrt` are correctly rounded (Figueroa, 1995).
- A dot, a convolution, a reduction or a scatter accumulates in f32 without rounding, and its result is rounded once. An
  assigning scatter moves bits.
- An argument or result of a function keeps its original type in the attribute `orchestrion.type`. The bits above a
  small integer are zero there, as in NumPy's package ml_dtypes.
"""

from __future__ import annotations

from typing import Final

from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Operation
from orchestrion.compiler.stablehlo.ops import indexing, structural
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral, Reduce, Return
from orchestrion.compiler.stablehlo.ops.control_flow import Choice, While
from orchestrion.compiler.stablehlo.ops.elementwise import Elementwise
from orchestrion.compiler.stablehlo.ops.func import Func, set_types
from orchestrion.compiler.stablehlo.ops.func import Return as FuncReturn
from orchestrion.compiler.stablehlo.ops.scatter import Scatter
from orchestrion.compiler.stablehlo.ops.sort import Sort
from orchestrion.compiler.stablehlo.ops.windowed import Convolution, ReduceWindow, SelectAndScatter

from .narrow_values import NarrowValues, narrow_dtype, replace_operands, stored_type
from .ops import expand_elementwise


def run(module: Module) -> None:
    for op in module.block:
        if isinstance(op, Func) and _is_narrow(op):
            _Function(op).expand()


def _is_narrow(func: Func) -> bool:
    """Whether a function has a value of a narrow type."""
    if any(narrow_dtype(argument.type) for argument in func.entry.arguments):
        return True
    return any(narrow_dtype(result.type) for op in func.walk() for result in op.results)


class _Function:
    def __init__(self, func: Func) -> None:
        self.func = func
        self.values = NarrowValues()
        self.done: list[Operation] = []  #: ops that have been replaced

    def expand(self) -> None:
        signature = self.func.function_type
        self._block(self.func.entry)
        for op in reversed(self.done):
            op.erase()
        set_types(self.func, [stored_type(x) for x in signature.inputs], [stored_type(x) for x in signature.results])

    def _block(self, block: Block, wide: bool = False) -> None:
        values, ops = self.values, list(block)
        in_block = values.register_wide if wide else values.register_stored
        taken = values.register_argument if block is self.func.entry else in_block
        for argument in block.arguments:
            taken(argument)
        for op in ops:
            self.values.loc = op.loc
            self._op(op, wide)

    def _op(self, op: Operation, in_reducer: bool) -> None:
        values = self.values
        known = any(values.dtype(value) for value in (*op.operands, *op.results))
        match op:
            case structural.Constant():
                values.constant(op)
            case Elementwise():
                if known and expand_elementwise(op, values):
                    self.done.append(op)
            case Scatter() if op.assigns:
                self._move(op)
            case Reduce() | ReduceWindow() | Scatter() | SelectAndScatter():
                self._combine(op)
            case DotGeneral() | Convolution() | structural.Iota():
                replace_operands(op, values.wide_form)
                for result in op.results:
                    values.register_computed(result)
            case Return() if in_reducer:
                replace_operands(op, values.wide_form)
            case FuncReturn():
                replace_operands(op, values.returned_form)
            case _ if isinstance(op, _VIEWS) and self._stays_wide(op):
                replace_operands(op, values.wide_form)
                values.register_wide(op.results[0])
            case _ if isinstance(op, _MOVES):
                self._move(op)
            case _:
                assert not known, f"{op.name} on narrow types"

    def _stays_wide(self, op: Operation) -> bool:
        """Whether the op reshapes a computed value that is used wide."""
        dtype = self.values.dtype(op.operands[0])
        return dtype is not None and self.values.is_wide(op.operands[0])

    def _move(self, op: Operation) -> None:
        replace_operands(op, self.values.stored_form)
        for result in op.results:
            self.values.register_stored(result)
        for block in op.inner_blocks():
            self._block(block)

    def _combine(self, op: Operation) -> None:
        """Expands a reduction or a scatter: operands and computation in f32, rounding after it."""
        replace_operands(op, self.values.wide_form)
        self.values.unrounded = True
        for region in op.regions:
            self._block(region.block, wide=True)
        self.values.unrounded = False
        for result in op.results:
            self.values.register_computed(result)


#: Ops that only rearrange elements, and are free in a chain of elementwise ops.
_VIEWS: Final = (
    structural.BroadcastInDim,
    structural.Reshape,
    structural.Reverse,
    structural.Slice,
    structural.Transpose,
)
#: Ops that move bits regardless of their meaning.
_MOVES: Final = (*structural.OPS.values(), *indexing.OPS.values(), Choice, While, Sort, Return)
