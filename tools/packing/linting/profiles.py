"""What a store wants of a module, in numbers: the profiles of `vm-pack lint`.

Each number says where it comes from. A number of a store's own is linked in docs/lint.md; the others are choices of
this project, made so that a module that keeps to them does not get an app ended by the system.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrion.hal.building import MAX_SECONDS
from orchestrion.schema.hal_imports import HAL_IMPORTS


@dataclass(frozen=True, slots=True)
class UpperBound:
    """The largest value that a profile takes, and where it comes from."""

    value: float
    source: str


@dataclass(frozen=True, slots=True)
class LintProfile:
    """`size`: bytes of the file. `limits`: the most that a module may declare, by name; those in `required` must be
    declared. `imports`: the native functions that it may call. `warnings`: rules that only warn here.
    """

    name: str
    doc: str
    size: UpperBound | None = None
    limits: Mapping[str, UpperBound] = field(default_factory=dict)
    required: tuple[str, ...] = ("memory", "fuel", "build-deadline")
    imports: frozenset[str] = frozenset(HAL_IMPORTS)
    warnings: frozenset[str] = frozenset()


_MEMORY = UpperBound(2 << 30, "half of the memory of a phone with 4 GiB, of which systems leave an app about that much")
_FUEL = UpperBound(10_000_000, "1 to 8 s of the virtual machine alone, as docs/limits.md measures it")
_SECONDS = UpperBound(20, "iOS ends an app that does not show itself within about 20 s")

LINT_PROFILES: dict[str, LintProfile] = {
    row.name: row
    for row in (
        LintProfile(
            "app-store",
            "an app of a store that forbids downloaded native code",
            size=UpperBound(1_500_000_000, "the most bytes of one asset pack of Google Play"),
            limits={
                "memory": _MEMORY,
                "load-memory": _MEMORY,
                "fuel": _FUEL,
                "load-fuel": _FUEL,
                "deadline": _SECONDS,
                "load-deadline": _SECONDS,
                "build-deadline": UpperBound(
                    MAX_SECONDS, "the most that the loader gives a module that is not trusted"
                ),
            },
        ),
        LintProfile(
            "sideload",
            "an app outside of stores: what a file may do is judged as for a store, its papers only warn",
            warnings=frozenset(
                ("limits-declared", "signed", "licence", "model-card", "model-name", "model-version", "paths")
            ),
        ),
    )
}
