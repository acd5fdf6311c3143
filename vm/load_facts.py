"""What the load of a program found out, for `Program.placement` (`placement.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrion.hal.executable import Build


class LoadFacts:
    """The builds and cache hits of one context.

    `builds`: how each executable was built, by its ordinal. `derived`: whether each derived constant was in the user's
    cache, by its number. `build_seconds`: the seconds for which initializers and calls waited for builds.
    """

    __slots__ = ("build_seconds", "builds", "derived")

    def __init__(self) -> None:
        self.builds: dict[int, Build] = {}
        self.derived: dict[int, bool] = {}
        self.build_seconds = 0.0
