"""Whether barriers are met by all invocations of a workgroup or by none.

A value is *uniform* when every invocation of the workgroup computes the same: constants, parameters, workgroup ids,
numbers of workgroups, and what is made of such values alone, by arithmetic or by an OpPhi whose conditions are uniform.
All else is divergent: what is loaded from buffers and workgroup memory, the invocation's own index, and whatever
depends on that. A barrier stands where the conditions of all constructs around it are uniform.

Only functions with a barrier inside a construct are looked at. Work is linear in the function.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .spirv_flow import Flow
from .spirv_types import Scope

Uses = Sequence[tuple[int, Sequence[int]]]


def check_barriers(scope: Scope, flow: Flow, uses: Uses, divergent: Iterable[int]) -> None:
    """`ModuleError` for a barrier under a condition that is not uniform.

    `uses`: (result, operands) of each instruction; `divergent`: results that differ whatever their operands are.
    """
    barriers = [(at, conditions) for at, conditions in flow.barriers if conditions]
    if not barriers:
        return
    found = spread([*uses, *flow.phis.items()], divergent)
    for at, conditions in barriers:
        for condition in conditions:
            if condition in found:
                scope.at, scope.op = at, "OpControlBarrier"
                scope.refuse(f"under condition {condition}, which may differ between invocations of a workgroup")


def spread(uses: Uses, divergent: Iterable[int]) -> set[int]:
    """All values that depend on a divergent one."""
    users: dict[int, list[int]] = {}
    for result, operands in uses:
        for operand in operands:
            users.setdefault(operand, []).append(result)
    return _reachable(users, divergent)


def _reachable(users: Mapping[int, Sequence[int]], seeds: Iterable[int]) -> set[int]:
    found = set(seeds)
    pending = [*found]
    while pending:
        for user in users.get(pending.pop(), ()):
            if user not in found:
                found.add(user)
                pending.append(user)
    return found
