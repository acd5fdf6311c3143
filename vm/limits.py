"""The limits of a call: fuel, seconds, bytes, depth."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .errors import CallerTypeError, CallerValueError


def plain_number(what: str, value: Any) -> Any:
    """A number of Python or NumPy, or None, without NumPy's overflow. `CallerError` names what is no number."""
    if value is None or type(value) in (int, float):
        return value
    if hasattr(value, "dtype") and not getattr(value, "shape", ()):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CallerTypeError(f"{what} is {value!r}, a number expected")
    return value


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a call. None is no limit. As `load_limits`, None is the default (`load_limits.py`), and `math.inf`
    no limit.
    """

    fuel: float | None = None  #: instructions of a call, a whole number, counted at back-edges and calls
    deadline: float | None = None  #: seconds of a call, without the time in which device code is built
    memory: float | None = None  #: bytes held, a whole number, host and device together
    depth: int = 1000  #: nested calls
    #: attributes of the module that gave some of these (`load_limits.tighten`); nobody else sets it
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
        """The attribute of the module that gave a limit; None if the module did not."""
        keys = (f"limits.{name}", f"limits.load-{name}")
        return next((key for key in keys if key in self.declared), None) if self.declared else None

    def origin(self, name: str) -> str:
        """What an error adds to a limit: who set it, if that was the module."""
        key = self.declared_as(name)
        return "" if key is None else f", which the module declares ({key})"


NO_LIMITS = Limits()
