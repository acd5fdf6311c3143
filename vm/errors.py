"""Everything that can end a call or a load, split by whose fault it is. All are `VmError`.

An error raised while bytecode runs says where: function, pc, source location if the module carries one, and the chain
of callers, innermost first. A context is usable after every one of them but `DeviceLost`. What is wrong with the file
itself is `orchestrion.schema.errors.ModuleError`.
"""

from typing import ClassVar, NamedTuple

from orchestrion.hal import errors as hal


def shorten(text: str, most: int = 400) -> str:
    """A name from a file as a message shows it: files may hold very long ones, and use them again and again."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


class Place(NamedTuple):
    """Where in a program: `location` is the source's, None when the module does not say."""

    function: str
    pc: int
    location: str | None

    def __str__(self) -> str:
        where = f"{self.function} pc {self.pc:#x}"
        return where if self.location is None else f"{where} ({self.location})"


class VmError(Exception):
    """Base of all. `chain` starts with the place of the failure, then its callers."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.chain: tuple[Place, ...] = ()

    def __str__(self) -> str:
        if not self.chain:
            return self.message
        first, *callers = self.chain
        lines = [f"{self.message}\n  at {first}", *(f"  called from {place}" for place in callers[:_SHOWN])]
        if len(callers) > _SHOWN:
            lines.append(f"  and {len(callers) - _SHOWN} calls more")
        return "\n".join(lines)


_SHOWN = 20


class CallerError(VmError):
    """The caller's fault: wrong count, type or shape of arguments, an unknown function. Always one of the two below."""


class CallerTypeError(CallerError, TypeError):
    """Arguments of the wrong number, names, Python type or element type."""


class CallerValueError(CallerError, ValueError):
    """Arguments of the wrong shape, size or value; something that is closed, or not there."""


class TrustWarning(UserWarning):
    """A module was loaded under a trust policy of mode `warn` that it does not satisfy; the message says why."""


class LoadError(VmError):
    """Module and device do not fit together."""


class NoProgram(LoadError):
    """No program of the module can run on the device; the message lists them and what the device lacks."""


class ParameterError(LoadError):
    """Parameters or adapters are missing, or do not fit the module."""


class UnresolvedImport(LoadError):
    """The program calls a native function that is not there, or has another signature."""


class UnresolvedLibrary(LoadError):
    """The program calls a library function that is not there."""


class MissingType(LoadError):
    """NumPy lacks an element type of a signature; the message names what to install."""


class Trap(VmError):
    """The program's fault: it did what an instruction forbids, such as dividing by zero or leaving a buffer."""


class ProgramFailed(Trap):
    """The program said so itself: `fail` or `check`, with its message."""


class DeviceError(VmError):
    """The device or its driver failed, or refused what the program asked; the cause is the HAL's error."""


class DeviceLost(DeviceError):
    """The device was lost: the fault of the hardware or its driver.

    Every call of the program raises this until `Program.reopen` loads it again.
    """


class DeviceOutOfMemory(DeviceError):
    """The device, its driver or the host has no memory left, though no limit was reached.

    Use smaller sizes, close other programs, or choose a device with more memory.
    """


class LibraryFailed(VmError):
    """A library function that the program calls failed; the cause is what it raised."""


class WaitFailed(VmError):
    """A submitted call did not begin, because something it was to wait for failed; the cause is that error."""


class LimitError(VmError):
    """A limit of the context ended the call."""

    #: the field of `Limits` that was reached, if it is one
    limit: ClassVar[str | None] = None


class FuelExhausted(LimitError):
    """The call used up its instructions."""

    limit: ClassVar[str | None] = "fuel"


class DeadlineExceeded(LimitError):
    """The call ran longer than it may."""

    limit: ClassVar[str | None] = "deadline"


class BuildDeadlineExceeded(DeadlineExceeded):
    """Building the module's code for the device took longer than it may (`build_deadline`)."""

    limit: ClassVar[str | None] = None


class MemoryExceeded(LimitError):
    """The program needs more memory than a limit allows; the message says who set it, if the caller did not.

    The device may have room: raise the limit, or use smaller sizes.
    """

    limit: ClassVar[str | None] = "memory"


class DepthExceeded(LimitError):
    """Calls are nested deeper than they may be."""


class Cancelled(LimitError):
    """Somebody called `Context.cancel`."""


#: errors of the HAL that callers of the runtime get as errors of their own
PUBLIC = (hal.DeviceLost, hal.OutOfMemory)


def public(error: hal.DeviceLost | hal.OutOfMemory) -> VmError:
    """What one of the HAL's errors of `PUBLIC` is called here."""
    if isinstance(error, hal.DeviceLost):
        return DeviceLost(f"{error}; program.reopen(), or another vm.load, loads the program again")
    if isinstance(error, hal.DeviceOutOfMemory):
        return DeviceOutOfMemory(str(error))
    return MemoryExceeded(str(error))


def no_pickle(name: str) -> CallerTypeError:
    """The error for a function that somebody pickles."""
    return CallerTypeError(f"the function {name!r} does not pickle: pickle the program, and take its function there")
