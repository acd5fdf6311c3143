"""Each rule of the front, broken once: the expected error, and words in its message.

A row is one case. The cases do not depend on the driver; they run on every driver because drivers rely on the rules.
"""

from collections.abc import Callable

import numpy as np

from orchestrion.hal.backend import Entry
from orchestrion.hal.buffer import WRITABLE, BufferView
from orchestrion.hal.command_buffer import CommandBuffer, Range
from orchestrion.hal.device import Device
from orchestrion.hal.errors import HalError, InvalidArgument, PolicyRefused, Unsupported
from orchestrion.hal.policy import Policy
from orchestrion.hal.registry import open_device
from orchestrion.hal.semaphore import Fence
from orchestrion.schema.dtypes import BY_NAME

from .case import Group
from .expect import raises
from .kernels import ADD, INCREMENT
from .rig import Rig, whole
from .tags import is_native

case = Group("errors", __doc__)


def bind(rig: Rig, *bindings: Range, entry: int = ADD, words: bytes = b"") -> None:
    """Record a dispatch over two slots with the given bindings and parameter words."""
    rig.recording(2).dispatch(rig.executable(), entry, (16, 1, 1), bindings, rig.kernel(16).parameters + words)


def copying(rig: Rig) -> CommandBuffer:
    """A finished recording that copies bytes 0 to 32 of slot 0 to bytes 16 to 48 of slot 1."""
    commands = rig.recording(2)
    commands.copy(0, 0, 1, 16, 32)
    commands.finish()
    return commands


def build(rig: Rig, *bindings: tuple[str, int], words: int = 0, size: tuple[int, int, int] = (1, 1, 1)) -> None:
    format = rig.device.info.formats[0]
    rig.device.create_executable(format, memoryview(b""), (Entry("f", bindings, words, size),))


def imported_dispatch(rig: Rig) -> None:
    with open_device("null") as foreign:
        bind(rig, (foreign.allocator.allocate(64), 0, 64), (0, 0, 64), (1, 0, 64))


def foreign_table(rig: Rig) -> None:
    with open_device("null") as foreign:
        rig.run(copying(rig), rig.zeros(64), foreign.allocator.allocate(64))


def foreign_recording(rig: Rig) -> None:
    with open_device("null") as foreign:
        commands = foreign.create_command_buffer()
        commands.finish()
        rig.run(commands)


def foreign_copy(rig: Rig) -> None:
    with open_device("null") as foreign:
        rig.recording(1).copy(foreign.allocator.allocate(64), 0, 0, 0, 8)


def foreign_executable(rig: Rig) -> None:
    with open_device("null") as foreign:
        kernel = rig.kernel(16)
        theirs = foreign.create_executable("tensor-bytecode", memoryview(b""), kernel.entries)
        rig.recording(1).dispatch(theirs, INCREMENT, (1, 1, 1), [(0, 0, 64)], kernel.parameters)


def grid(rig: Rig, *workload: int) -> None:
    x, y, z = workload
    rig.dispatch_grid(rig.recording(1), INCREMENT, [(0, 0, 64)], (x, y, z), 16)


def read_only_binding(rig: Rig) -> None:
    """A table gives a buffer without write access to a recording that writes."""
    commands = rig.recording(1)
    rig.dispatch(commands, INCREMENT, [(0, 0, 64)], 16)
    commands.finish()
    buffer = rig.zeros(64)
    buffer.rights &= ~WRITABLE  # like imported memory, which not every device supports
    rig.run(commands, buffer)


def released_table(rig: Rig) -> None:
    buffers = rig.zeros(64), rig.zeros(64)
    buffers[1].release()
    rig.run(copying(rig), *buffers)


def released_semaphore(rig: Rig) -> None:
    semaphore = rig.device.create_semaphore()
    semaphore.release()
    rig.device.queue.submit(None, (), Fence([(semaphore, 0)]))


def finished(rig: Rig) -> CommandBuffer:
    commands = rig.recording()
    commands.finish()
    return commands


def promised(rig: Rig) -> None:
    gate, semaphore = rig.device.create_semaphore(), rig.device.create_semaphore()
    rig.device.queue.submit(None, (), Fence([(gate, 1)]), Fence([(semaphore, 5)]))
    try:
        semaphore.signal(5)
    finally:
        gate.signal(1)


def twice_promised(rig: Rig) -> None:
    gate, semaphore = rig.device.create_semaphore(), rig.device.create_semaphore()
    rig.device.queue.submit(None, (), Fence([(gate, 1)]), Fence([(semaphore, 5)]))
    try:
        rig.device.queue.submit(None, (), None, Fence([(semaphore, 5)]))
    finally:
        gate.signal(1)


Rule = tuple[str, type[HalError], str, Callable[[Rig], object]]

RULES: tuple[Rule, ...] = (
    # buffers
    ("negative_size", InvalidArgument, "allocation of -1 bytes", lambda r: r.device.allocator.allocate(-1)),
    ("unknown_use", InvalidArgument, "no MemoryUse", lambda r: r.device.allocator.allocate(64, 3)),  # type: ignore[arg-type]
    ("write_beyond", InvalidArgument, "bytes 60 to 68", lambda r: r.zeros(64).write(np.zeros(8, np.uint8), 60)),
    ("write_before", InvalidArgument, "bytes -1 to 7", lambda r: r.zeros(64).write(np.zeros(8, np.uint8), -1)),
    ("read_beyond", InvalidArgument, "bytes 0 to 65", lambda r: r.zeros(64).read(np.zeros(65, np.uint8))),
    ("read_strided", InvalidArgument, "not contiguous", lambda r: r.zeros(64).read(np.zeros((8, 8), np.uint8)[:, :2])),
    ("view_beyond", InvalidArgument, "bytes 4 to 68", lambda r: BufferView(r.zeros(64), BY_NAME["f32"], (16,), 4)),
    ("view_unaligned", InvalidArgument, "not a multiple", lambda r: BufferView(r.zeros(64), BY_NAME["f32"], (1,), 2)),
    ("view_negative", InvalidArgument, "negative", lambda r: BufferView(r.zeros(64), BY_NAME["f32"], (-1,))),
    (
        "view_dtype",
        InvalidArgument,
        r"int32\(4,\) does not fit a view f32\(4,\)",
        lambda r: BufferView(r.zeros(64), BY_NAME["f32"], (4,)).write(np.zeros(4, np.int32)),
    ),
    # executables
    ("format", Unsupported, "not tape", lambda r: r.device.create_executable("tape", memoryview(b""), ())),
    ("entry_access", InvalidArgument, "access 'append'", lambda r: build(r, ("append", 4))),
    ("entry_workgroup", InvalidArgument, "workgroup size", lambda r: build(r, size=(0, 1, 1))),
    (
        "workgroup_limit",
        Unsupported,
        "invocations in a workgroup, the device's limit is",
        lambda r: build(r, size=(1, r.device.info.limits.max_workgroup_size + 1, 1)),
    ),
    (
        "binding_limit",
        Unsupported,
        "bindings, the device's limit is",
        lambda r: build(r, *[("read", 4)] * (r.device.info.limits.max_bindings + 1)),
    ),
    (
        "parameter_limit",
        Unsupported,
        "bytes of parameters, the device's limit is",
        lambda r: build(r, words=r.device.info.limits.max_parameter_bytes // 4 + 1),
    ),
    (
        "binding_length_limit",
        Unsupported,
        "bytes in one binding, the device's limit is",
        lambda r: build(r, ("read", r.device.info.limits.max_binding_length + 1)),
    ),
    # recordings
    ("entry_range", InvalidArgument, "entry 3 of an executable with 3", lambda r: bind(r, entry=3)),
    ("binding_count", InvalidArgument, "2 bindings, expected 3", lambda r: bind(r, (0, 0, 64), (1, 0, 64))),
    (
        "parameter_size",
        InvalidArgument,
        "bytes of parameters, expected",
        lambda r: bind(r, whole(r.zeros(64)), entry=INCREMENT, words=bytes(4)),
    ),
    (
        "binding_least_length",
        InvalidArgument,
        "binding 1: 0 bytes, the code needs",
        lambda r: bind(r, (0, 0, 64), (0, 0, 0), (1, 0, 64)),
    ),
    (
        "binding_range",
        InvalidArgument,
        "bytes 0 to 128",
        lambda r: bind(r, (r.zeros(64), 0, 128), (0, 0, 64), (1, 0, 64)),
    ),
    ("binding_slot", InvalidArgument, "slot 2 of a command", lambda r: bind(r, (2, 0, 64), (0, 0, 64), (1, 0, 64))),
    ("binding_read_only", InvalidArgument, "write access", read_only_binding),
    ("workload_negative", InvalidArgument, "workload", lambda r: grid(r, -1, 1, 1)),
    ("workload_too_large", Unsupported, "workgroups exceed the device's", lambda r: grid(r, 1 << 70, 1 << 70, 1 << 70)),
    ("executable_device", InvalidArgument, "executable of device null", foreign_executable),
    ("binding_device", InvalidArgument, "buffer of device null", imported_dispatch),
    ("slots_negative", InvalidArgument, "command buffer with -1 slots", lambda r: r.recording(-1)),
    ("copy_slot", InvalidArgument, "slot 1 of a command buffer", lambda r: r.recording(1).copy(0, 0, 1, 0, 8)),
    ("copy_negative", InvalidArgument, "length -8", lambda r: r.recording(2).copy(0, 0, 1, 0, -8)),
    ("copy_device", InvalidArgument, "buffer of device null", foreign_copy),
    ("fill_range", InvalidArgument, "bytes 64 to 68", lambda r: r.recording().fill(r.zeros(64), 64, 4, b"abcd")),
    ("fill_empty_pattern", InvalidArgument, "pattern of 0 bytes", lambda r: r.recording(1).fill(0, 0, 4, b"")),
    ("negative_offset", InvalidArgument, "offset -16", lambda r: r.recording(1).fill(0, -16, 16, b"\0")),
    ("copy_range", InvalidArgument, "bytes 60 to 68", lambda r: r.recording(1).copy(r.zeros(64), 60, 0, 0, 8)),
    ("copy_overlap", InvalidArgument, "overlaps itself", lambda r: r.recording(1).copy(0, 0, 0, 4, 8)),
    ("fill_pattern", InvalidArgument, "pattern of 3 bytes", lambda r: r.recording(1).fill(0, 0, 9, b"abc")),
    ("fill_alignment", InvalidArgument, "not whole patterns", lambda r: r.recording(1).fill(0, 2, 8, b"abcd")),
    ("fill_length", InvalidArgument, "not whole patterns", lambda r: r.recording(1).fill(0, 4, 6, b"abcd")),
    ("record_after_finish", InvalidArgument, "finished, not recording", lambda r: finished(r).barrier()),
    ("finish_twice", InvalidArgument, "finished, not recording", lambda r: finished(r).finish()),
    # submits
    ("not_finished", InvalidArgument, "recording, not finished", lambda r: r.run(r.recording())),
    ("submit_not_finished", InvalidArgument, "recording, not", lambda r: r.device.queue.submit(r.recording())),
    ("table_count", InvalidArgument, "1 buffers for .* 2 slots", lambda r: r.run(copying(r), r.zeros(64))),
    ("table_length", InvalidArgument, "slot 1: .* 40 bytes", lambda r: r.run(copying(r), r.zeros(64), r.zeros(40))),
    ("table_released", InvalidArgument, "slot 1: .* was released", released_table),
    ("table_overlap", InvalidArgument, "overlaps itself", lambda r: r.run(copying(r), *[r.zeros(64)] * 2)),
    ("table_device", InvalidArgument, "slot 1: buffer of device null", foreign_table),
    ("recording_device", InvalidArgument, "command buffer of device null", foreign_recording),
    ("buffers_alone", InvalidArgument, "without a command", lambda r: r.device.queue.submit(None, (r.zeros(4),))),
    # semaphores
    ("semaphore_released", InvalidArgument, "was released", released_semaphore),
    ("semaphore_above_all", InvalidArgument, "is not in 0 to", lambda r: r.device.create_semaphore(2**63)),
    ("close_seconds", InvalidArgument, "closing cannot wait -1", lambda r: setattr(r.device, "close_seconds", -1)),
    ("semaphore_initial", InvalidArgument, "value -1", lambda r: r.device.create_semaphore(-1)),
    ("semaphore_backwards", InvalidArgument, "not above", lambda r: r.device.create_semaphore(3).signal(3)),
    ("semaphore_promised", InvalidArgument, "not below 5", promised),
    ("semaphore_promised_twice", InvalidArgument, "not above 5", twice_promised),
)  # fmt: skip


def _case(error: type[HalError], words: str, act: Callable[[Rig], object]) -> Callable[[Rig], None]:
    def broken(rig: Rig) -> None:
        with raises(error, match=words):
            act(rig)

    return broken


@case.needing("binding-alignment")
def binding_unaligned(rig: Rig) -> None:
    """A binding whose offset is no multiple of the device's alignment is refused, direct and through a slot."""
    alignment = rig.device.info.limits.min_binding_alignment
    buffer = rig.zeros(4 * alignment + 64)
    for offset in (1, 4, alignment // 2, alignment + alignment // 2):
        with raises(InvalidArgument, match=f"offset {offset} is not a multiple of {alignment}"):
            bind(rig, (0, offset, 64), (0, 0, 64), (1, 0, 64))
        with raises(InvalidArgument, match=f"offset {offset} is not a multiple of {alignment}"):
            bind(rig, (0, 0, 64), (0, 0, 64), (buffer, offset, 64))


@case.needing("native-code")
def untrusted_native_code(rig: Rig) -> None:
    """Native code of a module that is not trusted is refused with PolicyRefused."""
    native = [format for format in rig.device.info.formats if is_native(rig.device.info, format)]
    device = Device(rig.device.device_state, (), rig.device.executables, Policy())
    with raises(PolicyRefused, match=f"{native[0]} is native code"):
        device.create_executable(native[0], memoryview(b"x"), (), bytes(32))
    device.close()


def _doc(name: str, error: type[HalError]) -> str:
    return f"Breaking the rule {name.replace('_', ' ')} raises {error.__name__} with a message."


for _name, _error, _words, _act in RULES:
    case.add(_name, _case(_error, _words, _act), _doc(_name, _error))
