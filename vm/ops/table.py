"""The types that all families of instructions share: registers, ops and factories.

The registers of a frame are one list: the banks one after the other, the globals of the context, the running call. A
factory takes the operands of an instruction in the order of its row, as decoded but without move bits. It gives the op,
a function of the registers.
"""

from collections.abc import Callable
from typing import Any

Registers = list[Any]
Op = Callable[[Registers], None]
Factory = Callable[..., Op]

#: places of the globals and the call at the end of a frame's registers, and the number of these places
GLOBALS, CALL = -2, -1
HIDDEN = 2
