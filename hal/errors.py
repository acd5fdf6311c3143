"""Errors at the device boundary, split by who is at fault."""

from orchestrion.schema.errors import ModuleError


class HalError(Exception):
    """Any failure at the device boundary."""


class InvalidArgument(HalError, ValueError):
    """The caller requested something the interface forbids (range, usage, state, lifetime)."""


class Unsupported(HalError):
    """The device lacks a feature or exceeds a limit; the message names it, and both values."""


class LibraryUnavailable(Unsupported):
    """A library function that the program calls does not exist here; the message lists what exists, and how
    to add it.
    """


class LibraryFailed(HalError):
    """A library function failed while it ran. The function is at fault, not the device."""


class OutOfMemory(HalError):
    """There is no room. Raised as one of the two classes below, which say why."""


class DeviceOutOfMemory(OutOfMemory):
    """The hardware, its driver or the host has no memory left, or no room for an allocation of this size."""


class MemoryLimitExceeded(OutOfMemory):
    """A configured limit leaves no room; the message gives the requested size, the limit, and who set it if that was
    not the caller.
    """


class DeviceLost(HalError):
    """The device or its driver failed while it worked, and cannot be used any more: open the device again.

    Memory contents are undefined. Every later use of the open device raises this error, except closing it.
    """

    #: whether the front refused the call because the device was lost before, without calling the driver
    refused: bool = False


class InternalError(HalError):
    """A driver refused a call that the front had checked: a defect of this package or of the driver."""


class EventFailed(HalError):
    """An event of the caller that work had to wait for ended with an error; the message gives its status."""


class DriverUnavailable(HalError):
    """A driver cannot be used here; the message says why, and what to install."""


class PolicyRefused(HalError):
    """The native code of a module is not trusted here; the message lists how to proceed."""


class DeadlineExceeded(HalError):
    """A wait ended because its time was over."""


class BuildDeadlineExceeded(DeadlineExceeded):
    """Building a module's device code took longer than allowed: the module is at fault, or the deadline is
    too short.
    """


class BuildFailed(HalError):
    """The driver failed to build a module's code: it returned an error, or crashed in a helper process. Other code for
    the same work may succeed.
    """


class CodeRefused(BuildFailed, ModuleError):
    """The compiler of the driver refuses the text of a module; the message contains its log."""

    def __init__(self, message: str) -> None:
        ModuleError.__init__(self, message)
