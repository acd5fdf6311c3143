"""Code for several vectors of invocations that runs a loop for one vector after the other, in each of its iterations.

Invocations in several vectors read and write longer pieces of memory, which caches serve better. But straight code with
many products needs more registers for them than a level of 16 has.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.kernel import dialect as k

from .code import Code
from .forms import Forms
from .levels import Level
from .scalars import type_of

#: vectors that the processor of a level with few registers holds: too few for the sums of the widest vectors
FEW = 16


def fills_registers(ops: Sequence[Operation], level: Level | None) -> bool:
    """Whether the sums, factors and elements of straight code fill the few registers of a level."""
    if level is None or level.registers > FEW:
        return False
    return sum(isinstance(op, k.MultiplyAdd) for op in ops) > level.registers


def sums_to_hold(
    ops: Sequence[Operation], forms: Forms, level: Level | None
) -> tuple[Operation | None, Sequence[Value]]:
    """The last of many products in straight code, and the sums that other ops use. They must be complete behind it:
    LLVM computes one sum after the other otherwise, each just in front of its use, and stores what they share.
    """
    if level is None or forms.width != level.lanes or not fills_registers(ops, level):
        return None, ()
    products = [op for op in ops if isinstance(op, k.MultiplyAdd)]
    sums = [op.output for op in products if not all(isinstance(user, k.MultiplyAdd) for user, _ in op.output.uses)]
    before = set(ops[: ops.index(products[-1])])
    alike = all(forms[x].stride is None and k.length_of(x) == 1 and k.dtype_of(x).name == "f32" for x in sums)
    if not alike or not 1 < len(sums) < level.registers or any(user in before for x in sums for user, _ in x.uses):
        return None, ()
    return products[-1], sums


def values_from_outside(loop: k.For) -> list[Value]:
    """The values that a loop uses and does not make."""
    ops = list(loop.body.block.walk())
    made = {value for op in ops for value in op.results} | set(loop.body.block.arguments)
    made |= {value for op in ops for region in op.regions for value in region.block.arguments}
    return [value for value in dict.fromkeys(v for op in ops for v in op.operands) if value not in made]


def from_lane(code: Code, value: Value, name: str, forms: Forms, first: int, single: Forms) -> str:
    """A value of code for several vectors as code for one represents it. `forms`, `single`: those of both codes;
    `first`: the number of the first lane.
    """
    stride = forms[value].stride
    if stride == 0 or (stride is not None and not first):
        return name
    dtype = k.dtype_of(value)
    if stride is not None:
        return code.set(f"add {type_of(dtype)} {name}, {first * stride}")
    part = code.shuffle(type_of(dtype, forms.width), name, range(first, first + single.width))
    if single[value].stride is None:
        return part
    return code.set(f"extractelement {type_of(dtype, single.width)} {part}, i64 0")
