"""Emits the commands of a function or an initializer over the buffers that a `BufferAssignment` describes.

Everything that the commands need is made first: executables, constants, allocations. Each block becomes one recording;
the buffers of a request (arguments, destinations, loop states) are its slots. A recording that must finish before the
host continues (a predicate is read, results are returned) is executed. Any other recording is enqueued, and submitted
together with the next one that is executed. There is a barrier between any two commands; `coalesce-barriers` keeps the
necessary ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrion.compiler.flow import dialect as flow
from orchestrion.compiler.ir import util
from orchestrion.compiler.ir.attributes import ArrayAttr, DenseElements, DictAttr, SymbolRef
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Block, Operation, Region, Value
from orchestrion.compiler.ir.dims import Size
from orchestrion.compiler.ir.dominance import closure
from orchestrion.compiler.ir.locations import Location
from orchestrion.compiler.ir.parameters import bytes_of

from . import hl_seq, ll_seq
from .arena import MAX_ALLOCATION, align
from .buffer_assignment import BufferAssignment, BufferGroup, Placement
from .lifetimes import COMMANDS
from .positions import spans

#: A buffer and an offset in bytes.
Address = tuple[Value, Size]
#: Content of a constant buffer: values with their offsets in bytes.
Content = list[tuple[DenseElements, int]]


class Constants:
    """The constants of a program. `places`: global -> (buffer, offset in bytes); `buffers`: buffer -> its content."""

    #: Bytes. Segments of a module of this size and more are page aligned, so that devices can import them.
    POOLED_BELOW = 64 * 1024
    POOL = "constants"

    def __init__(self, variables: Iterable[util.Global], max_pool_bytes: int = MAX_ALLOCATION) -> None:
        """`max_pool_bytes`: maximum bytes of one pool; there may be several."""
        self.places: dict[str, tuple[str, int]] = {}
        self.buffers: dict[str, Content | DictAttr] = {}
        pool, pooled = self.POOL, list[tuple[DenseElements, int]]()
        end = 0
        for variable in variables:
            name, value = variable.sym_name.value, variable.value
            if variable.parameter is not None:
                self.places[name] = name, 0
                self.buffers[name] = variable.parameter
                continue
            assert value is not None
            if value.nbytes >= self.POOLED_BELOW:
                self.places[name] = name, 0
                self.buffers[name] = [(value, 0)]
                continue
            if end + value.nbytes > max_pool_bytes and pooled:
                self.buffers[pool] = pooled
                pool, pooled, end = f"{self.POOL}_{len(self.buffers)}", [], 0
            self.places[name] = pool, end
            pooled.append((value, end))
            end += align(value.nbytes)
        if pooled:
            self.buffers[pool] = pooled


def constant(label: str, content: Content | DictAttr, builder: Builder) -> Value:
    """Emits a constant buffer with this content, or over a parameter."""
    parameter = content if isinstance(content, DictAttr) else None
    rows = [] if isinstance(content, DictAttr) else content
    return builder.build(
        ll_seq.Constant,
        label=label,
        values=ArrayAttr(tuple(value for value, _ in rows)),
        offsets=[offset for _, offset in rows],
        size=bytes_of(content) if isinstance(content, DictAttr) else content[-1][1] + content[-1][0].nbytes,
        parameter=parameter,
        output=ll_seq.BUFFER,
    ).output


@dataclass(eq=False)
class CommandEmitter:
    """Emits the commands of one function or initializer.

    `front` is where setup ops go. `globals` holds the buffers of non-constant globals, `slot_buffers` the buffers of a
    request, which become slots. `first` is added to all positions in lifetimes.
    """

    buffers: BufferAssignment
    front: Builder
    constants: Constants
    globals: dict[str, Value]
    lifetime: str
    first: int = 0
    slot_buffers: dict[Value, int] = field(default_factory=dict, init=False)  #: buffer -> its rank among the slots
    placements: dict[Placement, Value] = field(default_factory=dict, init=False)
    #: id of a group in a loop's state -> offset in bytes
    offsets: dict[int, Size] = field(default_factory=dict, init=False)
    #: loop header -> the state buffer of its first iteration
    states: dict[Block, Value] = field(default_factory=dict, init=False)
    made: dict[object, Value] = field(default_factory=dict, init=False)

    def add_slot_buffer(self, placement: Placement, buffer: Value) -> None:
        """Registers the buffer of a placement that each request fills."""
        self.placements[placement] = buffer
        self.slot_buffers[buffer] = len(self.slot_buffers)

    def prepare(self) -> None:
        """Makes everything that the commands need, before all of them."""
        for block in self.buffers.blocks:
            for op in block:
                if isinstance(op, COMMANDS):
                    with self.front.at(op.loc):
                        self._prepare(op)

    def _prepare(self, op: Operation) -> None:
        if isinstance(op, flow.Dispatch):
            self.executable(op.entry.root)
        for value in (*op.operands, *op.results):
            group = self.buffers.group.get(value)
            if group is not None and (group.placement is None or group.placement.kind == "constant"):
                self.address_of(value)

    def executable(self, name: str) -> Value:
        """The executable with this name, created once."""
        return self._once(("executable", name), lambda: self.front.build(
            ll_seq.CreateExecutable, executable=SymbolRef(name), output=ll_seq.EXECUTABLE
        ).output)  # fmt: skip

    def address_of(self, value: Value) -> Address:
        """The buffer and offset of a resource."""
        group = self.buffers.group[value]
        placement = group.placement
        if placement is None:
            return self._once(id(group), lambda: self._allocate(group)), 0
        if placement.kind == "constant" and placement.key in self.constants.places:
            assert isinstance(placement.key, str)
            name, offset = self.constants.places[placement.key]
            return self._once(
                ("constant", name), lambda: constant(name, self.constants.buffers[name], self.front)
            ), offset
        if placement.kind in ("constant", "variable", "made"):
            assert isinstance(placement.key, str)
            return self.globals[placement.key], 0
        if placement.kind == "now":
            assert isinstance(placement.key, Block)
            if self.buffers.is_before(value, placement.key):
                return self.states[placement.key], self.offsets[id(group)]
        return self.placements[placement], self.offsets.get(id(group), 0)

    def _once(self, key: object, make: Callable[[], Value]) -> Value:
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]

    def _allocate(self, group: BufferGroup) -> Value:
        live = [self.first + position for span in spans(group.live) for position in span]
        return self.front.build(
            ll_seq.Allocate,
            label=self.lifetime,
            size=group.size,
            lifetime=self.lifetime,
            live=live,
            output=ll_seq.BUFFER,
        ).output

    def emit(self, block: Block) -> list[Operation]:
        """The commands of a block, over buffers, with a barrier between any two."""
        found: list[Operation] = []
        for op in block:
            command = self._command(op) if isinstance(op, COMMANDS) else None
            if command is not None:
                found += [ll_seq.Barrier.build(loc=op.loc), command] if found else [command]
        return found

    def _command(self, op: Operation) -> Operation | None:
        """The command for an op. None for a copy within one place, and for a splat or a store of zero bytes."""
        match op:
            case flow.Dispatch():
                tied = {argument: output for argument, output in op.updates()}
                outputs = [value for value in op.outputs if value not in tied.values()]
                places = [self.address_of(value) for value in (*op.arguments, *outputs)]
                return ll_seq.Dispatch.build(
                    entry=op.entry,
                    offsets=[offset for _, offset in places],
                    executable=self.executable(op.entry.root),
                    bindings=[memory for memory, _ in places],
                    loc=op.loc,
                )
            case hl_seq.Clone() if op.output in self.buffers.group:
                return self._copy(op, op.source, self.address_of(op.output))
            case util.GlobalStore() if op.value in self.buffers.group:
                return self._copy(op, op.value, (self.globals[op.ref.root], 0))
            case flow.Splat() if op.output in self.buffers.group:
                target, offset = self.address_of(op.output)
                length = hl_seq.size_of(op.output.type)
                return ll_seq.Fill.build(target=target, offset=offset, length=length, value=op.value, loc=op.loc)
            case _:
                return None

    def _copy(self, op: Operation, value: Value, place: Address) -> Operation | None:
        """A copy unless source and target share memory; `buffer_assignment.py` ensured that the source is then dead."""
        if self.address_of(value) == place:
            return None
        (source, start), (target, to) = self.address_of(value), place
        length = hl_seq.size_of(value.type)
        return ll_seq.Copy.build(
            source=source, source_offset=start, target=target, target_offset=to, length=length, loc=op.loc
        )


def region_of(commands: Iterable[Operation], loc: Location) -> Region:
    block = Block()
    for op in commands:
        block.append(op)
    Builder(block, loc=loc).build(ll_seq.End)
    return Region([block])


def record(
    commands: Iterable[Operation], order: Mapping[Value, int], aliases: Iterable[tuple[Value, Value]], builder: Builder
) -> list[Value]:
    """Records commands; returns the recording, then the buffers for its slots.

    `order`: the buffers of a request, which become slots, with their ranks. `aliases`: pairs of buffers that a call may
    give as the same.
    """
    body = region_of(commands, builder.loc)
    used = {value for op in body.walk() for value in op.operands if value in order}
    buffers = sorted(used, key=order.__getitem__)
    slots = {buffer: body.block.add_argument(ll_seq.SLOT) for buffer in buffers}
    for op in body.walk():
        op.set_operands([slots.get(value, value) for value in op.operands])
    pairs = [slots[value].index for pair in aliases if all(v in slots for v in pair) for value in pair]
    made = builder.build(ll_seq.Record, may_alias=pairs or None, body=body, output=ll_seq.RECORDING)
    return [made.output, *buffers]


def pending_on_entry(onward: Mapping[Block, Sequence[Block]], enqueuing: Iterable[Block]) -> set[Block]:
    """The blocks that control may enter while enqueued recordings are pending.

    `onward`: the successors of each block at whose end the host does not wait. `enqueuing`: those that have commands.
    """
    first = [successor for block in enqueuing for successor in onward[block]]
    return closure(first, lambda block: onward.get(block, ()))
