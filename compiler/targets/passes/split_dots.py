"""split-dots: a dot of few rows and a long reduction becomes dots of parts of the reduction, and the sums of these.

A workgroup of such a dot has some columns of the matrix, so it reads short pieces of all its rows, which lie far apart
in memory. A workgroup of a part reads whole rows, one behind the other (docs/decisions/few-rows.md). A part has as many
products as are summed in one go anyway, so sums of up to 64 parts have the same bits. The pass changes programs for
machines whose schedule of the dot streams the matrix (`kernel/patterns/few_rows.py`). Sizes must be static.
"""

from __future__ import annotations

from typing import Final

from orchestrion.compiler.flow.deduplicate_executables import erase_unused
from orchestrion.compiler.flow.dialect import Dispatch, DispatchRegion, Executable, Yield
from orchestrion.compiler.flow.outline_dispatch_regions import SharedExecutables, executable_of, inlined
from orchestrion.compiler.ir.attributes import dense_ints
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Block, Region
from orchestrion.compiler.ir.effects import erase_dead
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.kernel.body import Body
from orchestrion.compiler.kernel.elements.loops import BLOCK
from orchestrion.compiler.kernel.patterns.few_rows import STREAMED_ROWS
from orchestrion.compiler.sequencer import hl_seq
from orchestrion.compiler.stablehlo.builders.tensors import Tensor
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotDimensions, DotGeneral
from orchestrion.compiler.stablehlo.ops.func import Func
from orchestrion.compiler.targets.kernel_target import KernelTarget
from orchestrion.compiler.targets.target import target

#: fewest parts of a dot, and fewest elements of its matrix: one more dispatch costs about a microsecond
LEAST_PARTS: Final = 4
LEAST_ELEMENTS: Final = 1 << 16


def run(program: hl_seq.Program) -> None:
    made_for = target(program.profile)
    if not isinstance(made_for, KernelTarget) or not made_for.row(program.machine_name).panel_bytes:
        return
    executables = SharedExecutables(program)
    origins = {op.sym_name.value: op for op in program.body.block.of(Executable) if _is_split(op, made_for, program)}
    for dispatch in [op for op in program.walk(Dispatch) if op.entry.root in origins]:
        origin = origins[dispatch.entry.root]
        regions = _regions(dispatch, origin.entry)
        if not _streams(executable_of(regions[0], "parts").entry, made_for, program):
            for region in reversed(regions):
                region.erase()
            continue
        in_place = [] if dispatch.in_place is None else [dispatch.arguments[at] for at in dispatch.in_place.ints]
        dispatch.replace_by(regions[1].outputs)
        for region, suffix in zip(regions, ("parts", "sums"), strict=True):
            last = executables.outline(region, f"{origin.sym_name.value}_{suffix}", Builder.before(origin))
        if kept := [number for number, value in enumerate(last.arguments) if value in in_place]:
            last.in_place = dense_ints(*kept)
    erase_unused(program)


def _is_split(executable: Executable, made_for: KernelTarget, program: hl_seq.Program) -> bool:
    """Whether an executable computes a dot of which the parts may be computed apart."""
    func = executable.entry
    if func.kind is None or func.kind.value != "contraction" or func.dims is not None:
        return False
    dots = list(func.entry.of(DotGeneral))
    if len(func.function_type.results) != 1 or len(dots) != 1:
        return False
    return _parts(dots[0]) >= LEAST_PARTS and _streams(func, made_for, program)


def _regions(dispatch: Dispatch, func: Func) -> tuple[DispatchRegion, DispatchRegion]:
    """The dots of parts, and their sums with what follows in the body, in front of a dispatch."""
    (block, dot), (rest, summed) = (_copy(dispatch, func) for _ in range(2))
    block.end.set_operand(0, _products(dot, _parts(dot)).value)
    first = _region(dispatch, block)
    summed.replace_by([Tensor(Rewriter.before(summed), first.outputs[0]).reduce((0,)).value])
    return first, _region(dispatch, rest)


def _copy(dispatch: Dispatch, func: Func) -> tuple[Block, DotGeneral]:
    """A block with the ops of a function on the arguments of a dispatch, and its dot."""
    block = Block()
    block.append(Yield.build(values=inlined(func, dispatch.arguments, block), loc=func.entry.end.loc))
    (dot,) = block.of(DotGeneral)
    return block, dot


def _region(dispatch: Dispatch, block: Block) -> DispatchRegion:
    """A region in front of a dispatch with those ops of a block that its results need."""
    (result,) = block.end.operands
    region = Builder.before(dispatch).build(DispatchRegion, body=Region([block]), outputs=[result.type], loc=result.loc)
    erase_dead(region)
    return region


def _parts(dot: DotGeneral) -> int:
    """The number of parts of the reduction; 0 unless few rows meet a large matrix, and all parts are whole."""
    dims, sides = dot.dimensions, (tensor_of(dot.lhs), tensor_of(dot.rhs))
    if dims.lhs_batch or len(dims.lhs_contract) != 1:
        return 0
    length = sides[0].static_shape[dims.lhs_contract[0]]
    elements = sorted(side.num_elements for side in sides)
    if not length or length % BLOCK or elements[1] < LEAST_ELEMENTS or elements[0] // length not in STREAMED_ROWS:
        return 0
    return length // BLOCK


def _products(dot: DotGeneral, parts: int) -> Tensor:
    """The dot of each part of the reduction, as many along the first axis."""
    dims, sides = dot.dimensions, (tensor_of(dot.lhs), tensor_of(dot.rhs))
    contracted = dims.lhs_contract + dims.rhs_contract
    rewriter = Rewriter.before(dot)
    x, y = (
        Tensor(rewriter, value).reshape(*shape[:axis], parts, BLOCK, *shape[axis + 1 :])
        for value, shape, axis in zip(
            (dot.lhs, dot.rhs), (side.static_shape for side in sides), contracted, strict=True
        )
    )
    lhs, rhs = contracted
    numbers = DotDimensions((lhs,), (rhs,), (lhs + 1,), (rhs + 1,))
    out = tensor_of(dot.out).with_shape(numbers.shape(x.type, y.type))
    return x.build(DotGeneral, lhs=x, rhs=y, dot_dimension_numbers=numbers.attribute(), out=out)


def _streams(func: Func, made_for: KernelTarget, program: hl_seq.Program) -> bool:
    """Whether the schedule of a function streams a matrix."""
    return made_for.choose(Body.of_function(func, ()), program.machine_name).schedule.sums == "stream"
