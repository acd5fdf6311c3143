"""Records work once, to be submitted any number of times.

All validation happens here, while recording: bindings against the entry they are for, ranges, rights, alignment,
overlap, limits. What cannot be known yet, the buffers of the slots, is boiled down to a least length and the rights
per slot, and a short list of copies that must not overlap; that is all a submit compares.
A recording keeps alive what it refers to. Zero workloads, copies and fills of nothing are checked and dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .backend import BackendCommandBuffer, Binding, Entry
from .buffer import WRITABLE, Buffer
from .errors import HalError, InvalidArgument, Unsupported
from .executable import Executable
from .lifetime import ResourceRef, noticing_loss
from .relief import with_relief
from .workload import Grid, divide, fold

if TYPE_CHECKING:
    from .device import Device

#: a buffer, or the number of the slot that a submit puts one into
Source = Buffer | int
Range = tuple[Source, int, int]  # source, offset, length

FILL_SIZES = (1, 2, 4, 8)


class Overlap:
    """Two ranges that must not overlap, unless they are the same, in case a submit puts the same buffer behind both."""

    __slots__ = ("length", "source", "source_offset", "target", "target_offset")

    def __init__(self, source: Source, source_offset: int, target: Source, target_offset: int, length: int) -> None:
        self.source, self.source_offset = source, source_offset
        self.target, self.target_offset = target, target_offset
        self.length = length

    def check(self, buffers: Sequence[Buffer]) -> None:
        source = buffers[self.source] if isinstance(self.source, int) else self.source
        target = buffers[self.target] if isinstance(self.target, int) else self.target
        if source is target:
            refuse_overlap(self.source_offset, self.target_offset, self.length)


def refuse_overlap(source: int, target: int, length: int) -> None:
    """A copy of a range onto itself is none, and allowed."""
    if 0 < abs(source - target) < length:
        raise InvalidArgument(f"copy of {length} bytes from offset {source} to {target} of one buffer overlaps itself")


class CommandBuffer:
    """A recording with a number of indirect binding slots. Made by `Device.create_command_buffer`.

    `needs` is None while recording; afterwards it holds (least length, rights) per slot, and None again once released.
    Offsets and lengths are bytes. What cannot be (state, range, rights, alignment, overlap) is `InvalidArgument`, what
    the device cannot do `Unsupported`.
    """

    __slots__ = (
        "_alignment",
        "_held",
        "_limits",
        "_slots",
        "_state",
        "backend",
        "bytes_copied",
        "device",
        "direct",
        "dispatches",
        "device_state",
        "ref",
        "needs",
        "overlaps",
    )

    def __init__(self, device: Device, slots: int) -> None:
        if slots < 0:
            raise InvalidArgument(f"command buffer with {slots} slots")
        self.device = device
        self.device_state = device.device_state
        self._limits = device.info.limits
        self._alignment = device.info.limits.min_binding_alignment
        state = device.device_state
        with noticing_loss(state):
            self.backend = with_relief(state, device, lambda: state.backend.create_command_buffer(slots))
        self.ref = ResourceRef(device.device_state, self.backend)
        self.needs: tuple[tuple[int, int], ...] | None = None
        self.overlaps: list[Overlap] = []
        self.dispatches = 0
        self.bytes_copied = 0
        self._slots = [(0, 0)] * slots
        self._held: list[object] = []  #: shared with submissions under way, so never cleared
        self.direct: list[Buffer] = []
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

        A binding is `(buffer or slot, offset, length)` in the order of the entry's bindings; `parameters` are
        the entry's 32-bit words, little endian.
        """
        backend = self._recording()
        executable.check(self.device_state)
        if not 0 <= entry < len(executable.entries):
            raise InvalidArgument(f"entry {entry} of an executable with {len(executable.entries)} entries")
        row = executable.entries[entry]
        if len(parameters) != 4 * row.parameter_words:
            raise InvalidArgument(
                f"entry {row.name}: {len(parameters)} bytes of parameters, expected {4 * row.parameter_words}"
            )
        resolved = self._bind(row, bindings)
        groups = fold(divide(workload, row.workgroup_size), self._limits.max_workgroup_count)
        if 0 in groups:
            return
        scratch = executable.backend.scratch_bytes(entry, parameters)
        if scratch:
            self.device.allocator.check_room(scratch, f"entry {row.name} needs")
        with noticing_loss(self.device_state):
            backend.dispatch(executable.backend, entry, groups, resolved, parameters)
        self._held.append(executable.ref)
        self.dispatches += 1

    def copy(self, source: Source, source_offset: int, target: Source, target_offset: int, length: int) -> None:
        """Copy bytes between buffers or slots; the ranges must not overlap, or be the same: then nothing is copied."""
        backend = self._recording()
        same = source is target or (isinstance(source, int) and source == target)
        if same:
            refuse_overlap(source_offset, target_offset, length)
        taken = self._resolve(source, source_offset, length, 0)
        given = self._resolve(target, target_offset, length, WRITABLE)
        if length == 0 or same and source_offset == target_offset:
            return
        if not same and (isinstance(source, int) or isinstance(target, int)):
            self.overlaps.append(Overlap(source, source_offset, target, target_offset, length))
        with noticing_loss(self.device_state):
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
        if length == 0:
            return
        with noticing_loss(self.device_state):
            backend.fill(given, pattern)
        self.bytes_copied += length

    def fill_bytes(self, offset: int, length: int, pattern: bytes) -> int:
        """Memory that `fill` of such a range takes beside the command, until the recording is released."""
        return self._recording().fill_bytes(Binding(0, offset, length), pattern) if length > 0 else 0

    def barrier(self) -> None:
        """What is recorded after this sees the writes of what was recorded before; without it they may run at once."""
        with noticing_loss(self.device_state):
            self._recording().barrier()

    def finish(self) -> None:
        """End recording; from now on it can be submitted, and never changes."""
        with noticing_loss(self.device_state):
            self._recording().finish()
        self.needs = tuple(self._slots)
        self._state = "finished"
        self.device.statistics.command_buffers_recorded += 1

    def release(self) -> None:
        """End of use; a second call does nothing."""
        if self._state != "released":
            self._end()
            self.device_state.collect()

    def _end(self) -> None:
        self.device.live["command buffer"] -= 1
        self.needs = None
        del self.backend, self.ref
        self._held = []
        self.direct = []
        self._state = "released"

    def __del__(self) -> None:
        if hasattr(self, "_state") and self._state != "released":
            self._end()

    @property
    def refs(self) -> tuple[object, ...]:
        """What must live while a submission of this runs: few objects, however much was recorded."""
        return self.ref, self._held

    @property
    def state(self) -> str:
        """`recording`, `finished` or `released`."""
        return self._state

    def _recording(self) -> BackendCommandBuffer:
        if self._state != "recording":
            raise InvalidArgument(f"command buffer is {self._state}, not recording")
        return self.backend

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
        self._held.append(source.ref)
        self.direct.append(source)
        return Binding(source.backend, offset, length)

    def _resolve_slot(self, slot: int, offset: int, length: int, rights: int) -> Binding:
        if not 0 <= slot < len(self._slots):
            raise InvalidArgument(f"slot {slot} of a command buffer with {len(self._slots)} slots")
        if offset < 0 or length < 0:
            raise InvalidArgument(f"slot {slot}: offset {offset}, length {length}")
        least, known = self._slots[slot]
        self._slots[slot] = (max(least, offset + length), known | rights)
        return Binding(slot, offset, length)
