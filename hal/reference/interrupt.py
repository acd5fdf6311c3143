"""Lets a watcher end long work: the work calls it from time to time."""

from math import prod

from orchestrion.hal.backend import Watcher
from orchestrion.schema.tensor_bytecode import Body, Code, Instruction

#: elementary operations between two calls of the watcher; takes some ten milliseconds
OPERATIONS_PER_POLL = 1 << 22


class Interrupt:
    """The current watcher of a device. `watcher` belongs to the call that waits for the running work;
    None without one.
    """

    __slots__ = ("watcher",)

    def __init__(self) -> None:
        self.watcher: Watcher | None = None

    def poll(self) -> None:
        """Raises what the watcher raises if it is time to stop."""
        if self.watcher is not None:
            self.watcher.check()


def operations(code: Code, instruction: Instruction) -> int:
    """An estimate of the elementary operations of an instruction."""
    row = instruction.row
    if row.view or row.name == "constant":
        return 0
    sizes = [code.values[value].elements for value in instruction.operands]
    sizes += [type.elements for type in instruction.types]
    if row.name in ("reduce", "scatter"):
        body: Body = instruction.attributes[-1]
        return max(sizes) * (1 + len(body.instructions))
    if row.name == "dot_general":
        left, contracted = code.values[instruction.operands[0]], instruction.attributes[2]
        depth: int = prod(left.shape[axis] for axis in contracted)
        return instruction.types[0].elements * depth
    return max(sizes, default=0)
