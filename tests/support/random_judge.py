"""Whether a device computed a random program right: two outside oracles say so, StableHLO's interpreter and XLA on CPU.

Where both give the same result, a device must give it; where they differ, that of one of them (`FAULTS` says which is
wrong, and why); where one cannot run the program, the other's. Exactly, signs of zeros included, except for floats that
are transcendental or summed up (`random_body.py`).
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from oracle_process import Oracles, Unanswered
from random_body import Value
from random_programs import Program
from random_types import COMPLEX, NUMPY, REAL

Array = np.ndarray[Any, Any]
ORACLES = ("interpreter", "xla")
#: what an oracle gives for each result, None where it was not asked
Answer = Sequence[Array | None]
#: oracle -> what it is known to get wrong or not to run, met by random programs
FAULTS = {
    "interpreter": (
        "a convolution of i8 or i16 into i32 sums up in the narrow type",
        "a convolution whose result is not in the order batch, space, feature aborts the process, as may one of none",
        "a scatter writes into its operand, where that is read again, too (generated programs scatter into a copy)",
        "a window of a scatter that is outside in part writes the part that is inside, as specified; XLA leaves it out",
        "starts of unsigned types are taken for signed",
        "ceil, floor and rounding of f8E3M4 give NaN (so does XLA: generated programs have none)",
        "the ops of `oracles.NOT_INTERPRETED` abort the process",
    ),
    "xla": (
        "subnormal numbers are flushed to zero, x + 0 is x for a negative zero, x / constant may be x * (1 / constant)",
        "a reduction along axes of one element, or none, leaves the initial value out, where it changes something",
        "a scatter of several operands may apply one update of an element only, or fail to compile",
        "a scatter of several updates into a scalar, or of different float types, fails to compile",
        "a scatter of several updates by empty index vectors applies one of them, or writes other elements, too",
        "a convolution of integers may be computed in floats, and saturates then",
        "count_leading_zeros of a negative constant of i16 or i32 is 32 - 64 or 16 - 64",
        "the sum of i1 and i1 is exclusive in some kernels",
        "clamp of constants of i1, true, true and false, is folded to true",
        "select_and_scatter by LE or LT finds the padding",
        "a dynamic_update_slice at starts of i8 along more than 127 elements writes outside of its memory",
        "sorts and scatters of i2, i4, ui2 and ui4 may be wrong",
    ),
}
#: relative and absolute (of the largest magnitude) tolerance of what is not exact
TOLERANCES = {
    NUMPY["f32"]: (1e-5, 1e-6), NUMPY["f64"]: (1e-12, 1e-13), NUMPY["complex<f32>"]: (1e-5, 1e-5),
    NUMPY["complex<f64>"]: (1e-12, 1e-12), NUMPY["f16"]: (4e-3, 1e-3), NUMPY["bf16"]: (3e-2, 8e-3),
}  # fmt: skip
_REAL = {NUMPY[t] for t in REAL}


def mismatch(got: Array, want: Array, near: bool) -> str:
    """Empty where `got` is what is wanted, else the first element that is not."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{list(got.shape)} where {want.dtype}{list(want.shape)} is wanted"
    tolerance = TOLERANCES.get(want.dtype)
    if want.dtype in _REAL:
        got, want = got.astype(np.float64), want.astype(np.float64)
    elif want.dtype in (NUMPY[t] for t in COMPLEX) and not near:
        got, want = (np.stack([x.real, x.imag], -1) for x in (got, want))
    right = np.asarray((got == want) | ((got != got) & (want != want)))
    if near and tolerance is not None:
        relative, absolute = tolerance
        largest = np.abs(want[np.isfinite(want)]).max(initial=0)
        with np.errstate(all="ignore"):
            right |= np.abs(got - want) <= relative * np.abs(want) + absolute * largest
    elif want.dtype.kind == "f":
        right &= (np.signbit(got) == np.signbit(want)) | np.isnan(want)
    if right.all():
        return ""
    place = tuple(int(axis[0]) for axis in np.nonzero(np.atleast_1d(~right)))
    values = np.atleast_1d(got)[place], np.atleast_1d(want)[place]
    return f"{np.sum(~right)} of {want.size} differ, first at {place}: {values[0]!r}, wanted {values[1]!r}"


def disagreements(results: Sequence[Value], wanted: Mapping[str, Answer]) -> list[str]:
    """Results of which the oracles think differently."""
    if len(wanted) < 2:
        return []
    rows = zip(results, *wanted.values(), strict=True)
    both = [(value, one, other) for value, one, other in rows if one is not None and other is not None]
    found = [(value, mismatch(other, one, value.near)) for value, one, other in both]
    return [f"{value.name} {value.type}: {message}" for value, message in found if message]


def faults(
    program: Any, made: Program, wanted: Mapping[str, Answer], sides: Counter[str] | None = None
) -> Iterator[tuple[Value, str]]:
    """What a loaded program gets wrong, called in several ways. `sides` counts what one oracle alone has."""
    whole = next([x for x in want if x is not None] for want in wanted.values() if all(x is not None for x in want))
    for way, found in calls(program, made, whole):
        for at, (value, got) in enumerate(zip(made.results, found, strict=True)):
            asked = {name: want[at] for name, want in wanted.items()}
            messages = {
                name: mismatch(np.asarray(got), want, value.near) for name, want in asked.items() if want is not None
            }
            if sides is not None and any(messages.values()):
                sides.update(name for name, message in messages.items() if not message)
            if all(messages.values()):
                yield value, f"{value.name} {value.type}, {way}: {messages}"


def with_second_opinions(
    oracles: Oracles, made: Program, wanted: Mapping[str, Answer], doubted: Collection[Value]
) -> dict[str, Answer]:
    """What is wanted, and of oracles that could not run the whole program, what they say of these results alone."""

    def opinion(oracle: str, value: Value) -> Array | None:
        try:
            (answer,) = oracles.ask(oracle, made.cut([value]).text, *made.arguments)
        except Unanswered:
            return None
        return answer

    found: dict[str, Answer] = dict(wanted)
    for oracle in ORACLES:
        if oracle not in wanted:
            found[oracle] = [opinion(oracle, value) if value in doubted else None for value in made.results]
    return found


def calls(program: Any, made: Program, wanted: Sequence[Array]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Ways to call it, and what comes out: a second call, arguments on the device, given memory take other paths."""
    others = [np.zeros_like(x) for x in made.arguments]
    resident = [program.put(x) for x in made.arguments]
    mixed = [x if at % 2 else y for at, (x, y) in enumerate(zip(resident, made.arguments, strict=True))]
    out = [program.empty(want.shape, want.dtype) for want in wanted]
    first = program.main(*made.arguments)
    program.main(*others)
    yield "first, kept over another call", first
    yield "on the device", program.main(*resident)
    yield "into given memory", program.main(*mixed, out=out)
    program.main(*others, out=out)
    yield "again", program.main(*made.arguments)
