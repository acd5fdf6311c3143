"""Decides whether parameters and adapters may be used under a trust policy. Only loads with a policy import this file.

The values that a module was compiled with are as trusted as the module, since its root has their digests. Any other
parameter must come from a file that is signed as `params`, and every adapter from a file that is signed as `adapter`,
by keys with the scope `weights`. The signatures of FILE are in FILE.sig.

Files are hashed once, while they are mapped. Later changes of a mapped file are not noticed, as for constants. Headers
are copied before they are hashed.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from orchestrion.schema.errors import Untrusted
from orchestrion.schema.files import read_whole
from orchestrion.schema.safetensors import shown
from orchestrion.schema.trust.guard import in_threads
from orchestrion.schema.trust.signers import Subject, examine

from .errors import TrustWarning

if TYPE_CHECKING:
    from orchestrion.schema.module import Module
    from orchestrion.schema.parameters import Parameter
    from orchestrion.schema.trust.policy import TrustPolicy

    from .parameters import GivenTensor, TensorSource


def admit(
    policy: TrustPolicy,
    module: Module,
    values: Sequence[tuple[Parameter, GivenTensor]],
    adapters: Sequence[TensorSource],
) -> None:
    """Check the files of parameters and adapters. A file that the policy refuses raises `Untrusted` under `require`,
    and gives a `TrustWarning` under `warn`.
    """
    sources: dict[int, TensorSource] = {id(found.source): found.source for _, found in values}
    refusals = {key: _refusal(policy, module, "params", source) for key, source in sources.items()}
    left = [(row, found) for row, found in values if refusals[id(found.source)]]
    reasons = [_refusal(policy, module, "adapter", source) for source in adapters]
    for key, names in _foreign(left).items():
        which = f"{names[0]} has not the value that the module was compiled with"
        reasons.append(f"{refusals[key]}; {which}")
    refusal = "; ".join(reason for reason in reasons if reason)
    if refusal and policy.mode == "require":
        raise Untrusted(refusal)
    if refusal:
        warnings.warn(refusal, TrustWarning, stacklevel=4)


def _foreign(values: Sequence[tuple[Parameter, GivenTensor]]) -> dict[int, list[str]]:
    """The names of parameters whose digest differs from that in the module's root, by the id of their source."""
    different: set[str] = set()

    def compare(item: tuple[Parameter, GivenTensor]) -> None:
        row, found = item
        if not any(row.digest) or sha256(found.data).digest() != row.digest:
            different.add(row.name)

    in_threads(compare, values)
    found: dict[int, list[str]] = {}
    for row, given in values:
        if row.name in different:
            found.setdefault(id(given.source), []).append(shown(row.name))
    return found


def _refusal(policy: TrustPolicy, module: Module, kind: str, source: TensorSource) -> str:
    """The reason why a file is not trusted; empty if it is."""
    label, file, signature = source
    if file is None:
        return f"{label} are not trusted: only files can be signed"
    if signature is None or not isinstance(signature, bytes) and not os.path.exists(signature):
        there = "" if signature is None else f", there is no {os.fspath(signature)}"
        return f"{label} is not trusted: it is not signed{there}"
    data = signature if isinstance(signature, bytes) else read_whole(signature)
    refusal = examine(policy, Subject(kind, file.digest(), frozenset(("weights",)), module.model_name), [data]).refusal
    return f"{label}: {refusal}" if refusal else ""
