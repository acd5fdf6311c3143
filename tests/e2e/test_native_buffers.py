"""Buffers of the drivers' own APIs: a program of the caller's on the same device writes what a program reads, and reads
what it computes, without a copy, ordered by events and timeline semaphores.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from orchestrion import compiler, vm
from orchestrion.hal.backend import NativeRange
from orchestrion.hal.errors import InvalidArgument, Unsupported
from orchestrion.hal.semaphore import Fence
from orchestrion.vm.errors import CallerError

N = 1024
TEXT = f"""
func.func @main(%x: tensor<{N}xf32>) -> tensor<{N}xf32> {{
  %0 = stablehlo.add %x, %x : tensor<{N}xf32>
  return %0 : tensor<{N}xf32>
}}
func.func @chain(%x: tensor<{N}xf32>, %y: tensor<{N}xf32>) -> tensor<f32> {{
  %0 = stablehlo.multiply %x, %y : tensor<{N}xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<{N}xf32>, tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}}
"""
X = (np.arange(N) % 100).astype(np.float32)
PATIENCE = 30.0
SOURCE = """
__kernel void ramp(__global float *out, float from) { out[get_global_id(0)] = from + get_global_id(0) % 100; }
__kernel void half_of(__global const float *x, __global float *out) { out[get_global_id(0)] = x[get_global_id(0)] / 2; }
"""


@functools.cache
def module() -> bytes:
    return compiler.compile(TEXT)


@pytest.fixture
def opencl(load_on: Callable[[bytes, str], Any]) -> Iterator[vm.Program]:
    loaded = load_on(module(), "opencl")
    yield loaded
    loaded.close()


@pytest.fixture(params=["vulkan", "swiftshader"])
def vulkan(request: pytest.FixtureRequest, load_on: Callable[[bytes, str], Any]) -> Iterator[vm.Program]:
    name = request.getfixturevalue("swiftshader") if request.param == "swiftshader" else request.param
    loaded = load_on(module(), name)
    yield loaded
    loaded.close()


def copied(program: vm.Program) -> tuple[int, int]:
    call = program.statistics()["calls"][-1]
    return call["host_to_device_bytes"], call["device_to_host_bytes"]


# OpenCL


class ForeignCL:
    """A pyopencl program on the device's context, with a queue of its own."""

    def __init__(self, program: vm.Program) -> None:
        import pyopencl as cl

        self.cl = cl
        self.context = program.device.native.context
        self.queue = cl.CommandQueue(self.context)
        kernels = cl.Program(self.context, SOURCE).build()
        self.ramps, self.halves = kernels.ramp, kernels.half_of
        self.align = program.device.info.limits.min_binding_alignment

    def buffer(self, size: int, flags: int = 0) -> Any:
        return self.cl.Buffer(self.context, flags or self.cl.mem_flags.READ_WRITE, size)

    def ramp(self, where: Any, start: float, wait_for: Any = None) -> Any:
        return self.ramps(self.queue, (N,), None, where, np.float32(start), wait_for=wait_for)

    def contents(self, where: Any) -> np.ndarray:
        out = np.empty(where.size // 4, np.float32)
        self.cl.enqueue_copy(self.queue, out, where)
        return out


@pytest.fixture
def foreign_cl(opencl: vm.Program) -> ForeignCL:
    return ForeignCL(opencl)


def test_a_kernel_writes_what_a_program_reads(opencl: vm.Program, foreign_cl: ForeignCL) -> None:
    """And the other way round: events order them, and nothing is copied."""
    memory, result = foreign_cl.buffer(4 * N), foreign_cl.buffer(4 * N)
    array, out = opencl.import_buffer(memory, (N,), np.float32), opencl.empty((N,), np.float32)
    gate = foreign_cl.cl.UserEvent(foreign_cl.context)
    written = foreign_cl.ramp(memory, 3, wait_for=[gate])
    foreign_cl.queue.flush()
    future = opencl.main.submit(array, out=out, wait=[written])
    native = out.native
    assert native is not None and (native.offset, native.size) == (0, 4 * N)
    after = [future.to_cl_event(foreign_cl.context)]
    foreign_cl.halves(foreign_cl.queue, (N,), None, native.handle, result, wait_for=after)
    foreign_cl.queue.flush()
    assert not future.done()
    gate.set_status(0)
    future.result(PATIENCE)
    np.testing.assert_array_equal(foreign_cl.contents(result), X + 3)
    assert copied(opencl) == (0, 0)


def test_a_program_writes_into_the_callers_buffer(opencl: vm.Program, foreign_cl: ForeignCL) -> None:
    memory, source = foreign_cl.buffer(4 * N), foreign_cl.buffer(4 * N)
    out, array = (opencl.import_buffer(one, (N,), np.float32) for one in (memory, source))
    for start in (0, 5):
        foreign_cl.ramp(source, start).wait()
        opencl.main(array, out=out)
        np.testing.assert_array_equal(foreign_cl.contents(memory), 2 * (X + start))
        assert opencl.chain(array, out) == pytest.approx(float(((X + start) * 2 * (X + start)).sum()), rel=1e-5)
    np.testing.assert_array_equal(out.to_numpy(), 2 * (X + 5))
    np.testing.assert_array_equal(np.from_dlpack(out), 2 * (X + 5))
    with pytest.raises(BufferError, match="not mapped"):
        out.__dlpack__(copy=False)


def test_a_range_of_a_buffer(opencl: vm.Program, foreign_cl: ForeignCL) -> None:
    """Bytes around it stay as they were; a range of a sub-buffer is one of the buffer that it is of."""
    size, align = 4 * N, foreign_cl.align
    memory = foreign_cl.buffer(align + size + align)
    foreign_cl.cl.enqueue_fill_buffer(foreign_cl.queue, memory, np.float32(7), 0, memory.size).wait()
    region = memory.get_sub_region(align, size)
    for handle, offset in ((memory, align), (region, 0), (memory.int_ptr, align)):
        out = opencl.import_buffer(handle, (N,), np.float32, offset=offset)
        native = out.native
        assert native is not None and native[1:] == (align, size) and native.handle == memory
        opencl.main(X, out=out)
        seen = foreign_cl.contents(memory)
        np.testing.assert_array_equal(seen[align // 4 : align // 4 + N], 2 * X)
        assert (seen[: align // 4] == 7).all() and (seen[align // 4 + N :] == 7).all()
    part = opencl.import_buffer(region, (4,), np.float32, offset=align)
    np.testing.assert_array_equal(part.to_numpy(), 2 * X[align // 4 : align // 4 + 4])


def test_who_keeps_a_cl_mem(opencl: vm.Program, foreign_cl: ForeignCL) -> None:
    """The import holds a reference of its own, and gives it back."""
    memory = foreign_cl.buffer(4 * N)
    array = opencl.import_buffer(memory, (N,), np.float32)
    assert memory.reference_count == 2
    opencl.main(array)
    opencl.chain(array, array)
    watch = foreign_cl.cl.Buffer.from_int_ptr(memory.int_ptr, retain=True)
    memory.release()
    np.testing.assert_array_equal(opencl.main(array), 2 * array.to_numpy())
    del array
    opencl.device.device_state.collect()
    foreign_cl.queue.finish()
    assert watch.reference_count == 1


def test_a_cl_mem_that_is_refused(opencl: vm.Program, foreign_cl: ForeignCL) -> None:
    cl, flags = foreign_cl.cl, foreign_cl.cl.mem_flags
    memory, align = foreign_cl.buffer(64), foreign_cl.align
    other = cl.Context([foreign_cl.context.devices[0]])
    stranger = cl.Buffer(other, flags.READ_WRITE, 64)
    image = cl.create_image(
        foreign_cl.context, flags.READ_ONLY, cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.FLOAT), (4, 4)
    )
    cases: list[tuple[Any, int, str]] = [
        (None, 0, "expected a pyopencl.Buffer, or its cl_mem as an integer, got None"),
        (0, 0, "expected a pyopencl.Buffer"),
        (image, 0, "expected a pyopencl.Buffer"),
        (image.int_ptr, 0, "the memory object is an image: 64 bytes from offset 0 cannot be imported"),
        (stranger, 0, "the buffer is of another context than the device's"),
        (memory, align, f"the buffer has 64 bytes: 64 bytes from offset {align} cannot be imported"),
        (memory, 4, f"import from offset 4 of a buffer, which is not a multiple of {align}"),
        (memory, -align, f"import of 64 bytes from offset -{align} of a buffer"),
        (foreign_cl.buffer(64, flags.WRITE_ONLY), 0, "the buffer is write-only"),
        (foreign_cl.buffer(64, flags.READ_ONLY), 0, "the buffer is read-only, and writable=False was not given"),
    ]
    for handle, offset, message in cases:
        with pytest.raises(InvalidArgument) as caught:
            opencl.import_buffer(handle, (16,), np.float32, offset=offset)
        assert message in str(caught.value)
    with pytest.raises(InvalidArgument, match="import of 0 bytes"):
        opencl.import_buffer(memory, (0,), np.float32)
    with pytest.raises(CallerError, match="negative dimension"):
        opencl.import_buffer(memory, (-1, -1), np.float32)
    assert opencl.device.live["buffer"] == 0 and memory.reference_count == 1


def test_a_buffer_that_is_only_read(opencl: vm.Program, foreign_cl: ForeignCL) -> None:
    flags = foreign_cl.cl.mem_flags
    memory = foreign_cl.cl.Buffer(foreign_cl.context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=X)
    array = opencl.import_buffer(memory, (N,), np.float32, writable=False)
    np.testing.assert_array_equal(opencl.main(array), 2 * X)
    with pytest.raises(Exception, match="lacks write access"):
        opencl.main(X, out=array)


def test_unmapped_memory_is_zero_before_it_is_exported() -> None:
    """The fill that clears it may not come after what the caller writes."""
    from orchestrion.hal.device import Device
    from orchestrion.hal.opencl.device import OpenCLDevice
    from orchestrion.hal.opencl.driver import OpenCLDriver, find
    from orchestrion.hal.opencl.heaps import Machine

    try:
        info = OpenCLDriver().devices()[0]
    except Exception as error:
        pytest.skip(str(error))
    with Device.of(OpenCLDevice(info, find()[0][0], machine=Machine.DISCRETE)) as device:
        import pyopencl as cl

        buffer = device.allocator.allocate(4 * N)
        native = buffer.native
        assert native is not None
        queue = cl.CommandQueue(device.native.context)
        cl.enqueue_copy(queue, native.handle, X)
        out = np.empty(N, np.float32)
        buffer.read(out)
        np.testing.assert_array_equal(out, X)
        buffer.release()


# Vulkan


class ForeignVulkan:
    """A program of the package `vulkan` on the device: buffers of its own, copies on the device's queue."""

    def __init__(self, program: vm.Program) -> None:
        import vulkan as vk

        self.vk = vk
        self.device = program.device
        self.handles = program.device.native
        self.align = program.device.info.limits.min_binding_alignment
        self.undo: list[Callable[[], Any]] = []
        info = vk.VkCommandPoolCreateInfo(queueFamilyIndex=self.handles.queue_family)
        self.pool = vk.vkCreateCommandPool(self.handles.device, info, None)
        self.undo.append(lambda: vk.vkDestroyCommandPool(self.handles.device, self.pool, None))

    def buffer(self, size: int) -> tuple[Any, Any]:
        """A buffer in memory of the host, and its mapping."""
        vk, device = self.vk, self.handles.device
        usage = (
            vk.VK_BUFFER_USAGE_STORAGE_BUFFER_BIT
            | vk.VK_BUFFER_USAGE_TRANSFER_SRC_BIT
            | vk.VK_BUFFER_USAGE_TRANSFER_DST_BIT
        )
        buffer = vk.vkCreateBuffer(device, vk.VkBufferCreateInfo(size=size, usage=usage), None)
        needs = vk.vkGetBufferMemoryRequirements(device, buffer)
        wanted = vk.VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | vk.VK_MEMORY_PROPERTY_HOST_COHERENT_BIT
        kinds = vk.vkGetPhysicalDeviceMemoryProperties(self.handles.physical_device).memoryTypes
        index = next(
            i for i, kind in enumerate(kinds) if needs.memoryTypeBits >> i & 1 and kind.propertyFlags & wanted == wanted
        )
        info = vk.VkMemoryAllocateInfo(allocationSize=needs.size, memoryTypeIndex=index)
        memory = vk.vkAllocateMemory(device, info, None)
        vk.vkBindBufferMemory(device, buffer, memory, 0)
        mapped = np.frombuffer(vk.vkMapMemory(device, memory, 0, size, 0), np.float32)
        self.undo.append(lambda: (vk.vkDestroyBuffer(device, buffer, None), vk.vkFreeMemory(device, memory, None)))
        return buffer, mapped

    def semaphore(self) -> Any:
        vk, device = self.vk, self.handles.device
        kind = vk.VkSemaphoreTypeCreateInfo(semaphoreType=vk.VK_SEMAPHORE_TYPE_TIMELINE, initialValue=0)
        semaphore = vk.vkCreateSemaphore(device, vk.VkSemaphoreCreateInfo(pNext=kind), None)
        self.undo.append(lambda: vk.vkDestroySemaphore(device, semaphore, None))
        return semaphore

    def copy(
        self, source: Any, target: Any, size: int, wait: Any = (), signal: Any = (), offsets: Any = (0, 0)
    ) -> None:
        """Submit a copy; `wait` and `signal` are a timeline semaphore and its value."""
        vk = self.vk
        info = vk.VkCommandBufferAllocateInfo(
            commandPool=self.pool, level=vk.VK_COMMAND_BUFFER_LEVEL_PRIMARY, commandBufferCount=1
        )
        commands = vk.vkAllocateCommandBuffers(self.handles.device, info)[0]
        vk.vkBeginCommandBuffer(commands, vk.VkCommandBufferBeginInfo())
        region = vk.VkBufferCopy(srcOffset=offsets[0], dstOffset=offsets[1], size=size)
        vk.vkCmdCopyBuffer(commands, source, target, 1, [region])
        barrier = vk.VkMemoryBarrier(
            srcAccessMask=vk.VK_ACCESS_TRANSFER_WRITE_BIT,
            dstAccessMask=vk.VK_ACCESS_MEMORY_READ_BIT | vk.VK_ACCESS_MEMORY_WRITE_BIT,
        )
        after = vk.VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | vk.VK_PIPELINE_STAGE_HOST_BIT
        vk.vkCmdPipelineBarrier(commands, vk.VK_PIPELINE_STAGE_TRANSFER_BIT, after, 0, 1, [barrier], 0, None, 0, None)
        vk.vkEndCommandBuffer(commands)
        waits, signals = [wait] if wait else [], [signal] if signal else []
        values = vk.VkTimelineSemaphoreSubmitInfo(
            waitSemaphoreValueCount=len(waits),
            pWaitSemaphoreValues=[value for _, value in waits],
            signalSemaphoreValueCount=len(signals),
            pSignalSemaphoreValues=[value for _, value in signals],
        )
        submit = vk.VkSubmitInfo(
            pNext=values,
            pWaitSemaphores=[semaphore for semaphore, _ in waits],
            pWaitDstStageMask=[vk.VK_PIPELINE_STAGE_ALL_COMMANDS_BIT] * len(waits),
            pCommandBuffers=[commands],
            pSignalSemaphores=[semaphore for semaphore, _ in signals],
        )
        with self.device.lock:
            vk.vkQueueSubmit(self.handles.queue, 1, [submit], None)

    def signal(self, semaphore: Any, value: int) -> None:
        self.vk.vkSignalSemaphore(self.handles.device, self.vk.VkSemaphoreSignalInfo(semaphore=semaphore, value=value))

    def wait(self, semaphore: Any, value: int) -> None:
        vm.Fence.from_vk_semaphore(semaphore, value, self.device).wait(PATIENCE)

    def close(self) -> None:
        with self.device.lock:
            self.vk.vkQueueWaitIdle(self.handles.queue)
        for step in reversed(self.undo):
            step()


@pytest.fixture
def foreign_vk(vulkan: vm.Program) -> Iterator[ForeignVulkan]:
    foreign = ForeignVulkan(vulkan)
    yield foreign
    foreign.close()


def test_a_submission_writes_what_a_program_reads(vulkan: vm.Program, foreign_vk: ForeignVulkan) -> None:
    """And the other way round: one timeline semaphore orders three, and no call copies."""
    (first, x), (second, _), (third, y) = (foreign_vk.buffer(4 * N) for _ in range(3))
    array, out = vulkan.import_buffer(second, (N,), np.float32), vulkan.empty((N,), np.float32)
    native, timeline = out.native, foreign_vk.semaphore()
    assert native is not None and native.size == 4 * N
    starts, ends = (vm.Fence.from_vk_semaphore(timeline, value, vulkan.device) for value in (2, 3))
    future = vulkan.main.submit(array, out=out, wait=[starts], signal=ends)
    foreign_vk.copy(first, second, 4 * N, wait=(timeline, 1), signal=(timeline, 2))
    assert not future.done()
    x[:] = X
    foreign_vk.signal(timeline, 1)
    future.result(PATIENCE)
    assert copied(vulkan) == (0, 0)
    foreign_vk.copy(native.handle, third, 4 * N, (timeline, 3), (timeline, 4), (native.offset, 0))
    foreign_vk.wait(timeline, 4)
    np.testing.assert_array_equal(y, 2 * X)
    ends.wait(PATIENCE)


def test_the_device_waits_for_the_callers_semaphore(vulkan: vm.Program, foreign_vk: ForeignVulkan) -> None:
    """By the HAL alone: no host waits between the two."""
    (first, x), (second, _), (third, y) = (foreign_vk.buffer(4 * N) for _ in range(3))
    device = vulkan.device.share()
    buffer, target = (device.allocator.import_buffer(one, 4 * N) for one in (second, third))
    commands, timeline = device.create_command_buffer(), foreign_vk.semaphore()
    commands.copy(buffer, 0, target, 0, 4 * N)
    commands.finish()
    semaphore = device.import_semaphore(timeline)
    foreign_vk.copy(first, second, 4 * N, wait=(timeline, 1), signal=(timeline, 2))
    device.queue.submit(commands, (), Fence([(semaphore, 2)]), Fence([(semaphore, 3)]))
    x[:] = X
    foreign_vk.signal(timeline, 1)
    foreign_vk.wait(timeline, 3)
    np.testing.assert_array_equal(y, X)
    device.queue.wait_idle()
    for thing in (commands, buffer, target, semaphore):
        thing.release()
    device.close()


def test_a_program_writes_into_a_range_of_the_callers_buffer(vulkan: vm.Program, foreign_vk: ForeignVulkan) -> None:
    size, align = 4 * N, foreign_vk.align
    buffer, seen = foreign_vk.buffer(align + size + 64)
    handle = int(foreign_vk.vk.ffi.cast("uintptr_t", buffer))
    seen[:] = 7
    for given in (buffer, handle):
        out = vulkan.import_buffer(given, (N,), np.float32, offset=align)
        vulkan.main(X, out=out)
        np.testing.assert_array_equal(seen[align // 4 : align // 4 + N], 2 * X)
        assert (seen[: align // 4] == 7).all() and (seen[align // 4 + N :] == 7).all()
        np.testing.assert_array_equal(out.to_numpy(), 2 * X)
        assert out.native == NativeRange(buffer, align, size)
    read_only = vulkan.import_buffer(buffer, (N,), np.float32, offset=align, writable=False)
    np.testing.assert_array_equal(vulkan.main(read_only), 4 * X)
    with pytest.raises(Exception, match="lacks write access"):
        vulkan.main(X, out=read_only)


def test_a_vk_buffer_that_is_refused(vulkan: vm.Program, foreign_vk: ForeignVulkan) -> None:
    buffer, _ = foreign_vk.buffer(64)
    for handle in (0, None, "buffer", foreign_vk.semaphore()):
        with pytest.raises(InvalidArgument, match="expected a VkBuffer"):
            vulkan.import_buffer(handle, (16,), np.float32)
    with pytest.raises(InvalidArgument, match="from offset 4 of a buffer, which is not a multiple of"):
        vulkan.import_buffer(buffer, (4,), np.float32, offset=4)
    assert vulkan.device.live["buffer"] == 0


# others


def test_devices_without_buffers_of_an_api(load_on: Callable[[bytes, str], Any]) -> None:
    loaded = load_on(module(), "reference")
    assert loaded.put(X).native is None
    with pytest.raises(Unsupported, match="device reference has no buffers of an API of its own to import"):
        loaded.import_buffer(1, (4,), np.float32)
    loaded.close()


@pytest.mark.parametrize("device", ["opencl", "vulkan"])
def test_a_profiled_program_takes_them(device: str, load_on: Callable[..., Any]) -> None:
    from orchestrion.hal.errors import DriverUnavailable

    try:
        loaded = vm.load(module(), device, profiling=True)
    except DriverUnavailable as error:
        pytest.skip(str(error))
    source = loaded.put(X)
    native = source.native
    assert native is not None
    align = loaded.device.info.limits.min_binding_alignment
    assert native.offset % align == 0
    again = loaded.import_buffer(native.handle, (N,), np.float32, offset=native.offset)
    np.testing.assert_array_equal(loaded.main(again), 2 * X)
    del source, again
    loaded.close()
