"""What can go wrong at the device boundary, split by whose fault it is."""


class HalError(Exception):
    """Any failure at the device boundary."""


class InvalidArgument(HalError, ValueError):
    """The caller asked for something the interface forbids (range, usage, state, lifetime)."""


class Unsupported(HalError):
    """The device lacks what was asked for; the message names the feature or limit and both values."""


class LibraryUnavailable(Unsupported):
    """A library function that the program calls is not there; the message says what is, and how to add it."""


class LibraryFailed(HalError):
    """A library function failed while it ran: its fault, or its author's, and not the device's."""


class OutOfMemory(HalError):
    """There is no room. Raised as one of the two classes below, which say for whose reason."""


class DeviceOutOfMemory(OutOfMemory):
    """The hardware, its driver or the host has no memory left, or no room for an allocation of this size."""


class MemoryLimitExceeded(OutOfMemory):
    """A limit that somebody set leaves no room; the message gives the size asked for, the limit, and who set it if that
    was not the caller.
    """


class DeviceLost(HalError):
    """The device or its driver failed while working, and is of no more use: open the device again.

    Memory contents are undefined. Every later use of the open device raises this error; closing it works.
    """

    #: whether the driver was not asked, because the device had been lost before
    refused: bool = False


class InternalError(HalError):
    """A driver refused a call that the front had checked: a defect of this package or of the driver."""


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
