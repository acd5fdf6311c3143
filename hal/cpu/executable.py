"""Machine code that is mapped and ready to run. Its bytes come from a native image (`schema/native_image.py`)."""

from orchestrion.hal.backend import BackendExecutable, Entry
from orchestrion.hal.errors import Unsupported
from orchestrion.schema import native_image
from orchestrion.schema.errors import ModuleError

from .code_memory import CodeMemory


class CpuExecutable(BackendExecutable):
    """`addresses`: the first instruction of each entry. `stacks`: bytes of the stack that it uses."""

    __slots__ = ("_memory", "addresses", "entries", "stacks")

    def __init__(self, payload: memoryview, entries: tuple[Entry, ...], architecture: str) -> None:
        """Raises ModuleError if the payload is no image with these entries, Unsupported if it is for another
        architecture.
        """
        image = native_image.decode(payload)
        if image.architecture != architecture:
            raise Unsupported(f"machine code for {image.architecture}, this processor runs {architecture}")
        _match(entries, image)
        self.entries = entries
        self._memory = CodeMemory(image.code)
        self.addresses = [self._memory.address + entry.offset for entry in image.entries]
        self.stacks = [entry.stack for entry in image.entries]

    def release(self) -> None:
        self._memory.release()


def _match(entries: tuple[Entry, ...], image: native_image.Image) -> None:
    """Raises ModuleError unless the image has the module's entries, with their bindings and parameters."""
    if len(image.entries) != len(entries):
        raise ModuleError(f"native image has {len(image.entries)} entries, the module names {len(entries)}")
    for entry, code in zip(entries, image.entries, strict=True):
        bindings, words = len(entry.bindings), entry.parameter_words
        if code.bindings != bindings:
            raise ModuleError(f"entry {entry.name}: code for {code.bindings} bindings, the module says {bindings}")
        if code.parameters != words:
            raise ModuleError(f"entry {entry.name}: code for {code.parameters} parameters, the module says {words}")
