"""The ends of blocks: branches, calls, return, failure, suspension.

An end is a function of the registers that gives the block to run next. It gives None if the frame changed: then the
call has the registers and the block to continue with (`Call.regs`, `Call.block`), or no block if the call has ended or
waits. A branch backwards costs fuel for the instructions between target and branch, and a call for the instructions of
the callee. A path without either is not longer than the code.
"""

import re
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Protocol

from orchestrion.schema.isa import MOVE_BIT
from orchestrion.vm.errors import CallerValueError, ProgramFailed, Trap
from orchestrion.vm.native import class_of
from orchestrion.vm.refs import type_name

from .table import CALL, GLOBALS, Factory, Op, Registers


class Block:
    """Straight-line code of one function: ops, then an end.

    `pcs`: the pc of each op and, last, of the end. If the end is a call, `after` is the block that follows it, and
    `results` are its result registers.
    """

    __slots__ = ("after", "code", "end", "ops", "pcs", "results")

    def __init__(self, code: Any) -> None:
        self.code = code
        self.ops: tuple[Op, ...] = ()
        self.end: Callable[[Registers], Block | None] = _unbuilt
        self.pcs: tuple[int, ...] = ()
        self.after: Block | None = None
        self.results: tuple[int, ...] = ()


End = Callable[[Registers], Block | None]


def _unbuilt(regs: Registers) -> Block | None:
    raise AssertionError("a block without an end was run")


class Callee(Protocol):
    """The code that a call enters. See `vm.code.Code`."""

    template: list[Any]
    parameters: tuple[int, ...]
    weight: int
    length: int

    def entry(self) -> Block: ...


class Site(Protocol):
    """The place of an end in a function: its block and pc, and the blocks and functions that it may refer to."""

    block: Block
    pc: int

    def after(self) -> Block:
        """The block that follows."""

    def target(self, pc: int) -> Block:
        """The block that starts at `pc`."""

    def cost(self, pc: int) -> int:
        """The units of fuel for a branch to `pc`."""

    def callee(self, ordinal: int) -> Callee:
        """The function of that ordinal."""


def goto(block: Block, cost: int) -> End:
    """Continue at a block. `cost`: units of fuel, 0 for a branch forward."""
    if not cost:
        return lambda regs: block

    def back(regs: Registers) -> Block:
        call = regs[CALL]
        call.fuel -= cost
        if call.fuel < 0:
            call.refuel()
        return block

    return back


def _br(site: Site, to: int) -> End:
    return goto(site.target(to), site.cost(to))


def _br_if(site: Site, a: int, then: int, other: int) -> End:
    taken, not_taken = site.target(then), site.target(other)
    cost, other_cost = site.cost(then), site.cost(other)
    if not cost and not other_cost:
        return lambda regs: taken if regs[a] else not_taken

    def end(regs: Registers) -> Block:
        spent = cost if regs[a] else other_cost
        if spent:
            call = regs[CALL]
            call.fuel -= spent
            if call.fuel < 0:
                call.refuel()
        return taken if regs[a] else not_taken

    return end


def _br_table(site: Site, a: int, other: int, table: tuple[int, ...]) -> End:
    ends = [_br(site, to) for to in (*table, other)]
    last = len(table)

    def end(regs: Registers) -> Block | None:
        index = regs[a]
        return ends[index if 0 <= index < last else last](regs)

    return end


def _call(site: Site, ordinal: int, args: tuple[int, ...], results: tuple[int, ...]) -> End:
    callee, block = site.callee(ordinal), site.block
    weight, length = callee.weight, callee.length
    block.after, block.results = site.after(), results
    pairs = tuple(zip(callee.parameters, [register & ~MOVE_BIT for register in args], strict=True))
    moved = tuple(register & ~MOVE_BIT for register in args if register & MOVE_BIT)

    def end(regs: Registers) -> None:
        call = regs[CALL]
        call.fuel -= length
        if call.fuel < 0:
            call.refuel()
        stack = call.stack
        if len(stack) >= call.depth or call.free_registers < weight:
            raise call.depth_error()
        entry = callee.entry()  # before the template is copied: building the code adds constants to it
        frame = callee.template.copy()
        for parameter, register in pairs:
            frame[parameter] = regs[register]
        for register in moved:
            regs[register] = None
        frame[CALL], frame[GLOBALS] = call, regs[GLOBALS]
        call.free_registers -= weight
        stack.append((regs, block, weight))
        call.regs, call.block = frame, entry

    return end


def _call_cached(site: Site, ordinal: int, args: tuple[int, ...], results: tuple[int, ...]) -> End:
    """As `_call`, unless the context has cached results. No argument is a result, so the key can be read afterwards."""
    enter, block, after = _call(site, ordinal, args, results), site.block, site.after()

    def keep(regs: Registers) -> Block:
        key = tuple([regs[register] for register in args])
        regs[CALL].context.memo_cache.put(ordinal, key, tuple([regs[register] for register in results]))
        return after

    returned = Block(block.code)
    returned.end, returned.pcs = keep, (site.pc,)
    block.after = returned

    def end(regs: Registers) -> Block | None:
        call = regs[CALL]
        key = tuple([regs[register] for register in args])
        found = call.context.memo_cache.find(ordinal, key)
        if found is None:
            found = call.context.memo_cache.serve(ordinal, key, call)
        if found is None:
            return enter(regs)
        for register, value in zip(results, found, strict=True):
            regs[register] = value
        return after

    return end


def _return(site: Site, values: tuple[int, ...]) -> End:
    registers = [register & ~MOVE_BIT for register in values]
    single = registers[0] if len(registers) == 1 else -1
    get = itemgetter(*registers) if len(registers) > 1 else None

    def end(regs: Registers) -> None:
        call = regs[CALL]
        found = get(regs) if get else (regs[single],) if registers else ()
        if not call.stack:
            if call.pending_batch is not None:
                raise call.pending_batch.never_executed()
            call.results, call.regs, call.block = found, None, None
            return
        caller, block, weight = call.stack.pop()
        call.free_registers += weight
        for register, value in zip(block.results, found, strict=True):
            caller[register] = value
        call.regs, call.block = caller, block.after

    return end


def _fail(site: Site, message: str) -> End:
    def end(regs: Registers) -> None:
        raise ProgramFailed(message)

    return end


def _await(site: Site, a: int) -> End:
    register, moved = a & ~MOVE_BIT, a & MOVE_BIT
    block, after, wanted = site.block, site.after(), class_of("hal.fence")

    def end(regs: Registers) -> Block | None:
        fence = regs[register]
        if wanted is None or type(fence) is not wanted:
            raise Trap(f"await: expected hal.fence, got {type_name(fence)}")
        if moved:
            regs[register] = None
        if regs[CALL].reached(fence):
            return after
        call = regs[CALL]
        call.waiting, call.suspended, call.resumption = fence, block, after
        call.regs, call.block = regs, None
        return None

    return end


ENDS: dict[str, Callable[..., End]] = {
    "br": _br,
    "br_if": _br_if,
    "br_table": _br_table,
    "call": _call,
    "call.cached": _call_cached,
    "return": _return,
    "fail": _fail,
    "await": _await,
}


def _check(a: int, message: str) -> Op:
    def op(regs: Registers) -> None:
        if not regs[a]:
            raise ProgramFailed(message)

    return op


def _require(a: int, values: tuple[int, ...], message: str) -> Op:
    def op(regs: Registers) -> None:
        if not regs[a]:
            raise CallerValueError(fill_in(message, [regs[register] for register in values]))

    return op


def fill_in(message: str, values: Sequence[int]) -> str:
    """The message with `{n}` replaced by values[n]. `{n}` stays if there is no such value."""
    return _PLACE.sub(lambda found: str(values[int(found[1])]) if int(found[1]) < len(values) else found[0], message)


_PLACE = re.compile(r"\{(\d{1,4})\}", re.ASCII)

OPS: dict[str, Factory] = {"check": _check, "require": _require}
