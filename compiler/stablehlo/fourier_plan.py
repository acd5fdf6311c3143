"""How a line of a transform is computed: by which factors of its length, and the numbers that takes.

A transform of length `a b` is `b` transforms of length `a`, a twiddle factor for each result, and `a` transforms of
length `b`. One factor is one product with a small matrix. A length with a large prime factor is a convolution with a
chirp, at a length that has none (Bluestein). Numbers are worked out in double precision from exact integers.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

#: the longest line that one product with a matrix transforms
LONGEST: Final = 128
#: what the two launches of a factor cost, in additions and multiplications
LAUNCHES: Final = 600_000
#: what reading and writing the lines for a factor costs: as much as this makes the factor larger
PASSES: Final = 20


@cache
def factors(length: int, lines: int) -> tuple[int, ...] | None:
    """The factors of a length, in the order they are applied to so many lines; None: it has a large prime factor."""
    found = _cheapest(length, 8 * length * lines)
    return None if found is None else tuple(sorted(found[1], reverse=True))


def _cheapest(length: int, work: int) -> tuple[int, tuple[int, ...]] | None:
    """The cost of a length and the factors with that cost. `work`: operations per unit of a factor."""
    known: dict[int, tuple[int, tuple[int, ...]] | None] = {1: (0, ())}

    def of(rest: int) -> tuple[int, tuple[int, ...]] | None:
        if rest not in known:
            found = []
            for factor in range(2, min(rest, LONGEST) + 1):
                after = of(rest // factor) if rest % factor == 0 else None
                if after is not None:
                    found.append((after[0] + (factor + PASSES) * work + LAUNCHES, (factor, *after[1])))
            known[rest] = min(found, default=None)
        return known[rest]

    return of(length)


@cache
def padded_length(length: int, lines: int) -> int:
    """The length of the cheapest transform by which a line without small factors is convolved with its chirp."""
    least = 2 * length - 1
    best: tuple[int, int] | None = None
    for size in _smooth(least, 2 * least):
        found = _cheapest(size, 8 * size * lines)
        if found is not None and (best is None or found[0] < best[0]):
            best = found[0], size
    assert best is not None, "there is a power of two in between"
    return best[1]


def _smooth(least: int, most: int) -> list[int]:
    """The numbers from `least` to `most` without prime factors but 2, 3 and 5, once each."""
    found = []
    fives = 1
    while fives <= most:
        threes = fives
        while threes <= most:
            size = threes
            while size <= most:
                if size >= least:
                    found.append(size)
                size *= 2
            threes *= 3
        fives *= 5
    return sorted(found)


def roots(numerators: Array, length: int, sign: int) -> Array:
    """e^(sign 2 pi i numerator / length): two numbers, the first axis. Numerators are integers from 0 on."""
    import numpy as np

    quarter = (4 * numerators + length // 2) // length
    angle = (4 * numerators - quarter * length) * (np.pi / 2 / length)  # at most an eighth of a turn
    cosine, sine = np.cos(angle), np.sin(angle)
    real = np.choose(quarter % 4, (cosine, -sine, -cosine, sine))
    imag = np.choose(quarter % 4, (sine, cosine, -sine, -cosine))
    return np.stack((real, sign * imag))


def products(rows: int, columns: int) -> Array:
    """The row times the column."""
    import numpy as np

    return np.multiply.outer(np.arange(rows), np.arange(columns))


def matrix(count: int, factor: int, sign: int, scale: float, of_parts: bool, to_parts: bool) -> Array:
    """The first `count` rows of the matrix of a transform, times a scale; with an axis for the parts of the results in
    front of the rows, for those of the elements in front of the columns, where there are any."""
    import numpy as np

    real, imag = roots(products(count, factor) % factor, factor, sign) * scale
    whole = np.array([[real, -imag], [imag, real]]).transpose(0, 2, 1, 3)
    if not of_parts:
        whole = whole[:, :, 0]
    return whole if to_parts else whole[0]


def chirp(length: int, sign: int) -> Array:
    """e^(sign pi i j^2 / length) for each place j: two numbers, the first axis."""
    import numpy as np

    places = np.arange(length, dtype=np.int64)
    return roots(places * places % (2 * length), 2 * length, sign)


def chirp_spectrum(length: int, padded: int, sign: int) -> Array:
    """The transform, of length `padded`, of the chirp that lines are convolved with: two numbers, the first axis."""
    import numpy as np

    real, imag = chirp(length, -sign)
    line = np.zeros(padded, np.complex128)
    line[:length] = real + 1j * imag
    line[padded - length + 1 :] = line[1:length][::-1]
    spectrum = np.fft.fft(line)
    return np.stack((spectrum.real, spectrum.imag))
