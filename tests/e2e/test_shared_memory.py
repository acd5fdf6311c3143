"""Memory shared with other libraries by DLPack, in and out, with the copies counted."""

import functools
import gc
import mmap
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from orchestrion import compiler, vm
from orchestrion.hal.opencl.driver import OpenCLDriver
from orchestrion.hal.statistics import Statistics
from orchestrion.vm.errors import CallerError
from orchestrion.vm.interop import IMPORT_BYTES

N = IMPORT_BYTES // 4
TEXT = f"""
func.func @main(%x: tensor<{N}xf32>) -> tensor<{N}xf32> {{
  %0 = stablehlo.add %x, %x : tensor<{N}xf32>
  return %0 : tensor<{N}xf32>
}}
func.func @donated(%x: tensor<{N}xf32> {{tf.aliasing_output = 0 : i32}}) -> tensor<{N}xf32> {{
  %0 = stablehlo.add %x, %x : tensor<{N}xf32>
  return %0 : tensor<{N}xf32>
}}
func.func @same(%x: tensor<{N}xf32>) -> tensor<{N}xf32> {{
  return %x : tensor<{N}xf32>
}}
func.func @small(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}}
"""


@functools.cache
def module() -> bytes:
    return compiler.compile(TEXT)


@pytest.fixture(params=["reference", "opencl", "vulkan"])
def program(request: pytest.FixtureRequest, load_on: Callable[[bytes, str], Any]) -> Iterator[vm.Program]:
    loaded = load_on(module(), request.param)
    yield loaded
    loaded.close()


class Foreign:
    """An array of a library that speaks DLPack and nothing else."""

    def __init__(self, array: np.ndarray, device: tuple[int, int] = (1, 0)) -> None:
        self.array = array
        self.device = device
        self.exports = 0

    def __dlpack__(self, **wanted: Any) -> Any:
        self.exports += 1
        return self.array.__dlpack__(**wanted)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


def pages(words: int) -> np.ndarray:
    """Host memory that every device can import: it begins at a page."""
    memory = np.frombuffer(mmap.mmap(-1, 4 * words), np.float32)
    memory[:] = np.arange(words) % 1000
    return memory


def copied(program: vm.Program) -> tuple[int, int]:
    """Bytes that the last call copied to the device and back."""
    call = program.statistics()["calls"][-1]
    return call["host_to_device_bytes"], call["device_to_host_bytes"]


def imports_of(program: vm.Program) -> Statistics:
    """The counters of the program's calls."""
    assert program.context.device is not None
    return program.context.device.statistics


# out


def test_an_array_is_shared(program: vm.Program) -> None:
    x, out = np.arange(4, dtype=np.float32), program.empty((4,), np.float32)
    program.small(x, out=out)
    before = program.device.statistics.device_to_host_bytes
    seen = np.from_dlpack(out)
    np.testing.assert_array_equal(seen, 2 * x)
    assert program.device.statistics.device_to_host_bytes == before and out.__dlpack_device__() == (1, 0)
    program.small(2 * x, out=out)
    np.testing.assert_array_equal(seen, 4 * x)
    np.testing.assert_array_equal(np.asarray(out, copy=False), 4 * x)
    kept = np.asarray(out), np.from_dlpack(out, copy=True), np.asarray(out, np.float64)
    seen[:] = 7
    assert (out.to_numpy() == 7).all() and (program.small(out) == 14).all()
    for array in kept:
        np.testing.assert_array_equal(array, 4 * x)
    assert kept[2].dtype == np.float64
    with pytest.raises(ValueError, match="of float32 cannot be seen as one of float64 without a copy"):
        np.asarray(out, np.float64, copy=False)


def test_a_view_of_the_hal_is_shared(program: vm.Program) -> None:
    array = program.put(np.arange(6, dtype=np.int32).reshape(2, 3))
    np.testing.assert_array_equal(np.from_dlpack(array.view), [[0, 1, 2], [3, 4, 5]])


def test_other_libraries_share_it(program: vm.Program) -> None:
    jnp = pytest.importorskip("jax.numpy")
    out = program.put(np.arange(16, dtype=np.float32))
    before = program.device.statistics.device_to_host_bytes
    assert float(jnp.from_dlpack(out).sum()) == 120
    assert program.device.statistics.device_to_host_bytes == before


def test_shared_memory_outlives_its_array(program: vm.Program) -> None:
    """The capsule holds it; whichever thread drops the last array, nothing is left of it then."""
    out = program.put(np.arange(4, dtype=np.float32))
    seen, capsule = np.from_dlpack(out), out.__dlpack__()
    state = program.device.device_state
    held = len(state.owned)
    del out
    gc.collect()
    others = [program.put(np.zeros(4, np.float32)) for _ in range(8)]
    assert seen.tolist() == [0, 1, 2, 3] and len(state.owned) == held + 8
    rest = [seen]
    del seen, capsule, others

    def drop() -> None:
        with state.lock:  # as one that uses the queue
            rest.clear()
            gc.collect()

    thread = threading.Thread(target=drop)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    state.collect()
    assert len(state.owned) == held - 1


def test_what_a_call_computes_is_waited_for(program: vm.Program) -> None:
    fence, out = vm.Fence(), program.empty((4,), np.float32)
    future = program.small.submit(np.ones(4, np.float32), out=out, wait=[fence])
    fence.signal()
    future.result(10)
    assert np.from_dlpack(out).tolist() == [2, 2, 2, 2]


def test_types_that_dlpack_has_not(program: vm.Program) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = program.empty((4,), ml_dtypes.bfloat16)
    for copy in (None, True, False):
        with pytest.raises(BufferError, match="DLPack through NumPy has no bfloat16: np.asarray"):
            array.__dlpack__(copy=copy)
    with pytest.raises(BufferError, match="device"):
        program.empty((4,), np.float32).__dlpack__(dl_device=(2, 0))


def test_memory_that_is_not_mapped_is_copied() -> None:
    from orchestrion.hal.device import Device
    from orchestrion.hal.opencl.device import OpenCLDevice
    from orchestrion.hal.opencl.driver import find
    from orchestrion.hal.opencl.heaps import Machine
    from orchestrion.hal.policy import Policy

    try:
        info = OpenCLDriver().devices()[0]
    except Exception as error:
        pytest.skip(str(error))
    backend = OpenCLDevice(info, find()[0][0], machine=Machine.DISCRETE)
    with Device.of(backend, policy=Policy(allow_native_code=True)) as device:
        loaded = vm.load(module(), device)
        out = loaded.put(np.arange(4, dtype=np.float32))
        assert np.from_dlpack(out).tolist() == [0, 1, 2, 3]
        with pytest.raises(BufferError, match="memory of opencl that is not mapped cannot be shared without a copy"):
            out.__dlpack__(copy=False)
        with pytest.raises(ValueError, match="not mapped cannot be seen as a NumPy array without a copy"):
            np.asarray(out, copy=False)
        loaded.close()


# in


def test_an_argument_of_another_library_is_not_copied(program: vm.Program) -> None:
    x = pages(N)
    statistics = imports_of(program)
    imports = statistics.imports
    for foreign in (Foreign(x), Foreign(x)):
        out = program.empty((N,), np.float32)
        program.main(foreign, out=out)
        assert copied(program) == (0, 0) and statistics.imports == imports + 1
        np.testing.assert_array_equal(out.to_numpy(), 2 * x)
        imports += 1
    np.testing.assert_array_equal(program.main(x), 2 * x)
    through_slot = 0 if program.device.info.limits.uses_host_addresses else 4 * N
    assert copied(program) == (through_slot, through_slot), "arrays go through slots on devices with own memory"
    np.testing.assert_array_equal(program.same(Foreign(x)), x)
    assert program.context.device is not None
    live = program.context.device.live["buffer"]
    program.main(Foreign(x))
    assert program.context.device.live["buffer"] == live


def test_small_and_donated_arguments_are_copied(program: vm.Program) -> None:
    """Importing costs more than copying a little, and nobody's memory is taken over."""
    program.small(Foreign(pages(4)))
    assert copied(program)[0] == 16
    x = pages(N)
    want = x.copy()
    np.testing.assert_array_equal(program.donated(Foreign(x)), 2 * want)
    np.testing.assert_array_equal(x, want)
    assert copied(program)[0] == 4 * N and imports_of(program).imports == 0


def test_what_cannot_be_imported_is_copied(program: vm.Program) -> None:
    """By its strides, or by where it begins."""
    x = pages(2 * N + 2)
    for array in (x[: 2 * N : 2], x[1 : N + 1]):
        foreign = Foreign(array)
        np.testing.assert_array_equal(program.main(foreign), 2 * array)
        alignment = program.device.info.limits.host_import_alignment
        importable = array.flags.c_contiguous and array.ctypes.data % alignment == 0
        assert copied(program)[0] == (0 if importable else 4 * N)
    with pytest.raises(CallerError, match=r"array to import: f32\[\d+\] cannot be shared without a copy: .*strides"):
        program.from_dlpack(Foreign(x[::2]), copy=False)


def test_an_imported_array(program: vm.Program) -> None:
    x = pages(N)
    for source in (Foreign(x), x):
        array = program.from_dlpack(source, copy=False)
        before = program.device.statistics.host_to_device_bytes
        np.testing.assert_array_equal(program.main(array), 2 * x)
        x[0] += 1
        np.testing.assert_array_equal(program.main(array), 2 * x)
        assert program.device.statistics.host_to_device_bytes == before
        np.testing.assert_array_equal(array.to_numpy(), x)
        np.testing.assert_array_equal(np.from_dlpack(array), x)
        with pytest.raises(Exception, match="lacks write access"):
            program.main(x, out=array)
        with pytest.raises(Exception, match="lacks write access"):
            program.donated(array, out=array)
    copy = program.from_dlpack(Foreign(x), copy=True)
    x[:] = 0
    assert copy.to_numpy()[1] == 1


def test_an_import_keeps_the_memory(program: vm.Program) -> None:
    import weakref

    class Watched(np.ndarray):
        pass

    owner = pages(N).view(Watched)
    gone = weakref.ref(owner)
    array = program.from_dlpack(Foreign(owner), copy=False)
    del owner
    gc.collect()
    assert gone() is not None
    assert program.main(array)[1] == 2
    del array
    program.device.device_state.collect()
    gc.collect()
    assert gone() is None


def test_what_is_refused(program: vm.Program) -> None:
    class Silent:
        def __dlpack__(self, **wanted: Any) -> Any:
            raise BufferError("not today")

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    x = pages(N)
    cuda = "its memory is on DLPack device kDLCUDA 1, and only that of the CPU is taken"
    for call in (program.main, program.main.submit, program.from_dlpack):
        with pytest.raises(CallerError, match=cuda):
            call(Foreign(x, (2, 1)))
        with pytest.raises(CallerError, match="Silent: not today"):
            call(Silent())
    with pytest.raises(CallerError, match="DLPack device of type 99 0"):
        program.main(Foreign(x, (99, 0)))
    with pytest.raises(CallerError, match=rf"argument 0 of 'main': expected f32\[{N}\], got i32\[{N}\]"):
        program.main(Foreign(x.view(np.int32)))
    with pytest.raises(CallerError, match="array to import: int: "):
        program.from_dlpack(3)
    with pytest.raises(CallerError, match="datetime64.* is not an element type"):
        program.from_dlpack(np.zeros(3, "datetime64[s]"))
