"""Decides whether a module may be loaded under a trust policy. Only loads with a policy import this file.

Root and code are copied out of the file before they are hashed and used, in every load (`container.open_bytes`,
`Module.segment`). Under the mode `require`, constants are hashed before their first use (`schema/trust/guard.py`). A
module that the policy refuses raises `Untrusted` before any of its code is verified.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Sequence
from typing import NamedTuple

from orchestrion.hal.device import Device
from orchestrion.hal.fork import new_lock
from orchestrion.schema.container import Container
from orchestrion.schema.files import read_whole
from orchestrion.schema.lru_cache import LruCache
from orchestrion.schema.module import Module
from orchestrion.schema.profiles import is_confined
from orchestrion.schema.trust.guard import Guard
from orchestrion.schema.trust.policy import TrustPolicy
from orchestrion.schema.trust.signature_set import MAX_BYTES, Part, part
from orchestrion.schema.trust.signers import Subject, Trust, remember

from .errors import TrustWarning

#: the tag of attachments that hold signature sets
TAG = "SIGN"

AnySignature = str | os.PathLike[str] | bytes | bytearray | memoryview


class _Identity(NamedTuple):
    """The part of a signature's subject that the root of a module says: scopes, and name and version of the model."""

    needs: frozenset[str]
    model: str | None
    version: int | None


#: identities that are remembered
MAX_IDENTITIES = 256
#: by the digest of the root
_identities: LruCache[bytes, _Identity] = LruCache()
_lock = new_lock()  #: guards `_identities`


class Admission:
    """One load under a policy. `trust`: the signers and scopes that `check` found."""

    __slots__ = ("_digest", "_signature", "policy", "trust")

    def __init__(self, policy: TrustPolicy, signature: AnySignature | None = None) -> None:
        """`signature`: a path or bytes of signatures, in addition to those in the file."""
        self.trust = Trust((), frozenset())
        self.policy = policy
        self._signature = signature
        self._digest = b""

    def check(self, module: Module) -> None:
        """Compare the signatures of a module with the policy, and set `trust`.

        Raises `Untrusted` under `require` if they do not suffice, and `OSError` if they cannot be read.
        """
        file = module.container
        self._digest = file.digest
        self.trust = self._remembered(file) or self._examined(module)
        if self.policy.mode == "require":
            module.guard = Guard(module)

    def _remembered(self, file: Container) -> Trust | None:
        """The result of an earlier check of the same root and signatures; None if there is none that still holds."""
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
        """Allow the program's share of a device to run native code, if the signatures cover it. Gives `trust`.

        Under `warn`, a module that the policy refuses raises a `TrustWarning` and is allowed as much as without a
        policy. `frames`: the stack frames between this one and the line that the warning names.
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
    """Check and grant a module that a tool runs without `load`. Raises what `admission_of` and `check` raise.

    All segments are read with `Module.segment`.
    """
    admission = admission_of(policy, signature)
    if admission is not None:
        admission.check(module)
        admission.grant(share)


def admission_of(
    policy: str | os.PathLike[str] | TrustPolicy, signature: AnySignature | None = None
) -> Admission | None:
    """The admission for a policy or a keys file; None if its mode is `off`. Raises what `TrustPolicy.read` raises."""
    found = policy if isinstance(policy, TrustPolicy) else TrustPolicy.read(policy)
    return None if found.mode == "off" else Admission(found, signature)


def signature_sets(file: Container, signature: AnySignature | None = None) -> list[bytes | memoryview]:
    """All signature sets of a file: `signature`, a path or bytes, and those in its attachments."""
    sets: list[bytes | memoryview] = [row.data for row in file.attachments if row.tag == TAG]
    if isinstance(signature, bytes | bytearray | memoryview):
        return [bytes(signature), *sets]
    return sets if signature is None else [read_whole(signature), *sets]


def parts_of(file: Container) -> tuple[Part, ...]:
    """The parts of a file that are not its root, segments or signatures, in the order in which a signature has them."""
    if not file.sections and all([row.tag == TAG for row in file.attachments]):
        return ()
    return tuple(sorted(set(_parts(file))))


def _parts(file: Container) -> Sequence[Part]:
    attachments = [part("attachment", row.tag, row.flags, row.data) for row in file.attachments if row.tag != TAG]
    return [*attachments, *[part("section", row.name, row.flags, row.data) for row in file.sections]]


def subject_of(module: Module, parts: tuple[Part, ...]) -> Subject:
    """What the signatures of a module must state. `ModuleError` for a malformed `model.name` or `model.version`."""
    digest = module.container.digest
    with _lock:
        found = _identities.use(digest)
    if found is None:
        found = _Identity(needs_of(module), module.model_name, module.model_version)
        with _lock:
            _identities.put(digest, found, MAX_IDENTITIES)
    return Subject("module", digest, found.needs, found.model, found.version, parts)


def needs_of(module: Module) -> frozenset[str]:
    """The scopes (`trust/policy.py`, `SCOPES`) that a signature of the module must cover, whatever the file lacks."""
    needs = {"code"}
    if module.constants:
        needs.add("weights")
    formats = {row.format for row in module.variants}
    if not all([is_confined(module.strings[format]) for format in formats]):
        needs.add("native")
    return frozenset(needs)
