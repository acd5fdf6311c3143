"""Pickles programs. A pickle has the arguments of `load`, and reading it loads the module again.

It has the path of the module's file, or the module's bytes, the module's digest, the name of the device, and the
options of `load`. It does not have a policy, signatures or `allow_native_code`: the trust store of the machine that
reads it decides whether code may run. It has no state: globals start anew, and device arrays have to be copied to NumPy
arrays.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .errors import CallerTypeError
from .file_part import FilePart

if TYPE_CHECKING:
    from .request import Request


def pickle_arguments(request: Request) -> tuple[Any, ...]:
    """The arguments of `program.restored` for a program. `CallerError` if one of them cannot be pickled."""
    given = [one for one in request.natives if not isinstance(one, str)]
    if given:
        raise CallerTypeError(
            f"a program with the native module {type(given[0]).__name__} does not pickle: have a package declare the "
            "module (docs/embedding.md) and load the program with its name"
        )
    programs = [name for name, one in request.modules.items() if not isinstance(one, (*_FILES, *_BYTES))]
    if programs:
        raise CallerTypeError(
            f"a program that calls functions of another program, {programs[0]!r}, does not pickle: load it with the "
            "file of that module"
        )
    calls = request.calls
    options = {
        "offset": request.offset,
        "length": request.length,
        "digest": request.file.digest.hex(),
        "natives": tuple(request.natives),
        "fuel": calls.fuel,
        "deadline": calls.deadline,
        "memory": calls.memory,
        "depth": calls.depth,
        "load_limits": request.load_limits,
        "profiling": request.profiling,
        "device_memory": request.device_memory,
        "threads": request.threads,
        "build_deadline": request.build_deadline,
        "build": request.build,
        "parameters": _portable(request.parameters),
        "adapters": tuple(map(_portable, request.adapters)),
        "extra_parameters": request.extra_parameters,
        "modules": {name: _portable(one) for name, one in request.modules.items()},
    }
    return _portable(request.source), _device(request), options


def _device(request: Request) -> str | None:
    """The device that a pickle names. None lets the process that reads it choose, as the program's loader did."""
    return None if request.is_default_device else request.device or request.device_id


_FILES = (str, os.PathLike)
_BYTES = (bytes, bytearray, memoryview)


def _portable(source: Any) -> Any:
    """A source that other processes can open: a file by its absolute path, bytes, or a list of them; anything else is
    unchanged.
    """
    if isinstance(source, _FILES):
        return os.path.abspath(source)
    if isinstance(source, FilePart):
        return replace(source, path=os.path.abspath(source.path), signature=None)
    if isinstance(source, _BYTES):
        return bytes(source)
    return [_portable(one) for one in source] if isinstance(source, list | tuple) else source
