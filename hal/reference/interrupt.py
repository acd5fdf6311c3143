"""How long work is ended before it is done: now and then it asks whether anybody wants it to stop."""

from math import prod

from orchestrion.hal.backend import Watcher
from orchestrion.schema.tensor_bytecode import Body, Code, Instruction

#: Elementary operations between two looks: some ten milliseconds.
OPERATIONS_PER_POLL = 1 << 22


class Interrupt:
    """One per device. `watcher` is who waits for the work that is running, None where nobody does."""

    __slots__ = ("watcher",)

    def __init__(self) -> None:
        self.watcher: Watcher | None = None

    def poll(self) -> None:
        """Raises what the watcher raises when it is time to stop."""
        if self.watcher is not None:
            self.watcher.check()


def operations(code: Code, instruction: Instruction) -> int:
    """About how many elementary operations an instruction takes."""
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
