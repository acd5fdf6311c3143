"""The CPU driver apart from conformance: its images, code in memory, what is refused, time slices, guard pages."""

import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from cpu_devices import open_cpu
from guard_pages import guard_pages

from orchestrion.compiler.targets.cpu.linker import LinkError
from orchestrion.hal.backend import Entry
from orchestrion.hal.cpu import layout, processor
from orchestrion.hal.cpu.code_memory import CodeMemory
from orchestrion.hal.cpu.pool import shared_pool
from orchestrion.hal.cpu.thread_count import THREADS, thread_count
from orchestrion.hal.cts import catalogue
from orchestrion.hal.cts.kernels import INCREMENT, IOTA
from orchestrion.hal.cts.rig import Rig
from orchestrion.hal.errors import DriverUnavailable, InvalidArgument, PolicyRefused, Unsupported
from orchestrion.hal.policy import Policy
from orchestrion.hal.registry import list_devices, open_device
from orchestrion.schema import native_image
from orchestrion.schema.errors import ModuleError
from orchestrion.tools import native_images

#: out[g] = out[g] + 1 for each workgroup, after a loop of as many turns as the parameter says
SLOW = """
define void @slow(ptr %arguments, i64 %begin, i64 %end) {
  %out = load ptr, ptr %arguments
  %turns_place = getelementptr ptr, ptr %arguments, i64 1
  %turns = load i32, ptr %turns_place
  %counter = alloca i32
  br label %group
group:
  %g = phi i64 [ %begin, %0 ], [ %next, %leave ]
  store volatile i32 0, ptr %counter
  br label %turn
turn:
  %old = load volatile i32, ptr %counter
  %new = add i32 %old, 1
  store volatile i32 %new, ptr %counter
  %more = icmp ult i32 %new, %turns
  br i1 %more, label %turn, label %leave
leave:
  %place = getelementptr i32, ptr %out, i64 %g
  %count = load i32, ptr %place
  %sum = add i32 %count, 1
  store i32 %sum, ptr %place
  %next = add i64 %g, 1
  %last = icmp eq i64 %next, %end
  br i1 %last, label %finished, label %group
finished:
  ret void
}
"""
SLOW_ENTRIES = (Entry("slow", (("readwrite", 4),), 1, (1, 1, 1)),)
#: turns of all workgroups together: half a second
TURNS = 2_000_000_000


@pytest.fixture(params=[1, 2, 3], ids="{} threads".format)
def rig(request: pytest.FixtureRequest) -> Iterator[Rig]:
    with open_cpu(request.param) as device:
        yield Rig(device, computes=True)


@pytest.fixture
def architecture() -> str:
    """The architecture of this machine; skips where the driver has none."""
    try:
        return processor.architecture()
    except DriverUnavailable as error:
        pytest.skip(str(error))


def needs_llvmlite() -> None:
    if importlib.util.find_spec("llvmlite") is None:
        pytest.skip("llvmlite is not installed (extra cpu)")


@pytest.mark.parametrize("kind", native_images.ARCHITECTURES)
@pytest.mark.parametrize("source", native_images.SOURCES, ids=lambda source: source.text)
def test_images_are_what_their_texts_say(source: native_images.Source, kind: str) -> None:
    needs_llvmlite()
    import llvmlite

    if not llvmlite.__version__.startswith(native_images.LLVMLITE):
        pytest.skip(f"the images were compiled by llvmlite {native_images.LLVMLITE}, here is {llvmlite.__version__}")
    text = (native_images.HAL / source.text).read_text()
    assert native_images.build(text, source.entries, kind) == source.image(kind).read_bytes()


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("declare void @other()\ndefine void @f() {\n  call void @other()\n  ret void\n}", "other is not defined"),
        ("@word = global i32 1\ndefine void @f() {\n  store i32 2, ptr @word\n  ret void\n}", "no read-only data"),
    ],
    ids=["function", "variable"],
)
def test_code_that_needs_more_is_refused(text: str, match: str) -> None:
    needs_llvmlite()
    for kind in native_images.ARCHITECTURES:
        with pytest.raises(LinkError, match=match):
            native_images.build(text, [("f", 0, 0)], kind)


def test_structures_have_the_sizes_of_the_text() -> None:
    """What `worker.ll` says about %Command, %Patch, %State and %Pool."""
    import ctypes

    assert (layout.COMMAND.itemsize, layout.COMMAND.fields["memory"][1]) == (32, layout.MEMORY_PLACE)
    assert layout.PATCH.itemsize == 24
    assert [ctypes.sizeof(kind) for kind in (layout.State, layout.PoolWords)] == [112, 416]


def test_images_of_others_are_refused(architecture: str) -> None:
    (other,) = set(native_image.ARCHITECTURES) - {architecture}
    entries = (Entry("f", (("read", 4),), 1, (1, 1, 1)),)
    row = native_image.Entry(0, 1, 1)
    with open_cpu(1) as device:
        for payload, error, match in (
            (native_image.encode(other, [row], b"\0" * 16), Unsupported, f"code for {other}, .* runs {architecture}"),
            (native_image.encode(architecture, [row, row], b"\0" * 16), ModuleError, "2 entries, the module names 1"),
            (native_image.encode(architecture, [native_image.Entry(0, 2, 1)], b"\0" * 16), ModuleError, "2 bindings"),
            (native_image.encode(architecture, [native_image.Entry(0, 1, 3)], b"\0" * 16), ModuleError, "3 parameters"),
            (b"ORCHNIMG", ModuleError, "header"),
        ):
            with pytest.raises(error, match=match):
                device.create_executable("native-image", memoryview(payload), entries)


def test_code_is_native(architecture: str) -> None:
    """Code from no module does not run unless the caller trusts everything."""
    with open_device("cpu", policy=Policy()) as device:
        kernel = Rig(device, computes=True).kernel(4)
        with pytest.raises(PolicyRefused, match="native-image is native code"):
            device.create_executable(kernel.format, memoryview(kernel.payload), kernel.entries)


@pytest.mark.parametrize("sealed", [True, False])
def test_memory_of_code(architecture: str, sealed: bool) -> None:
    """Code is readable and executable, and never writable; it is gone when it is released."""
    code = np.random.default_rng(0).bytes(10_000)
    memory = CodeMemory(code, sealed)
    (row,) = _maps(memory.address)
    assert row.split()[1] == "r-xp"
    assert ("orchestrion-code" in row) == sealed
    import ctypes

    assert ctypes.string_at(memory.address, len(code)) == code
    address = memory.address
    memory.release()
    memory.release()
    assert not _maps(address)


def test_no_memory_is_writable_and_executable(architecture: str) -> None:
    with open_cpu() as device:
        rig = Rig(device, computes=True)
        rig.executable()
        assert not [
            row
            for row in Path("/proc/self/maps").read_text().splitlines()
            if "orchestrion-code" in row and "w" in row.split()[1]
        ]


def _maps(address: int) -> list[str]:
    """The row of `/proc/self/maps` that begins at an address."""
    return re.findall(f"^{address:x}-.*$", Path("/proc/self/maps").read_text(), re.M)


def test_levels_of_processors() -> None:
    levels = list(processor.LEVELS)
    flags = ""
    for number, level in enumerate(levels):
        flags += f"{processor.LEVELS[level]} "
        assert processor.instruction_sets("x86-64", {"flags": flags}) == set(levels[: number + 1])
    without = flags.replace("bmi2 ", "")
    assert processor.instruction_sets("x86-64", {"flags": without}) == {"x86-64-v2"}
    with pytest.raises(DriverUnavailable, match=r"lacks cx16, .* of x86-64-v2"):
        processor.instruction_sets("x86-64", {"flags": "sse sse2"})
    assert processor.instruction_sets("aarch64", {}) == {"aarch64"}
    assert processor.instruction_sets("aarch64", {"Features": "fp asimd asimddp"}) == {"aarch64", "aarch64-dotprod"}


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("sys.platform", "darwin", "runs on Linux, this is darwin"),
        ("sys.byteorder", "big", "big endian"),
        ("os.uname", lambda: os.uname_result(("Linux", "n", "6", "v", "riscv64")), "this is riscv64"),
    ],
    ids=["system", "endian", "machine"],
)
def test_missing_driver_says_why(monkeypatch: pytest.MonkeyPatch, name: str, value: object, match: str) -> None:
    module, _, attribute = name.partition(".")
    monkeypatch.setattr(sys.modules[module], attribute, value)
    (status,) = [status for status in list_devices() if status.name == "cpu"]
    assert not status.devices and re.search(match, status.reason)


def test_thread_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(THREADS, raising=False)
    assert thread_count() == len(os.sched_getaffinity(0))
    monkeypatch.setenv(THREADS, "3")
    assert thread_count() == 3
    for wrong in ("0", "-1", "two", "1025"):
        monkeypatch.setenv(THREADS, wrong)
        with pytest.raises(InvalidArgument, match=f"{THREADS}='{wrong}' is not a number from 1 to 1024"):
            thread_count()
        with pytest.raises(DriverUnavailable, match=THREADS):
            open_device("cpu")


def test_threads_of_a_device(architecture: str) -> None:
    policy = Policy(allow_native_code=True)
    for profiling in (False, True):
        with open_device("cpu", policy=policy, profiling=profiling, threads=3) as device:
            assert device.info.notes == ("3 threads",)
    for wrong in (0, 1025):
        with pytest.raises(InvalidArgument, match=f"{wrong} threads, 1 to 1024 are allowed"):
            open_device("cpu", threads=wrong)
    with pytest.raises(Unsupported, match="driver null does not run on a number of threads"):
        open_device("null", threads=2)


class Stop(Exception):
    pass


class Counter:
    """A watcher that counts, and raises at the `last` look."""

    def __init__(self, last: int = 0) -> None:
        self.last = last
        self.looks = 0

    def check(self) -> None:
        self.looks += 1
        if self.looks == self.last:
            raise Stop


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("groups", [63, 1000])
def test_long_dispatches(rig: Rig, groups: int, architecture: str) -> None:
    """A dispatch is left when its time slice ends, and continued: every workgroup runs once, also after a run that its
    watcher ended. The caller works from the front, helpers from the back, so a range in the middle is left.
    """
    needs_llvmlite()
    payload = native_images.build(SLOW, [("slow", 1, 1)], architecture)
    executable = rig.device.create_executable("native-image", memoryview(payload), SLOW_ENTRIES)
    commands = rig.recording(1)
    turns = TURNS // groups
    commands.dispatch(executable, 0, (groups, 1, 1), [(0, 0, 4 * groups)], turns.to_bytes(4, "little"))
    commands.finish()
    out = rig.zeros(4 * groups)
    table = [out.backend]
    watcher = Counter(1)
    with pytest.raises(Stop):
        commands.backend.run(table, watcher)  # type: ignore[attr-defined]
    counts = rig.contents(out).view(np.uint32)
    (left,) = np.nonzero(counts == 0)
    assert counts.max() <= 1 and 0 < len(left) == np.ptp(left) + 1
    assert counts[0] == 1 and (rig.device.info.notes != ("1 thread",) or counts[-1] == 0)
    out.write(np.zeros(groups, np.uint32))
    watcher = Counter()
    commands.backend.run(table, watcher)  # type: ignore[attr-defined]
    rig.computed(out, np.ones(groups, np.uint32))
    assert watcher.looks >= 1
    executable.release()


def test_long_dispatches_are_always_shared(architecture: str) -> None:
    """Each run of a long dispatch is offered to the helpers, also if they sleep in the run after which its time is
    measured again. A shared dispatch has a number of its own, the epoch of the ticket.
    """
    needs_llvmlite()
    payload = native_images.build(SLOW, [("slow", 1, 1)], architecture)
    groups, turns, runs = 64, 5000, 200
    with open_cpu(2) as device:
        rig, words = Rig(device, computes=True), shared_pool(2).words
        executable = device.create_executable("native-image", memoryview(payload), SLOW_ENTRIES)
        commands = rig.recording(1)
        commands.dispatch(executable, 0, (groups, 1, 1), [(0, 0, 4 * groups)], turns.to_bytes(4, "little"))
        commands.finish()
        out = rig.zeros(4 * groups)
        before = words.ticket >> 32
        for _ in range(runs):
            end = time.monotonic() + 10
            while words.sleepers < words.helpers and time.monotonic() < end:
                time.sleep(0.0001)
            rig.run(commands, out)
        assert words.ticket >> 32 == before + runs
        rig.computed(out, np.full(groups, runs, np.uint32))
        executable.release()


@pytest.mark.parametrize("groups", [17, 25, 49, 100, 1000])
def test_chunks_are_even(groups: int, architecture: str) -> None:
    """Chunks of a dispatch that threads share differ by one workgroup at most. Each workgroup writes how many its chunk
    has. A run that is shared in one piece takes one number of the ticket.
    """
    needs_llvmlite()
    text = SLOW.replace("add i32 %count, 1", "trunc i64 %size to i32")
    text = text.replace("br label %group\n", "%size = sub i64 %end, %begin\n  br label %group\n", 1)
    payload = native_images.build(text, [("slow", 1, 1)], architecture)
    with open_cpu(2) as device:
        rig, words = Rig(device, computes=True), shared_pool(2).words
        executable = device.create_executable("native-image", memoryview(payload), SLOW_ENTRIES)
        commands = rig.recording(1)
        commands.dispatch(executable, 0, (groups, 1, 1), [(0, 0, 4 * groups)], (5000).to_bytes(4, "little"))
        commands.finish()
        out = rig.zeros(4 * groups)
        rig.run(commands, out)  # measures
        shared = 0
        while shared != 1:
            before = words.ticket >> 32
            rig.run(commands, out)
            shared = (words.ticket >> 32) - before
        sizes = rig.contents(out)[: 4 * groups].view(np.uint32)
        assert max(sizes) - min(sizes) <= 1, sizes
        executable.release()


@pytest.mark.parametrize("groups", [*range(1, 40), 127, 128, 129, 1000, 65_535, 65_536, 1_000_003])
def test_every_workgroup_runs_once(groups: int) -> None:
    """However the workgroups divide into chunks. IOTA and INCREMENT have different sizes of workgroups."""
    for threads in (1, 2, 5):
        with open_cpu(threads) as device:
            rig = Rig(device, computes=True)
            commands = rig.recording(1)
            rig.dispatch(commands, IOTA, [(0, 0, 4 * groups)], groups, 5)
            rig.dispatch(commands, INCREMENT, [(0, 0, 4 * groups)], groups, 7)
            commands.finish()
            data = rig.zeros(4 * groups)
            rig.run(commands, data)
            rig.computed(data, np.arange(groups, dtype=np.uint32) + np.uint32(12))


def test_pool_is_shared() -> None:
    """All devices of a process use one pool."""
    with open_cpu(2) as first, open_cpu(4) as second:
        pools = [device.device_state.backend._pool for device in (first, second)]  # type: ignore[attr-defined]
        assert pools[0] is pools[1] is shared_pool(1)


STOPPED = """
import numpy as np
from cpu_devices import open_cpu
from orchestrion.hal.cpu.pool import shared_pool
from orchestrion.hal.cts.kernels import INCREMENT
from orchestrion.hal.cts.rig import Rig
pool = shared_pool(3)
with open_cpu(3) as device:
    rig = Rig(device, computes=True)
    data = rig.zeros(40_000)
    commands = rig.recording(1)
    rig.dispatch(commands, INCREMENT, [(0, 0, 40_000)], 10_000, 1)
    commands.finish()
    rig.run(commands, data)
    pool.stop()
    assert pool.words.helpers == 0
    rig.run(commands, data)
    rig.computed(data, np.full(10_000, 2, np.uint32))
"""


def test_calls_after_the_pool_stopped(architecture: str) -> None:
    """A thread that is no daemon goes on after the helpers were stopped at exit."""
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", STOPPED],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert (done.returncode, done.stderr) == (0, "")


GUARDED = [
    name for name in catalogue.CASES if name.split(".")[0] in ("dispatches", "transfers", "indirect", "recordings")
]


@pytest.mark.parametrize("at_end", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("case", GUARDED)
def test_conformance_between_guard_pages(case: str, at_end: bool) -> None:
    reason = catalogue.why_not(case, "cpu")
    if reason is not None:
        pytest.skip(reason)
    with guard_pages(at_end):
        catalogue.run(case, "cpu")


OUTSIDE = """
import sys
from cpu_devices import open_cpu
from guard_pages import guard_pages
from orchestrion.hal.cts.kernels import INCREMENT
from orchestrion.hal.cts.rig import Rig
with guard_pages(True), open_cpu(1) as device:
    rig = Rig(device, computes=True)
    commands = rig.recording(1)
    rig.dispatch(commands, INCREMENT, [(0, 0, 64)], 17, 1)
    commands.finish()
    rig.run(commands, rig.zeros(64))
"""


def test_guard_pages_catch_an_access(architecture: str) -> None:
    """A kernel that is told of one element more than its binding has ends the process."""
    path = os.pathsep.join(sys.path)
    done = subprocess.run([sys.executable, "-c", OUTSIDE], timeout=60, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == -signal.SIGSEGV
