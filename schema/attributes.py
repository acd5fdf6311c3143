"""The attributes of a module that have a meaning: their keys, their meanings, and the form of their values.

A module may have any other key. Keys that begin with `limits.` are reserved for limits. The loader enforces those of
the table, the compiler writes no others, and a reader of this version ignores unknown ones.

Keys that begin with `imports.` are reserved for the types of imported functions (`imported.py`).

- text: any text that is not empty
- amount: a whole number in decimal digits, 0 to 2**63 - 1
- seconds: a number above 0 in decimal digits, with up to nine fractional digits
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from .errors import ModuleError
from .imported import PREFIX as IMPORTS_PREFIX

LIMITS_PREFIX = "limits."
MAX_AMOUNT = 2**63 - 1

_AMOUNT = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)
_SECONDS = re.compile(r"(0|[1-9][0-9]{0,8})(\.[0-9]{1,9})?", re.ASCII)

#: kind of value -> description for messages
VALUE_KINDS: dict[str, str] = {
    "text": "a text that is not empty",
    "amount": f"a whole number from 0 to {MAX_AMOUNT}",
    "seconds": "a number of seconds above 0, such as 30 or 0.5",
}


class KnownAttribute(NamedTuple):
    key: str
    kind: str  #: a key of `VALUE_KINDS`
    doc: str


_ROWS = (
    KnownAttribute("model.name", "text", "name of the model; a trust policy goes by it"),
    KnownAttribute("model.version", "amount", "version of the model; a higher one is newer"),
    KnownAttribute("model.card", "text", "model card: what the model is for, and what it is not for"),
    KnownAttribute("model.licence", "text", "licence of the model: its text, or an SPDX expression"),
    KnownAttribute("limits.fuel", "amount", "instruction limit of a call, counted at loops and calls"),
    KnownAttribute("limits.deadline", "seconds", "time limit of a call, in seconds"),
    KnownAttribute("limits.memory", "amount", "most bytes held by a context, host and device together"),
    KnownAttribute("limits.load-fuel", "amount", "instruction limit of initializers"),
    KnownAttribute("limits.load-deadline", "seconds", "time limit of initializers, in seconds"),
    KnownAttribute("limits.load-memory", "amount", "most bytes held while initializers run"),
    KnownAttribute("limits.build-deadline", "seconds", "longest time for building device code, in seconds"),
)

KNOWN: dict[str, KnownAttribute] = {row.key: row for row in _ROWS}
#: the limits that the loader enforces, without the prefix
LIMITS: tuple[str, ...] = tuple(key.removeprefix(LIMITS_PREFIX) for key in KNOWN if key.startswith(LIMITS_PREFIX))


def problem(key: str, value: str | bytes) -> str | None:
    """Why an attribute may not be written: a malformed value of a known key, or an unknown limit. None if it may be
    written.
    """
    row = KNOWN.get(key)
    if row is None:
        if key.startswith(IMPORTS_PREFIX):
            return f"{key} is an attribute that only the compiler writes"
        if key.startswith(LIMITS_PREFIX):
            return f"{key} is no limit; limits are {', '.join(LIMITS_PREFIX + name for name in LIMITS)}"
        return None if key else "an attribute has an empty key"
    return None if is_value(row.kind, value) else f"{key} is {shown(value)}, {VALUE_KINDS[row.kind]} expected"


def as_text(key: str, value: object) -> object:
    """A Python or NumPy number as the text of a known amount or of seconds; other values unchanged."""
    if key not in KNOWN or KNOWN[key].kind == "text":
        return value
    if hasattr(value, "dtype") and not getattr(value, "shape", ()):
        value = value.item()  # type: ignore[attr-defined]
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return f"{value:.9f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


def is_value(kind: str, value: str | bytes) -> bool:
    """Whether a value is of this kind of `VALUE_KINDS`. Bytes are of no kind."""
    if isinstance(value, bytes):
        return False
    match kind:
        case "amount":
            return bool(_AMOUNT.fullmatch(value)) and int(value) <= MAX_AMOUNT
        case "seconds":
            return bool(_SECONDS.fullmatch(value)) and float(value) > 0
        case _:
            return bool(value.strip())


def shown(value: str | bytes) -> str:
    """A value for messages: quoted, and shortened if it is long."""
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    return repr(value if len(value) <= 40 else f"{value[:37]}...")


def declared_limits(attributes: Mapping[str, str | bytes]) -> dict[str, int | float]:
    """The limits that a module declares, by their names without the prefix.

    Unknown names are ignored: a newer version may have added them. Raises ModuleError for a malformed value.
    """
    found: dict[str, int | float] = {}
    for name in LIMITS:
        key = LIMITS_PREFIX + name
        value = attributes.get(key)
        if value is None:
            continue
        kind = KNOWN[key].kind
        if not is_value(kind, value):
            raise ModuleError(f"attribute {key} is {shown(value)}, {VALUE_KINDS[kind]} expected")
        found[name] = int(value) if kind == "amount" else float(value)
    return found
