"""Splits text into tokens with one compiled regular expression, in one pass.

A token is its text; its first character tells its kind. A word, `#name` or `!name` with a balanced `<...>` after it is
one token (up to 8 levels), so that types and dialect attributes can be cached by their text. Token positions are not
stored: the text is split again when an error or a missing location needs one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from itertools import islice
from typing import Final, NoReturn

from orchestrion.compiler.errors import ParseError

from .locations import FileLoc

_STRING: Final = r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'


def _nest(depth: int) -> str:
    """Text with balanced `<` `>` (an arrow is no bracket), without the outer pair."""
    inner = f"|<{_nest(depth - 1)}>" if depth else ""
    return rf'(?:[^<>"-]++|->|-|{_STRING}{inner})*+'


_BODY: Final = f"(?:<{_nest(7)}>)?"
_NUMBER: Final = r"-?(?:0x[0-9A-Fa-f]++|[0-9]++(?:\.[0-9]*+)?(?:[eE][-+]?[0-9]++)?)"
_SKIP: Final = r"\s*+(?://[^\n\r]*+\s*+)*+"
_TOKENS: Final = (
    r"%[\w.$-]++(?:#[0-9]++)?",
    _STRING,
    rf"[A-Za-z_][\w.$]*+{_BODY}",
    rf"#[A-Za-z_][\w.$]*+{_BODY}",
    rf"![A-Za-z_][\w.$]*+{_BODY}",
    rf"@(?:[A-Za-z_][\w.$]*+|{_STRING})",
    r"\^[\w.$-]++",
    "->",
    _NUMBER,
    r"<\{",
    r"\}>",
    "::",
    r"\{-#",
    r"#-\}",
    ".",
    r"\Z",
)
_LEX: Final = re.compile(f"{_SKIP}({'|'.join(_TOKENS)})", re.S | re.A)

NUMBER: Final = re.compile(_NUMBER)
STRING: Final = re.compile(_STRING)
_ESCAPE: Final = re.compile(r"\\(?:([0-9A-Fa-f]{2})|([nt\"\\]))|\\")
_NAMED: Final = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


class Tokens:
    """The tokens of a text and a current index. The last token is empty and marks the end."""

    def __init__(self, text: str, filename: str) -> None:
        self.source = text
        self.filename = filename
        self.tokens: list[str] = _LEX.findall(text)
        self.at = 0
        self._starts: list[int] = []
        self._again = _LEX.finditer(text)

    def _start(self, index: int) -> int:
        """The offset of token `index`; splits the text again up to it."""
        missing = index + 1 - len(self._starts)
        self._starts += [match.start(1) for match in islice(self._again, max(missing, 0))]
        return self._starts[min(index, len(self._starts) - 1)]

    @cached_property
    def _lines(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.source))]

    def place(self, index: int) -> FileLoc:
        """The location of token `index`."""
        start = self._start(index)
        line = bisect_right(self._lines, start)
        return FileLoc(self.filename, line, start - self._lines[line - 1] + 1)

    def fail(self, message: str, index: int | None = None) -> NoReturn:
        """Raises ParseError at token `index`, by default the current one."""
        where = self.place(self.at if index is None else index)
        raise ParseError(message, where.file, where.line, where.column)

    @property
    def shown(self) -> str:
        """The current token for a message."""
        token = self.tokens[self.at]
        if not token:
            return "the end of the text"
        return repr(token if len(token) <= 40 else token[:40] + "...")

    def next(self) -> str:
        """Consumes and returns the current token."""
        token = self.tokens[self.at]
        if token:
            self.at += 1
        return token

    def accept(self, token: str) -> bool:
        """Consumes the current token if it is `token`. Returns whether it was."""
        if self.tokens[self.at] != token:
            return False
        self.at += 1
        return True

    def expect(self, token: str) -> None:
        """Consumes the current token. Raises ParseError if it is another one."""
        if self.tokens[self.at] != token:
            self.fail(f"expected '{token}', found {self.shown}")
        self.at += 1

    def unquote(self, token: str) -> str:
        """The content of a string literal; bytes that are not UTF-8 become surrogate escapes."""
        if len(token) < 2:
            self.fail("a string is not closed on its line", self.at - 1)
        body = token[1:-1]
        if "\\" not in body:
            return body

        def plain(match: re.Match[str]) -> str:
            if match[2]:
                return _NAMED[match[2]]
            if match[1]:
                return chr(0xDC00 + byte) if (byte := int(match[1], 16)) > 127 else chr(byte)
            self.fail('unknown escape in a string: use \\n, \\t, \\", \\\\ or two hex digits', self.at - 1)

        raw = _ESCAPE.sub(plain, body).encode("utf-8", "surrogateescape")
        return raw.decode("utf-8", "surrogateescape")
