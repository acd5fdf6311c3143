"""The limits of a call: fuel, deadline, memory, depth."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .errors import CallerTypeError, CallerValueError


def plain_number(what: str, value: Any) -> Any:
    """A number of Python or NumPy as a Python number; None stays None. `CallerError` for anything else."""
    if value is None or type(value) in (int, float):
        return value
    if hasattr(value, "dtype") and not getattr(value, "shape", ()):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CallerTypeError(f"{what} is {value!r}, a number expected")
    return value


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a call. None is no limit.

    As the argument `load_limits`, None is the default (`load_limits.py`) and `math.inf` is no limit. `CallerError` for
    a negative limit or a value that is not a number.
    """

    fuel: float | None = None  #: instructions of a call, counted at branches backwards and calls
    deadline: float | None = None  #: seconds of a call, without the time for building device code
    memory: float | None = None  #: bytes that a context holds, host and device memory together
    depth: int = 1000  #: nested calls
    #: the attributes of the module that set some of these limits; only `load_limits.py` gives it
    declared: frozenset[str] = field(default=frozenset(), compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        for name, value in (("fuel", self.fuel), ("deadline", self.deadline), ("memory", self.memory)):
            plain = plain_number(f"limit {name}", value)
            if plain is not None and not plain >= 0:  # NaN neither
                raise CallerValueError(f"limit {name} is {plain}, 0 or more expected")
            object.__setattr__(self, name, plain)
        if self.depth < 1:
            raise CallerValueError(f"limit depth is {self.depth}, 1 or more expected")

    def declared_as(self, name: str) -> str | None:
        """The attribute of the module that set a limit; None if the module did not set it."""
        keys = (f"limits.{name}", f"limits.load-{name}")
        return next((key for key in keys if key in self.declared), None) if self.declared else None

    def origin(self, name: str) -> str:
        """The text that a message adds to a limit that the module set; empty for other limits."""
        key = self.declared_as(name)
        return "" if key is None else f", which the module declares ({key})"


NO_LIMITS = Limits()
