"""Lowers an entry that runs a loop of a program, with all its dispatches, in one invocation (`ll_seq.part`).

One invocation runs the places of each former dispatch one after the other, so their order alone orders memory, and no
kernel waits for another. Parts have schedules of their own: nothing runs beside them.

The loop ends after `Loop.most` iterations at the latest. Its predicate then tells the host that it is not finished,
and the host dispatches the entry again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from math import prod

from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.ir.core import Block, BlockArgument, Operation, Value
from orchestrion.compiler.ir.dims import Size
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.kernel.code.builder import KernelBuilder
from orchestrion.compiler.kernel.elements.refusals import diagnose
from orchestrion.compiler.kernel.elements.rules import shape_of
from orchestrion.compiler.kernel.patterns.rows import ELEMENTS_PER_WORKGROUP
from orchestrion.compiler.sequencer import ll_seq
from orchestrion.schema.dtypes import BY_NAME

from . import dialect as k
from .body import Body, reduced
from .choose import choose
from .emit import emit, invocations
from .legality import problems
from .library import KERNELS
from .machine import Machine
from .reduction_limits import max_counted_iterations
from .schedule import Schedule, Step

#: most iterations of a loop in one dispatch
MAX_ITERATIONS = 4096


@dataclass(frozen=True, slots=True)
class Cost:
    """Ops that run, and iterations of loops in them, each counted in every iteration around it."""

    ops: int = 0
    iterations: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.ops + other.ops, self.iterations + other.iterations)

    def times(self, count: int) -> Cost:
        """The cost of a loop of so many iterations."""
        return Cost(count * self.ops, count * (self.iterations + 1) + 1)


def machine_of_parts(machine: Machine) -> Machine:
    """The machine that parts are scheduled for: one invocation, without shared memory."""
    return replace(machine, units=1, staging=False)


def schedule_of_part(body: Body, machine: Machine) -> Schedule | None:
    """The schedule of a part, in which invocations share nothing. None if there is none, or the body has no lowering.

    `machine`: that of the entry.
    """
    if body.symbols or body.kind in KERNELS or body.index_type != "ui32" or any(diagnose(body.ops)):
        return None
    alone = machine_of_parts(machine)
    if body.kind == "rows":
        found = Schedule.of(Step("bind", "grid", "invocation", ELEMENTS_PER_WORKGROUP))
    else:
        try:
            found = choose(body, alone).schedule
        except CompileError:
            return None
    if found.by_workgroups or any(problems(body, found, alone)):
        return None
    return Schedule.of(*(replace(step, count=1) if step.dim == "grid" else step for step in found.steps))


def cost_of_part(body: Body, machine: Machine) -> Cost | None:
    """The cost of all invocations of a part; None if it has no schedule or no lowering."""
    schedule = schedule_of_part(body, machine)
    if schedule is None:
        return None
    try:
        block = emit(body, schedule, machine_of_parts(machine))
    except CompileError:
        return None
    each, count = _cost(block), invocations(body, schedule)
    return None if each is None else each if count == 1 else each.times(int(count))


def estimated_cost(body: Body) -> Cost:
    """The cost of a body of static size that one invocation cannot run: an op per element, also of reductions."""
    counts = [prod(shape_of(op.results[0])) * reduced(op) for op in body.ops if op.results]
    return Cost(int(sum(counts)))


def cost_of_bytes(size: int) -> Cost:
    """The cost of a copy or a fill of `size` bytes."""
    return Cost(2).times(max(size // 4, 1))


def _cost(block: Block) -> Cost | None:
    """The cost of the ops of a block; None if the bounds of a loop are not constants."""
    total = Cost()
    for op in block:
        inner = Cost(not isinstance(op, k.Constant | k.Yield))
        for region in op.regions:
            one = _cost(region.block)
            if one is None:
                return None
            inner += one
        if isinstance(op, k.For):
            length, step = _length_of(op), k.bits_of(op.step)
            if length is None or not step:
                return None
            inner = inner.times(-(-length // step))
        total += inner
    return total


def _length_of(loop: k.For) -> int | None:
    """The difference of the bounds of a loop, or more; None if it is unknown."""
    lower, upper, end = k.bits_of(loop.lower) or 0, k.bits_of(loop.upper), loop.upper.defining_op
    if isinstance(end, k.SCALARS["add"]) and end.operands[0] is loop.lower:
        lower, upper = 0, k.bits_of(end.operands[1])
    return None if upper is None else max(upper - lower, 0)


def iterations_per_dispatch(entry: ll_seq.Entry, machine: Machine) -> int:
    """The number of iterations that an invocation of an entry that runs a loop has at most on a machine."""
    loop = entry.body.block.first
    assert isinstance(loop, ll_seq.Loop)
    each = _cost_of_commands(loop.body.block, machine).iterations + 2
    return max(min(MAX_ITERATIONS, max_counted_iterations(machine) // each), 1)


def _cost_of_commands(commands: Iterable[Operation], machine: Machine) -> Cost:
    """The cost of the commands of a loop, in which inner loops have a known number of iterations."""
    total = Cost()
    for op in commands:
        match op:
            case ll_seq.Part():
                total += cost_of_part(Body.of_entry(op), machine) or Cost()
            case ll_seq.Copy() | ll_seq.Fill():
                total += cost_of_bytes(int(op.length))
            case ll_seq.Loop() | ll_seq.Branch():
                inner = sum((_cost_of_commands(region.block, machine) for region in op.regions), Cost())
                total += inner.times(op.most.value) if isinstance(op, ll_seq.Loop) and op.most is not None else inner
            case _:
                pass
    return total


def is_loop(entry: ll_seq.Entry) -> bool:
    """Whether an entry runs a loop."""
    return isinstance(entry.body.block.first, ll_seq.Loop)


def emit_loop(entry: ll_seq.Entry, machine: Machine) -> Block:
    """The code of an entry that runs a loop. Raises CompileError for a part that has no lowering."""
    block = Block([ll_seq.BINDING] * len(entry.bindings))
    builder = KernelBuilder(block, "ui32", machine)
    builder.loc = entry.loc
    _Loop(builder, dict(zip(entry.body.block.arguments, block.arguments, strict=True)), machine).run(entry.body.block)
    builder.insert(k.Return())
    return block


@dataclass(slots=True)
class _Loop:
    """The code of a loop under construction. `bindings`: those of the entry -> those of the code."""

    b: KernelBuilder
    bindings: Mapping[Value, Value]
    machine: Machine

    def run(self, commands: Iterable[Operation]) -> None:
        """Appends the code of commands, in order."""
        for op in commands:
            match op:
                case ll_seq.Part():
                    self._part(op)
                case ll_seq.Loop():
                    self._loop(op)
                case ll_seq.Branch():
                    self._branch(op)
                case ll_seq.Copy():
                    self._copy(op)
                case ll_seq.Fill():
                    self._fill(op)
                case _:
                    pass  # barriers: one invocation runs all commands in order

    def _loop(self, op: ll_seq.Loop) -> None:
        most = (1 << 32) - 1 if op.most is None else op.most.value
        loop = self.b.begin_while(self.b.word(most), self._predicate(op))
        self.run(op.body.block)
        self.b.end_while(loop, self._predicate(op))

    def _predicate(self, op: ll_seq.Loop) -> Value:
        """Whether the loop goes on: a byte, or the last byte of a counter, which is negative or 0."""
        b, offset = self.b, op.offset.value
        if offset % 4 == 0:
            return b.load_again(self.bindings[op.predicate], b.index(offset), "i1")
        counter = b.load_again(self.bindings[op.predicate], b.index(offset // 4), "i32")
        return b.op("compare_ne", counter, b.const(0, "i32"))

    def _branch(self, op: ll_seq.Branch) -> None:
        """The arms, each in the else arm of the one before it."""
        b = self.b
        place = b.index(op.offset.value // ll_seq.READ_BYTES[op.type.value])
        selector = b.load_again(self.bindings[op.selector], place, op.type.value)
        opened = []
        for number, arm in enumerate(op.arms[:-1]):
            is_this = selector if op.type.value == "i1" else b.op("compare_eq", selector, b.const(number, "i32"))
            opened.append(b.begin_if(is_this))
            self.run(arm.block)
            b.begin_else(opened[-1])
        self.run(op.arms[-1].block)
        for branch in reversed(opened):
            b.end_if(branch)

    def _copy(self, op: ll_seq.Copy) -> None:
        size = BY_NAME[dtype := self._dtype(op.target)].itemsize

        def load(at: Value) -> Value:
            return self.b.load_again(self.bindings[op.source], self._moved(at, int(op.source_offset) // size), dtype)

        self._store_each(int(op.length) // size, op.target, int(op.target_offset) // size, load)

    def _fill(self, op: ll_seq.Fill) -> None:
        size, bits = op.value.itemsize, int.from_bytes(op.value.data, "little")
        constant = self.b.bits(bits, self._dtype(op.target))
        self._store_each(int(op.length) // size, op.target, int(op.offset) // size, lambda at: constant)

    def _store_each(self, count: int, target: Value, first: int, value: Callable[[Value], Value]) -> None:
        """Stores a value per element, by its number, from an element of a binding on."""
        with self._each(count) as at:
            self.b.store(value(at), self.bindings[target], self._moved(at, first))

    @contextmanager
    def _each(self, count: Size) -> Iterator[Value]:
        """The code for each of `count` numbers, in a loop if there are several."""
        with self.b.indices(count) if count > 1 else nullcontext(self.b.index(0)) as at:
            yield at

    def _moved(self, index: Value, by: int) -> Value:
        return self.b.op("add", index, self.b.index(by))

    def _dtype(self, binding: Value) -> str:
        """The element type of a binding."""
        assert isinstance(binding, BlockArgument)
        entry = binding.block.parent_op
        assert isinstance(entry, ll_seq.Entry) and entry.binding_types is not None
        type = entry.binding_types.items[binding.index]
        assert isinstance(type, TensorType)
        return str(type.element)

    def _part(self, op: ll_seq.Part) -> None:
        """The code of one invocation of a part, once for each."""
        b, body = self.b, Body.of_entry(op)
        schedule = schedule_of_part(body, self.machine)
        if schedule is None:
            raise CompileError(list(diagnose(body.ops)))
        code, count = emit(body, schedule, machine_of_parts(self.machine), op.loc), invocations(body, schedule)
        with self._each(count) as place:
            for argument, binding, offset in zip(code.arguments, op.bindings, op.offsets.ints, strict=True):
                self._move_accesses(argument, offset)
                argument.replace_by(self.bindings[binding])
            for inner in list(code.walk()):
                if isinstance(inner, k.WorkgroupId | k.LocalId):
                    inner.output.replace_by(place if isinstance(inner, k.WorkgroupId) else b.word(0))
                    inner.erase()
            for inner in code.ops:
                inner.detach()
                if not isinstance(inner, k.Return):
                    b.block.append(inner)

    def _move_accesses(self, binding: Value, offset: int) -> None:
        """Adds an offset in bytes to the indices of all accesses to a binding of a part."""
        for user, _ in list(binding.uses) if offset else ():
            value = user.results[0] if user.results else user.operands[0]
            lanes = k.length_of(value) if isinstance(user, k.LoadVector | k.StoreVector) else 1
            by = self.b.index(offset // (lanes * k.dtype_of(value).itemsize))
            number = user.operands.index(binding) + 1
            moved = k.SCALARS["add"]([user.operands[number], by], [by.type])
            assert user.parent is not None
            user.parent.insert_before(moved, user)
            user.set_operand(number, moved.result)
