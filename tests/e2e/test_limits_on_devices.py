"""Limits of a program hold for what it makes a device do: waits, memory that a driver takes, work under way."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from orchestrion.hal.semaphore import Fence
from orchestrion.schema.assembler import assemble
from orchestrion.schema.hal_imports import HAL_IMPORTS
from orchestrion.schema.profiles import PROFILES
from orchestrion.schema.writer import write
from orchestrion.vm.errors import Cancelled, DeadlineExceeded, MemoryExceeded

Load = Callable[..., Any]

IMPORTS = "\n".join(f"import @{row.name} {row.signature}" for row in HAL_IMPORTS.values())
READ = """
export @f (x: tensor<4xi32>) -> (z: tensor<4xi32>)
program @p profile "{profile}" {{
  func @f (hal.view, hal.view) -> hal.view {{
    %r2 = call_import @hal.view.buffer(%r0) %i0 = i32.const 4
    %i1 = call_import @hal.read(%r2, %l0, %i0)
    return (%r0)
  }}
  entry @f
}}"""
#: returns while its work waits for whoever submitted to its argument before
LEAVE = """
export @f (x: tensor<4xi32>) -> (z: tensor<4xi32>)
program @p profile "{profile}" {{
  func @f (hal.view, hal.view) -> hal.view {{
    %r2 = call_import @hal.view.buffer(%r0) %r3 = call_import @hal.view.buffer(%r1)
    %i1 = i32.const 1 %l1 = i64.const 16 %i2 = i32.const 2 %r4 = call_import @hal.recording.create(%i2) %r5 = ref.null
    call_import @hal.recording.copy(%r4, %r5, %i0, %l0, %r5, %i1, %l0, %l1) call_import @hal.recording.finish(%r4)
    call_import @hal.submit(%r4, %r5, %r5, %r2, %r3)
    return (%r1)
  }}
  entry @f
}}"""
#: waits for its work
AWAIT = LEAVE.replace(
    "call_import @hal.submit(%r4, %r5, %r5, %r2, %r3)",
    "%r6 = call_import @hal.fence.create() call_import @hal.submit(%r4, %r5, %r6, %r2, %r3) await %r6",
)
FILL = """
export @f
program @p profile "{profile}" {{
  func @f () -> () {{
    %l0 = i64.const 1048576 %r1 = call_import @hal.allocate(%l0) %r2 = call_import @hal.recording.create(%i0)
    %l1 = i64.const 0x0102030405060708 %i3 = i32.const 8
  ^again:
    call_import @hal.recording.fill(%r2, %r1, %i0, %l2, %l0, %l1, %i3)
    br ^again
  }}
  entry @f
}}"""


def module(text: str, device: str) -> bytes:
    profile = next(name for name, row in PROFILES.items() if row.driver == device)
    return write(assemble(IMPORTS + text.format(profile=profile)))


@pytest.mark.parametrize(
    ("text", "device"),
    [(READ, "reference"), (READ, "opencl"), (READ, "vulkan"), (LEAVE, "opencl"), (LEAVE, "vulkan")],
)
def test_what_a_call_reads_is_waited_for_within_its_deadline(text: str, device: str, load_on: Load) -> None:
    """Work that does not end uses the buffer: it was waited for without end."""
    program = load_on(module(text, device), device, deadline=0.3)
    x = program.put(np.arange(4, dtype=np.int32))
    commands, semaphore = program.device.create_command_buffer(1), program.device.create_semaphore()
    commands.fill(0, 0, 16, b"\1\0\0\0")
    commands.finish()
    try:
        program.device.queue.submit(commands, [x.view.buffer], Fence([(semaphore, 1)]))
        with pytest.raises(DeadlineExceeded):
            program["f"](x)
    finally:
        semaphore.signal(1)
    assert np.asarray(x).tolist() == [1] * 4
    commands.release()
    semaphore.release()
    del x
    program.close()


@pytest.mark.parametrize("device", ["opencl", "vulkan"])
def test_a_cancelled_call_does_not_wait_for_its_work(device: str, load_on: Load) -> None:
    """Its work waits for whoever submitted to its argument before; the call has no deadline."""
    program = load_on(module(AWAIT, device), device)
    x = program.put(np.arange(4, dtype=np.int32))
    commands, semaphore = program.device.create_command_buffer(1), program.device.create_semaphore()
    commands.fill(0, 0, 16, b"\1\0\0\0")
    commands.finish()
    timer = threading.Timer(0.1, program.cancel)
    try:
        program.device.queue.submit(commands, [x.view.buffer], Fence([(semaphore, 1)]))
        timer.start()
        with pytest.raises(Cancelled):
            program["f"](x)
    finally:
        semaphore.signal(1)
    assert np.asarray(program["f"](x)).tolist() == [1] * 4
    commands.release()
    semaphore.release()
    del x
    program.close()


def test_patterns_of_fills_count_as_memory(load_on: Load) -> None:
    """A pattern of 8 bytes is copied from a buffer of up to a MiB for each fill."""
    program = load_on(module(FILL, "vulkan"), "vulkan", memory=64 << 20, deadline=60.0)
    with pytest.raises(MemoryExceeded):
        program["f"]()
    program.close()


def test_a_submission_holds_few_objects(load_on: Load) -> None:
    """However long the recording is: a thousand submissions may be under way."""
    program = load_on(module(READ, "vulkan"), "vulkan")
    device = program.device
    buffer = device.allocator.allocate(64)
    commands, semaphore = device.create_command_buffer(), device.create_semaphore()
    for _ in range(1000):
        commands.fill(buffer, 0, 64, b"\1\2\3\4")
        commands.barrier()
    commands.finish()
    device.queue.submit(commands, (), Fence([(semaphore, 1)]))
    held = len(device.device_state.in_flight[-1].refs)
    commands.release()
    buffer.release()
    semaphore.signal(1)
    device.queue.wait_idle()
    semaphore.release()
    assert held < 10
    program.close()
