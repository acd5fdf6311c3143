"""The errors of calls and loads, by whose fault they are. All are `VmError`s.

An error that is raised while bytecode runs has its place: function, pc, source location if the module has one, and the
chain of callers, innermost first. A context stays usable after every error but `DeviceLost`. A malformed file raises
`orchestrion.schema.errors.ModuleError` instead.
"""

from typing import ClassVar, NamedTuple

from orchestrion.hal import errors as hal
from orchestrion.schema.printable import printable, printable_text


def shorten(text: str, most: int = 400) -> str:
    """A name from a file, cut to `most` characters for a message. A file may have very long names."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


class Place(NamedTuple):
    """A place in a program. `location`: in the source, None if the module does not say."""

    function: str
    pc: int
    location: str | None

    def __str__(self) -> str:
        where = f"{self.function} pc {self.pc:#x}"
        return where if self.location is None else f"{where} ({self.location})"


class VmError(Exception):
    """The base of all errors of the VM. `chain`: the place of the failure, then its callers."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.chain: tuple[Place, ...] = ()

    def __str__(self) -> str:
        lines = [self.message]
        for word, place in zip(("at", *["called from"] * _MAX_LISTED), self.chain, strict=False):
            lines.append(f"  {word} {printable(str(place))}")
        if len(self.chain) > 1 + _MAX_LISTED:
            lines.append(f"  and {len(self.chain) - 1 - _MAX_LISTED} calls more")
        return printable_text("\n".join(lines))


#: callers that a message lists
_MAX_LISTED = 20


class CallerError(VmError):
    """An error of the caller: a wrong number, type or shape of arguments, an unknown function. Always a
    `CallerTypeError` or a `CallerValueError`.
    """


class CallerTypeError(CallerError, TypeError):
    """A wrong number of arguments, or a wrong name, Python type or element type."""


class CallerValueError(CallerError, ValueError):
    """A wrong shape, size or value of an argument; an object that is closed or does not exist."""


class TrustWarning(UserWarning):
    """The trust policy, of mode `warn`, refuses a module that was loaded. The message says why."""


class DeviceWarning(UserWarning):
    """A module was loaded without the name of a device, and `cpu` does not run it. The message says why."""


class LoadError(VmError):
    """The module does not fit the device or the arguments of `load`."""


class NoProgram(LoadError):
    """No program of the module can run on the device. The message lists the programs and what the device lacks."""


class ParameterError(LoadError):
    """Parameters or adapters are missing, or do not fit the module."""


class UnresolvedImport(LoadError):
    """The program calls a native function that is missing or has another signature."""


class UnresolvedLibrary(LoadError):
    """The program calls a library function that is missing."""


class MissingType(LoadError):
    """NumPy lacks an element type. The message names the package to install."""


class Trap(VmError):
    """An error of the program: it did what an instruction forbids, such as a division by zero or an access outside of a
    buffer.
    """


class ProgramFailed(Trap):
    """The program ended the call itself, with `fail` or `check`. The message is the program's."""


class DeviceError(VmError):
    """The device or its driver failed, or refused a request of the program. The cause is the HAL's error."""


class BuildFailed(DeviceError):
    """The driver builds no variant of an executable. The message lists each variant with the message of the driver.

    Update the driver, or name another device.
    """

    #: the ordinal of the program in the module that is loaded; None if the load has no other program to try
    program: int | None = None


class DeviceLost(DeviceError):
    """The device was lost, because of the hardware or its driver.

    Every call of the program raises this until `Program.reopen` loads the program again.
    """


class DeviceOutOfMemory(DeviceError):
    """The device, its driver or the host has no memory left, although no limit was reached.

    Use smaller sizes, close other programs, or choose a device with more memory.
    """


class LibraryFailed(VmError):
    """A library function that the program calls failed. The cause is the error that it raised."""


class WaitFailed(VmError):
    """A submitted call did not begin, because a fence that it waited for failed. The cause is the error of
    the fence.
    """


class LimitError(VmError):
    """A limit of the context ended the call."""

    #: the field of `Limits` that was reached; None for another limit
    limit: ClassVar[str | None] = None


class FuelExhausted(LimitError):
    """The call used up its fuel."""

    limit: ClassVar[str | None] = "fuel"


class DeadlineExceeded(LimitError):
    """The call exceeded its deadline."""

    limit: ClassVar[str | None] = "deadline"


class BuildDeadlineExceeded(DeadlineExceeded):
    """Building the module's device code exceeded `build_deadline`."""

    limit: ClassVar[str | None] = None


class MemoryExceeded(LimitError):
    """The program needs more memory than a limit allows. The message says who set the limit, unless it was the caller.

    The device may have room: raise the limit, or use smaller sizes.
    """

    limit: ClassVar[str | None] = "memory"


class DepthExceeded(LimitError):
    """Calls are nested deeper than the limit allows."""


class Cancelled(LimitError):
    """The call was cancelled."""


#: errors of the HAL for which the VM has errors of its own, which `from_hal_error` gives
HAL_ERRORS = (hal.DeviceLost, hal.OutOfMemory)


def from_hal_error(error: hal.DeviceLost | hal.OutOfMemory) -> VmError:
    """The error of the VM for an error of the HAL in `HAL_ERRORS`."""
    if isinstance(error, hal.DeviceLost):
        return DeviceLost(f"{error}; program.reopen(), or another vm.load, loads the program again")
    if isinstance(error, hal.DeviceOutOfMemory):
        return DeviceOutOfMemory(str(error))
    return MemoryExceeded(str(error))


def no_pickle(name: str) -> CallerTypeError:
    """The error for pickling a function."""
    return CallerTypeError(f"the function {name!r} does not pickle: pickle the program, and take its function there")
