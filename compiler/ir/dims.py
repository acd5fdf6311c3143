"""Symbolic sizes: integer expressions over symbols, which stand beside numbers in shapes.

A `Size` is an int or a `Dim`, and arithmetic of sizes gives sizes. A `Dim` is a sum of products of atoms. An atom is a
symbol, which has a least and a greatest value, or a `floordiv`, `mod`, `max` or `min` of two sizes that does not
simplify. Expressions have a normal form, so `==` and `hash` treat equal expressions as equal, and an expression that
is a number is an int. A Dim is not an int, so nothing mistakes it for a number. Code that needs a number calls
`int(size)` or `numbers(sizes)`, which raise `UndecidedError` for a Dim.

`==` compares expressions. `<` and truth are decided by the bounds of the symbols; if the bounds leave the answer open,
they raise `UndecidedError`. Text: `2 * b * s + floordiv(b + 1, 2) - 3`; a symbol with bounds other than 1 to 2^31 - 1
prints them after its name, `b{4..64}`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar, final, overload

if TYPE_CHECKING:
    from typing_extensions import TypeIs

#: Bounds of a symbol by default: no size is larger, and no symbol of JAX is smaller.
DEFAULT_LEAST: Final = 1
DEFAULT_GREATEST: Final = 2**31 - 1
#: With more calls in a sum, its bounds come from interval arithmetic alone.
MAX_RELAXED_CALLS: Final = 4
#: Maximum number of calls that are replaced one after the other to bound a sum; each may contain others.
MAX_RELAXATION_DEPTH: Final = 6
#: Value of a symbol in estimates.
TYPICAL: Final = 64
#: Capacity of the caches of answers about sizes, which are asked for repeatedly.
_KEPT: Final = 4096


class UndecidedError(ValueError):
    """The bounds of the symbols do not decide a comparison of sizes: it holds for some values and not for others."""


class Atom:
    """A factor of products; ordered by text."""

    __slots__ = ()

    def __lt__(self, other: Atom) -> bool:
        return str(self) < str(other)

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest value."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Symbol(Atom):
    """A size whose value each call determines."""

    name: str
    least: int = DEFAULT_LEAST
    greatest: int = DEFAULT_GREATEST

    def __str__(self) -> str:
        if (self.least, self.greatest) == (DEFAULT_LEAST, DEFAULT_GREATEST):
            return self.name
        least = "" if self.least == DEFAULT_LEAST else self.least
        greatest = "" if self.greatest == DEFAULT_GREATEST else self.greatest
        return f"{self.name}{{{least}..{greatest}}}"

    @property
    def bounds(self) -> tuple[int, int]:
        return self.least, self.greatest


@dataclass(frozen=True, slots=True)
class Call(Atom):
    """A function of `FUNCTIONS` applied to two sizes."""

    op: str
    lhs: Size
    rhs: Size

    def __str__(self) -> str:
        return f"{self.op}({self.lhs}, {self.rhs})"

    @property
    def bounds(self) -> tuple[int, int]:
        (low, high), (least, most) = bounds(self.lhs), bounds(self.rhs)
        match self.op:
            case "max":
                return max(low, least), max(high, most)
            case "min":
                return min(low, least), min(high, most)
            case "mod":
                return 0, min(most - 1, high) if low >= 0 else most - 1
            case _:
                return min(low // least, low // most), max(high // least, high // most)


#: A product: its atoms, sorted.
Factors = tuple[Atom, ...]
Terms = dict[Factors, int]


@final
class Dim:
    """A symbolic size: (coefficient, factors) pairs whose sum it is. Immutable."""

    __slots__ = ("terms", "__dict__")

    terms: tuple[tuple[int, Factors], ...]

    def __init__(self, terms: tuple[tuple[int, Factors], ...]) -> None:
        self.terms = terms

    @cached_property
    def _hash(self) -> int:
        return hash(self.terms)

    @cached_property
    def _text(self) -> str:
        return _text_of(self.terms)

    @cached_property
    def symbol(self) -> Symbol | None:
        """The symbol that is the whole size; None for any other expression."""
        (count, factors), *others = self.terms
        only = factors[0] if count == len(factors) == 1 and not others else None
        return only if isinstance(only, Symbol) else None

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dim) and self.terms == other.terms

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(self._text, spec)

    def __reduce__(self) -> tuple[type[Dim], tuple[object]]:
        return Dim, (self.terms,)

    def __add__(self, other: Size) -> Size:
        return _sum(self, other, 1)

    __radd__ = __add__

    def __sub__(self, other: Size) -> Size:
        return _sum(self, other, -1)

    def __rsub__(self, other: Size) -> Size:
        return _sum(other, self, -1)

    def __neg__(self) -> Size:
        return _sum(0, self, -1)

    def __mul__(self, other: Size) -> Size:
        return _product(self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Size) -> Size:
        return floordiv(self, other)

    def __rfloordiv__(self, other: Size) -> Size:
        return floordiv(other, self)

    def __mod__(self, other: Size) -> Size:
        return mod(self, other)

    def __rmod__(self, other: Size) -> Size:
        return mod(other, self)

    def greater(self, other: Size) -> Size:
        """The larger size. With it, a Dim is an `Expression` of `schema.tensor_shapes`."""
        return dim_max(self, other)

    def __bool__(self) -> bool:
        low, high = bounds(self)
        if low > 0 or high < 0:
            return True
        raise UndecidedError(f"whether {self} is 0 depends on the sizes of a call")

    def __index__(self) -> int:
        raise UndecidedError(f"{self} depends on the sizes of a call, where a number is needed")

    def __lt__(self, other: Size) -> bool:
        return _is_positive(other - self, f"{self} < {other}")

    def __gt__(self, other: Size) -> bool:
        return _is_positive(self - other, f"{self} > {other}")

    def __le__(self, other: Size) -> bool:
        return not _is_positive(self - other, f"{self} > {other}")

    def __ge__(self, other: Size) -> bool:
        return not _is_positive(other - self, f"{self} < {other}")


#: A size of a shape: a number, or an expression over symbols.
Size: TypeAlias = int | Dim
Shape: TypeAlias = tuple[Size, ...]
#: Two numbers and a result that is a number, or sizes.
AnySize = TypeVar("AnySize", int, Size)


def symbol(name: str, least: int = DEFAULT_LEAST, greatest: int = DEFAULT_GREATEST) -> Dim:
    """The size that is this symbol."""
    return Dim(((1, (Symbol(name, least, greatest),)),))


def bounds(size: Size) -> tuple[int, int]:
    """A lower and an upper bound of a size, as tight as interval arithmetic gives."""
    if not isinstance(size, Dim):
        return size, size
    return _lower(size), -_lower(-size)


@lru_cache(_KEPT)
def _lower(size: Size, nested: int = MAX_RELAXATION_DEPTH) -> int:
    """A lower bound: from intervals, or a higher one if a call is replaced by a lower bound of the call."""
    if not isinstance(size, Dim):
        return size
    found = _lower_by_intervals(size)
    calls = [(count, factors[0]) for count, factors in size.terms if len(factors) == 1 and isinstance(factors[0], Call)]
    for count, call in calls if nested and len(calls) <= MAX_RELAXED_CALLS else ():
        rest = size - count * Dim(((1, (call,)),))
        for least, divisor in _relaxed(call, count):
            found = max(found, ceildiv(_lower(rest * divisor + least, nested - 1), divisor))
    return found


def _relaxed(call: Call, count: int) -> list[tuple[Size, int]]:
    """(lower bound, divisor) pairs: `count` times the call is at least the lower bound divided by the divisor."""
    match call.op:
        case "mod" if count < 0:
            return [(count * (call.rhs - 1), 1)]
        case "floordiv" if not isinstance(call.rhs, Dim):
            return [(count * (call.lhs if count < 0 else call.lhs - (call.rhs - 1)), call.rhs)]
        case "min" if count < 0:
            return [(count * call.lhs, 1), (count * call.rhs, 1)]
        case "max" if count > 0:
            return [(count * call.lhs, 1), (count * call.rhs, 1)]
        case _:
            return []


def _lower_by_intervals(size: Dim) -> int:
    """Interval arithmetic: each atom is its least value plus a rest; negative terms count at their greatest."""
    rests: dict[Atom, tuple[int, int]] = {a: a.bounds for _, factors in size.terms for a in factors}
    shifted: dict[Factors, int] = {}
    for coefficient, factors in size.terms:
        parts: Terms = {(): coefficient}
        for atom in factors:
            least = rests[atom][0]
            grown: Terms = {}
            for some, count in parts.items():
                grown[some] = grown.get(some, 0) + count * least
                more = tuple(sorted((*some, atom)))
                grown[more] = grown.get(more, 0) + count
            parts = grown
        for some, count in parts.items():
            shifted[some] = shifted.get(some, 0) + count
    least = shifted.pop((), 0)
    return least + sum(
        count * prod(rests[atom][1] - rests[atom][0] for atom in factors)
        for factors, count in shifted.items()
        if count < 0
    )


def _is_positive(size: Size, said: str) -> bool:
    low, high = bounds(size)
    if low > 0:
        return True
    if high <= 0:
        return False
    raise UndecidedError(f"whether {said} depends on the sizes of a call")


@overload
def is_dynamic(size: Size, /) -> TypeIs[Dim]: ...
@overload
def is_dynamic(*sizes: Size) -> bool: ...
def is_dynamic(*sizes: Size) -> bool:
    """Whether one of the sizes depends on a call."""
    for size in sizes:  # no generator: this is asked a hundred thousand times
        if isinstance(size, Dim):
            return True
    return False


def numbers(sizes: Iterable[Size]) -> tuple[int, ...]:
    """The sizes as numbers. Raises UndecidedError if one of them depends on a call."""
    return tuple([int(size) for size in sizes])


def is_less(lhs: Size, rhs: Size) -> bool:
    """Whether lhs < rhs for all values of the symbols; False if the bounds leave it open."""
    return bounds(rhs - lhs)[0] > 0


def decided(messages: Iterable[str]) -> Iterator[str]:
    """Yields the messages of a check. If a comparison cannot be decided, that is the last message."""
    try:
        yield from messages
    except UndecidedError as error:
        yield str(error)


# arithmetic


def _terms(size: Size) -> Terms:
    if isinstance(size, Dim):
        return {factors: coefficient for coefficient, factors in size.terms}
    return {(): size} if size else {}


def _made(terms: Terms) -> Size:
    """The size for a sum of products; an int if no atom is left."""
    kept = sorted(((factors, count) for factors, count in terms.items() if count), key=_order)
    if not kept:
        return 0
    if len(kept) == 1 and not kept[0][0]:
        return kept[0][1]
    return Dim(tuple((count, factors) for factors, count in kept))


def _order(term: tuple[Factors, int]) -> tuple[int, list[str]]:
    """Sort key of terms: long products first, the number last."""
    factors = term[0]
    return -len(factors), [str(atom) for atom in factors]


def _sum(lhs: Size, rhs: Size, sign: int) -> Size:
    if not isinstance(rhs, Dim | int) or not isinstance(lhs, Dim | int):
        return NotImplemented
    terms = _terms(lhs)
    for factors, count in _terms(rhs).items():
        terms[factors] = terms.get(factors, 0) + sign * count
    return _made(terms)


def _product(lhs: Size, rhs: Size) -> Size:
    if not isinstance(rhs, Dim | int):
        return NotImplemented
    terms: Terms = {}
    for some, count in _terms(lhs).items():
        for others, times in _terms(rhs).items():
            factors = tuple(sorted((*some, *others)))
            terms[factors] = terms.get(factors, 0) + count * times
    return _made(terms)


def floordiv(lhs: Size, rhs: Size) -> Size:
    """lhs / rhs rounded down; terms that rhs divides become terms of the quotient. rhs must be positive."""
    if not isinstance(lhs, Dim) and not isinstance(rhs, Dim):
        return lhs // rhs
    whole, rest = _divided(lhs, rhs)
    if _is_remainder(rest, rhs):
        return whole
    return whole + _call("floordiv", rest, rhs)


def ceildiv(lhs: AnySize, rhs: AnySize) -> AnySize:
    """lhs / rhs rounded up, expressed by floordiv. rhs must be positive."""
    return (lhs + rhs - 1) // rhs


def mod(lhs: Size, rhs: Size) -> Size:
    """lhs - rhs * floordiv(lhs, rhs). rhs must be positive."""
    if not isinstance(lhs, Dim) and not isinstance(rhs, Dim):
        return lhs % rhs
    _, rest = _divided(lhs, rhs)
    if _is_remainder(rest, rhs):
        return rest
    return _call("mod", rest, rhs)


def _is_remainder(size: Size, divisor: Size) -> bool:
    """Whether a size is known to be at least 0 and less than the divisor."""
    return bounds(size)[0] >= 0 and bounds(divisor - size)[0] > 0


@lru_cache(_KEPT)
def _divided(lhs: Size, rhs: Size) -> tuple[Size, Size]:
    """(whole, rest) with lhs = whole * rhs + rest; every product of lhs that rhs divides is in the whole."""
    if isinstance(rhs, int) and rhs <= 0 or isinstance(rhs, Dim) and bounds(rhs)[0] <= 0:
        raise UndecidedError(f"{lhs} divided by {rhs}, which may not be positive")
    divisor = _terms(rhs)
    if len(divisor) > 1:
        times = _multiple(_terms(lhs), divisor)
        return (times, 0) if times is not None else (0, lhs)
    ((by, count),) = divisor.items()
    whole: Terms = {}
    rest: Terms = {}
    for factors, number in _terms(lhs).items():
        left = _without(factors, by)
        if left is None or (by and number % count):
            rest[factors] = number
            continue
        whole[left] = number // count
        if number % count:
            rest[factors] = number % count
    return _made(whole), _made(rest)


def _multiple(terms: Terms, divisor: Terms) -> Size | None:
    """The size that times the divisor is the sum of these terms, or None. Found from the first term of each."""
    (by, count), *_ = sorted(divisor.items(), key=_order)
    rest, whole = _made(terms), _made({})
    while rest != 0:
        factors, number = min(_terms(rest).items(), key=_order)
        left = _without(factors, by)
        if left is None or number % count:
            return None
        part = _made({left: number // count})
        whole, rest = whole + part, rest - part * _made(divisor)
    return whole


def _without(factors: Factors, gone: Factors) -> Factors | None:
    """The factors without `gone`; None if they do not contain all of these."""
    left = list(factors)
    for atom in gone:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def dim_max(lhs: Size, rhs: Size) -> Size:
    return _chosen("max", lhs, rhs)


def dim_min(lhs: Size, rhs: Size) -> Size:
    return _chosen("min", lhs, rhs)


def _chosen(op: str, lhs: Size, rhs: Size) -> Size:
    low, high = bounds(lhs - rhs)
    if low >= 0:
        return lhs if op == "max" else rhs
    if high <= 0:
        return rhs if op == "max" else lhs
    return _call(op, *sorted((lhs, rhs), key=str))


def _call(op: str, lhs: Size, rhs: Size) -> Dim:
    return Dim(((1, (Call(op, lhs, rhs),)),))


# evaluation


def evaluate(size: Size, values: Mapping[str, int]) -> int:
    """The number that a size has for these values of its symbols."""
    return int(substitute(size, values))


def typical(size: Size) -> int:
    """An estimate of a size, for choices that do not affect results, such as comparing costs."""
    if not isinstance(size, Dim):
        return size
    values = {one.name: min(max(TYPICAL, one.least), one.greatest) for one in symbols_of(size)}
    return evaluate(size, values)


def substitute(size: Size, sizes: Mapping[str, Size]) -> Size:
    """The size with symbols replaced by sizes; other symbols stay."""
    if not isinstance(size, Dim):
        return size
    return sum(count * prod(_replaced(atom, sizes) for atom in factors) for count, factors in size.terms)


def _replaced(atom: Atom, sizes: Mapping[str, Size]) -> Size:
    if isinstance(atom, Symbol):
        return sizes.get(atom.name, Dim(((1, (atom,)),)))
    assert isinstance(atom, Call)
    lhs, rhs = substitute(atom.lhs, sizes), substitute(atom.rhs, sizes)
    return FUNCTIONS[atom.op](lhs, rhs)


#: Name -> function on sizes. Divisors are positive for all values of their symbols.
FUNCTIONS: Final[dict[str, Callable[[Size, Size], Size]]] = {
    "floordiv": floordiv,
    "mod": mod,
    "max": dim_max,
    "min": dim_min,
}


def symbols_of(*sizes: Size) -> tuple[Symbol, ...]:
    """The symbols in sizes, sorted by name."""
    found: set[Symbol] = set()
    stack = list(sizes)
    while stack:
        size = stack.pop()
        for _, factors in size.terms if isinstance(size, Dim) else ():
            for atom in factors:
                if isinstance(atom, Call):
                    stack += (atom.lhs, atom.rhs)
                elif isinstance(atom, Symbol):
                    found.add(atom)
    return tuple(sorted(found))


# text


def _text_of(terms: tuple[tuple[int, Factors], ...]) -> str:
    text = ""
    for count, factors in terms:
        shown = " * ".join([str(abs(count))] * (abs(count) != 1 or not factors) + [str(atom) for atom in factors])
        sign = "-" if count < 0 else "+"
        text += f" {sign} {shown}" if text else shown if count > 0 else f"-{shown}"
    return text
