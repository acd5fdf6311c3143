"""Parses sizes from their text in `dims.py`: `4, 2 * b + floordiv(s{1..64} + 1, 2)`.

The text consists of numbers, symbols with bounds, sums, products, and calls of `dims.FUNCTIONS`. Anything else raises
ValueError.
"""

from __future__ import annotations

import re
from typing import Final, NoReturn

from .dims import DEFAULT_GREATEST, DEFAULT_LEAST, FUNCTIONS, Dim, Shape, Size, symbol

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>[0-9]{1,18})|(?P<name>[A-Za-z_]\w*)(?:\{(?P<least>[0-9]{0,10})\.\.(?P<greatest>[0-9]{0,10})\})?"
    r"|(?P<sign>[-+*(),]))"
)
_NUMBER: Final = re.compile(r"(?<!\w)[0-9]+")
#: Maximum digits of a number that is parsed or computed, so that the printed size can be parsed again.
_DIGITS: Final = 18
_DEEPEST: Final = 32
#: Maximum characters of a list; multiplying out takes time quadratic in them.
_LONGEST: Final = 4096


class _Reader:
    """Parses expressions. Raises ValueError."""

    def __init__(self, text: str) -> None:
        if len(text) > _LONGEST:
            raise ValueError(f"a list of sizes has {len(text)} characters, {_LONGEST} are the most")
        self.text = text
        self.tokens: list[re.Match[str]] = []
        at = 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None:
                raise ValueError(f"{text[:80]!r} is not a list of sizes")
            self.tokens.append(match)
            at = match.end()
        self.at = 0
        self.depth = 0

    def fail(self, reason: str) -> NoReturn:
        raise ValueError(f"{self.text[:80]!r} is not a list of sizes: {reason}")

    @property
    def sign(self) -> str:
        token = self.tokens[self.at] if self.at < len(self.tokens) else None
        return (token["sign"] or "") if token is not None else ""

    def accept(self, sign: str) -> bool:
        found = self.sign == sign
        self.at += found
        return found

    def expect(self, sign: str) -> None:
        if not self.accept(sign):
            self.fail(f"expected {sign!r}")

    def sizes(self) -> Shape:
        if not self.tokens:
            return ()
        found = [self.size()]
        while self.accept(","):
            found.append(self.size())
        if self.at != len(self.tokens):
            self.fail(f"something follows {found[-1]}")
        if any(len(number) > _DIGITS for size in found for number in _NUMBER.findall(str(size))):
            self.fail(f"a number of more than {_DIGITS} digits comes out")
        return tuple(found)

    def size(self) -> Size:
        total = -self.product() if self.accept("-") else self.product()
        while self.sign and self.sign in "+-":
            minus = self.accept("-")
            if not minus:
                self.expect("+")
            total = total - self.product() if minus else total + self.product()
        return total

    def product(self) -> Size:
        found = self.factor()
        while self.accept("*"):
            found = found * self.factor()
        return found

    def factor(self) -> Size:
        if self.at >= len(self.tokens) or self.sign:
            self.fail("expected a number or a symbol")
        token = self.tokens[self.at]
        self.at += 1
        if token["number"]:
            return int(token["number"])
        name = token["name"]
        if name in FUNCTIONS and self.accept("("):
            return self.call(name)
        least = int(token["least"]) if token["least"] else DEFAULT_LEAST
        greatest = int(token["greatest"]) if token["greatest"] else DEFAULT_GREATEST
        if least > greatest or greatest > DEFAULT_GREATEST:
            self.fail(f"{name} lies between {least} and {greatest}")
        return symbol(name, least, greatest)

    def call(self, name: str) -> Size:
        self.depth += 1
        if self.depth > _DEEPEST:
            self.fail(f"calls in more than {_DEEPEST} others")
        lhs = self.size()
        self.expect(",")
        rhs = self.size()
        self.expect(")")
        self.depth -= 1
        if name in ("floordiv", "mod") and not isinstance(rhs, Dim) and rhs <= 0:
            self.fail(f"{name} by {rhs}, which is not positive")
        return FUNCTIONS[name](lhs, rhs)


def parse_sizes(text: str) -> Shape:
    """Parses a list such as `4, 2 * b + 1`. Raises ValueError."""
    return _Reader(text).sizes()
