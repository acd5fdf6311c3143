"""The native module `hal`, through which compiled code uses the device. `schema/hal_imports.py` lists its functions.

- The front of the HAL validates arguments. `InvalidArgument` ends the call as a `Trap`, since bytecode chose the
  arguments. Only views come from the caller, so a view of the wrong type or shape is a `CallerError`.
- One instance serves all loaded programs. The call gives the context, with its share of the device and its memory.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from orchestrion.hal import host_control_flow
from orchestrion.hal.backend import MemoryUse
from orchestrion.hal.buffer import Buffer, BufferView
from orchestrion.hal.command_buffer import FILL_SIZES, INDEX_BYTES, PREDICATE_BYTES, CommandBuffer, Range
from orchestrion.hal.device import Device
from orchestrion.hal.executable import Executable
from orchestrion.hal.host_control_flow import HostControlFlow
from orchestrion.hal.semaphore import Fence
from orchestrion.schema.dtypes import BY_CODE, DType
from orchestrion.schema.hal_imports import HAL_IMPORTS

from . import constant_cache, parallel_builds
from .call import Call, SuspendableCall
from .errors import CallerError, CallerValueError, MissingType, Trap
from .native import Inline, NativeFunction, NativeModule, native
from .pending_batch import PendingBatch
from .recording import BINDING_BYTES, BLOCK_BYTES, COMMAND_BYTES, MAX_SLOTS, SLOT_BYTES, Recording
from .refs import OBJECT_BYTES
from .tensors import describe, fits

if TYPE_CHECKING:
    from orchestrion.hal.residency import Pool

_F = TypeVar("_F", bound=Callable[..., Any])
#: the most dimensions and bytes of a NumPy array
_MAX_RANK, _MAX_BYTES = 64, 2**63 - 1
#: bytes of code for one unit of fuel: reading and verifying code takes longer than copying bytes
_CODE_BYTES_PER_UNIT = 8
#: pending submissions before `hal.submit` waits
_MAX_PENDING = 1000


def _hal(
    name: str,
    nullable: tuple[int, ...] = (),
    begin: str = "",
    inline: Inline | None = None,
    alone: bool = True,
    pure: bool = False,
) -> Callable[[_F], _F]:
    """Declare the native function of the row `hal.<name>` of `HAL_IMPORTS`. Arguments as those of `native`."""
    row = HAL_IMPORTS[f"hal.{name}"]
    return native(name, row.signature, nullable, begin, inline, alone, pure)


def _inline_same(view: str, dtype: str, *dims: str) -> str:
    return f"{view}.dtype.code == {dtype} and {view}.shape == ({''.join(f'{dim}, ' for dim in dims)})"


def _inline_fits(view: str, dtype: str, *dims: str) -> str:
    """As `_inline_same`, where a dimension of -1 fits any size."""
    if "-1" not in dims:
        return _inline_same(view, dtype, *dims)
    fixed = "".join(f" and {view}.shape[{axis}] == {dim}" for axis, dim in enumerate(dims) if dim != "-1")
    return f"{view}.dtype.code == {dtype} and len({view}.shape) == {len(dims)}{fixed}"


def _inline_check(view: str, *of: str) -> tuple[str, str]:
    return f"{_inline_fits(view, *of)} and not {view}.offset", f"{view}.buffer"


def _inline_destination(view: str, *of: str) -> tuple[str, str]:
    return f"{view} is not None and {_inline_same(view, *of)}", view


def _inline_dim(view: str, axis: str) -> tuple[str, str]:
    return f"len({view}.shape) > {axis} >= 0", f"{view}.shape[{axis}]"


def _inline_buffer(view: str) -> tuple[str, str]:
    return f"not {view}.offset", f"{view}.buffer"


def _inline_execute(recording: str, *buffers: str) -> tuple[str, str]:
    slots = "".join(f"{buffer}, " for buffer in buffers)
    return (
        f"call.deadline is None and not {recording}.control_flow",
        f"call.context.execute({recording}.commands, ({slots}), call)",
    )


def _dtype(code: int) -> DType:
    """The element type of a code. `Trap` if there is none, `MissingType` if NumPy lacks it."""
    dtype = BY_CODE.get(code)
    if dtype is None:
        raise Trap(f"{code:#x} is not an element type code")
    if dtype.foreign:
        try:
            _ = dtype.numpy
        except ImportError as error:
            raise MissingType(str(error)) from None
    return dtype


def _check_shape(dtype: DType, dims: tuple[int, ...]) -> None:
    """`Trap` for a shape that NumPy cannot hold, even if it has few elements."""
    size = dtype.itemsize
    for dim in dims[:_MAX_RANK]:
        size *= dim or 1
    if len(dims) > _MAX_RANK or size > _MAX_BYTES or (dims and min(dims) < 0):
        raise Trap(f"{describe(dtype, dims)} is not a valid tensor type")


def _wrong_view(view: BufferView, dtype: int, dims: tuple[int, ...]) -> CallerError:
    wanted, got = describe(_dtype(dtype), dims), describe(view.dtype, view.shape)
    return CallerValueError(f"expected {wanted}, got {got}")


class HalModule(NativeModule):
    """The functions of `hal`, for all programs."""

    name: ClassVar[str] = "hal"
    types: ClassVar[dict[str, type]] = {
        "hal.buffer": Buffer,
        "hal.view": BufferView,
        "hal.executable": Executable,
        "hal.recording": Recording,
        "hal.fence": Fence,
    }

    def __init__(self) -> None:
        self._functions = {name: super(HalModule, self).find(name) for name in HAL_IMPORTS}

    def find(self, name: str) -> NativeFunction | None:
        return self._functions.get(name)

    @_hal("constant")
    def constant(self, call: Call, ordinal: int, offset: int, length: int) -> Buffer:
        program = call.program.row
        count = program.constants_end - program.constants_start
        if not 0 <= ordinal < count:
            raise Trap(f"constant {ordinal} out of range ({count} constants)")
        data = call.program.constant(ordinal)
        if offset < 0 or length < 0 or offset + length > len(data):
            raise Trap(f"bytes {offset} to {offset + length} are outside a constant of {len(data)} bytes")
        call.program.verify_constant(ordinal, offset, offset + length)
        array = np.frombuffer(data, np.uint8, length, offset) if length else np.empty(0, np.uint8)
        allocator = _device(call).allocator
        imported: Buffer | None = allocator.import_host(array)
        if imported is not None:
            call.spend_object()
            return imported
        pool = _device(call).streaming
        if pool is not None and length:
            call.spend_object()
            return pool.constant(_device(call), array)
        buffer: Buffer = allocator.allocate(length, MemoryUse.CONSTANT)
        call.spend_bytes(length)
        buffer.wait(call)
        buffer.write(array)
        call.context.constant_bytes += length
        return buffer

    @_hal("allocate")
    def allocate(self, call: Call, size: int) -> Buffer:
        """Allocate memory of the program: an arena, a transient or a state. Program initializers allocate constants."""
        device, constant = _device(call), call.context.parent is None
        if device.streaming is not None and constant and size > 0:
            return _allocate_streamed(call, device, device.streaming, size)
        return _allocate(call, size, MemoryUse.CONSTANT if constant else MemoryUse.ARENA)

    @_hal("view.check", inline=_inline_check, pure=True)
    def view_check(self, call: Call, view: BufferView, dtype: int, *dims: int) -> Buffer:
        if view.dtype.code != dtype or view.shape != dims and not fits(view.shape, dims):
            raise _wrong_view(view, dtype, dims)
        return _storage(view)

    @_hal("view.destination", nullable=(0,), inline=_inline_destination)
    def view_destination(self, call: Call, view: BufferView | None, dtype: int, *dims: int) -> BufferView:
        if view is not None:
            if view.dtype.code != dtype or view.shape != dims:
                raise _wrong_view(view, dtype, dims)
            return view
        element = _dtype(dtype)
        _check_shape(element, dims)
        size = element.itemsize
        for dim in dims:
            size *= dim
        return BufferView(_allocate_result(call, size), element, dims)

    @_hal("view.buffer", inline=_inline_buffer, pure=True)
    def view_buffer(self, call: Call, view: BufferView) -> Buffer:
        return _storage(view)

    @_hal("view.dim", inline=_inline_dim, pure=True)
    def view_dim(self, call: Call, view: BufferView, axis: int) -> int:
        if not 0 <= axis < len(view.shape):
            raise Trap(f"axis {axis} of {describe(view.dtype, view.shape)}")
        return view.shape[axis]

    @_hal("view.create")
    def view_create(self, call: Call, buffer: Buffer, offset: int, dtype: int, *dims: int) -> BufferView:
        element = _dtype(dtype)
        _check_shape(element, dims)
        return BufferView(buffer, element, dims, offset)

    @_hal("executable.create")
    def executable_create(self, call: Call, ordinal: int) -> Executable:
        program, context = call.program.row, call.context
        count = program.executables_end - program.executables_start
        if not 0 <= ordinal < count:
            raise Trap(f"executable {ordinal} out of range ({count} executables)")
        device = _device(call)
        row = call.program.module.executables[program.executables_start + ordinal]
        call.spend_object()
        call.spend(row.variants_end - row.variants_start)
        chosen = parallel_builds.choose(call.program, device, ordinal)
        call.spend_bytes(chosen.cost)
        if call.program.lazy:
            return parallel_builds.defer(context, chosen, ordinal)
        taken = None if context.builds is None else context.builds.take(ordinal)
        if taken is None:
            started = time.monotonic()
            executable = parallel_builds.build(call.program, device, ordinal, chosen)
            taken = executable, time.monotonic() - started
            if context.progress is not None:
                context.progress.built(ordinal)
        executable, seconds = taken
        call.postpone_deadline(ordinal, seconds)
        context.facts.build_seconds += seconds
        context.facts.builds[ordinal] = executable.build
        return executable

    @_hal("recording.create")
    def recording_create(self, call: Call, slots: int) -> Recording:
        return self._create_recording(call, slots, _device(call).create_command_buffer, False)

    @_hal("recording.create_control_flow")
    def recording_create_control_flow(self, call: Call, slots: int) -> Recording:
        device = _device(call)
        create = device.create_command_buffer if device.info.control_flow else partial(HostControlFlow, device)
        return self._create_recording(call, slots, create, True)

    def _create_recording(
        self, call: Call, slots: int, make: Callable[[int], CommandBuffer], control_flow: bool
    ) -> Recording:
        if slots > MAX_SLOTS:
            raise Trap(f"a recording with {slots} slots, at most {MAX_SLOTS} are allowed")
        call.spend_object()
        call.spend_bytes(SLOT_BYTES * slots)
        create = partial(make, slots)
        lazy = call.program.lazy
        recording = Recording(None if lazy else create(), call.memory, create if lazy else None, control_flow)
        recording.charge(OBJECT_BYTES + COMMAND_BYTES + SLOT_BYTES * slots)
        return recording

    @_hal("recording.parameters")
    def recording_parameters(self, call: Call, recording: Recording, *words: int) -> None:
        recording.charge(4 * len(words))
        recording.parameters = b"".join([(word & 0xFFFFFFFF).to_bytes(4, "little") for word in words])

    @_hal("recording.dispatch", nullable=(6,))
    def recording_dispatch(
        self, call: Call, recording: Recording, executable: Executable, entry: int, x: int, y: int, z: int, *groups: Any
    ) -> None:
        recording.charge(COMMAND_BYTES + BINDING_BYTES * (len(groups) // 4))
        sources, slots, offsets, lengths = groups[0::4], groups[1::4], groups[2::4], groups[3::4]
        bindings: list[Range] = [
            (slot if source is None else source, offset, length)
            for source, slot, offset, length in zip(sources, slots, offsets, lengths, strict=True)
        ]
        parameters, recording.parameters = recording.parameters, b""

        def dispatch(commands: CommandBuffer) -> None:
            commands.dispatch(executable, entry, (x, y, z), bindings, parameters)
            recording.charge(executable.backend.held_bytes(entry, parameters))

        recording.record(dispatch)
        if executable.is_built:
            call.spend(executable.backend.code_bytes(entry, parameters) // _CODE_BYTES_PER_UNIT)

    @_hal("recording.copy", nullable=(1, 4))
    def recording_copy(
        self,
        call: Call,
        recording: Recording,
        source: Buffer | None,
        source_slot: int,
        source_offset: int,
        target: Buffer | None,
        target_slot: int,
        target_offset: int,
        length: int,
    ) -> None:
        recording.charge(COMMAND_BYTES)
        taken, given = source_slot if source is None else source, target_slot if target is None else target
        recording.record(lambda commands: commands.copy(taken, source_offset, given, target_offset, length))

    @_hal("recording.fill", nullable=(1,))
    def recording_fill(
        self,
        call: Call,
        recording: Recording,
        target: Buffer | None,
        slot: int,
        offset: int,
        length: int,
        pattern: int,
        pattern_bytes: int,
    ) -> None:
        if pattern_bytes not in FILL_SIZES:
            raise Trap(f"fill pattern of {pattern_bytes} bytes, expected 1, 2, 4 or 8")
        data = (pattern & (1 << 8 * pattern_bytes) - 1).to_bytes(pattern_bytes, "little")
        recording.charge(COMMAND_BYTES)

        def fill(commands: CommandBuffer) -> None:
            taken = commands.fill_bytes(offset, length, data)
            if not call.program.lazy:  # else the call may have ended
                call.spend_bytes(taken)
            recording.charge(taken)
            commands.fill(slot if target is None else target, offset, length, data)

        recording.record(fill)

    @_hal("recording.barrier")
    def recording_barrier(self, call: Call, recording: Recording) -> None:
        recording.charge(COMMAND_BYTES)
        recording.record(lambda commands: commands.barrier())

    @_hal("recording.begin_loop", nullable=(1,))
    def recording_begin_loop(
        self, call: Call, recording: Recording, predicate: Buffer | None, slot: int, offset: int
    ) -> None:
        recording.charge(BLOCK_BYTES)
        source = slot if predicate is None else predicate
        recording.record(lambda commands: commands.begin_loop(source, offset))

    @_hal("recording.begin_branch", nullable=(1,))
    def recording_begin_branch(
        self, call: Call, recording: Recording, selector: Buffer | None, slot: int, offset: int, size: int, arms: int
    ) -> None:
        if size not in (PREDICATE_BYTES, INDEX_BYTES):
            raise Trap(f"a selector of {size} bytes, expected {PREDICATE_BYTES} or {INDEX_BYTES}")
        recording.charge(BLOCK_BYTES)
        source = slot if selector is None else selector
        recording.record(lambda commands: commands.begin_branch(source, offset, arms, size == INDEX_BYTES))

    @_hal("recording.next_arm")
    def recording_next_arm(self, call: Call, recording: Recording) -> None:
        recording.charge(BLOCK_BYTES)
        recording.record(lambda commands: commands.next_arm())

    @_hal("recording.end")
    def recording_end(self, call: Call, recording: Recording) -> None:
        recording.charge(BLOCK_BYTES)
        recording.record(lambda commands: commands.end())

    @_hal("recording.finish")
    def recording_finish(self, call: Call, recording: Recording) -> None:
        recording.record(lambda commands: commands.finish())

    @_hal("execute", begin="begin_execute", inline=_inline_execute)
    def execute(self, call: Call, recording: Recording, *buffers: Buffer) -> None:
        if call.deadline is not None:
            _build(call, recording)
            call.check()
        if call.pending_batch is None and not recording.control_flow:
            call.context.execute(recording.commands, buffers, call)
            return
        batch = _pending_batch(call)
        batch.add(recording, buffers)
        self._execute_all(call, batch)

    def begin_execute(self, call: SuspendableCall, recording: Recording, *buffers: Buffer) -> Fence | None:
        """As `execute`, without waiting. The fence is reached when the work has ended. None if the host ran it."""
        _build(call, recording)
        call.check()
        if call.pending_batch is None and not recording.control_flow:
            fence = call.timeline()
            _device(call).queue.submit(recording.commands, buffers, None, fence, call.watcher())
            return fence
        batch = _pending_batch(call)
        batch.add(recording, buffers)
        return self._begin_all(call, batch)

    @_hal("enqueue", begin="begin_enqueue", alone=False)
    def enqueue(self, call: Call, recording: Recording, *buffers: Buffer) -> None:
        _build(call, recording)
        batch = _pending_batch(call)
        batch.add(recording, buffers)
        if batch.full:
            call.check()
            self._execute_all(call, batch)

    def begin_enqueue(self, call: SuspendableCall, recording: Recording, *buffers: Buffer) -> Fence | None:
        """As `enqueue`, without waiting. Gives a fence if the batch was full and was submitted."""
        _build(call, recording)
        batch = _pending_batch(call)
        batch.add(recording, buffers)
        if not batch.full:
            return None
        call.check()
        return self._begin_all(call, batch)

    def _execute_all(self, call: Call, batch: PendingBatch) -> None:
        call.pending_batch = None
        device = _device(call)
        if not batch.control_flow:
            device.queue.execute_batch(batch.works(), call)
        elif device.info.control_flow:
            device.queue.execute_batch(batch.works(), call.meter())
        else:
            host_control_flow.run(device.queue, batch.works(), call.meter())

    def _begin_all(self, call: SuspendableCall, batch: PendingBatch) -> Fence | None:
        """Submits a batch. A batch whose loops the host runs has ended when this returns."""
        device = _device(call)
        if batch.control_flow and not device.info.control_flow:
            self._execute_all(call, batch)
            return None
        call.pending_batch = None
        fence = call.timeline()
        watcher = call.submitted_meter() if batch.control_flow else call.watcher()
        device.queue.submit_batch(batch.works(), None, fence, watcher)
        return fence

    @_hal("read")
    def read(self, call: Call, buffer: Buffer, offset: int, size: int) -> int:
        if size not in (1, 4):
            raise Trap(f"hal.read of {size} bytes, expected 1 or 4")
        word = np.empty(size, np.uint8)
        buffer.wait(call)
        buffer.read(word, offset)
        return int.from_bytes(word.tobytes(), "little", signed=size == 4)

    @_hal("cache.load")
    def cache_load(self, call: Call, buffer: Buffer, number: int) -> int:
        found = constant_cache.load(call, _device(call), buffer, number)
        call.context.facts.derived[number] = bool(found)
        return found

    @_hal("cache.save")
    def cache_save(self, call: Call, buffer: Buffer, number: int) -> None:
        constant_cache.save(call, _device(call), buffer, number)

    @_hal("fence.create")
    def fence_create(self, call: Call) -> Fence:
        call.spend_object()
        return Fence([(_device(call).create_semaphore(), 1)])

    @_hal("submit", nullable=(1, 2))
    def submit(
        self, call: Call, recording: Recording, wait: Fence | None, signal: Fence | None, *buffers: Buffer
    ) -> None:
        if wait is not None and not wait.promised:  # only later work could signal it, which waits for this work
            raise Trap("the work waits for a fence that no earlier work signals")
        if recording.control_flow:
            raise Trap("a recording with loops or branches is executed, not submitted")
        queue = _device(call).queue
        queue.wait_pending(_MAX_PENDING, call.time_left())
        queue.submit(recording.commands, buffers, wait, signal, call.watcher())


def _allocate(call: Call, size: int, use: MemoryUse) -> Buffer:
    """Allocate device memory. The allocator releases caches first if there is no memory left."""
    call.spend_object(max(0, size))
    buffer: Buffer = _device(call).allocator.allocate(size, use)
    return buffer


def _allocate_streamed(call: Call, device: Device, pool: "Pool", size: int) -> Buffer:
    """Host memory for a computed constant that is streamed: copied to the device when work uses it."""
    call.spend_object(size)
    call.memory.charge(size)
    try:
        return pool.allocate(device, size, call.memory.accounts)
    except BaseException:
        call.memory.refund(size)
        raise


def _allocate_result(call: Call, size: int) -> Buffer:
    """Memory for a result: a buffer of the context's `result_buffers` if there are some, else new memory."""
    buffers = call.context.result_buffers
    if buffers is None:
        return _allocate(call, size, MemoryUse.OUTPUT)
    if buffers.find(size) is None:
        call.spend_object(size)
    return buffers.take(_device(call), size)


def _device(call: Call) -> Device:
    device = call.context.device
    if device is None:
        raise call.context.refusal() if call.context.lost is not None else CallerValueError("the context has no device")
    return device


def _build(call: Call, recording: Recording) -> None:
    """Build the code of a deferred recording, and add the build time to the call's deadline."""
    if call.program.lazy and call.deadline is not None:
        before = call.context.build_seconds
        _ = recording.commands
        call.deadline += call.context.build_seconds - before


def _pending_batch(call: Call) -> PendingBatch:
    """The pending batch of a call, made if there is none."""
    if call.pending_batch is None:
        call.pending_batch = PendingBatch(call.memory)
    return call.pending_batch


def _storage(view: BufferView) -> Buffer:
    """The buffer of a view. `Trap` unless the view starts at the first byte, where recordings expect it."""
    if view.offset:
        raise Trap(f"{describe(view.dtype, view.shape)} starts at byte {view.offset} of its buffer, expected 0")
    return view.buffer
