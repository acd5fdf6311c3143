"""Evaluates the signatures of a module for `vm-pack lint`: under a trust policy, for one key, or unverified.

Without a policy and a key nothing can be verified, because a signature names its key but does not contain it. The
report says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.schema.errors import ModuleError
from orchestrion.schema.files import read_whole
from orchestrion.schema.module import Module
from orchestrion.schema.trust.signature_set import Signature, decode
from orchestrion.tools import cli

from .subject import SignatureFacts

Data = bytes | memoryview


def signature_facts(module: Module, policy: str | None, key: str | None, detached: str | None) -> SignatureFacts:
    """Evaluates the signatures. Raises OSError if a file cannot be read, KeysError if policy or key is malformed."""
    try:
        sets: list[Data] = [row.verified() for row in module.container.attachments if row.tag == "SIGN"]
        if detached is not None:
            sets.append(read_whole(detached))
        if policy is not None:
            return _by_policy(module, policy, sets)
        found = _signatures(module, sets)
    except ModuleError as error:
        return SignatureFacts(f"not judged: {error}", str(error))
    if not found:
        words = "not signed: its signatures are of another file" if sets else "not signed"
        return SignatureFacts(words, f"the module is {words}")
    return _unverified(found) if key is None else _by_key(module, key, found)


def _signatures(module: Module, sets: Sequence[Data]) -> list[Signature]:
    """The signatures for this module. Raises ModuleError if a set is malformed."""
    found: list[Signature] = []
    for data in sets:
        one = decode(data)
        if (one.kind, one.digest) == ("module", module.container.digest):
            found += one.signatures
    return found


def _unverified(found: Sequence[Signature]) -> SignatureFacts:
    ids = list(dict.fromkeys(row.key_id.hex()[:16] for row in found))
    keys = f"the key {ids[0]}" if len(ids) == 1 else f"the keys {', '.join(ids)}"
    return SignatureFacts(f"signed by {keys}; not verified, since neither a policy nor a key was given")


def _by_key(module: Module, path: str, found: Sequence[Signature]) -> SignatureFacts:
    from orchestrion.schema.trust import keys

    key = keys.read_public(cli.read_bytes(path))
    rows = [row for row in found if row.key_id == key.id]
    if not rows:
        words = f"not signed by the key {key.short_id}"
        return SignatureFacts(words, f"the module is {words}")
    if not any(keys.is_valid(key, "module", module.container.digest, row) for row in rows):
        words = f"the signature by the key {key.short_id} is wrong"
        return SignatureFacts(words, words)
    return SignatureFacts(f"signed by the key {key.short_id}, verified", verified=True)


def _by_policy(module: Module, path: str, sets: Sequence[Data]) -> SignatureFacts:
    """The mode of the policy does not matter: a refusal under `require` breaks the rule."""
    from orchestrion.schema.trust.policy import TrustPolicy
    from orchestrion.schema.trust.signers import examine
    from orchestrion.vm.admission import parts_of, subject_of

    trust = examine(TrustPolicy.read(path), subject_of(module, parts_of(module.container)), sets)
    if trust.refusal:
        return SignatureFacts(trust.refusal, trust.refusal)
    return SignatureFacts(f"signed by {', '.join(trust.signers)}, verified under the trust policy", verified=True)
