"""PoCL compiles a kernel when it is first launched: a load launches each one, child processes some of them before."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from orchestrion import compiler, vm
from orchestrion.hal.parallel_jobs import HelperFailed

pytest.importorskip("pyopencl")
jnp = pytest.importorskip("jax.numpy")

from orchestrion.hal.opencl import launches  # noqa: E402
from orchestrion.hal.opencl.launch_helpers import Helper, helpers  # noqa: E402
from orchestrion.hal.opencl.launches import Launch  # noqa: E402

X = np.linspace(0, 1, 48 * 64, dtype=np.float32).reshape(48, 64)


def chain(x: Any) -> Any:
    return jnp.sort(jnp.tanh(x @ x.T), axis=0).sum(1)


@pytest.fixture(scope="module")
def blob() -> bytes:
    return compiler.compile(chain, X, targets=["opencl"])


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Launch]]:
    """The launches of loads, none of which is known."""
    found: list[Launch] = []
    launch = launches._LaunchScratch.launch

    def noting(scratch: Any, job: Launch) -> None:
        found.append(job)
        launch(scratch, job)

    monkeypatch.setattr(launches._LaunchScratch, "launch", noting)
    monkeypatch.setattr(launches.Launcher, "_is_known", lambda self, payload: False)
    yield found


def pocl(blob: bytes) -> Any:
    program = vm.load(blob, device="opencl", allow_native_code=True)
    if program.device.device_state.backend._launcher is None:
        program.close()
        pytest.skip("the OpenCL device compiles when a program is built")
    return program


def test_each_kernel_is_launched_once(blob: bytes, seen: list[Launch]) -> None:
    with pocl(blob) as program:
        kernels = [job.row.name for job in seen]
        assert len(kernels) == len(set(kernels)) > 1
        np.testing.assert_allclose(program.main(X), chain(X), 1e-4, 1e-4)
        assert len(seen) == len(kernels)
        with vm.load(blob, device=program.device):  # the same executables
            assert len(seen) == len(kernels)


def test_a_large_grid_is_launched_large(seen: list[Launch]) -> None:
    """PoCL makes other code for 65,536 work-items in a dimension and more."""
    x = np.ones(1 << 17, np.float32)
    with pocl(compiler.compile(lambda x: x + 1, x, targets=["opencl"])) as program:
        (job,) = seen
        items = job.groups[0] * job.row.workgroup_size[0]
        assert launches.LARGE_GRID <= items <= launches.LARGE_GRID + job.row.workgroup_size[0]
        assert job.code == (0, True) and program.main(x)[0] == 2


def test_helpers_launch_where_that_pays(blob: bytes, seen: list[Launch], monkeypatch: pytest.MonkeyPatch) -> None:
    helped: list[str] = []

    class Fake:
        def start(self) -> None: ...

        def build(self, payload: memoryview, entries: object) -> None:
            helped.append("program")

        def __call__(self, job: Launch) -> None:
            helped.append(job.row.name)
            raise HelperFailed("the child is gone")

    monkeypatch.setattr(launches.Launcher, "_helpers", lambda self: [Fake()])
    with pocl(blob) as program:
        assert not helped, "little source"
    monkeypatch.setattr(launches, "MIN_HELPED_SOURCE_BYTES", 1)
    seen.clear()
    with pocl(blob) as program:
        np.testing.assert_allclose(program.main(X), chain(X), 1e-4, 1e-4)
        assert helped.count("program") <= 1
        names = [job.row.name for job in seen]
        assert len(names) == len(set(names)), "what a helper failed at is launched here"


def test_a_child_process_builds_and_launches(blob: bytes, seen: list[Launch]) -> None:
    with pocl(blob) as program:
        jobs = list(seen)
        index = program.device.info.index
        found = helpers(index)
        if not found:
            pytest.skip("one processor")
        helper = found[0]
        for job in jobs[:2]:
            helper(job)  # it asks for the program first
        assert isinstance(helper, Helper)
        helper._child.end()
        wrong = jobs[0]._replace(entry=99)
        with pytest.raises(HelperFailed, match="IndexError"):
            helper(wrong)
        helper._child.end()
