"""Records work once, to be submitted any number of times.

All validation happens while recording: bindings against the entry, ranges, rights, alignment, overlap, limits. Only the
buffers of slots are unknown then. Recording reduces what it requires of them to a least length and the rights per slot,
and a short list of copies that must not overlap; a submission compares only these. A recording keeps everything it
refers to alive. Empty workloads, copies and fills are validated and then dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from orchestrion.schema.hal_imports import MAX_NESTING

from .backend import BackendCommandBuffer, BackendExecutable, Binding, Entry, IndirectArgument
from .buffer import WRITABLE, Buffer
from .errors import HalError, InvalidArgument, Unsupported
from .executable import Executable
from .lifetime import ResourceRef
from .lost import DetectLoss
from .memory_pressure import retry_after_freeing
from .workload import Grid, divide, fold

if TYPE_CHECKING:
    from .device import Device

#: a buffer, or the number of the slot that a submit puts one into
Source = Buffer | int
#: the number of a slot, or the memory of a buffer
Memory = int | ResourceRef
Range = tuple[Source, int, int]  # source, offset, length
#: workload and parameters of an indirect dispatch
Argument = tuple[Grid, bytes]

FILL_SIZES = (1, 2, 4, 8)
#: bytes of a predicate and of an index that selects an arm
PREDICATE_BYTES, INDEX_BYTES = 1, 4


class Overlap:
    """Two ranges that must be disjoint or identical if a submission puts the same memory behind both. `source` and
    `target`: the numbers of slots, or the memory of buffers, whose handles may be released before the submission.
    """

    __slots__ = ("length", "source", "source_offset", "target", "target_offset")

    def __init__(self, source: Memory, source_offset: int, target: Memory, target_offset: int, length: int) -> None:
        self.source, self.source_offset = source, source_offset
        self.target, self.target_offset = target, target_offset
        self.length = length

    def of_length(self, length: int) -> Overlap:
        """The same pair with another length."""
        return Overlap(self.source, self.source_offset, self.target, self.target_offset, length)

    def check(self, buffers: Sequence[Buffer]) -> None:
        source = buffers[self.source].ref if isinstance(self.source, int) else self.source
        target = buffers[self.target].ref if isinstance(self.target, int) else self.target
        if source is target:
            refuse_overlap(self.source_offset, self.target_offset, self.length)


def _memory_of(source: Source) -> Memory:
    return source if isinstance(source, int) else source.ref


class Nesting:
    """The open loops and branches of a recording. Methods raise InvalidArgument for what is not nested, and Unsupported
    for more than `MAX_NESTING` inside each other.
    """

    __slots__ = ("_arms",)

    def __init__(self) -> None:
        self._arms: list[int] = []  #: per open loop or branch: the number of arms still to come; -1 for a loop

    def check_depth(self) -> None:
        """Raises Unsupported if no loop or branch may begin here."""
        if len(self._arms) >= MAX_NESTING:
            raise Unsupported(f"{len(self._arms) + 1} loops and branches inside each other, the limit is {MAX_NESTING}")

    def check_branch(self, offset: int, arms: int, indexed: bool) -> int:
        """Returns the bytes of the branch's selector."""
        self.check_depth()
        if arms < 1 or not indexed and arms != 2:
            raise InvalidArgument(f"branch with {arms} arms, {'at least 1' if indexed else '2'} expected")
        if indexed and offset % INDEX_BYTES:
            raise InvalidArgument(f"branch: offset {offset} of the index is not a multiple of {INDEX_BYTES}")
        return INDEX_BYTES if indexed else PREDICATE_BYTES

    def check_next_arm(self) -> None:
        if not self._arms or self._arms[-1] < 1:
            raise InvalidArgument("next_arm outside of a branch, or behind its last arm")

    def check_end(self) -> None:
        if not self._arms or self._arms[-1] > 0:
            missing = f": {self._arms[-1]} arms are missing" if self._arms else ": no loop or branch is open"
            raise InvalidArgument(f"end{missing}")

    def check_finish(self) -> None:
        if self._arms:
            raise InvalidArgument(f"command buffer ends inside {len(self._arms)} loops and branches")

    def begin(self, arms: int = 0) -> None:
        """A loop, or a branch with this many arms, begins."""
        self._arms.append(arms - 1)

    def next_arm(self) -> None:
        """The next arm of the innermost branch begins."""
        self._arms[-1] -= 1

    def end(self) -> None:
        """The innermost loop or branch ends."""
        self._arms.pop()


class _Transfer(NamedTuple):
    """A copy or fill of a recording whose instances choose the length: at most `most` bytes, in multiples
    of `pattern`.
    """

    most: int
    pattern: int
    dropped: bool  #: empty, or a copy of a range onto itself: the driver's recording does not contain it
    overlap: Overlap | None


def refuse_overlap(source: int, target: int, length: int) -> None:
    """Raises InvalidArgument if the ranges overlap. A copy of a range onto itself is allowed, and copies nothing."""
    if 0 < abs(source - target) < length:
        raise InvalidArgument(f"copy of {length} bytes from offset {source} to {target} of one buffer overlaps itself")


class CommandBuffer:
    """A recording with a number of binding slots. Made by `Device.create_command_buffer`.

    `needs` is None while recording; afterwards it holds (least length, rights) per slot, and None again after release.
    Offsets and lengths are bytes. Methods raise InvalidArgument for invalid state, range, rights, alignment or overlap,
    and Unsupported for what the device cannot do.
    """

    __slots__ = (
        "_alignment",
        "_floors",
        "_held",
        "_limits",
        "_nesting",
        "_slots",
        "_state",
        "_transfers",
        "backend",
        "bytes_copied",
        "device",
        "direct",
        "dispatches",
        "indirect",
        "device_state",
        "ref",
        "needs",
        "overlaps",
    )

    def __init__(self, device: Device, slots: int, indirect: bool = False) -> None:
        if slots < 0:
            raise InvalidArgument(f"command buffer with {slots} slots, expected 0 or more")
        if indirect and not device.device_state.backend.indirect_dispatch:
            raise Unsupported(f"device {device.info.id} has no indirect dispatch")
        self.device = device
        self.device_state = device.device_state
        self._limits = device.info.limits
        self._alignment = device.info.limits.min_binding_alignment
        state = device.device_state
        with DetectLoss(state):
            self.backend = retry_after_freeing(state, device, lambda: state.backend.create_command_buffer(slots))
        self.ref = ResourceRef(device.device_state, self.backend)
        self.needs: tuple[tuple[int, int], ...] | None = None
        self.overlaps: list[Overlap] = []
        self.dispatches = 0
        self.bytes_copied = 0
        self._slots = [(0, 0)] * slots
        self._transfers: list[_Transfer] = []  #: filled only if it is made for indirect dispatches
        self._floors = [0] * slots  #: least bytes that the code of indirect dispatches needs of each slot
        #: executable, entry number and entry of each indirect dispatch; None if it is not made for any
        self.indirect: list[tuple[BackendExecutable, int, Entry]] | None = [] if indirect else None
        self._held: list[object] = []  #: shared with submissions under way, so never cleared
        self.direct: list[Buffer] = []
        self._nesting = Nesting()
        self._state = "recording"
        device.live["command buffer"] += 1

    def dispatch(
        self,
        executable: Executable,
        entry: int,
        workload: Grid,
        bindings: Sequence[Range],
        parameters: bytes = b"",
    ) -> None:
        """Run an entry over `workload` invocations, rounded up to whole workgroups.

        A binding is `(buffer or slot, offset, length)`, in the order of the entry's bindings. `parameters` are the
        entry's 32-bit words, little endian.
        """
        backend = self._recording()
        executable.check(self.device_state)
        if not 0 <= entry < len(executable.entries):
            raise InvalidArgument(f"entry {entry} of an executable with {len(executable.entries)} entries")
        row = executable.entries[entry]
        if len(parameters) != 4 * row.parameter_words:
            raise _wrong_parameters(row, parameters)
        resolved = self._bind(row, bindings)
        groups = fold(divide(workload, row.workgroup_size), self._limits.max_workgroup_count)
        if 0 in groups:
            return
        scratch = executable.backend.scratch_bytes(entry, parameters)
        if scratch:
            self.device.allocator.check_room(scratch, f"entry {row.name} needs")
        with DetectLoss(self.device_state):
            backend.dispatch(executable.backend, entry, groups, resolved, parameters)
        self._held.append(executable.ref)
        self.dispatches += 1

    def dispatch_indirect(self, executable: Executable, entry: int, bindings: Sequence[Range]) -> None:
        """Record a dispatch of an entry; each instance supplies the workload and parameters.

        Only in a command buffer made with `indirect`. Bindings are as for `dispatch`, but a slot's range may be longer
        than the buffer that a submission puts there; then it ends with the buffer.
        """
        backend = self._recording()
        if self.indirect is None:
            raise InvalidArgument("an indirect dispatch in a command buffer that was not made for any")
        executable.check(self.device_state)
        if not 0 <= entry < len(executable.entries):
            raise InvalidArgument(f"entry {entry} of an executable with {len(executable.entries)} entries")
        row = executable.entries[entry]
        resolved = self._bind(row, bindings)
        for binding, (_, least) in zip(resolved, row.bindings, strict=True):
            slot = binding.source
            if isinstance(slot, int):
                self._floors[slot] = max(self._floors[slot], binding.offset + least)
        with DetectLoss(self.device_state):
            backend.dispatch_indirect(executable.backend, entry, resolved)
        self.indirect.append((executable.backend, entry, row))
        self._held.append(executable.ref)

    def copy(self, source: Source, source_offset: int, target: Source, target_offset: int, length: int) -> None:
        """Copy bytes between buffers or slots. The ranges must be disjoint or identical; identical ranges
        copy nothing.
        """
        backend = self._recording()
        same = source is target or (isinstance(source, int) and source == target)
        if same:
            refuse_overlap(source_offset, target_offset, length)
        taken = self._resolve(source, source_offset, length, 0)
        given = self._resolve(target, target_offset, length, WRITABLE)
        dropped = length == 0 or same and source_offset == target_offset
        overlap = None
        if not dropped and not same and (isinstance(source, int) or isinstance(target, int)):
            overlap = Overlap(_memory_of(source), source_offset, _memory_of(target), target_offset, length)
            self.overlaps.append(overlap)
        if self.indirect is not None:
            self._transfers.append(_Transfer(length, 1, dropped, overlap))
        if dropped:
            return
        with DetectLoss(self.device_state):
            backend.copy(taken, given)
        self.bytes_copied += length

    def fill(self, target: Source, offset: int, length: int, pattern: bytes) -> None:
        """Repeat a pattern of 1, 2, 4 or 8 bytes; offset and length are multiples of its size."""
        backend = self._recording()
        if len(pattern) not in FILL_SIZES:
            raise InvalidArgument(f"fill pattern of {len(pattern)} bytes, expected one of {FILL_SIZES}")
        if offset % len(pattern) or length % len(pattern):
            raise InvalidArgument(
                f"fill of {length} bytes at offset {offset} with a pattern of {len(pattern)}: not whole patterns"
            )
        given = self._resolve(target, offset, length, WRITABLE)
        if self.indirect is not None:
            self._transfers.append(_Transfer(length, len(pattern), length == 0, None))
        if length == 0:
            return
        with DetectLoss(self.device_state):
            backend.fill(given, pattern)
        self.bytes_copied += length

    def fill_bytes(self, offset: int, length: int, pattern: bytes) -> int:
        """Bytes of memory that `fill` of such a range takes in addition to the command, until the recording is
        released.
        """
        return self._recording().fill_bytes(Binding(0, offset, length), pattern) if length > 0 else 0

    def barrier(self) -> None:
        """Commands recorded later see the writes of commands recorded earlier. Without a barrier they may run at the
        same time.
        """
        with DetectLoss(self.device_state):
            self._recording().barrier()

    def begin_loop(self, source: Source, offset: int) -> None:
        """Begin a loop. The commands up to its `end` run while the predicate, the byte at this offset, is not 0.

        The device reads the predicate before each iteration, including the first, and sees all earlier writes. Loops
        and branches nest up to 64 deep. Statistics count each recorded command once, however often it runs. Raises
        Unsupported unless the device states `control_flow`.
        """
        backend = self._control_flow()
        self._nesting.check_depth()
        with DetectLoss(self.device_state):
            backend.begin_loop(self._resolve(source, offset, PREDICATE_BYTES, 0))
        self._nesting.begin()

    def begin_branch(self, source: Source, offset: int, arms: int = 2, indexed: bool = False) -> None:
        """Begin a branch with `arms` arms, of which one runs. `next_arm` separates the arms, and `end` follows the last
        one.

        Without `indexed`, the byte at this offset chooses between two arms: the first runs if it is not 0. With
        `indexed`, the four bytes there are a signed index; an index below 0 or above the last arm selects the last arm.
        """
        backend = self._control_flow()
        length = self._nesting.check_branch(offset, arms, indexed)
        with DetectLoss(self.device_state):
            backend.begin_branch(self._resolve(source, offset, length, 0), arms)
        self._nesting.begin(arms)

    def next_arm(self) -> None:
        """End an arm of the innermost branch, and begin the next one."""
        backend = self._control_flow()
        self._nesting.check_next_arm()
        with DetectLoss(self.device_state):
            backend.next_arm()
        self._nesting.next_arm()

    def end(self) -> None:
        """End the innermost loop or branch."""
        backend = self._control_flow()
        self._nesting.check_end()
        with DetectLoss(self.device_state):
            backend.end()
        self._nesting.end()

    def finish(self) -> None:
        """End recording. The recording can be submitted from now on, and never changes."""
        backend = self._recording()
        self._nesting.check_finish()
        with DetectLoss(self.device_state):
            backend.finish()
        self.needs = tuple(self._slots) if self.indirect is None else None
        self._state = "finished" if self.indirect is None else "a template"
        self.device.statistics.command_buffers_recorded += 1

    def instance(
        self, arguments: Sequence[Argument | None], transfers: Sequence[int], lengths: Sequence[int]
    ) -> CommandBufferInstance:
        """Returns the recording with a workload and parameters for each indirect dispatch, in order, ready to be
        submitted.

        A dispatch whose argument is None does not run. `transfers`: the bytes of each copy and fill, in order.
        `lengths`: the least bytes of the buffer in each slot. Both are at most what was recorded. Nothing is recorded.
        Raises the errors of `dispatch`, `copy` and `fill`.
        """
        return CommandBufferInstance(self, arguments, transfers, lengths)

    def _grids(self, arguments: Sequence[Argument | None]) -> list[IndirectArgument | None]:
        """The driver's arguments for `instance`: counts within the device's limits, None for a dispatch that does not
        run.
        """
        if self._state != "a template" or self.indirect is None:
            raise InvalidArgument(f"command buffer is {self._state}, not a finished one for indirect dispatches")
        if len(arguments) != len(self.indirect):
            raise InvalidArgument(f"arguments for {len(arguments)} indirect dispatches, there are {len(self.indirect)}")
        limits = self._limits.max_workgroup_count
        grids: list[IndirectArgument | None] = []
        for argument, (code, entry, row) in zip(arguments, self.indirect):  # noqa: B905  compared above
            if argument is None:
                grids.append(None)
                continue
            workload, parameters = argument
            if len(parameters) != 4 * row.parameter_words:
                raise _wrong_parameters(row, parameters)
            groups = fold(divide(workload, row.workgroup_size), limits)
            scratch = code.scratch_bytes(entry, parameters)
            if scratch:
                self.device.allocator.check_room(scratch, f"entry {row.name} needs")
            grids.append(None if 0 in groups else (groups, parameters))
        return grids

    def _check_transfers(self, lengths: Sequence[int]) -> list[int]:
        """The `lengths` of those copies and fills that the driver's recording contains."""
        if len(lengths) != len(self._transfers):
            raise InvalidArgument(f"lengths of {len(lengths)} copies and fills, there are {len(self._transfers)}")
        for length, (most, pattern, _, _) in zip(lengths, self._transfers, strict=True):
            if not 0 <= length <= most or length % pattern:
                raise InvalidArgument(f"a copy or fill of {length} bytes, {most} were recorded, in units of {pattern}")
        return [length for length, row in zip(lengths, self._transfers, strict=True) if not row.dropped]

    def _instance_overlaps(self, lengths: Sequence[int]) -> list[Overlap]:
        """`overlaps` for these lengths of copies and fills."""
        rows = [(row.overlap, length) for row, length in zip(self._transfers, lengths, strict=True)]
        return [one.of_length(length) for one, length in rows if one is not None and length]

    def _instance_needs(self, lengths: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """`needs` of an instance whose slots have at least `lengths` bytes."""
        if len(lengths) != len(self._slots):
            raise InvalidArgument(f"lengths of {len(lengths)} slots for a command buffer with {len(self._slots)}")
        needs = []
        for slot, (length, (most, rights), floor) in enumerate(zip(lengths, self._slots, self._floors, strict=True)):
            if not 0 <= length <= most:
                raise InvalidArgument(f"slot {slot}: {length} bytes, the recording uses {most}")
            needs.append((max(length, floor), rights))
        return tuple(needs)

    def release(self) -> None:
        """End the use of the recording. A second call does nothing."""
        if self._state != "released":
            self._end()
            self.device_state.collect()

    def _end(self) -> None:
        self.device.live["command buffer"] -= 1
        self.needs = None
        del self.backend, self.ref
        self._held, self.direct, self.overlaps, self._transfers = [], [], [], []
        self._state = "released"

    def __del__(self) -> None:
        if hasattr(self, "_state") and self._state != "released":
            self._end()

    @property
    def refs(self) -> tuple[object, ...]:
        """The objects that must live while a submission of this recording runs: few objects, however much
        was recorded.
        """
        return self.ref, self._held

    @property
    def state(self) -> str:
        """`recording`, `finished`, `a template` (finished, and made for indirect dispatches) or `released`."""
        return self._state

    def _recording(self) -> BackendCommandBuffer:
        if self._state != "recording":
            raise InvalidArgument(f"command buffer is {self._state}, not recording")
        return self.backend

    def _control_flow(self) -> BackendCommandBuffer:
        backend = self._recording()
        if not self.device.info.control_flow:
            raise Unsupported(f"device {self.device.info.id} has no loops and branches in recordings (control_flow)")
        return backend

    def _bind(self, row: Entry, bindings: Sequence[Range]) -> list[Binding]:
        if len(bindings) != len(row.bindings):
            raise InvalidArgument(f"entry {row.name}: {len(bindings)} bindings, expected {len(row.bindings)}")
        resolved: list[Binding] = []
        most, alignment = self._limits.max_binding_length, self._alignment
        for (source, offset, length), (access, least) in zip(bindings, row.bindings):  # noqa: B905  compared above
            if length < least or length > most or offset % alignment:
                raise self._bad_binding(row, len(resolved), offset, length)
            rights = 0 if access == "read" else WRITABLE
            resolved.append(self._resolve(source, offset, length, rights))
        return resolved

    def _bad_binding(self, row: Entry, position: int, offset: int, length: int) -> HalError:
        where, least = f"entry {row.name}, binding {position}", row.bindings[position][1]
        if length < least:
            return InvalidArgument(f"{where}: {length} bytes, the code needs {least}")
        if length > self._limits.max_binding_length:
            return Unsupported(f"{where}: {length} bytes, the device's limit is {self._limits.max_binding_length}")
        return InvalidArgument(f"{where}: offset {offset} is not a multiple of {self._alignment}")

    def _resolve(self, source: Source, offset: int, length: int, rights: int) -> Binding:
        if isinstance(source, int):
            return self._resolve_slot(source, offset, length, rights)
        state = source.check(offset, length, rights)
        if state is not self.device_state:
            raise InvalidArgument(f"buffer of device {source.device.info.id} in a recording of {self.device.info.id}")
        if not source.recordable:
            raise InvalidArgument(f"buffer of {source.size} bytes is lent for a call: a recording uses it in a slot")
        self._held.append(source.ref)
        self.direct.append(source)
        return Binding(source.backend, offset, length)

    def _resolve_slot(self, slot: int, offset: int, length: int, rights: int) -> Binding:
        if not 0 <= slot < len(self._slots):
            raise InvalidArgument(f"slot {slot} of a command buffer with {len(self._slots)} slots")
        if offset < 0 or length < 0:
            raise InvalidArgument(f"slot {slot}: offset {offset}, length {length}: neither may be negative")
        least, known = self._slots[slot]
        self._slots[slot] = (max(least, offset + length), known | rights)
        return Binding(slot, offset, length)


class CommandBufferInstance(CommandBuffer):
    """A recording with arguments for its indirect dispatches, submitted like any recording. See
    `CommandBuffer.instance`.

    It holds the recording, and is not counted among the device's command buffers.
    """

    __slots__ = ("_template",)

    def __init__(  # not that of the base: nothing is recorded
        self,
        template: CommandBuffer,
        arguments: Sequence[Argument | None],
        transfers: Sequence[int],
        lengths: Sequence[int],
    ) -> None:
        grids = template._grids(arguments)
        moved = template._check_transfers(transfers)
        self.needs = template._instance_needs(lengths)
        self.backend = template.backend.instance(grids, moved)
        self._template = template
        self.device, self.device_state = template.device, template.device_state
        self.ref, self._held, self.direct = template.ref, template._held, template.direct
        self.overlaps = template._instance_overlaps(transfers)
        self.dispatches = template.dispatches + len(grids) - grids.count(None)
        self.bytes_copied = sum(moved)
        self.indirect = None
        self._state = "finished"

    def _end(self) -> None:
        """Nothing to release: the recording stays."""
        self.needs = None
        self._held, self.direct = [], []
        self._state = "released"


def _wrong_parameters(row: Entry, parameters: bytes) -> InvalidArgument:
    return InvalidArgument(
        f"entry {row.name}: {len(parameters)} bytes of parameters, expected {4 * row.parameter_words}"
    )
