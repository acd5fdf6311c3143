"""The rows of `schema/quirks.py` that apply to a device.

The environment variable ORCHESTRION_QUIRKS is read whenever devices are listed or opened:

| value | rows that apply |
| --- | --- |
| `on`, or unset | those that match the device |
| `off` | none |
| names, separated by commas | exactly these, on every device of their driver |
"""

import os
from typing import Final

from orchestrion.schema.quirks import BY_NAME, QUIRKS, DriverFacts, Quirk

from .errors import DriverUnavailable

QUIRKS_VARIABLE: Final = "ORCHESTRION_QUIRKS"


def quirks_of(api: str, facts: DriverFacts) -> tuple[Quirk, ...]:
    """The rows for a device of the driver `api`, in the order of the table. Raises DriverUnavailable if the variable
    names an unknown row.
    """
    setting = os.environ.get(QUIRKS_VARIABLE) or "on"
    if setting == "off":
        return ()
    rows = [row for row in QUIRKS if row.api == api]
    if setting == "on":
        return tuple([row for row in rows if row.matches(facts)])
    names = [name.strip() for name in setting.split(",")]
    for name in names:
        if name not in BY_NAME:
            raise DriverUnavailable(
                f"{QUIRKS_VARIABLE} names {name!r}; it takes on, off or some of {', '.join(BY_NAME)}"
            )
    return tuple([row for row in rows if row.name in names])
