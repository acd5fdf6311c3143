"""What can go wrong at the device boundary, split by whose fault it is."""


class HalError(Exception):
    """Any failure at the device boundary."""


class InvalidArgument(HalError):
    """The caller asked for something the interface forbids (range, usage, state, lifetime)."""


class Unsupported(HalError):
    """The device lacks what was asked for; the message names the feature or limit and both values."""


class LibraryUnavailable(Unsupported):
    """A library function that the program calls is not there; the message says what is, and how to add it."""


class LibraryFailed(HalError):
    """A library function failed while it ran: its fault, or its author's, and not the device's."""


class OutOfMemory(HalError):
    """The device, or a limit set on it, has no room; the message gives the size asked for and the limit."""


class DeviceLost(HalError):
    """The device or its driver failed while working."""


class EventFailed(HalError):
    """An event of the caller's, which work was to wait for, ended with an error; the message gives its status."""


class DriverUnavailable(HalError):
    """A driver cannot be used here; the message says why and what to install."""


class PolicyRefused(HalError):
    """Native code in a module is not trusted here; the message gives the ways on."""


class DeadlineExceeded(HalError):
    """A wait ended because its time was up."""


class BuildDeadlineExceeded(DeadlineExceeded):
    """Building a module's device code took longer than it may: the module's fault, or the deadline is too short."""


class BuildFailed(HalError):
    """The driver failed while it built a module's code in a helper process; the message says whether it crashed."""
