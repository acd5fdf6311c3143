"""What loading found out on the way, for who asks where a program runs (`placement.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrion.hal.executable import Build


class LoadFacts:
    """Of one context: how its executables came to be, by ordinal; by number, whether derived constants were in the
    user's cache.
    """

    __slots__ = ("build_seconds", "builds", "derived")

    def __init__(self) -> None:
        self.builds: dict[int, Build] = {}
        self.derived: dict[int, bool] = {}
        self.build_seconds = 0.0  #: for which initializers waited until executables were built
