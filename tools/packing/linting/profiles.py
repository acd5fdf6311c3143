"""The profiles of `vm-pack lint`: a store's requirements in numbers.

Each number states its source. Limits of a store are linked in docs/lint.md. The others are choices of this project: the
system does not end an app because of a module within them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrion.hal.building import MAX_SECONDS
from orchestrion.schema.hal_imports import HAL_IMPORTS


@dataclass(frozen=True, slots=True)
class UpperBound:
    """The largest value that a profile accepts, and its source."""

    value: float
    source: str


@dataclass(frozen=True, slots=True)
class LintProfile:
    """A profile. `size`: bytes of the file. `limits`: the most that a module may declare, by name; those in `required`
    must be declared. `imports`: the native functions that it may call. `warnings`: rules that are only warnings here.
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
                "build-deadline": UpperBound(MAX_SECONDS, "the most that the loader gives an untrusted module"),
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
