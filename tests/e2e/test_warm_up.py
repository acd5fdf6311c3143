"""The first call after an eager load creates, builds and compiles nothing: counted at the driver's own functions."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrion import compiler, vm

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

DEVICES = ("reference", "opencl", "vulkan")
#: functions of a driver by which it creates, builds or records
MAKES = ("vkCreate", "vkAllocate", "vkBeginCommandBuffer", "clCreate", "clCommand", "clFinalize", "clBuild")


def mlp(x: Any, w: Any, v: Any) -> Any:
    return jax.nn.softmax(jnp.tanh(x @ w) @ v)


def convolutions(x: Any, w: Any) -> Any:
    y = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return lax.reduce_window(jax.nn.relu(y), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID").sum((1, 2))


def counted_loop(x: Any) -> Any:
    return lax.fori_loop(0, 5, lambda i, y: jnp.sort(jnp.tanh(y) @ y / 9) + i, x)


def loop_with_branches(x: Any) -> Any:
    def step(y: Any) -> Any:
        return lax.cond(y.sum() > 40, lambda y: y @ y / 9, lambda y: jnp.sort(y, 0) + 1.5, y)

    return lax.while_loop(lambda y: y.sum() < 300, step, x)


def floats(*shape: int) -> Any:
    return np.linspace(0.1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "mlp": (mlp, (floats(4, 16), floats(16, 8), floats(8, 3))),
    "convolutions": (convolutions, (floats(1, 8, 8, 3), floats(3, 3, 3, 4))),
    "counted loop": (counted_loop, (floats(5, 5),)),
    "loop with branches": (loop_with_branches, (floats(6, 6),)),
}


@cache
def module(name: str) -> bytes:
    function, arguments = PROGRAMS[name]
    return compiler.compile(function, *arguments)


#: loads a module, calls it with arrays of an archive, prints how many kernels PoCL has compiled before and after
CHILD = """
import os, sys
from pathlib import Path
import numpy as np
from orchestrion import vm

def kernels():  # PoCL compiles a kernel when it is launched, and keeps it on disk
    return len(list(Path(os.environ["POCL_CACHE_DIR"]).rglob("*.so")))

arguments = np.load(sys.argv[2])
program = vm.load(sys.argv[1], device="opencl", allow_native_code=True)
before = kernels()
program.main(*(arguments[name] for name in sorted(arguments.files)))
print(before, kernels())
"""


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], Counter[str]]]:
    """Counts, from now on, what the driver of a program's device is asked to make."""
    seen: Counter[str] = Counter()

    def wrap(owner: Any, name: str, called: str = "") -> None:
        function = getattr(owner, name)

        def call(*arguments: Any, **named: Any) -> Any:
            seen[called or name] += 1
            return function(*arguments, **named)

        call.inner, call.name = function, name  # type: ignore[attr-defined]
        monkeypatch.setattr(owner, name, call)

    def count(program: Any) -> Counter[str]:
        backend = program.device.device_state.backend
        for name in ("allocate", "create_executable", "create_command_buffer", "create_semaphore", "import_host"):
            wrap(type(backend), name)
        if program.device.info.id.startswith("vulkan"):
            for name in vars(backend.vk):
                if name.startswith(MAKES):
                    wrap(backend.vk, name)
            create = type(backend.api).create

            def unwrapped(api: Any, function: Any, *rest: Any) -> Any:
                seen[getattr(function, "name", "vkCreate")] += 1
                return create(api, getattr(function, "inner", function), *rest)

            monkeypatch.setattr(type(backend.api), "create", unwrapped)
        if program.device.info.id.startswith("opencl"):
            import pyopencl

            for name in vars(backend._api.calls):
                if name.startswith(MAKES):
                    wrap(backend._api.calls, name)
            wrap(backend._api, "_create_kernel", "clCreateKernel")
            wrap(backend._api, "_create_command_buffer", "clCreateCommandBufferKHR")
            for kind in (pyopencl.Buffer, pyopencl.SVMAllocation, pyopencl.Program):
                wrap(kind, "__init__", kind.__name__)
        return seen

    yield count


def wanted(name: str) -> Any:
    function, arguments = PROGRAMS[name]
    return np.asarray(function(*arguments))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_first_call_makes_nothing(
    name: str, device: str, load_on: Any, counting: Callable[[Any], Counter[str]]
) -> None:
    program = load_on(module(name), device)
    seen = counting(program)
    result = program.main(*PROGRAMS[name][1])
    assert not seen, f"made in the first call: {dict(seen)}"
    np.testing.assert_allclose(np.asarray(result), wanted(name), 1e-4, 1e-5)


@pytest.mark.parametrize("name", PROGRAMS)
def test_pocl_compiles_nothing_in_the_first_call(name: str, load_on: Any, tmp_path: Path) -> None:
    """In a process with a cache of its own: others may compile at the same time."""
    load_on(module(name), "opencl")  # skips the test if there is no PoCL
    (tmp_path / "module.fb").write_bytes(module(name))
    np.savez(tmp_path / "x.npz", *PROGRAMS[name][1])
    folders = {"POCL_CACHE_DIR": str(tmp_path / "kernels"), "ORCHESTRION_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-c", CHILD, str(tmp_path / "module.fb"), str(tmp_path / "x.npz")]
    done = subprocess.run(command, env=os.environ | folders, capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert before == after > 0


@pytest.mark.parametrize("device", DEVICES)
def test_a_lazy_load_builds_when_a_call_needs_it(
    device: str, load_on: Any, counting: Callable[[Any], Counter[str]]
) -> None:
    lazy: Any = load_on(module("mlp"), device, build="lazy")
    load = lazy.statistics()["load"]
    assert (load["executables_created"], load["stages"]["build"], load["cold"]) == (0, 0, "build is lazy")
    seen = counting(lazy)
    first = lazy.main(*PROGRAMS["mlp"][1])
    assert seen["create_executable"] or lazy.statistics()["calls"][0]["executables_created"] == 0
    assert seen["create_command_buffer"] and seen["allocate"]
    assert lazy.placement() and lazy.context.build_seconds > 0
    seen.clear()
    np.testing.assert_array_equal(lazy.main(*PROGRAMS["mlp"][1]), first)
    assert not seen


@pytest.mark.parametrize("device", DEVICES)
def test_a_lazy_program_can_be_warmed_up(device: str, load_on: Any, counting: Callable[[Any], Counter[str]]) -> None:
    program: Any = load_on(module("counted loop"), device, build="lazy")
    program.warm_up()
    seen = counting(program)
    program.main(*PROGRAMS["counted loop"][1])
    assert not seen
    program.warm_up()
    assert not seen


def test_memory_that_does_not_suffice_leaves_the_program_cold() -> None:
    arrays = [floats(1 << 14)] * 6
    blob = compiler.compile(lambda a, b, c, d, e, f: a + b * c - d * e + f, *arrays)
    with vm.load(blob, memory=4 * arrays[0].nbytes) as program:
        assert "exceed" in program.statistics()["load"]["cold"]
        with pytest.raises(vm.VmError, match="exceed"):
            program.warm_up()


def test_an_unknown_mode_is_named() -> None:
    with pytest.raises(vm.VmError, match="build='now': expected one of 'eager', 'lazy'"):
        vm.load(module("mlp"), build="now")  # type: ignore[arg-type]


def test_a_closed_program_is_not_warmed_up() -> None:
    program = vm.load(module("mlp"))
    program.close()
    with pytest.raises(vm.VmError, match="closed"):
        program.warm_up()
