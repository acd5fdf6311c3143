"""Calls that an exception ends halfway, as Ctrl-C does: the next call is right, and closing ends.

Python runs signal handlers after a function call and at the start of a function. `Interrupter` counts these points in
the HAL's own code during a call, and raises at the chosen one. So every point where `KeyboardInterrupt` may come can be
tested, and no other.
"""

import dis
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import orchestrion.hal.queue as front
from orchestrion.hal.buffer import Buffer
from orchestrion.hal.command_buffer import CommandBuffer
from orchestrion.hal.semaphore import Fence

from .case import Group
from .expect import warns
from .rig import Rig

case = Group("interrupts", __doc__)

#: bytes of a buffer; large enough that work is still in flight when the exception comes
SIZE = 1 << 20
#: the number of interrupt points of a call that are tested, evenly spread over all of them
PLACES = 24
HAL = str(Path(front.__file__).parent)
CTS = str(Path(__file__).parent)


#: opcodes after a call at which `Interrupter` raises: those that consume the call's result in the same statement.
#: Others may belong to the next statement, outside of a `with` around the call
RESULT_STORES = frozenset(
    ("POP_TOP", "STORE_FAST", "STORE_ATTR", "UNPACK_SEQUENCE", "STORE_SUBSCR", "POP_JUMP_FORWARD_IF_FALSE")
)


class Interrupter:
    """Raises `KeyboardInterrupt` at the `place`-th interrupt point in the HAL's code; `count` is the number of points
    passed.

    Finalizers have no points: Python prints an exception in a finalizer and continues.
    """

    def __init__(self, place: int) -> None:
        self.place = place
        self.count = 0

    def __enter__(self) -> "Interrupter":
        self._before = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(HAL) or name.startswith(CTS) or _finalizes(frame):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        code, before = frame.f_code.co_code, "RESUME"

        def step(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal before
            if event == "opcode":
                name = dis.opname[code[frame.f_lasti]]
                if before == "RESUME" or before.startswith("CALL") and name in RESULT_STORES:
                    self._meet()
                before = name
            return step

        return step

    def _meet(self) -> None:
        self.count += 1
        if self.count == self.place:
            raise KeyboardInterrupt


def _finalizes(frame: FrameType | None) -> bool:
    """Whether the frame runs inside a finalizer."""
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


def run_interrupted(action: Callable[[], object], place: int) -> bool:
    """Run an action with an exception at that interrupt point. Returns whether it came."""
    try:
        with Interrupter(place):
            action()
    except KeyboardInterrupt:
        return True
    return False


def interrupt_points(action: Callable[[], object]) -> range:
    """Some of the interrupt points of an action, which is run once to count them."""
    with Interrupter(0) as strike:
        action()
    return range(1, strike.count + 1, max(1, strike.count // PLACES))


def filling(rig: Rig, value: int) -> CommandBuffer:
    """A recording that fills slot 0."""
    commands = rig.recording(1)
    commands.fill(0, 0, SIZE, bytes([value]))
    commands.finish()
    return commands


def holds(buffer: Buffer, value: int) -> None:
    out = np.empty(buffer.size, np.uint8)
    buffer.read(out)
    assert (out == value).all(), f"{np.count_nonzero(out != value)} of {out.size} bytes are not {value}"


@case
def the_call_after_an_interrupted_one(rig: Rig) -> None:
    """It sees what it computed itself, whatever the one before left under way."""
    buffer, first, second = rig.zeros(SIZE), filling(rig, 1), filling(rig, 2)
    for place in interrupt_points(lambda: rig.run(first, buffer)):
        run_interrupted(lambda: rig.run(first, buffer), place)
        rig.run(second, buffer)
        holds(buffer, 2)


@case
def host_access_after_an_interrupted_call(rig: Rig) -> None:
    """The host neither reads nor writes memory that the device still writes."""
    buffer, first = rig.zeros(SIZE), filling(rig, 1)
    data = np.full(SIZE, 3, np.uint8)
    for place in interrupt_points(lambda: rig.run(first, buffer)):
        run_interrupted(lambda: rig.run(first, buffer), place)
        buffer.write(data)
        holds(buffer, 3)


@case
def batches_and_transfers(rig: Rig) -> None:
    """After an interrupted batch, submission, write or read, the next call is right."""
    buffer, first, second = rig.zeros(SIZE), filling(rig, 1), filling(rig, 2)
    data = np.full(SIZE, 3, np.uint8)
    queue = rig.device.queue

    def submit_and_wait() -> None:
        queue.submit(first, (buffer,))
        queue.wait_idle()

    actions: tuple[Callable[[], object], ...] = (
        lambda: queue.execute_batch([(first, (buffer,)), (second, (buffer,))]),
        submit_and_wait,
        lambda: buffer.write(data),
        lambda: holds(buffer, 2),
    )
    for action in actions:
        rig.run(second, buffer)
        for place in [*interrupt_points(action)][::2]:
            run_interrupted(action, place)
            rig.run(second, buffer)
            holds(buffer, 2)


@case
def what_a_submission_promised(rig: Rig) -> None:
    """A fence that an interrupted submission was to signal is reached, or was never promised: nobody waits for ever."""
    buffer, first = rig.zeros(SIZE), filling(rig, 1)

    def submit(done: Fence) -> None:
        rig.device.queue.submit(first, (buffer,), None, done)

    def fresh() -> Fence:
        return Fence([(rig.device.create_semaphore(), 1)])

    for place in interrupt_points(lambda: submit(fresh())):
        done = fresh()
        run_interrupted(lambda done=done: submit(done), place)  # type: ignore[misc]
        rig.run(first, buffer)
        if done.promised:
            try:
                done.wait(rig.patience)
            except Exception as error:
                assert "interrupted" in str(error)
        holds(buffer, 1)
    rig.device.queue.wait_idle()


@case
def interrupted_twice(rig: Rig) -> None:
    """The second exception comes while the queue recovers from the first one, by the next call."""
    buffer, first, second = rig.zeros(SIZE), filling(rig, 1), filling(rig, 2)
    half = len(interrupt_points(lambda: rig.run(first, buffer))) // 2
    for place in [*interrupt_points(lambda: rig.run(first, buffer))][half:]:
        for again in range(1, 60, 7):
            run_interrupted(lambda: rig.run(first, buffer), place)
            run_interrupted(lambda: rig.run(second, buffer), again)
        rig.run(second, buffer)
        holds(buffer, 2)


@case
def close_after_an_interrupted_call(rig: Rig) -> None:
    """Handles may be released at once; closing the last share waits for work under way."""
    for place in (20, 40, 60, 80, 100):
        own = rig.reopened()
        buffer, commands = own.zeros(SIZE), filling(own, 1)
        own.run(commands, buffer)
        run_interrupted(lambda own=own, c=commands, b=buffer: own.run(c, b), place)  # type: ignore[misc]
        buffer.release()
        commands.release()
        assert own.device.close() == ()
        assert own.device.device_state.abandoned, (
            f"{len(own.device.device_state.owned)} objects of the driver were not released"
        )


@case
def close_while_it_is_interrupted(rig: Rig) -> None:
    """After an exception in `close`, a second `close` does the rest."""
    for place in range(1, 40, 3):
        device = rig.device.share()
        share = rig.on(device)
        buffer, commands = share.zeros(SIZE), filling(share, 1)
        device.queue.submit(commands, (buffer,))
        buffer.release()
        commands.release()
        run_interrupted(device.close, place)
        device.close()
        assert device.closed


@case
def close_waits_within_a_bound(rig: Rig) -> None:
    """`close` warns of work that does not end, and releases nothing that the work uses."""
    own = rig.reopened()
    device = own.device
    state, gate, buffer, commands = device.device_state, device.create_semaphore(), own.zeros(SIZE), filling(own, 1)
    device.close_seconds = 0.05
    device.queue.submit(commands, (buffer,), Fence([(gate, 1)]))
    opened = gate.backend
    for handle in (gate, buffer, commands):
        handle.release()
    with warns(ResourceWarning, match="closed while 1 submission was not over after 0.05 s"):
        assert device.close() == ()
    assert state.owned and not state.abandoned
    opened.signal(1)
    state.wait_submitted(state.submitted, rig.patience)
    assert state.abandoned and not state.owned
