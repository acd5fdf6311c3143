"""convert-to-ll-seq: turns a program into an instance: the work of initializers, then the run loop of each function.

Memory and commands are explicit from here on. A request still makes everything that it needs (executables, constants,
memory, recordings). The passes that follow pack the memory, remove barriers, and hoist whatever does not change between
requests.
"""

from __future__ import annotations

from typing import Final

from orchestrion.compiler.ir import util
from orchestrion.compiler.ir.attributes import DenseElements
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Block, Operation, Region, Value
from orchestrion.compiler.ir.dims import Size
from orchestrion.compiler.ir.types import tensor
from orchestrion.compiler.options import Options
from orchestrion.compiler.stablehlo.ops.func import Func

from . import hl_seq, ll_seq
from .buffer_assignment import BufferAssignment
from .command_emitter import CommandEmitter, Constants, constant, record
from .emit_run_loop import RunLoopEmitter
from .share_bindings import allocation_limit

#: Initial content of a variable without a value.
ZERO: Final = DenseElements(tensor((), "i8"), bytes(1))


def run(program: hl_seq.Program, options: Options) -> None:
    block = program.body.block
    variables = block.of(util.Global)
    constants = Constants([v for v in variables if v.is_constant], allocation_limit(program, options))
    body = Block()
    builder = Builder(body, loc=program.loc)
    others = [v for v in variables if not v.is_constant and hl_seq.size_of(v.type)]
    buffers = {v.sym_name.value: _global(v, builder) for v in others}
    first = 0
    for initializer in block.of(util.Initializer):
        first = _initialize(initializer, builder, constants, buffers, first)
    for func in block.of(Func):
        builder.insert(RunLoopEmitter(func, constants, buffers).emit())
    for op in block.ops:
        if isinstance(op, Func | util.Global | util.Initializer):
            op.erase()
    block.append(ll_seq.Instance.build(body=Region([body]), loc=program.loc))


def _global(variable: util.Global, builder: Builder) -> Value:
    """Allocates the memory of a non-constant global; a variable starts with its value, else with zeros."""
    name, size = variable.sym_name.value, hl_seq.size_of(variable.type)
    lifetime = "constant" if variable.mutable is None else "variable"
    with builder.at(variable.loc):
        made = builder.build(ll_seq.Allocate, label=name, size=size, lifetime=lifetime, output=ll_seq.BUFFER)
        if variable.mutable is not None:
            _begin(variable.value or ZERO, name, made.output, size, builder)
    return made.output


def _begin(value: DenseElements, name: str, buffer: Value, size: Size, builder: Builder) -> None:
    """Records and executes the initialization of a variable."""
    command: Operation
    if value.is_splat:
        scalar = DenseElements(value.type.with_shape(()), value.data)
        command = ll_seq.Fill.build(target=buffer, offset=0, length=size, value=scalar, loc=builder.loc)
    else:
        source = constant(name, [(value, 0)], builder)
        command = ll_seq.Copy.build(
            source=source, source_offset=0, target=buffer, target_offset=0, length=size, loc=builder.loc
        )
    (recording,) = record([command], {}, (), builder)
    builder.build(ll_seq.Execute, recording=recording, slots=[])


def _initialize(
    op: util.Initializer, builder: Builder, constants: Constants, buffers: dict[str, Value], first: int
) -> int:
    """Emits the commands of an initializer; returns the position after its last."""
    assignment = BufferAssignment(op)
    assert not assignment.missing_copies, "a copy is missing"
    emitter = CommandEmitter(assignment, builder, constants, buffers, "setup", first)
    emitter.prepare()
    with builder.at(op.loc):
        if commands := emitter.emit(op.body.block):
            recording, *slots = record(commands, emitter.slot_buffers, (), builder)
            builder.build(ll_seq.Execute, recording=recording, slots=slots)
    return first + assignment.lifetimes.end[op.body.block] + 1
