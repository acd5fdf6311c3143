"""Runs blocks of ops: the main loop of the VM.

Calls of VM functions do not nest in Python. An end that enters or leaves a function puts the frame into the call and
gives None. The pc of a failing op is computed from the position of the block's iterator, so the loop counts nothing. An
error is raised with its place and its chain of callers, and the references in the frames are dropped at once.
"""

import traceback
from typing import Any

from orchestrion.hal.errors import (
    BuildDeadlineExceeded as HalBuildDeadlineExceeded,
)
from orchestrion.hal.errors import (
    DeadlineExceeded as HalDeadlineExceeded,
)
from orchestrion.hal.errors import (
    DeviceLost as HalDeviceLost,
)
from orchestrion.hal.errors import (
    HalError,
    InvalidArgument,
    LibraryUnavailable,
)
from orchestrion.hal.errors import (
    LibraryFailed as HalLibraryFailed,
)
from orchestrion.schema.errors import ModuleError

from .call import Call
from .code import Code
from .errors import (
    HAL_ERRORS,
    BuildDeadlineExceeded,
    DeadlineExceeded,
    DeviceError,
    DeviceOutOfMemory,
    LibraryFailed,
    Place,
    Trap,
    UnresolvedLibrary,
    VmError,
    from_hal_error,
)
from .ops.control import Block


def run(call: Call, regs: list[Any], block: Any) -> None:
    """Run a call from a block until it ends (`call.results`) or waits (`call.waiting`). Raises `VmError`.

    A call that waits continues at `call.resumption`. `regs`: the registers of the frame.
    """
    ops = None
    try:
        while True:
            ops = iter(block.ops)
            for op in ops:
                op(regs)
            ops = None
            following = block.end(regs)
            if following is None:
                following = call.block
                if following is None:
                    return
                regs = call.regs
            block = following
    except (VmError, HalError, MemoryError) as error:
        raise _located(error, call, block, _pc(block, ops), regs) from (None if isinstance(error, VmError) else error)
    except BaseException:
        _release(call, regs)
        raise


def _pc(block: Block, ops: Any) -> int:
    """The pc of the op that the iterator gave last, or of the block's end if there is no iterator."""
    if ops is None:
        return block.pcs[-1]
    left: int = ops.__length_hint__()
    return block.pcs[len(block.ops) - left - 1]


def located(error: Exception, call: Call, code: Code, pc: int, regs: list[Any]) -> VmError:
    """The error to raise for an error in a function without callers, with its place. Clears `regs`."""
    found = to_vm_error(error, call)
    if not found.chain:
        found.chain = (_place(call, code, pc),)
    regs.clear()
    traceback.clear_frames(error.__traceback__)
    return found


def _located(error: Exception, call: Call, block: Block, pc: int, regs: list[Any]) -> VmError:
    """The error to raise for an error of a call, with its place and callers. Clears the frames of the call."""
    places = [(block.code, pc)] + [(caller.code, caller.pcs[-1]) for _, caller, _ in reversed(call.stack)]
    found = to_vm_error(error, call)
    if not found.chain:
        found.chain = tuple(_place(call, code, pc) for code, pc in places)
    _release(call, regs)
    traceback.clear_frames(error.__traceback__)
    return found


def abandon(call: Call, error: HalError | VmError) -> VmError:
    """The error to raise for a suspended call that does not continue. Clears the frames of the call."""
    block = call.suspended
    return _located(error, call, block, block.pcs[-1], call.regs or [])


def to_vm_error(error: Exception, call: Call) -> VmError:
    """The error of the VM for an error of the HAL, of a native function or of Python."""
    if isinstance(error, VmError):
        return error
    if isinstance(error, InvalidArgument):
        return Trap(str(error))
    if isinstance(error, HalBuildDeadlineExceeded):
        return BuildDeadlineExceeded(str(error))
    if isinstance(error, HalDeadlineExceeded):
        return DeadlineExceeded(f"{error}{call.limits.origin('deadline')}")
    if isinstance(error, HAL_ERRORS):
        if isinstance(error, HalDeviceLost) and not error.refused and call.context.device is not None:
            call.context.device.device_state.lose(error)  # a native module may have called the driver directly
        return from_hal_error(error)
    if isinstance(error, LibraryUnavailable):
        return UnresolvedLibrary(str(error))
    if isinstance(error, HalLibraryFailed):
        return LibraryFailed(str(error))
    if isinstance(error, MemoryError):
        return DeviceOutOfMemory("the machine has no memory left")
    return DeviceError(str(error))


def _place(call: Call, code: Any, pc: int) -> Place:
    try:
        location = call.program.location(code.ordinal, pc)
    except ModuleError as error:
        location = f"unknown, {error}"
    return Place(code.name or f"function {code.ordinal}", pc, location)


def _release(call: Call, regs: list[Any]) -> None:
    """Drop all references in the frames of a call. A traceback may keep the lists themselves alive."""
    for frame, _, _ in call.stack:
        frame.clear()
    call.stack.clear()
    regs.clear()
    call.regs = call.block = call.resumption = call.waiting = call.pending_batch = None
