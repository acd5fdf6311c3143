"""Opens the module, the trust policy and a share of the device for `load`, before the program is linked."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrion.hal.building import BuildBudget
from orchestrion.hal.device import Device
from orchestrion.hal.policy import Policy
from orchestrion.hal.registry import open_device
from orchestrion.schema.container import open_bytes, open_file
from orchestrion.schema.errors import ModuleError

from .errors import CallerTypeError, CallerValueError
from .limits import Limits
from .memory import Memory
from .program_context import LoadedProgram

if TYPE_CHECKING:
    from orchestrion.schema.container import Container
    from orchestrion.schema.trust.policy import TrustPolicy

    from .admission import Admission, AnySignature
    from .program_context import ModuleSource


_DIGEST = re.compile("[0-9a-fA-F]{64}")


def check_options(device: object, load_limits: object, modules: object, digest: object, progress: object) -> None:
    """`CallerError` for an option of `load` of the wrong type."""
    if device is not None and not isinstance(device, str | Device):
        raise CallerTypeError(f"device={device!r}: a name such as 'vulkan' or an open device expected")
    if load_limits is not None and not isinstance(load_limits, Limits):
        raise CallerTypeError(f"load_limits={load_limits!r}: vm.Limits expected")
    if modules is not None and not isinstance(modules, Mapping):
        raise CallerTypeError(f"modules={modules!r}: a dict of modules by name expected")
    if digest is not None and not isinstance(digest, str):
        raise CallerTypeError(f"digest={digest!r}: a text of 64 hexadecimal digits expected")
    if progress is not None and not callable(progress):
        raise CallerTypeError(f"progress={progress!r}: a function expected")


def folder_of(module: ModuleSource) -> Path | None:
    """The folder of a module's file; None for a module in memory."""
    return None if isinstance(module, bytes | bytearray | memoryview) else Path(module).parent


@cache
def _admission_of() -> Callable[..., Admission | None]:
    from .admission import admission_of

    return admission_of


def admission_under(
    policy: str | os.PathLike[str] | TrustPolicy | None, signature: AnySignature | None
) -> Admission | None:
    """The admission of a load; None without a policy. `CallerError` for a signature without a policy."""
    if policy is not None:
        return _admission_of()(policy, signature)
    if signature is not None:
        raise CallerValueError("a signature is only used with a policy: policy='keys.toml'")
    return None


def open_module(module: ModuleSource, offset: int, length: int | None, digest: str | None = None) -> Container:
    """Open the bytes of a module in a file or in memory.

    `offset`, `length`: the part of the file, in bytes. `digest`: the SHA-256 that the root must have, as 64 hexadecimal
    digits.

    Raises `ModuleError` if it is not a module or has another digest. Raises `CallerError` for a part that exceeds the
    file, for a part of bytes, which the caller can slice, and for a malformed digest.
    """
    if digest is not None and _DIGEST.fullmatch(digest) is None:
        raise CallerValueError(f"digest is {digest!r}, 64 hexadecimal digits expected")
    if not isinstance(module, bytes | bytearray | memoryview):
        _require_path(module)
        try:
            found = open_file(module, offset, length)
        except ValueError as error:
            raise CallerValueError(f"{os.fspath(module)}: {error}") from None
    elif offset or length is not None:
        raise CallerTypeError("offset and length are for files; slice the bytes instead")
    else:
        found = open_bytes(module)
    if digest is not None and found.digest.hex() != digest.lower():
        raise ModuleError(f"another module: its digest is {found.digest.hex()}, {digest.lower()} expected")
    return found


def _require_path(module: object) -> None:
    if not isinstance(module, str | os.PathLike):
        raise CallerTypeError(f"a module is given by its path or as bytes, not as {type(module).__name__}")
    if isinstance(module, str) and "\n" in module:
        raise CallerValueError("a module is given by its path or as bytes; compiler.compile makes one of a text")


def open_share(
    device: str | Device | None,
    allow_native_code: bool,
    limits: Limits,
    profiling: bool,
    builds: BuildBudget,
    device_memory: int | None,
    modules: Mapping[str, LoadedProgram | ModuleSource],
    threads: int | None = None,
) -> tuple[Device, Memory]:
    """Open a share of the device for a program. Gives the share and the memory that it is charged to.

    Arguments as those of `load`. Raises what `open_device` raises, and `CallerError` for arguments that do not fit an
    open device.
    """
    memory = Memory(limits.memory)
    if isinstance(device, Device):
        if allow_native_code:
            raise CallerTypeError("allow_native_code cannot be given with an open device, which has its policy already")
        if threads is not None:
            raise CallerTypeError("threads cannot be given with an open device, which has its threads already")
        if profiling:
            _require_profiled(device)
        if device_memory is not None:
            _require_streaming(device)
        return _share(device, device_memory, memory, builds), memory
    policy = Policy(allow_native_code)
    loaded = first_program(modules)
    if not device:
        assert loaded is not None, "neither a device nor a program that has one"
        if device_memory is not None:
            _require_streaming(loaded.device)
        with loaded.device.sibling(policy) as opened:
            return _share(opened, device_memory, memory, builds), memory
    streaming = device_memory is not None
    with open_device(device, device_memory, policy, profiling, streaming, threads) as opened:
        return _share(opened, None, memory, builds), memory


def _share(device: Device, device_memory: int | None, memory: Memory, builds: BuildBudget) -> Device:
    """A share of the device for one program. It streams constants if the device was opened with streaming."""
    share = device.share(device_memory, memory.budget, builds)
    layer = device.device_state.streaming
    if layer is not None:
        share.streaming = layer.create_pool(share)
    return share


def _require_streaming(device: Device) -> None:
    if device.device_state.streaming is None:
        raise CallerValueError(f"device_memory needs the device {device.info.id} to be opened with streaming=True")


def _require_profiled(device: Device) -> None:
    from orchestrion.hal.profiling import is_profiled

    if not is_profiled(device):
        raise CallerValueError(f"the device {device.info.id} was not opened with profiling")


def first_program(modules: Mapping[str, LoadedProgram | ModuleSource] | None) -> LoadedProgram | None:
    """The first loaded program among the modules, whose device all of them use; None if there is none."""
    if not modules:
        return None
    return next((one for one in modules.values() if isinstance(one, LoadedProgram)), None)
