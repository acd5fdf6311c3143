"""Recordings: submitted again and again, with the same and with other tables, from several threads."""

import threading

import numpy as np

from .case import Group
from .kernels import ADD, INCREMENT, IOTA
from .rig import Rig, whole

case = Group("recordings", __doc__)


@case.needing("dispatch")
def replayed(rig: Rig) -> None:
    """One recording, ten calls: each runs it once."""
    buffer = rig.zeros(256)
    commands = rig.recording(1)
    rig.dispatch(commands, INCREMENT, [(0, 0, 256)], 64, 3)
    commands.finish()
    for _ in range(10):
        rig.run(commands, buffer)
    rig.computed(buffer, np.full(64, 30, np.uint32))


@case.needing("dispatch")
def changing_tables(rig: Rig) -> None:
    """Each submit uses its own table, and goes back to an earlier one."""
    inputs = [rig.random(64, seed) for seed in range(3)]
    sources = [rig.buffer(data) for data in inputs]
    targets = [rig.zeros(256) for _ in range(3)]
    commands = rig.recording(3)
    rig.dispatch(commands, ADD, [(0, 0, 256), (1, 0, 256), (2, 0, 256)], 64)
    commands.finish()
    for i, j, k in ((0, 1, 0), (1, 2, 1), (2, 2, 2), (0, 1, 2), (0, 1, 0), (2, 0, 1)):
        rig.run(commands, sources[i], sources[j], targets[k])
        rig.computed(targets[k], inputs[i] + inputs[j])


@case.needing("dispatch")
def interleaved(rig: Rig) -> None:
    """Recordings that share an executable do not share bindings or parameters."""
    step = max(128, rig.binding_step)
    first, second = rig.zeros(step + 128), rig.zeros(step + 128)
    recordings = []
    for value in (1, 10):
        commands = rig.recording(1)
        rig.dispatch(commands, INCREMENT, [(0, 0, 128)], 32, value)
        rig.dispatch(commands, IOTA, [(0, step, 64)], 16, value)
        commands.finish()
        recordings.append(commands)
    for _ in range(3):
        rig.run(recordings[0], first)
        rig.run(recordings[1], second)
    for buffer, value in ((first, 1), (second, 10)):
        want = np.zeros(step // 4 + 32, np.uint32)
        want[:32] = 3 * value
        want[step // 4 :][:16] = np.arange(16) + value
        rig.computed(buffer, want)


@case
def keeps_what_it_refers_to(rig: Rig) -> None:
    """Handles may be released once they are recorded."""
    data = rig.random(64)
    source, middle, target = rig.buffer(data), rig.zeros(256), rig.zeros(256)
    commands = rig.recording()
    commands.copy(source, 0, middle, 0, 256)
    commands.barrier()
    commands.copy(middle, 0, target, 0, 256)
    rig.dispatch(commands, INCREMENT, [whole(rig.zeros(256))], 64, 1)
    commands.finish()
    source.release()
    middle.release()
    others = [rig.zeros(256) for _ in range(4)]
    for _ in range(2):
        rig.run(commands)
    rig.holds(target, data)
    for other in others:
        rig.holds(other, np.zeros(64, np.uint32))


@case.needing("dispatch")
def shared_by_threads(rig: Rig) -> None:
    """Threads with a share each run recordings of the same executable at the same time."""
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            with rig.device.share() as device:
                _count_to_fifty(rig.on(device), number)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def _count_to_fifty(rig: Rig, number: int) -> None:
    buffer = rig.zeros(256)
    commands = rig.recording(1)
    rig.dispatch(commands, INCREMENT, [(0, 0, 256)], 64, number)
    commands.finish()
    for _ in range(50):
        rig.run(commands, buffer)
    rig.computed(buffer, np.full(64, 50 * number, np.uint32))
    assert rig.device.statistics.submissions == 50
    buffer.release()
    commands.release()
