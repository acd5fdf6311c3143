"""Calls into the driver's API in a warm call: with recorded replay as many for twelve dispatches as for two."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from orchestrion import compiler

LoadOn = Callable[[bytes, str], Any]

DEPTHS = (2, 12)
#: what a blocking call on OpenCL ends with
WAIT = {"clWaitForEvents": 1, "clReleaseEvent": 1}
X = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)
W = np.cos(np.arange(64, dtype=np.float32)).reshape(8, 8) / 4


@cache
def chain(depth: int) -> bytes:
    """A module: products of 8x8 matrices, each of the one before with the second argument."""
    matrix, sides = "tensor<8x8xf32>", "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]"
    dots = [
        f'%{index + 1} = "stablehlo.dot_general"(%{index}, %w) <{{dot_dimension_numbers = #stablehlo.dot<{sides}>}}>'
        f" : ({matrix}, {matrix}) -> {matrix}"
        for index in range(depth)
    ]
    body = "\n".join([f"^bb0(%0: {matrix}, %w: {matrix}):", *dots, f'"func.return"(%{depth}) : ({matrix}) -> ()'])
    attributes = f'<{{function_type = ({matrix}, {matrix}) -> {matrix}, sym_name = "main"}}>'
    return compiler.compile(
        f'"builtin.module"() ({{\n"func.func"() {attributes} ({{\n{body}\n}}) : () -> ()\n}}) : () -> ()\n'
    )


def wanted(x: np.ndarray[Any, Any], depth: int) -> np.ndarray[Any, Any]:
    for _ in range(depth):
        x = x @ W
    return x


def counted(seen: Counter[str], name: str, function: Any) -> Any:
    def call(*arguments: Any) -> Any:
        seen[name] += 1
        return function(*arguments)

    return call


@pytest.fixture
def opencl_calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """What is called of OpenCL, directly or through pyopencl, by devices opened from here on."""
    pytest.importorskip("pyopencl")
    import pyopencl as cl

    from orchestrion.hal.opencl import api, device

    seen: Counter[str] = Counter()

    class CountingApi(api.Api):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            for name, function in vars(self.calls).items():
                setattr(self.calls, name, counted(seen, name, function))

    monkeypatch.setattr(device, "Api", CountingApi)
    for name in ("enqueue_copy", "enqueue_fill", "enqueue_nd_range_kernel"):
        monkeypatch.setattr(cl, name, counted(seen, name, getattr(cl, name)))
    yield seen


def warmed(program: Any, depth: int) -> Callable[[], None]:
    """A call with arguments and a destination that were used before."""
    x, w, out = program.put(X), program.put(W), program.empty((8, 8), np.float32)

    def call() -> None:
        program.main(x, w, out=out)

    for _ in range(3):
        call()
    assert program.statistics()["calls"][-1]["dispatches"] == depth
    np.testing.assert_allclose(np.asarray(out), wanted(X, depth), rtol=1e-5, atol=1e-6)
    return call


@pytest.mark.parametrize("depth", DEPTHS)
def test_vulkan(depth: int, load_on: LoadOn) -> None:
    program = load_on(chain(depth), "vulkan")
    call, backend, seen = warmed(program, depth), program.device.device_state.backend, Counter[str]()
    for name, function in vars(backend.vk).items():
        setattr(backend.vk, name, counted(seen, name, function))
    for name in ("_submit", "_wait", "_reset"):
        setattr(backend.queue, name, counted(seen, name, getattr(backend.queue, name)))
    call()
    assert seen == {"_submit": 1, "_wait": 1, "_reset": 1}


@pytest.mark.parametrize("depth", DEPTHS)
def test_opencl_with_command_buffers(depth: int, opencl_calls: Counter[str], load_on: LoadOn) -> None:
    program = load_on(chain(depth), "opencl")
    if "calls replay command buffers" not in program.device.info.notes:
        pytest.skip("; ".join(program.device.info.notes))
    call = warmed(program, depth)
    opencl_calls.clear()
    call()
    assert opencl_calls == {"clEnqueueCommandBufferKHR": 1, **WAIT}


@pytest.mark.parametrize("depth", DEPTHS)
def test_opencl_with_enqueue_lists(
    depth: int, opencl_calls: Counter[str], monkeypatch: pytest.MonkeyPatch, load_on: LoadOn
) -> None:
    """One call per dispatch, and none to set an argument."""
    from orchestrion.hal.opencl import device

    monkeypatch.setattr(device, "why_no_command_buffers", lambda _: "left unused")
    program = load_on(chain(depth), "opencl")
    call = warmed(program, depth)
    opencl_calls.clear()
    call()
    assert opencl_calls == {"clEnqueueNDRangeKernel": depth, **WAIT}


@pytest.mark.parametrize("recorded", [True, False])
def test_opencl_sets_what_changed(
    recorded: bool, opencl_calls: Counter[str], monkeypatch: pytest.MonkeyPatch, load_on: LoadOn
) -> None:
    """Another destination: the one argument that is its slot is set, or a command buffer recorded, the first time."""
    from orchestrion.hal.opencl import device

    if not recorded:
        monkeypatch.setattr(device, "why_no_command_buffers", lambda _: "left unused")
    program = load_on(chain(12), "opencl")
    if recorded and "calls replay command buffers" not in program.device.info.notes:
        pytest.skip("; ".join(program.device.info.notes))
    x, w = program.put(X), program.put(W)
    outs = [program.empty((8, 8), np.float32) for _ in range(2)]
    for out in outs:
        program.main(x, w, out=out)
    for out in outs:
        opencl_calls.clear()
        program.main(x, w, out=out)
        settings = opencl_calls["clSetKernelArg"] + opencl_calls["clSetKernelArgSVMPointer"]
        assert (settings, opencl_calls["clWaitForEvents"]) == (0 if recorded else 1, 1)
        np.testing.assert_allclose(np.asarray(out), wanted(X, 12), rtol=1e-5, atol=1e-6)
