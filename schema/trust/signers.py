"""Decides which signatures of a file count under a trust policy, and whether they suffice.

A signature counts if its key is in the keys file, the signature is correct, the key is valid now and not revoked, it
may sign this model, and every part that it covers is in the file. The scopes of all counting signers together must
include the scopes that the file needs, and their parts all parts of the file. The model's version must not be below the
minimum (no rollback).

Whether a signature is correct depends only on the key and the signed message. Everything else except the time depends
on the policy and the file. The results are cached with the policy; a changed keys file is another policy. The time is
always checked.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from orchestrion.schema.errors import KeysError, ModuleError

from .keys import is_valid
from .signature_set import ALGORITHMS, MAX_BYTES, Part, Signature, decode

if TYPE_CHECKING:
    from .policy import TrustedKey, TrustPolicy

#: the most signature sets of one file, which bounds the cost of checking them
MAX_SETS = 16
#: the most characters of a file's name in a message, and the most names and reasons that it lists
_SHOWN, _LISTED = 60, 20
#: scope -> its name in a refusal
_SCOPE_WORDS = {"code": "code", "weights": "weights", "native": "native code"}

_is_valid = lru_cache(512)(is_valid)
_decoded = lru_cache(32)(decode)
#: the most bytes of a set that is cached in decoded form, and the most files whose result a policy caches
_MAX_REMEMBERED, _MAX_CACHED = 4096, 256
#: the most bytes of all sets of a file whose result is cached, because anybody can add sets to a signed module
_MAX_SETS_REMEMBERED = 1 << 16


class Subject(NamedTuple):
    """The file that a policy decides on. `kind`: one of `signature_set.KINDS`; `digest`: that of the file, or of a
    module's root.

    `needs`: the scopes that signers must cover together. `model`, `version`: the attributes of the module. `parts`: the
    attachments and sections of the file that some signer must cover.
    """

    kind: str
    digest: bytes
    needs: frozenset[str]
    model: str | None = None
    version: int | None = None
    parts: tuple[Part, ...] = ()


class Trust(NamedTuple):
    """The names of the counting signers, their scopes together, and why they do not suffice (empty if they do)."""

    signers: tuple[str, ...]
    scopes: frozenset[str]
    refusal: str = ""


class CachedTrust(NamedTuple):
    """The result of a policy for a file from `start` until `end` (Unix time), while the keys that signed
    it are valid.
    """

    trust: Trust
    start: float
    end: float


def examine(
    policy: TrustPolicy, subject: Subject, sets: Sequence[bytes | memoryview], now: float | None = None
) -> Trust:
    """Evaluates the signatures in `sets` under the policy. `now`: Unix time, by default that of the machine."""
    moment = time.time() if now is None else now
    data = tuple([bytes(one[: MAX_BYTES + 1]) for one in sets[: MAX_SETS + 1]])
    known = policy.remembered.get((subject, data))
    if known is not None and known.start <= moment < known.end:
        return known.trust
    reasons: dict[str, str] = {}
    signers: dict[str, tuple[TrustedKey, Signature]] = {}
    all_counted = True
    for source, signature in _signatures(subject, data, reasons):
        key = policy.by_id.get(signature.key_id)
        if key is None:
            reasons[source] = f"key {signature.key_id.hex()[:16]} is not in the keys file"
            continue
        reason = _objection(key, subject, signature, moment)
        if reason:
            reasons[source] = f"{key.name}: {reason}"
            all_counted = False
            continue
        signers[key.name] = key, signature
    trust = _judge(policy, subject, signers, reasons if sets else {"": "it is not signed"})
    if all_counted and not trust.refusal and sum(map(len, data)) <= _MAX_SETS_REMEMBERED:
        keys = [key for key, _ in signers.values()]
        start = max([-inf, *[key.not_before for key in keys if key.not_before is not None]])
        end = min([inf, *[key.not_after for key in keys if key.not_after is not None]])
        remember(policy, (subject, data), CachedTrust(trust, start, end))
    return trust


def remember(policy: TrustPolicy, question: Hashable, cached: CachedTrust) -> None:
    if len(policy.remembered) >= _MAX_CACHED:
        policy.remembered.clear()
    policy.remembered[question] = cached


def _judge(
    policy: TrustPolicy,
    subject: Subject,
    signers: dict[str, tuple[TrustedKey, Signature]],
    reasons: dict[str, str],
) -> Trust:
    """Whether the counting signers suffice. `reasons`: why other signatures do not count."""
    scopes = frozenset().union(*[key.scopes for key, _ in signers.values()])
    covered = {row for _, signature in signers.values() for row in signature.parts}
    problems = [*_uncovered(subject, scopes, covered), *_rollback(policy, subject)]
    if not problems:
        return Trust(tuple(signers), scopes)
    text = "; ".join([_listed(dict.fromkeys(reasons.values()), "; "), *problems]).removeprefix("; ")
    return Trust(tuple(signers), scopes, f"{subject.kind} {subject.digest.hex()[:16]} is not trusted: {text}")


def _signatures(subject: Subject, sets: Sequence[bytes], reasons: dict[str, str]) -> Iterable[tuple[str, Signature]]:
    """The signatures of all sets for this file, each with a key for its reason."""
    for number, data in enumerate(sets):
        if number == MAX_SETS:
            reasons["sets"] = f"more than {MAX_SETS} signature sets"
            return
        try:
            found = _decoded(data) if len(data) <= _MAX_REMEMBERED else decode(data)
        except ModuleError as error:
            reasons[f"{number}"] = str(error)
            continue
        if (found.kind, found.digest) != (subject.kind, subject.digest):
            reasons[f"{number}"] = f"it has the signatures of {found.kind} {found.digest.hex()[:16]}"
        elif not found.signatures:
            reasons[f"{number}"] = "it is not signed"
        else:
            yield from [(f"{number} {row.key_id.hex()}", row) for row in found.signatures]


def _objection(key: TrustedKey, subject: Subject, signature: Signature, now: float) -> str:
    """Why a signature by a known key does not count; empty if it does."""
    if signature.algorithm not in ALGORITHMS:
        return f"its signature is of algorithm {signature.algorithm}, which this version does not know"
    try:
        if not _is_valid(key.key, subject.kind, subject.digest, signature):
            return "its signature is wrong"
    except KeysError as error:
        return str(error)
    if key.revoked:
        return "the key is revoked"
    if expired := _expired(key, now):
        return expired
    if key.models is not None and subject.model not in key.models:
        return f"the key may not sign {_model(subject)}"
    missing = [row.name for row in signature.parts if row not in subject.parts]
    return f"it signed {_listed(missing)}, which is not in this file" if missing else ""


def _expired(key: TrustedKey, now: float) -> str:
    """Why a key is not valid at a moment; empty if it is."""
    if key.not_before is not None and now < key.not_before:
        return f"the key is not valid before {_moment(key.not_before)}"
    if key.not_after is not None and now >= key.not_after:
        return f"the key expired at {_moment(key.not_after)}"
    return ""


def _uncovered(subject: Subject, scopes: frozenset[str], covered: set[Part]) -> Iterable[str]:
    missing = [words for scope, words in _SCOPE_WORDS.items() if scope in subject.needs - scopes]
    if missing:
        yield f"no accepted signature for {' and '.join(missing)}"
    names = [row.name for row in subject.parts if row not in covered]
    if names:
        yield f"no accepted signature covers {_listed(names)}"


def _rollback(policy: TrustPolicy, subject: Subject) -> Iterable[str]:
    if subject.kind != "module" or not policy.minimum_versions:
        return
    if subject.model is None:
        yield "it has no model.name, and the keys file demands versions"
        return
    least = policy.minimum_versions.get(subject.model)
    if least is None:
        return
    if subject.version is None:
        yield f"{_model(subject)} has no model.version, the keys file demands {least}"
    elif subject.version < least:
        yield f"{_model(subject)} has version {subject.version}, the keys file demands {least}"


def _listed(names: Iterable[str], between: str = ", ") -> str:
    found = list(names)
    left = len(found) - _LISTED
    return between.join(found if left <= 0 else [*found[:_LISTED], f"{left} more"])


def _model(subject: Subject) -> str:
    if subject.model is None:
        return f"a {subject.kind} without model.name"
    name = subject.model if len(subject.model) <= _SHOWN else f"{subject.model[: _SHOWN - 3]}..."
    return f"model {name!r}"


def _moment(seconds: float) -> str:
    try:
        moment = datetime(1970, 1, 1) + timedelta(seconds=seconds)
    except OverflowError:  # the time zone moved the date out of the calendar
        return "the end of the calendar"
    return f"{moment:%Y-%m-%d %H:%M} UTC"
