"""What the rules of `vm-pack lint` look at: an opened module, the profile, and what is known of its signatures.

What several rules want is worked out once: which segments are sound, and what the signatures are worth.
"""

from __future__ import annotations

from functools import cached_property

from orchestrion.schema.attributes import LIMITS_PREFIX
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.module import Module
from orchestrion.schema.rows import Program, SegmentKind
from orchestrion.tools.packing.module_parts import is_complete

from .profiles import LintProfile


class LintSubject:
    """`signature`: what the signatures are worth; `error` of it says why they do not suffice, None if they do."""

    def __init__(self, module: Module, profile: LintProfile, signature: SignatureFacts) -> None:
        self.module = module
        self.profile = profile
        self.signature = signature

    @cached_property
    def attributes(self) -> dict[str, str | bytes]:
        module = self.module
        return {module.strings[row.key]: module.attribute_value(row) for row in module.attributes}

    @cached_property
    def limits(self) -> dict[str, str | bytes]:
        """The limits that are declared, by name, well-formed or not."""
        return {
            key.removeprefix(LIMITS_PREFIX): value
            for key, value in self.attributes.items()
            if key.startswith(LIMITS_PREFIX)
        }

    @cached_property
    def programs(self) -> list[tuple[int, str, Program]]:
        """The programs that this file has all segments of: ordinal, name, row. No other can run from it."""
        module = self.module
        return [
            (ordinal, module.strings[row.name], row)
            for ordinal, row in enumerate(module.programs)
            if is_complete(module, row)
        ]

    @cached_property
    def damaged(self) -> dict[int, str]:
        """Segments of this file whose bytes are not what the root says, and why. Reads the whole file, once."""
        found = {}
        for ordinal, row in enumerate(self.module.segments):
            if self.module.container.spans[ordinal][0]:
                try:
                    self.module.segment(ordinal)
                except ModuleError as error:
                    found[ordinal] = f"{kind_name(row.kind)} {error}"
        return found

    def has(self, segment: int) -> bool:
        """Whether a segment is in this file and sound."""
        return bool(self.module.container.spans[segment][0]) and segment not in self.damaged


class SignatureFacts:
    """What is known of the signatures: `said` in words; `error`: why they do not suffice, None if they do; `verified`:
    whether a key says so.
    """

    __slots__ = ("error", "text", "verified")

    def __init__(self, text: str, error: str | None = None, verified: bool = False) -> None:
        self.text = text
        self.error = error
        self.verified = verified


def kind_name(kind: int) -> str:
    """`constant`, `executable` ...; a kind that this version does not know by its number."""
    try:
        return SegmentKind(kind).name.lower()
    except ValueError:
        return f"kind {kind}"
