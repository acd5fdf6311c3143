"""Handles: released once, refused afterwards, counted when they are left behind."""

import numpy as np

from orchestrion.hal.buffer import Buffer, BufferView
from orchestrion.hal.command_buffer import CommandBuffer
from orchestrion.hal.errors import InvalidArgument
from orchestrion.hal.executable import Executable
from orchestrion.hal.semaphore import Semaphore
from orchestrion.schema.dtypes import BY_NAME

from .case import Group
from .expect import raises, warns
from .kernels import INCREMENT
from .rig import Rig, whole

case = Group("lifetimes", __doc__)

Handle = Buffer | Executable | CommandBuffer | Semaphore


@case
def leaks_are_counted(rig: Rig) -> None:
    """What is not released when a device closes is reported, by kind."""
    device = rig.device.share()
    share = rig.on(device)
    held: list[Handle] = [
        share.zeros(16),
        share.zeros(16),
        share.executable(),
        share.recording(),
        device.create_semaphore(),
    ]
    assert device.leaks == ("2 buffers", "1 executable", "1 command buffer", "1 semaphore")
    with warns(ResourceWarning, match="2 buffers, 1 executable, 1 command buffer, 1 semaphore not released"):
        assert device.close() == ("2 buffers", "1 executable", "1 command buffer", "1 semaphore")
    for handle in held:
        handle.release()
    assert device.close() == ()


@case
def released_by_the_last_reference(rig: Rig) -> None:
    """A handle that is dropped without `release` is released."""
    buffer = rig.zeros(16)
    assert rig.device.live["buffer"] == 1
    del buffer
    assert rig.device.live["buffer"] == 0
    rig.device.queue.wait_idle()  # a driver without mapping may still be copying into it
    assert rig.device.allocator.live_bytes == 0


@case
def release_twice(rig: Rig) -> None:
    """A second `release` does nothing, for each kind of handle."""
    handles: list[Handle] = [rig.zeros(16), rig.executable(), rig.recording(), rig.device.create_semaphore()]
    for handle in handles:
        handle.release()
        handle.release()
    assert rig.device.leaks == ()


@case
def use_after_release(rig: Rig) -> None:
    """Every use of a released handle is refused."""
    buffer, other, executable = rig.zeros(16), rig.zeros(16), rig.executable()
    view = BufferView(buffer, BY_NAME["f32"], (4,))
    semaphore = rig.device.create_semaphore()
    finished = rig.recording(1)
    finished.fill(0, 0, 16, b"\0")
    finished.finish()
    for handle in (buffer, executable, semaphore):
        handle.release()
    commands = rig.recording(1)
    uses = (
        lambda: buffer.write(np.zeros(4, np.uint8)),
        lambda: buffer.read(np.zeros(4, np.uint8)),
        lambda: buffer.map(),
        lambda: view.write(np.zeros(4, np.float32)),
        lambda: view.read(),
        lambda: commands.fill(buffer, 0, 4, b"\0"),
        lambda: commands.dispatch(executable, INCREMENT, (1, 1, 1), [whole(other)]),
        lambda: rig.run(finished, buffer),
        lambda: semaphore.signal(1),
        lambda: semaphore.wait(1),
    )
    for use in uses:
        with raises(InvalidArgument, match="was released"):
            use()
    finished.release()
    with raises(InvalidArgument, match="command buffer is released, not finished"):
        rig.run(finished, other)


@case
def use_after_close(rig: Rig) -> None:
    """A closed device refuses everything; its share of the hardware goes on for others."""
    device = rig.device.share()
    commands = device.create_command_buffer()
    commands.finish()
    commands.release()
    device.close()
    uses = (
        lambda: device.allocator.allocate(16),
        lambda: device.create_command_buffer(),
        lambda: device.create_semaphore(),
        lambda: device.share(),
        lambda: device.queue.wait_idle(),
        lambda: device.queue.submit(None),
        lambda: device.queue.execute(commands),
    )
    for use in uses:
        with raises(InvalidArgument, match="is closed"):
            use()
    rig.holds(rig.zeros(16), np.zeros(4, np.uint32))
