"""Untrusted code is built in a helper process first: deadlines, crashes, and remembered results."""

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from straight_line import straight_line

from orchestrion.hal.backend import Entry
from orchestrion.hal.building import BuildBudget
from orchestrion.hal.cts import kernels
from orchestrion.hal.device import Device
from orchestrion.hal.errors import BuildDeadlineExceeded, BuildFailed, DriverUnavailable, InvalidArgument, Unsupported
from orchestrion.hal.policy import Policy
from orchestrion.hal.registry import open_device
from orchestrion.hal.vulkan import trial_build
from orchestrion.hal.vulkan.device import VulkanDevice
from orchestrion.hal.vulkan.driver import VulkanDriver
from orchestrion.hal.vulkan.pipeline_cache import cache_key
from orchestrion.schema.child_process import Child
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.trust.store import TrustStore

ENTRIES = (Entry("main", (("readwrite", 4),), 0, (1, 1, 1)),)
#: seconds for a build that nothing hinders, on a machine that is busy
LONG = 120.0
#: seconds above a deadline in which its error must be there: the time to end a process, on a machine that is busy
MARGIN = 10.0

Assembler = Callable[[str], bytes]


@pytest.fixture(autouse=True)
def _own_cache_and_helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty cache of ours and of the driver (Mesa caches code too)."""
    monkeypatch.setenv("ORCHESTRION_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MESA_SHADER_CACHE_DISABLE", "true")
    try:
        VulkanDriver().devices()
    except DriverUnavailable as error:
        pytest.skip(str(error))
    helper = trial_build.helper
    helper.end()
    yield
    helper.end()


@pytest.fixture(params=[0, 1], ids=["first", "swiftshader"])
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    with open_device(request.getfixturevalue("swiftshader") if request.param else "vulkan") as opened:
        yield opened


@pytest.fixture
def first() -> Iterator[Device]:
    with open_device("vulkan") as opened:
        yield opened


def faulty(monkeypatch: pytest.MonkeyPatch, name: str) -> Child:
    """Replaces the helper by one of `faulty_builds` until the test ends."""
    made = Child(f"faulty_builds:{name}")
    monkeypatch.setattr(trial_build, "helper", made)
    return made


def build(device: Device, payload: bytes, deadline: float | None = None, digest: bytes | None = None) -> None:
    with device.share(builds=BuildBudget(deadline)) as share:
        share.create_executable("spirv", memoryview(payload), ENTRIES, digest).release()


def rows(tmp_path: Path) -> list[Path]:
    """All files in the cache, including half-written ones."""
    return [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def gone(pid: int) -> bool:
    until = time.monotonic() + MARGIN
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


# what is built, and what is remembered


def test_it_is_built_once_by_the_helper(
    device: Device, spirv_assembler: Assembler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    payload = spirv_assembler(straight_line(20))
    build(device, payload, LONG)
    assert trial_build.helper.pid is not None and rows(tmp_path)
    monkeypatch.setattr(trial_build, "helper", None)
    device.executables.clear()
    build(device, payload, LONG)


def test_results_are_those_of_the_code(first: Device) -> None:
    """A whole dispatch, of a kernel with parameters."""
    kernel = kernels.FORMATS["spirv"](64, 5)
    executable = first.create_executable("spirv", memoryview(kernel.payload), kernel.entries)
    assert trial_build.helper.pid is not None
    buffer = first.allocator.allocate(256)
    commands = first.create_command_buffer()
    commands.dispatch(executable, kernels.IOTA, (64, 1, 1), [(buffer, 0, 256)], kernel.parameters)
    commands.finish()
    first.queue.execute(commands)
    out = np.empty(256, np.uint8)
    buffer.read(out)
    np.testing.assert_array_equal(out.view(np.uint32), np.arange(64) + 5)
    for thing in (commands, buffer, executable):
        thing.release()


def test_a_row_of_a_slower_build_permits_no_shorter_deadline(
    first: Device, spirv_assembler: Assembler, monkeypatch: pytest.MonkeyPatch
) -> None:
    payload = spirv_assembler(straight_line(21))
    backend = first.device_state.backend
    assert isinstance(backend, VulkanDevice)
    build(first, payload, LONG)
    asked: list[float] = []
    monkeypatch.setattr(
        trial_build.helper, "request", lambda *_, deadline: asked.append(deadline) or pytest.fail("asked")
    )
    first.executables.clear()
    with pytest.raises(pytest.fail.Exception):
        build(first, payload, 1e-6)
    backend.cache._folder = None  # as ORCHESTRION_CACHE=off has it
    with pytest.raises(pytest.fail.Exception):
        build(first, payload, LONG)
    assert len(asked) == 2


def test_pipelines_that_the_driver_keeps_are_handed_back(
    first: Device, spirv_assembler: Assembler, monkeypatch: pytest.MonkeyPatch
) -> None:
    from faulty_builds import PIPELINES

    faulty(monkeypatch, "keep")
    backend = first.device_state.backend
    assert isinstance(backend, VulkanDevice)
    payload = spirv_assembler(straight_line(22))
    given: list[bytes] = []
    real = VulkanDevice.create_executable

    def create(self: VulkanDevice, format: str, payload: memoryview, entries: tuple[Entry, ...]) -> Any:
        given.append(self.cache.get(*cache_key(self, payload)) or b"")
        return real(self, format, payload, entries)

    monkeypatch.setattr(VulkanDevice, "create_executable", create)
    build(first, payload)
    assert given == [PIPELINES]


def test_trusted_code_is_built_here(first: Device, spirv_assembler: Assembler, tmp_path: Path) -> None:
    store, digest = TrustStore(tmp_path / "trust"), bytes(range(32))
    store.add(digest)
    backend = VulkanDriver().open(first.info)
    with Device.of(backend, policy=Policy(store=store)) as opened:
        payload = spirv_assembler(straight_line(23))
        build(opened, payload, None, digest)
        build(opened, spirv_assembler(straight_line(24)), math.inf, None)
        assert trial_build.helper.pid is None
        opened.executables.clear()
        build(opened, payload, LONG, digest)  # a deadline is for everybody
        assert trial_build.helper.pid is not None


def test_errors_are_those_of_the_checker(first: Device, spirv_assembler: Assembler, tmp_path: Path) -> None:
    payload = spirv_assembler(straight_line(25))
    damaged = payload[:-8] + b"\xff\xff\xff\xff" + payload[-4:]
    said = []
    for deadline in (None, math.inf):
        with pytest.raises(ModuleError) as caught:
            build(first, damaged, deadline)
        said.append((str(caught.value), caught.value.offset))
    assert said[0] == said[1] and not rows(tmp_path)
    large = (Entry("main", (("readwrite", 4),), 0, (1, 1, 1024)),)
    with pytest.raises((Unsupported, ModuleError), match="workgroup size|LocalSize"):
        first.create_executable("spirv", memoryview(payload), large)


# deadlines


@pytest.mark.parametrize("instructions", [1400, 4200], ids=["28 KiB", "83 KiB"])
def test_slow_code_ends_at_the_deadline(
    first: Device, spirv_assembler: Assembler, tmp_path: Path, instructions: int
) -> None:
    """The driver of this device takes seconds for this code. An earlier version did not limit the time of a build."""
    payload = spirv_assembler(straight_line(instructions))
    build(first, spirv_assembler(straight_line(1)))  # the helper is there
    pid, before = trial_build.helper.pid, rows(tmp_path)
    assert pid is not None
    started = time.monotonic()
    with pytest.raises(BuildDeadlineExceeded, match=rf"deadline of 0\.01 s: {len(payload)} bytes"):
        build(first, payload, 0.01)  # to check the code alone takes longer
    assert time.monotonic() - started < 0.01 + MARGIN
    assert gone(pid) and trial_build.helper.pid is None and rows(tmp_path) == before
    build(first, spirv_assembler(straight_line(2)))


@pytest.mark.long
def test_28_kib_are_built_when_there_is_time(device: Device, spirv_assembler: Assembler) -> None:
    build(device, spirv_assembler(straight_line(1400)), LONG)


def test_a_build_that_never_ends(
    device: Device, spirv_assembler: Assembler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper = faulty(monkeypatch, "spin")
    started = time.monotonic()
    with pytest.raises(BuildDeadlineExceeded, match=r"deadline of 0\.3 s"):
        build(device, spirv_assembler(straight_line(30)), 0.3)
    assert time.monotonic() - started < 60 + MARGIN  # the helper starts in that time too
    assert helper.pid is None and not rows(tmp_path)


def test_executables_of_a_program_share_the_deadline(
    first: Device, spirv_assembler: Assembler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(VulkanDevice, "trial_build", lambda self, format, payload, entries, deadline: 0.6)
    payloads = [memoryview(spirv_assembler(straight_line(31 + i))) for i in range(3)]
    with first.share(builds=BuildBudget(1.0)) as share:
        for payload in payloads[:2]:
            with share.share() as context:
                context.create_executable("spirv", payload, ENTRIES).release()
        with pytest.raises(BuildDeadlineExceeded, match=r"1 s: \d+ bytes were not done after 0 s"):
            share.create_executable("spirv", payloads[2], ENTRIES)
    build(first, bytes(payloads[2]))


def test_the_default_grows_and_ends() -> None:
    budget = BuildBudget()
    assert budget.take(0) == 10 and budget.take(100 << 10) == pytest.approx(20)
    budget.spend(15)
    assert budget.take(0) == pytest.approx(5)
    assert budget.take(1 << 40) == 300 - 15
    for wrong in (0.0, -1.0, math.nan):
        with pytest.raises(InvalidArgument, match="build deadline"):
            BuildBudget(wrong)


# helpers that fail


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("crash", r"crashed while building code of this module \(\d+ bytes\) in a helper process, .*SIGSEGV"),
        ("crash_at_once", "crashed while opening the device .*SIGABRT"),
        ("fail", "building code of this module failed .*MemoryError"),
        ("blind", "does not find device vulkan "),
    ],
)
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_helper_that_fails_is_an_error(
    first: Device, spirv_assembler: Assembler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str, message: str
) -> None:
    payload = spirv_assembler(straight_line(40))
    with monkeypatch.context() as patch:
        helper = faulty(patch, kind)
        with pytest.raises(BuildFailed, match=message):
            build(first, payload)
        helper.end()
    assert not rows(tmp_path)
    build(first, payload)


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_helper_that_is_killed_is_an_error(
    first: Device, spirv_assembler: Assembler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    helper = faulty(monkeypatch, "spin")
    payload = spirv_assembler(straight_line(41))

    def kill() -> None:
        while helper.pid is None or helper._process is None or helper._process.fresh:
            time.sleep(0.01)
        time.sleep(0.2)
        os.kill(helper.pid, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    with pytest.raises(BuildFailed, match="SIGKILL"):
        build(first, payload, LONG)
    thread.join()
    assert not rows(tmp_path) and helper.pid is None


def test_without_processes_there_is_a_way(
    first: Device, spirv_assembler: Assembler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    payload = spirv_assembler(straight_line(42))
    with pytest.raises(Unsupported, match="cannot be limited: no child process.*build_deadline=inf"):
        build(first, payload)
    build(first, payload, math.inf)


# threads and forks


def test_threads_build_at_once(device: Device, spirv_assembler: Assembler) -> None:
    payloads = [spirv_assembler(straight_line(50 + i)) for i in range(4)]
    failures: list[BaseException] = []

    def work(start: int) -> None:
        try:
            for i in range(len(payloads)):
                build(device, payloads[(start + i) % len(payloads)], LONG)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
def test_a_fork_leaves_the_helper_alone(first: Device, spirv_assembler: Assembler) -> None:
    build(first, spirv_assembler(straight_line(60)))
    mine = trial_build.helper.pid
    pid = os.fork()
    if not pid:
        os._exit(0 if trial_build.helper.pid is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    build(first, spirv_assembler(straight_line(61)))
    assert trial_build.helper.pid == mine


# other devices


def test_devices_that_compile_nothing_need_no_helper() -> None:
    for name in ("reference", "null"):
        with open_device(name) as opened, opened.share(builds=BuildBudget(1e-9)) as share:
            share.trial_build("any", memoryview(bytes(1 << 20)), (), None)
    assert trial_build.helper.pid is None


def test_opencl_says_that_it_cannot() -> None:
    pytest.importorskip("pyopencl")
    try:
        opened = open_device("opencl", policy=Policy(True))
    except (DriverUnavailable, InvalidArgument) as error:
        pytest.skip(str(error))
    kernel = kernels.FORMATS["opencl-c"](4, 0)
    arguments = "opencl-c", memoryview(kernel.payload), kernel.entries
    with opened:
        with opened.share(builds=BuildBudget(LONG)) as share:
            with pytest.raises(Unsupported, match="cannot limit the time for building code; build_deadline=inf"):
                share.create_executable(*arguments)
        opened.create_executable(*arguments).release()
