"""Conditions on places that comparisons of scalars decide for all lanes of a vector.

The lanes of a vector have neighbouring places. If a condition compares places with a common bound, it holds in all
lanes or in none, but for the few vectors that cross the bound. Whether it does is known from the place of a lane at an
end, without a vector of flags. Places may wrap: that of an element in front of a padded operand is -1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.kernel import dialect as k
from orchestrion.schema.dtypes import UNSIGNED

from .code import Code
from .neighbours import conjuncts
from .scalars import type_of

#: value -> its stride, None if lanes have any values
StrideOf = Callable[[Value], int | None]
#: value of known form -> the text of its base
TextOf = Callable[[Value], str]


def is_decided(conditions: Iterable[Value], stride_of: StrideOf) -> bool:
    """Whether scalars decide conditions: each is common, or compares places with a common bound."""
    return all(_is_bound(part, stride_of) for condition in conditions for part in conjuncts(condition))


def _is_bound(condition: Value, stride_of: StrideOf) -> bool:
    if stride_of(condition) == 0:
        return True
    op = condition.defining_op
    if not isinstance(op, k.Scalar) or op.primitive.name not in ("compare_lt", "compare_ge"):
        return False
    place, bound = op.operands
    return k.dtype_of(place).kind == UNSIGNED and stride_of(place) is not None and stride_of(bound) == 0


def decided(
    code: Code, conditions: Iterable[Value], holds: bool, width: int, stride_of: StrideOf, text_of: TextOf
) -> str:
    """An i1 that is false if a condition does not hold in a lane; or, without `holds`, if they all hold in one."""
    flags = []
    for part in dict.fromkeys(each for condition in conditions for each in conjuncts(condition)):
        if stride_of(part) != 0:
            flags.append(_all(code, part, holds, width, stride_of, text_of))
        else:
            flags.append(text_of(part) if holds else code.set(f"xor i1 {text_of(part)}, true"))
    return reduce(lambda x, y: code.set(f"{'and' if holds else 'or'} i1 {x}, {y}"), flags)


def _all(code: Code, condition: Value, holds: bool, width: int, stride_of: StrideOf, text_of: TextOf) -> str:
    """An i1 that is false if a comparison of places is not `holds` in a lane."""
    op = condition.defining_op
    assert isinstance(op, k.Scalar)
    place, bound = op.operands
    type, stride, least, most = type_of(k.dtype_of(place)), stride_of(place), text_of(place), text_of(bound)
    assert stride
    span = abs(stride) * (width - 1)
    if stride < 0:
        least = code.set(f"sub {type} {least}, {span}")
    if holds == (op.primitive.name == "compare_lt"):  # the greatest place is below the bound, and none wraps
        if most.isdecimal():
            least_bound = str(max(int(most) - span, 0))
        else:
            least_bound = code.set(f"call {type} @llvm.usub.sat.{type}({type} {most}, {type} {span})")
        return code.set(f"icmp ult {type} {least}, {least_bound}")
    above = code.set(f"icmp uge {type} {least}, {most}")
    return code.set(f"and i1 {above}, {code.set(f'icmp ult {type} {least}, {-span}')}")
