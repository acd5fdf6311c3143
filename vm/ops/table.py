"""What the families of instructions share: the types of registers, ops and factories.

A frame's registers are one list: the banks one after the other, then the globals of the context, then the running call.
A factory takes the operands of an instruction in the order of its row, as the decoder gives them but without move bits,
and gives the op: a function of the registers.
"""

from collections.abc import Callable
from typing import Any

Registers = list[Any]
Op = Callable[[Registers], None]
Factory = Callable[..., Op]

#: places at the end of a frame's registers
GLOBALS, CALL = -2, -1
HIDDEN = 2
