"""A context: globals, memory and limits of one user of a loaded program. Its calls run one after the other.

Limits hold for each call (fuel, deadline, depth) or for what the context holds (memory). Reaching one ends the call
with a named error and leaves the context usable: the frames are gone, the globals are as the call left them.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestrion.hal.errors import HalError

from .call import Call
from .code import Code
from .errors import CallerError
from .interpreter import abandon, run
from .memory import Memory
from .ops.table import CALL, GLOBALS

if TYPE_CHECKING:
    from .linker import LinkedProgram


@dataclass(frozen=True, slots=True)
class Limits:
    """None is no limit."""

    fuel: int | None = None  #: instructions of a call, counted at back-edges and calls
    deadline: float | None = None  #: seconds of a call
    memory: int | None = None  #: bytes held, host and device together
    depth: int = 1000  #: nested calls

    def __post_init__(self) -> None:
        for name, value in (("fuel", self.fuel), ("deadline", self.deadline), ("memory", self.memory)):
            if value is not None and value < 0:
                raise CallerError(f"limit {name} is {value}, 0 or more expected")
        if self.depth < 1:
            raise CallerError(f"limit depth is {self.depth}, 1 or more expected")


NO_LIMITS = Limits()


class Context:
    """Private state over a shared `LinkedProgram`. Any thread may call; calls take turns."""

    __slots__ = ("_call", "cancelled", "device", "globals", "limits", "lock", "memory", "program")

    def __init__(
        self,
        program: "LinkedProgram",
        limits: Limits = NO_LIMITS,
        values: Sequence[Any] | None = None,
        device: Any = None,
    ) -> None:
        """`values` are the globals to start with, those of the program if None. No initializer runs here."""
        self.program = program
        self.limits = limits
        self.memory = Memory(limits.memory)
        self.device = device
        self.globals: list[Any] = list(program.globals if values is None else values)
        self.cancelled = False
        self.lock = threading.Lock()
        self._call = Call(self)

    def invoke(self, code: Code, arguments: Sequence[Any] = ()) -> tuple[Any, ...]:
        """Call a function and wait until it is over. Arguments have the function's types; the caller has checked.

        Raises `VmError`, or `ModuleError` when an executable or constant that it asks for turns out to be damaged.
        """
        with self.lock:
            return self.run(code, arguments)

    def run(self, code: Code, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """`invoke` for who holds the lock."""
        call = self._call
        call.begin()
        self._start(call, code, arguments)
        while call.waiting is not None:
            self._wait(call)
            run(call, call.regs, call.resumption)  # type: ignore[arg-type]
        results, call.results = call.results, ()
        return results

    def start(self, code: Code, arguments: Sequence[Any] = ()) -> Call:
        """Run a call up to its end or its first suspension. The lock is the caller's affair."""
        call = Call(self)
        self._start(call, code, arguments)
        return call

    def resume(self, call: Call) -> None:
        """Go on with a suspended call whose fence was signalled."""
        if not call.reached(call.waiting):
            raise CallerError("the call waits for a fence that is not signalled")
        call.waiting = None
        run(call, call.regs, call.resumption)  # type: ignore[arg-type]

    def cancel(self) -> None:
        """End the call that is running now, if any, with `Cancelled`. From any thread; it takes a few milliseconds."""
        self.cancelled = True

    def _start(self, call: Call, code: Code, arguments: Sequence[Any]) -> None:
        self.cancelled = False
        entry = code.entry()
        frame = code.template.copy()
        for register, value in zip(code.parameters, arguments, strict=True):
            frame[register] = value
        frame[GLOBALS], frame[CALL] = self.globals, call
        run(call, frame, entry)

    def _wait(self, call: Call) -> None:
        try:
            call.wait()
        except HalError as error:
            raise abandon(call, error) from error
