"""Plans a Fourier transform of a line: how it is divided, and the constants that it needs.

A transform of length `a b` is `b` transforms of length `a`, a multiplication by twiddle factors, and `a` transforms of
length `b`. A length with a large prime factor is a convolution with a chirp (Bluestein's algorithm), of a length
without such factors. Constants are computed in double precision from exact integers.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from orchestrion.compiler.stablehlo.ops.flow_ops import radices

Array = np.ndarray[Any, Any]


@cache
def matrix_rows(length: int, longest: int) -> int | None:
    """Number of rows of the matrix for a line, close to its square root; `length` if one dispatch transforms it. None
    if the length has a large prime factor.
    """
    if radices(length) is None:
        return None
    if length <= longest:
        return length
    most = min(longest, int(length**0.5))
    return max(rows for rows in range(1, most + 1) if length % rows == 0)


@cache
def padded_length(length: int, longest: int) -> int:
    """Length of the cheapest transform for the convolution of a line with its chirp."""
    least = 2 * length - 1

    def cost(size: int) -> tuple[int, int]:
        dispatches, rest = 1, size
        while rest > longest:
            dispatches, rest = dispatches + 1, rest // (matrix_rows(rest, longest) or 1)
        return dispatches, size * (2 + len(radices(size) or ()))

    return min(_smooth(least, 2 * least), key=cost)


def _smooth(least: int, most: int) -> list[int]:
    """The numbers from `least` to `most` without prime factors other than 2, 3 and 5, once each."""
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
    """e^(sign 2 pi i numerator / length) as an array whose first axis has the two parts. Numerators are >= 0."""
    quarter = (4 * numerators + length // 2) // length
    angle = (4 * numerators - quarter * length) * (np.pi / 2 / length)  # at most an eighth of a turn
    cosine, sine = np.cos(angle), np.sin(angle)
    real = np.choose(quarter % 4, (cosine, -sine, -cosine, sine))
    imag = np.choose(quarter % 4, (sine, cosine, -sine, -cosine))
    return np.stack((real, sign * imag))


def line_roots(length: int, sign: int) -> Array:
    """e^(sign 2 pi i j / length) for each index j of a line."""
    return roots(np.arange(length), length, sign)


def matrix_roots(rows: int, columns: int, sign: int) -> Array:
    """e^(sign 2 pi i row column / (rows columns))."""
    return roots(np.multiply.outer(np.arange(rows), np.arange(columns)), rows * columns, sign)


def chirp(length: int, sign: int) -> Array:
    """e^(sign pi i j^2 / length) for each index j; the first axis has the two parts."""
    places = np.arange(length, dtype=np.int64)
    return roots(places * places % (2 * length), 2 * length, sign)


def chirp_spectrum(length: int, padded: int, sign: int) -> Array:
    """The transform, of length `padded`, of the chirp in the convolution; the first axis has the two parts."""
    real, imag = chirp(length, -sign)
    line = np.zeros(padded, np.complex128)
    line[:length] = real + 1j * imag
    line[padded - length + 1 :] = line[1:length][::-1]
    spectrum = np.fft.fft(line)
    return np.stack((spectrum.real, spectrum.imag))
