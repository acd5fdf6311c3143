"""OpenCL C source built for one device: from the cache of binaries, else by the device's compiler.

A payload is UTF-8 text; entry `i` is the kernel of that name, which takes a `__global` pointer per binding and then a
`uint` per parameter word, and states `reqd_work_group_size`. Built so that arithmetic stays IEEE: nothing is relaxed,
and division and square root are correctly rounded where the device can. Without warnings, which some drivers print.
"""

import hashlib
import warnings

import numpy as np
import pyopencl as cl

from orchestrion.hal.backend import BackendExecutable, Entry
from orchestrion.hal.cache import Cache
from orchestrion.schema.errors import ModuleError

OPTIONS = ("-cl-std=CL1.2", "-w")
ROUNDED = "-cl-fp32-correctly-rounded-divide-sqrt"


class OpenCLExecutable(BackendExecutable):
    __slots__ = ("_program", "entries")

    def __init__(
        self, context: cl.Context, device: cl.Device, cache: Cache, payload: memoryview, entries: tuple[Entry, ...]
    ) -> None:
        self.entries = entries
        self._program = _build(context, device, cache, payload)
        for entry in entries:
            _check(self.kernel(entry), entry, device)

    def kernel(self, entry: Entry) -> cl.Kernel:
        """A kernel object of its own, with the arguments that whoever asked will set."""
        try:
            return cl.Kernel(self._program, entry.name)
        except cl.Error as error:
            raise ModuleError(f"opencl-c has no kernel {entry.name}: {error}") from error

    def release(self) -> None:
        del self._program


def _build(context: cl.Context, device: cl.Device, cache: Cache, payload: memoryview) -> cl.Program:
    options: list[str] = list(OPTIONS)
    if device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT:
        options.append(ROUNDED)
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
            return program
    program = _compile(context, device, payload, options)
    (binary,) = program.binaries
    cache.put(binary, *key)
    return program


def _load(context: cl.Context, device: cl.Device, binary: bytes) -> cl.Program | None:
    """A program from a binary; None when the driver takes it no more, and the source is built again."""
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
        warnings.simplefilter("ignore")  # remarks of a build that succeeded
        _ = program.int_ptr  # made now, pyopencl neither caches it nor leaves the text behind in a file
        try:
            program.build(options, devices=[device])
        except cl.Error as error:
            raise ModuleError(f"opencl-c does not build on {device.name.strip()}: {error}") from error
    return program


def _check(kernel: cl.Kernel, entry: Entry, device: cl.Device) -> None:
    """What the module says of an entry holds for the code, or a dispatch would read stray memory."""
    wanted = len(entry.bindings) + entry.parameter_words
    if kernel.num_args != wanted:
        raise ModuleError(f"opencl-c kernel {entry.name} takes {kernel.num_args} arguments, its entry says {wanted}")
    size = kernel.get_work_group_info(cl.kernel_work_group_info.COMPILE_WORK_GROUP_SIZE, device)
    if tuple(size) != entry.workgroup_size:
        raise ModuleError(
            f"opencl-c kernel {entry.name} has workgroup size {tuple(size)}, its entry says {entry.workgroup_size}"
        )


def words(parameters: bytes) -> list[np.uint32]:
    """Parameters as kernel arguments."""
    return list(np.frombuffer(parameters, "<u4").astype(np.uint32))
