"""What a placement report says of a kernel before it is made."""

from typing import NamedTuple


class EntryPlan(NamedTuple):
    """How an entry will be computed: the name of its schedule, and for which calls it is (empty: all others). `missed`:
    why a faster form for some calls is not made; such a row is no entry.
    """

    entry: str
    schedule: str
    calls: str = ""
    missed: str = ""
