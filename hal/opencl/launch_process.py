"""The child process that launches kernels in advance (`launch_helpers.py` starts it; `launches.py` explains why)."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

from orchestrion.hal.backend import Entry
from orchestrion.schema.child_process import Message

from .device import OpenCLDevice
from .driver import OpenCLDriver
from .executable import OpenCLExecutable
from .launches import Launch

_built: dict[tuple[int, str], OpenCLExecutable] = {}


def answer(request: Message) -> Message:
    """Handles a request: `build` builds a program and keeps it, `launch` launches an entry of one. `done` is False if
    the device or program does not exist.
    """
    fields = request.fields
    index: int = fields["device"]
    if fields["kind"] == "build":
        payload = memoryview(request.data)
        entries = tuple([_entry(*row) for row in fields["entries"]])
        _built[index, hashlib.sha256(payload).hexdigest()] = _device(index).build(payload, entries)
        return Message({"done": True})
    executable = _built.get((index, fields["digest"]))
    if executable is None:
        return Message({"done": False})
    x, y, z = fields["groups"]
    parameters = bytes.fromhex(fields["parameters"])
    _device(index).launch_here(Launch(executable, fields["entry"], (x, y, z), tuple(fields["lengths"]), parameters))
    return Message({"done": True})


def _entry(name: str, bindings: Any, words: int, size: Any) -> Entry:
    return Entry(name, tuple([(access, length) for access, length in bindings]), words, (size[0], size[1], size[2]))


@cache
def _device(index: int) -> OpenCLDevice:
    driver = OpenCLDriver()
    device = driver.open(driver.devices()[index])
    assert isinstance(device, OpenCLDevice)
    return device
