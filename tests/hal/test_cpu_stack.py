"""Native code that keeps arrays on the stack, in threads with stacks of different sizes."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from cpu_devices import open_cpu

from orchestrion.hal.backend import Entry
from orchestrion.hal.command_buffer import CommandBuffer
from orchestrion.hal.cpu import stack
from orchestrion.hal.cpu.processor import architecture
from orchestrion.hal.cts.rig import Rig
from orchestrion.hal.errors import Unsupported
from orchestrion.schema import native_image
from orchestrion.tools import native_images

pytest.importorskip("llvmlite")

#: out[g] = out[g] + 1 for each workgroup, by way of an array of 400,000 bytes whose every page is written
LARGE = """
define void @large(ptr %arguments, i64 %begin, i64 %end) "probe-stack"="inline-asm" {
  %array = alloca [400000 x i8]
  %out = load ptr, ptr %arguments
  br label %group
group:
  %g = phi i64 [ %begin, %0 ], [ %next, %leave ]
  br label %page
page:
  %at = phi i64 [ 0, %group ], [ %at_next, %page ]
  %byte = getelementptr i8, ptr %array, i64 %at
  store volatile i8 1, ptr %byte
  %at_next = add i64 %at, 4000
  %more = icmp ult i64 %at_next, 400000
  br i1 %more, label %page, label %leave
leave:
  %one = load volatile i8, ptr %array
  %wide = zext i8 %one to i32
  %place = getelementptr i32, ptr %out, i64 %g
  %count = load i32, ptr %place
  %sum = add i32 %count, %wide
  store i32 %sum, ptr %place
  %next = add i64 %g, 1
  %last = icmp eq i64 %next, %end
  br i1 %last, label %finished, label %group
finished:
  ret void
}
"""
USED = 400_064
ENTRIES = (Entry("large", (("readwrite", 4),), 0, (1, 1, 1)),)
GROUPS = 5000


def large(rig: Rig) -> CommandBuffer:
    """A recording of a dispatch of the entry."""
    payload = native_images.build(LARGE, [("large", 1, 0)], architecture())
    image = native_image.decode(payload)
    (row,) = image.entries
    payload = native_image.encode(image.architecture, [replace(row, stack=USED)], bytes(image.code))
    executable = rig.device.create_executable("native-image", memoryview(payload), ENTRIES)
    commands = rig.recording(1)
    commands.dispatch(executable, 0, (GROUPS, 1, 1), [(0, 0, 4 * GROUPS)], b"")
    commands.finish()
    return commands


def in_thread(size: int, work: Callable[[], None]) -> BaseException | None:
    """Call `work` in a thread with a stack of this size. Returns its error."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    before = threading.stack_size(size)
    try:
        thread = threading.Thread(target=run)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    return errors[0] if errors else None


@pytest.fixture(params=[1, 3], ids="{} threads".format)
def rig(request: pytest.FixtureRequest) -> Iterator[Rig]:
    with open_cpu(request.param) as device:
        yield Rig(device, computes=True)


def test_small_stacks_are_refused(rig: Rig) -> None:
    """The recording does not run, and runs in other threads afterwards."""
    commands, out = large(rig), rig.zeros(4 * GROUPS)
    error = in_thread(64 << 10, lambda: rig.run(commands, out))
    assert isinstance(error, Unsupported)
    needed = USED + stack.RESERVE
    assert f"needs {needed} bytes of the stack, and this thread, whose stack has 65536 bytes" in str(error)
    rig.computed(out, np.zeros(GROUPS, np.uint32))
    assert in_thread(1 << 20, lambda: rig.run(commands, out)) is None
    rig.run(commands, out)
    rig.computed(out, np.full(GROUPS, 2, np.uint32))


def test_the_room_counts_not_the_size(rig: Rig) -> None:
    """Calls inside each other use up a stack, until the recording is refused."""
    commands, out = large(rig), rig.zeros(4 * GROUPS)

    def deeper(_: int) -> int:
        rig.run(commands, out)
        return sorted([0], key=deeper)[0]  # takes some 2 KiB of the stack

    assert isinstance(in_thread(480 << 10, lambda: sorted([0], key=deeper)), Unsupported)
    counts = rig.contents(out).view(np.uint32)
    assert counts.min() == counts.max() >= 5


def test_every_stack_runs_small_entries(rig: Rig) -> None:
    commands, out = rig.recording(1), rig.zeros(4 * GROUPS)
    rig.dispatch(commands, 2, [(0, 0, 4 * GROUPS)], GROUPS, 1)
    commands.finish()
    assert in_thread(64 << 10, lambda: rig.run(commands, out)) is None
    rig.computed(out, np.ones(GROUPS, np.uint32))


RUNS = """
import threading
import numpy as np
from cpu_devices import open_cpu
from test_cpu_stack import GROUPS, large
from orchestrion.hal.cpu.pool import shared_pool
from orchestrion.hal.cts.rig import Rig
{before}
with open_cpu(3) as device:
    rig = Rig(device, computes=True)
    commands, out = large(rig), rig.zeros(4 * GROUPS)
    for turn in range(20):
        {submit}
        rig.run(commands, out)
    rig.computed(out, np.full(GROUPS, {times}, np.uint32))
{after}
"""


def in_process(limit: str, **parts: object) -> None:
    """Run the recording in a process whose main thread has a stack of `limit` KiB."""
    command = ["bash", "-c", f'ulimit -s {limit}; exec "$@"', "bash", sys.executable, "-c", RUNS.format(**parts)]
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_threads_of_the_driver_have_stacks_of_their_own_size() -> None:
    """Helpers, and the thread that runs submissions, where the application sets a small stack for its threads."""
    size = "threading.stack_size(64 << 10)"
    after = f"assert {size} == 64 << 10"
    in_process("8192", before=size, submit="device.queue.submit(commands, [out])", times=40, after=after)


def test_helpers_with_small_stacks_take_no_work() -> None:
    """The caller works alone where the system's default is small."""
    in_process("512", before="", submit="", times=20, after="assert shared_pool(1).words.helpers == 0")
