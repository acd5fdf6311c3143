"""Handles: released once, refused afterwards, and counted if they are not released."""

import gc
import threading
from collections.abc import Callable
from itertools import permutations

import numpy as np

from orchestrion.hal.buffer import Buffer, BufferView
from orchestrion.hal.command_buffer import CommandBuffer
from orchestrion.hal.errors import InvalidArgument
from orchestrion.hal.executable import Executable
from orchestrion.hal.semaphore import Fence, Semaphore
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
    rig.soon(lambda: rig.device.allocator.live_bytes, 0)


@case
def release_twice(rig: Rig) -> None:
    """A second `release` does nothing, for each kind of handle."""
    handles: list[Handle] = [rig.zeros(16), rig.executable(), rig.recording(), rig.device.create_semaphore()]
    for handle in handles:
        handle.release()
        handle.release()
    assert not rig.device.leaks


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


@case
def leaks_of_each_kind(rig: Rig) -> None:
    """Each kind of handle that is left behind is counted by itself."""
    makers: tuple[tuple[Callable[[Rig], Handle], str], ...] = (
        (lambda share: share.zeros(16), "1 buffer"),
        (lambda share: share.executable(), "1 executable"),
        (lambda share: share.recording(), "1 command buffer"),
        (lambda share: share.device.create_semaphore(), "1 semaphore"),
    )
    for make, name in makers:
        device = rig.device.share()
        held = make(rig.on(device))
        assert device.leaks == (name,)
        with warns(ResourceWarning, match=f"closed with {name} not released"):
            assert device.close() == (name,)
        held.release()
        assert not device.leaks


@case
def nothing_is_left(rig: Rig) -> None:
    """After 250 objects of each kind came and went, the driver owns no more than before."""
    executable = rig.executable()
    rig.device.queue.wait_idle()
    state = rig.device.device_state
    before = len(state.owned)
    for round in range(250):
        handles: list[Handle] = [rig.zeros(100), rig.recording(1), rig.device.create_semaphore(round), rig.executable()]
        for handle in handles:
            handle.release()
    rig.device.queue.wait_idle()
    rig.soon(lambda: len(state.owned) <= before, True)
    executable.release()


@case
def nothing_is_left_of_work(rig: Rig) -> None:
    """After many submissions the driver owns no more objects than after the first."""
    buffer, done = rig.zeros(64), rig.device.create_semaphore()
    state = rig.device.device_state

    def submit(value: int) -> int:
        rig.device.queue.submit(rig.filling(0, 64, value % 251), (buffer,), None, Fence([(done, value)]))
        rig.run(rig.filling(buffer, 64, 1))
        done.wait(value, rig.patience)
        rig.device.queue.wait_idle()
        return len(state.owned)

    first = submit(1)
    for value in range(2, 60):
        submit(value)
    submit(60)
    rig.soon(lambda: len(state.owned) <= first, True)


@case
def in_any_order(rig: Rig) -> None:
    """Handles are released in any order, those that others refer to first; recordings work as long as they live."""
    for order in permutations(range(4)):
        source, target = rig.buffer(rig.words(1, 2, 3, 4)), rig.zeros(16)
        commands, executable = rig.recording(), rig.executable()
        commands.copy(source, 0, target, 0, 16)
        commands.finish()
        handles: list[Handle] = [source, target, commands, executable]
        for place in order:
            if handles[2] is commands and commands.state == "finished":
                rig.run(commands)
            handles[place].release()
    rig.device.queue.wait_idle()
    assert not rig.device.leaks
    rig.soon(lambda: rig.device.allocator.live_bytes, 0)


@case
def buffer_released_while_in_flight(rig: Rig) -> None:
    """The buffer of a slot and the buffer of a direct binding live until the work is over; their memory is not given
    to others before.
    """
    for slot in (True, False):
        gate, done, data = rig.device.create_semaphore(), rig.device.create_semaphore(), rig.random(1 << 12)
        source, target = rig.buffer(data), rig.zeros(1 << 14)
        commands = rig.recording(int(slot))
        commands.copy(0 if slot else source, 0, target, 0, 1 << 14)
        commands.finish()
        table = (source,) if slot else ()
        rig.device.queue.submit(commands, table, Fence([(gate, 1)]), Fence([(done, 1)]))
        del table
        source.release()
        commands.release()
        others = [rig.fresh(1 << 14) for _ in range(3)]
        gate.signal(1)
        done.wait(1, rig.patience)
        rig.holds(target, data)
        for other in others:
            rig.holds(other, np.zeros(1 << 14, np.uint8))


@case
def target_released_while_in_flight(rig: Rig) -> None:
    """Work under way writes into a buffer that was released, and into nobody else's."""
    gate, done = rig.device.create_semaphore(), rig.device.create_semaphore()
    target, commands = rig.zeros(1 << 14), rig.filling(0, 1 << 14, 0x77)
    rig.device.queue.submit(commands, (target,), Fence([(gate, 1)]), Fence([(done, 1)]))
    target.release()
    others = [rig.fresh(1 << 14) for _ in range(4)]
    gate.signal(1)
    done.wait(1, rig.patience)
    for other in others:
        rig.holds(other, np.zeros(1 << 14, np.uint8))


@case
def recording_released_while_in_flight(rig: Rig) -> None:
    """A recording lives until its last submission is over, while others come and go."""
    gate, done, target = rig.device.create_semaphore(), rig.device.create_semaphore(), rig.zeros(64)
    commands = rig.filling(0, 64, 3)
    for number in (1, 2):
        rig.device.queue.submit(commands, (target,), Fence([(gate, 1)]), Fence([(done, number)]))
    commands.release()
    others = [rig.filling(0, 64, 4) for _ in range(8)]
    gate.signal(1)
    done.wait(2, rig.patience)
    rig.holds(target, np.full(64, 3, np.uint8))
    for other in others:
        other.release()


@case
def share_closed_with_work_under_way(rig: Rig) -> None:
    """Closing a share waits for its work; what it wrote is there for others."""
    target = rig.zeros(1 << 16)
    gate = rig.device.create_semaphore()
    device = rig.device.share()
    share = rig.on(device)
    commands = share.filling(0, 1 << 16, 6)
    device.queue.submit(commands, (target,), Fence([(gate, 1)]))
    commands.release()
    timer = threading.Timer(0.02, gate.signal, (1,))
    timer.start()
    assert device.close() == ()
    timer.join()
    rig.holds(target, np.full(1 << 16, 6, np.uint8))


@case
def device_dropped_without_close(rig: Rig) -> None:
    """A device that nobody refers to any more is closed."""
    other = rig.reopened()
    state = other.device.device_state
    buffer = other.zeros(64)
    other.run(other.filling(0, 64, 1), buffer)
    buffer.release()
    del other, buffer
    gc.collect()
    rig.soon(lambda: state.abandoned, True)


@case
def handles_in_a_cycle(rig: Rig) -> None:
    """Handles that only a cycle of references holds are released when it is collected."""
    cycle: list[object] = [rig.zeros(64), rig.recording(), rig.device.create_semaphore()]
    cycle.append(cycle)
    assert rig.device.leaks == ("1 buffer", "1 command buffer", "1 semaphore")
    del cycle
    gc.collect()
    assert not rig.device.leaks
    rig.device.queue.wait_idle()
    rig.soon(lambda: rig.device.allocator.live_bytes, 0)


@case
def views_own_nothing(rig: Rig) -> None:
    """A view holds its buffer, is no handle itself, and is of no use once the buffer is released."""
    view = BufferView(rig.zeros(64), BY_NAME["f32"], (16,))
    assert rig.device.leaks == ("1 buffer",)
    view.write(np.ones(16, np.float32))
    view.buffer.release()
    assert not rig.device.leaks
    with raises(InvalidArgument, match="was released"):
        view.read()
    with raises(InvalidArgument, match="was released"):
        view.write(np.ones(16, np.float32))
