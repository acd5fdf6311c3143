"""OpenCL C source, built for one device: from the cache of binaries, otherwise by the device's compiler.

Drivers that cache their own builds are not asked for binaries. PoCL, which compiles a kernel when it is launched, would
compile every kernel twice for that (docs/decisions/linked-executables.md).

A payload is UTF-8 text. Entry `i` is the kernel of that name, which takes a `__global` pointer per binding, then a
`uint` per parameter word, and declares `reqd_work_group_size`. Build options keep IEEE arithmetic: no relaxed math, and
division and square root correctly rounded if the device supports that. Warnings are disabled, because some drivers
print them.
"""

import ctypes
import hashlib
import warnings

import pyopencl as cl

from orchestrion.hal.backend import BackendExecutable, Entry
from orchestrion.hal.cache import Cache
from orchestrion.hal.errors import CodeRefused
from orchestrion.schema.errors import ModuleError

from .api import Api, P, Size
from .buffer import OpenCLBuffer
from .failures import check, translate

OPTIONS = ("-cl-std=CL1.2", "-w")
ROUNDED = "-cl-fp32-correctly-rounded-divide-sqrt"


KERNEL_NUM_ARGS, KERNEL_COMPILE_WORK_GROUP_SIZE = 0x1191, 0x11B1


class Kernel:
    """A kernel object. It keeps the memory objects of its arguments alive, which OpenCL does not."""

    __slots__ = ("__weakref__", "_calls", "_kept", "_set", "handle")

    def __init__(self, api: Api, handle: int) -> None:
        self._calls = api.calls
        self._kept: dict[int, cl.Buffer] = {}
        self._set: dict[int, OpenCLBuffer] = {}
        self.handle = handle

    def set_buffer(self, position: int, buffer: OpenCLBuffer, offset: int, length: int) -> None:
        """Set an argument to a range of the buffer. The range of an argument never changes, so setting the same buffer
        again does nothing.
        """
        if self._set.get(position) is not buffer:
            buffer.set_argument(self, position, offset, length)
            self._set[position] = buffer

    def set_address(self, position: int, address: int) -> None:
        check(self._calls.clSetKernelArgSVMPointer(self.handle, position, address), f"argument {position}")

    def set_memory(self, position: int, memory: cl.Buffer) -> None:
        handle = P(memory.int_ptr)
        self._set_argument(position, ctypes.sizeof(handle), ctypes.byref(handle))
        self._kept[position] = memory

    def forget(self, buffer: OpenCLBuffer) -> None:
        """The buffer is being released. The arguments are set again before the next launch."""
        for position in [position for position, one in self._set.items() if one is buffer]:
            del self._set[position]
            self._kept.pop(position, None)

    def set_words(self, first: int, words: bytes) -> None:
        """Set arguments of 32 bits each, from position `first` on."""
        for index in range(0, len(words), 4):
            self._set_argument(first + index // 4, 4, words[index : index + 4])

    def release(self) -> None:
        self._calls.clReleaseKernel(self.handle)
        self._kept.clear()
        self._set.clear()

    def _set_argument(self, position: int, size: int, value: object) -> None:
        check(self._calls.clSetKernelArg(self.handle, position, size, value), f"argument {position}")


class OpenCLExecutable(BackendExecutable):
    __slots__ = ("_api", "_program", "entries", "launched", "payload")

    def __init__(
        self,
        api: Api,
        context: cl.Context,
        device: cl.Device,
        cache: Cache | None,
        payload: memoryview,
        entries: tuple[Entry, ...],
    ) -> None:
        self.entries = entries
        self.payload = payload
        self.launched: set[tuple[int, bool]] = set()  #: the `launches.Launch.code` of everything launched so far
        self._api = api
        self._program, self.cached = _build(context, device, cache, payload)
        for entry in entries:
            kernel = self.kernel(entry)
            try:
                _check(api, kernel, entry, device)
            finally:
                kernel.release()

    def kernel(self, entry: Entry) -> Kernel:
        """Returns a new kernel object. The caller sets its arguments and releases it."""
        return Kernel(self._api, self._api.create_kernel(self._program.int_ptr, entry.name))

    def release(self) -> None:
        del self._program


def _build(
    context: cl.Context, device: cl.Device, cache: Cache | None, payload: memoryview
) -> tuple[cl.Program, bool | None]:
    """Returns the program, and whether its binary was in the cache; None without a cache."""
    options: list[str] = list(OPTIONS)
    if device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT:
        options.append(ROUNDED)
    if cache is None or not cache.usable:
        return _compile(context, device, payload, options), None
    key = (
        device.platform.name,
        device.platform.version,
        device.vendor,
        device.name,
        device.driver_version,
        " ".join(options),
        hashlib.sha256(payload).digest(),
    )
    binary = cache.get(*key)
    if binary is not None:
        program = _load(context, device, binary)
        if program is not None:
            return program, True
    program = _compile(context, device, payload, options)
    (binary,) = program.binaries
    cache.put(binary, *key)
    return program, False


def _load(context: cl.Context, device: cl.Device, binary: bytes) -> cl.Program | None:
    """Returns a program from a binary. None if the driver rejects it; then the source is built again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            program = cl.Program(context, [device], [binary])
            program.build()
        except cl.Error:
            return None
    return program


def _compile(context: cl.Context, device: cl.Device, payload: memoryview, options: list[str]) -> cl.Program:
    try:
        source = bytes(payload).decode()
    except UnicodeDecodeError as error:
        raise ModuleError(f"opencl-c is not UTF-8 text: {error.reason}", error.start) from None
    program = cl.Program(context, source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # compiler output of a successful build
        _ = program.int_ptr  # creates the program, so pyopencl neither caches it nor writes the source to a file
        try:
            program.build(options, devices=[device])
        except cl.Error as error:
            raise _build_failure(device, error) from error
    return program


def _build_failure(device: cl.Device, error: cl.Error) -> Exception:
    """CodeRefused with the compiler's log for source that does not compile; other codes are failures of the device."""
    what = f"opencl-c does not build on {device.name.strip()}"
    found = translate(what, error)
    return CodeRefused(f"{what}: {error}") if isinstance(found, ModuleError) else found


def _check(api: Api, kernel: Kernel, entry: Entry, device: cl.Device) -> None:
    """Raises ModuleError unless the kernel matches the module's entry; a dispatch would otherwise read stray memory."""
    wanted, takes = len(entry.bindings) + entry.parameter_words, ctypes.c_uint32()
    code = api.calls.clGetKernelInfo(kernel.handle, KERNEL_NUM_ARGS, ctypes.sizeof(takes), ctypes.byref(takes), None)
    check(code, f"arguments of {entry.name}")
    if takes.value != wanted:
        raise ModuleError(f"opencl-c kernel {entry.name} takes {takes.value} arguments, its entry says {wanted}")
    size = (Size * 3)()
    what = (KERNEL_COMPILE_WORK_GROUP_SIZE, ctypes.sizeof(size), size, None)
    check(api.calls.clGetKernelWorkGroupInfo(kernel.handle, device.int_ptr, *what), f"workgroup size of {entry.name}")
    if tuple(size) != entry.workgroup_size:
        raise ModuleError(
            f"opencl-c kernel {entry.name} has workgroup size {tuple(size)}, its entry says {entry.workgroup_size}"
        )
