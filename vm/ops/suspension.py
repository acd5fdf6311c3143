"""Native functions that wait for the device end a block: in a submitted call they suspend it, in a blocking one not."""

from collections.abc import Callable
from typing import Any

from .control import Block, End, Site
from .imports import Check
from .table import CALL, Op, Registers


def wait_native(
    site: Site, op: Op, begin: Callable[..., Any], check: Check, args: tuple[int, ...], moved: tuple[int, ...]
) -> End:
    """`op` is the blocking form; `begin`, called with the same arguments, gives the fence to wait for."""
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
