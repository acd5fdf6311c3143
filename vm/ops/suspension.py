"""Calls of native functions that may wait for the device. They end a block: a submitted call is suspended there."""

from collections.abc import Callable
from typing import Any

from .control import Block, End, Site
from .imports import ArgumentCheck
from .table import CALL, Op, Registers


def wait_native(
    site: Site, op: Op, begin: Callable[..., Any], check: ArgumentCheck, args: tuple[int, ...], moved: tuple[int, ...]
) -> End:
    """The end of a block that calls a native function which may wait for the device.

    `op`: the blocking call. `begin`: called with the same arguments, gives the fence to wait for, or None if there is
    nothing to wait for. `moved`: registers that are set to null after the call.
    """
    block, after = site.block, site.after()

    def end(regs: Registers) -> Block | None:
        call = regs[CALL]
        if call.blocking:
            op(regs)
            return after
        values = tuple([regs[register] for register in args])
        check(values)
        fence = begin(call, *values)
        for register in moved:
            regs[register] = None
        if fence is None:
            return after
        call.waiting = fence
        call.suspended, call.resumption = block, after
        call.regs, call.block = regs, None
        return None

    return end
