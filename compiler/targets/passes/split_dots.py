"""split-dots: a dot of few rows and a long reduction becomes dots of parts of the reduction, and the sums of these.

A workgroup of such a dot has some columns of the matrix, so it reads short pieces of all its rows, which lie far apart
in memory. A workgroup of a part reads whole rows, one behind the other (docs/decisions/few-rows.md). A part has as many
products as are summed in one go anyway, so sums of up to 64 parts have the same bits. The pass changes programs for
machines whose schedule of the dot streams the matrix (`kernel/patterns/few_rows.py`). Sizes must be static.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orchestrion.compiler.flow.dialect import Dispatch, Executable
from orchestrion.compiler.flow.kinds import kind_of
from orchestrion.compiler.flow.symbols import Names
from orchestrion.compiler.ir.attributes import SymbolRef, dense_ints
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Block, Operation, Region, Value
from orchestrion.compiler.ir.printer import operation_text
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import FunctionType
from orchestrion.compiler.kernel.body import Body
from orchestrion.compiler.kernel.elements.loops import BLOCK
from orchestrion.compiler.kernel.patterns.few_rows import STREAMED_ROWS
from orchestrion.compiler.sequencer import hl_seq
from orchestrion.compiler.stablehlo.builders.tensors import Tensor
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotDimensions, DotGeneral
from orchestrion.compiler.stablehlo.ops.func import Func, Return
from orchestrion.compiler.targets.kernel_target import KernelTarget
from orchestrion.compiler.targets.target import target

#: fewest parts of a dot, and fewest elements of its matrix: one more dispatch costs about a microsecond
LEAST_PARTS: Final = 4
LEAST_ELEMENTS: Final = 1 << 16


def run(program: hl_seq.Program) -> None:
    made_for = target(program.profile)
    if not isinstance(made_for, KernelTarget) or not made_for.row(program.machine_name).panel_bytes:
        return
    names, made = Names.of(program), dict[str, str]()
    split: dict[str, tuple[_Part, _Part]] = {}
    for executable in list(program.body.block.of(Executable)):
        name = executable.sym_name.value
        parts = _split(executable.entry, made_for, program)
        if parts is not None:
            split[name] = parts
            for part, suffix in zip(parts, ("parts", "sums"), strict=True):
                part.name = _executable(part.func, executable, names, made, f"{name}_{suffix}")
    for dispatch in list(program.walk(Dispatch)):
        if dispatch.entry.root in split:
            _replace(dispatch, *split[dispatch.entry.root])
    for executable in list(program.body.block.of(Executable)):
        if executable.sym_name.value in split:
            executable.erase()


class _Part:
    """A function that computes a part of a body, and the arguments of the body that it reads, in order."""

    def __init__(self, ops: Sequence[Operation], result: Value, sources: Sequence[Value]) -> None:
        wanted, kept = {result}, list[Operation]()
        for op in reversed(ops):
            if any(value in wanted and value not in sources for value in op.results):
                kept.append(op)
                wanted.update(value for inner in op.walk() for value in inner.operands)
        used = [value for value in sources if value in wanted]
        block = Block([value.type for value in used], [value.loc for value in used])
        mapping: dict[Value, Value] = dict(zip(used, block.arguments, strict=True))
        for op in reversed(kept):
            block.append(op.clone(mapping))
        returned = mapping[result]
        kind = kind_of(block.ops, [returned])
        block.append(Return.build(values=[returned], loc=result.loc))
        type = FunctionType(tuple(value.type for value in used), (returned.type,))
        self.func = Func.build(sym_name="", function_type=type, kind=kind, body=Region([block]), loc=result.loc)
        self.places = [sources.index(value) for value in used]
        self.name = ""


def _split(func: Func, made_for: KernelTarget, program: hl_seq.Program) -> tuple[_Part, _Part] | None:
    """The dots of parts, and their sums with what follows in the body; None if the dot stays whole. The last source of
    the second part is the result of the first.
    """
    if func.kind is None or func.kind.value != "contraction" or func.dims is not None:
        return None
    dots = list(func.entry.of(DotGeneral))
    if len(func.function_type.results) != 1 or len(dots) != 1:
        return None
    parts = _parts(dots[0])
    if parts < LEAST_PARTS or not _streams(func, made_for, program):
        return None
    copy = func.clone()
    assert isinstance(copy, Func)
    (dot,) = copy.entry.of(DotGeneral)
    products = _products(dot, parts)
    sums = products.reduce((0,))
    dot.replace_by([sums.value])
    *ops, end = copy.entry.ops
    arguments = list(copy.entry.arguments)
    first = _Part(ops, products.value, arguments)
    second = _Part(ops, end.operands[0], [*arguments, products.value])
    return (first, second) if _streams(first.func, made_for, program) else None


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


def _executable(func: Func, origin: Executable, names: Names, made: dict[str, str], wish: str) -> str:
    """The name of an executable of a function; equal functions share one."""
    text = operation_text(func)
    if text not in made:
        made[text] = names.fresh(wish)
        Builder.before(origin).insert(Executable.of(func, made[text]))
    return made[text]


def _replace(dispatch: Dispatch, first: _Part, second: _Part) -> None:
    """Replaces a dispatch by those of both parts."""
    arguments = list(dispatch.arguments)
    (out,) = first.func.function_type.results
    builder = Builder.before(dispatch)
    products = builder.build(
        Dispatch,
        entry=SymbolRef(first.name, (first.name,)),
        workload=[tensor_of(first.func.entry.end.operands[0]).num_elements, 1, 1],
        arguments=[arguments[place] for place in first.places],
        outputs=[out],
    )
    arguments += products.outputs
    in_place = [] if dispatch.in_place is None else dispatch.in_place.ints
    kept = [number for number, place in enumerate(second.places) if place in in_place]
    sums = builder.build(
        Dispatch,
        entry=SymbolRef(second.name, (second.name,)),
        workload=dispatch.workload,
        in_place=dense_ints(*kept) if kept else None,
        arguments=[arguments[place] for place in second.places],
        outputs=[value.type for value in dispatch.outputs],
    )
    dispatch.replace_by(sums.outputs)
