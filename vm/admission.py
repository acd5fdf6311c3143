"""Whether a module may be loaded under a trust policy. Imported only by a load that has one.

Under `require` the root is copied out of the file before it is hashed and decoded (`container.open_file`), code before
it is hashed and used, and constants are hashed before their first use (`schema/trust/guard.py`). A module that is
refused raises `Untrusted` before any of its code is verified.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Sequence
from typing import NamedTuple

from orchestrion.hal.device import Device
from orchestrion.schema.container import Container
from orchestrion.schema.files import read_whole
from orchestrion.schema.module import Module
from orchestrion.schema.profiles import is_confined
from orchestrion.schema.trust.guard import Guard
from orchestrion.schema.trust.policy import TrustPolicy
from orchestrion.schema.trust.signature_set import MAX_BYTES, Part, part
from orchestrion.schema.trust.signers import Subject, Trust, remember

from .errors import TrustWarning

#: the attachments that hold signature sets
TAG = "SIGN"
#: modules about which the facts are remembered
_MOST_FACTS = 256

AnySignature = str | os.PathLike[str] | bytes | bytearray | memoryview


class Facts(NamedTuple):
    """What a policy asks about a module. The root alone says it."""

    needs: frozenset[str]
    model: str | None
    version: int | None


_facts: dict[bytes, Facts] = {}


class Admission:
    """One load under a policy. `trust` is what `check` found."""

    __slots__ = ("_digest", "_signature", "policy", "trust")

    def __init__(self, policy: TrustPolicy, signature: AnySignature | None = None) -> None:
        """`signature`: signatures that are not in the file, a path or bytes."""
        self.trust = Trust((), frozenset())
        self.policy = policy
        self._signature = signature
        self._digest = b""

    def check(self, module: Module) -> None:
        """`Untrusted` under `require` when the signatures do not suffice; `OSError` where they cannot be read."""
        file = module.container
        self._digest = file.digest
        self.trust = self._known(file) or self._examined(module)
        if self.policy.mode == "require":
            module.guard = Guard(module)

    def _known(self, file: Container) -> Trust | None:
        """What was found for a file with this root and these signatures, if that still holds; the quick way."""
        if self._signature is not None or file.sections or len(file.attachments) != 1:
            return None
        (row,) = file.attachments
        if row.tag != TAG or len(row.data) > MAX_BYTES:
            return None
        standing = self.policy.remembered.get((file.digest, bytes(row.data)))
        return standing.trust if standing is not None and standing.start <= time.time() < standing.end else None

    def _examined(self, module: Module) -> Trust:
        file = module.container
        subject, sets = subject_of(module, parts_of(file)), signature_sets(file, self._signature)
        trust = self.policy.check(subject, sets)
        standing = self.policy.remembered.get((subject, tuple(map(bytes, sets))))
        if standing is not None and len(sets) == 1 and not subject.parts:
            remember(self.policy, (file.digest, bytes(sets[0])), standing)
        return trust

    def grant(self, share: Device, frames: int = 1) -> Trust:
        """What follows for the program's share of a device: native code that was signed may run. Warns under `warn`,
        and then allows no more than a load without a policy does. `frames`: those between this one and the caller whom
        the warning names.
        """
        if self.trust.refusal:
            warnings.warn(self.trust.refusal, TrustWarning, stacklevel=2 + frames)
        elif "native" in self.trust.scopes:
            share.allow_signed(self._digest)
        return self.trust


def admit(
    module: Module,
    share: Device,
    policy: str | os.PathLike[str] | TrustPolicy,
    signature: AnySignature | None = None,
) -> None:
    """The same for who runs code of a module without loading it: all of its segments are used through `Module.segment`.

    The file was opened with `private`. Errors as `admission_of` and `check`.
    """
    admission = admission_of(policy, signature)
    if admission is not None:
        admission.check(module)
        admission.grant(share)


def admission_of(
    policy: str | os.PathLike[str] | TrustPolicy, signature: AnySignature | None = None
) -> Admission | None:
    """Who decides under the policy of a keys file; None if nothing is to be checked. Errors as `TrustPolicy.read`."""
    found = policy if isinstance(policy, TrustPolicy) else TrustPolicy.read(policy)
    return None if found.mode == "off" else Admission(found, signature)


def signature_sets(file: Container, signature: AnySignature | None = None) -> list[bytes | memoryview]:
    """All signature sets of a file: those that are given beside it, and those within it."""
    sets: list[bytes | memoryview] = [row.data for row in file.attachments if row.tag == TAG]
    if isinstance(signature, bytes | bytearray | memoryview):
        return [bytes(signature), *sets]
    return sets if signature is None else [read_whole(signature), *sets]


def parts_of(file: Container) -> tuple[Part, ...]:
    """What a file holds beside its root, its segments and signatures, in the order in which a signature names it."""
    if not file.sections and all([row.tag == TAG for row in file.attachments]):
        return ()
    return tuple(sorted(set(_parts(file))))


def _parts(file: Container) -> Sequence[Part]:
    attachments = [part("attachment", row.tag, row.flags, row.data) for row in file.attachments if row.tag != TAG]
    return [*attachments, *[part("section", row.name, row.flags, row.data) for row in file.sections]]


def subject_of(module: Module, parts: tuple[Part, ...]) -> Subject:
    """What signatures of a module must say. `ModuleError` for a malformed `model.name` or `model.version`."""
    digest = module.container.digest
    facts = _facts.get(digest)
    if facts is None:
        facts = Facts(needs_of(module), module.model_name, module.model_version)
        if len(_facts) >= _MOST_FACTS:
            _facts.clear()
        if isinstance(module.container.root.obj, bytes):  # no mapped file, which somebody may write to
            _facts[digest] = facts
    return Subject("module", digest, facts.needs, facts.model, facts.version, parts)


def needs_of(module: Module) -> frozenset[str]:
    """The scopes (`trust_policy.SCOPES`) of what the root names, whether it is in this file or not."""
    needs = {"code"}
    if module.constants:
        needs.add("weights")
    formats = {row.format for row in module.variants}
    if not all([is_confined(module.strings[format]) for format in formats]):
        needs.add("native")
    return frozenset(needs)
