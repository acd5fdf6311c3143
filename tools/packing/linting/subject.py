"""The input of the rules of `vm-pack lint`: an opened module, the profile, and the facts about its signatures.

Facts that several rules need are computed once: which segments are valid, and the evaluation of the signatures.
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
    """The judged module. `signature`: the facts about its signatures; its `error` states why they do not suffice, None
    if they do.
    """

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
        """The declared limits, by name, well-formed or not."""
        return {
            key.removeprefix(LIMITS_PREFIX): value
            for key, value in self.attributes.items()
            if key.startswith(LIMITS_PREFIX)
        }

    @cached_property
    def programs(self) -> list[tuple[int, str, Program]]:
        """The programs whose segments are all in this file: ordinal, name, row. No other can run from it."""
        module = self.module
        return [
            (ordinal, module.strings[row.name], row)
            for ordinal, row in enumerate(module.programs)
            if is_complete(module, row)
        ]

    @cached_property
    def damaged(self) -> dict[int, str]:
        """The segments of this file whose bytes do not match the root, and why. Reads the whole file, once."""
        found = {}
        for ordinal, row in enumerate(self.module.segments):
            if self.module.container.spans[ordinal][0]:
                try:
                    self.module.segment(ordinal)
                except ModuleError as error:
                    found[ordinal] = f"{kind_name(row.kind)} {error}"
        return found

    def has(self, segment: int) -> bool:
        """Whether a segment is in this file and valid."""
        return bool(self.module.container.spans[segment][0]) and segment not in self.damaged


class SignatureFacts:
    """Facts about the signatures. `text` describes them; `error`: why they do not suffice, None if they do; `verified`:
    whether a key verified them.
    """

    __slots__ = ("error", "text", "verified")

    def __init__(self, text: str, error: str | None = None, verified: bool = False) -> None:
        self.text = text
        self.error = error
        self.verified = verified


def kind_name(kind: int) -> str:
    """`constant`, `executable` ...; the number for a kind unknown to this version."""
    try:
        return SegmentKind(kind).name.lower()
    except ValueError:
        return f"kind {kind}"
