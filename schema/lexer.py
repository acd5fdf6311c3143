"""The tokens of the assembler's text, with line and column, and the reader that its grammar uses.

- Comments run from `//` to the end of the line; line ends have no other meaning.
- `@name`, `^label`, `%i0` are one token each; `@"any text"` is a name that is not a plain word.
- Text is in double quotes with the escapes of JSON.
"""

import json
import re
from typing import NamedTuple, NoReturn

_TOKEN = re.compile(
    r"""(?P<skip>[ \t\r\n]+|//[^\n]*)
    |(?P<symbol>@(?:[A-Za-z0-9_.$-]+|"(?:[^"\\\n]|\\.)*")|\#\d+)
    |(?P<label>\^[A-Za-z0-9_.$-]+)
    |(?P<register>%[ilfdr]\d+)
    |(?P<text>"(?:[^"\\\n]|\\.)*")
    |(?P<arrow>->)
    |(?P<number>[-+]?(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*(?:[eE][-+]?\d+)?|inf\b|nan\b)))
    |(?P<word>[A-Za-z_][A-Za-z0-9_.]*(?:-[A-Za-z0-9_.]+)*(?:<[^<>\n]*>)?)
    |(?P<mark>[(){}\[\],=:*])""",
    re.VERBOSE,
)


class AssemblyError(Exception):
    """The text violates a rule of the assembler; `line` and `column` count from 1."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(f"{line}:{column}: {message}")
        self.line = line
        self.column = column


class Token(NamedTuple):
    kind: str
    text: str
    at: int  #: offset in the source

    def __str__(self) -> str:
        return repr(self.text) if self.text else "the end"


def quote(text: str) -> str:
    """The text in quotes, without characters that a terminal interprets."""
    return json.dumps(text, ensure_ascii=not text.isprintable())


_PLAIN = re.compile(r"[A-Za-z0-9_.$-]+")


def symbol(name: str) -> str:
    """`@name`, quoted if the name is not a plain word."""
    return "@" + (name if _PLAIN.fullmatch(name) else quote(name))


class Reader:
    """Reads a source text with one token of lookahead."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._at = 0
        self.token = self._next()

    def _next(self) -> Token:
        while self._at < len(self.source):
            match = _TOKEN.match(self.source, self._at)
            if match is None:
                self.fail(f"unexpected {self.source[self._at]!r}", self._at)
            start, self._at = self._at, match.end()
            if match.lastgroup != "skip":
                return Token(str(match.lastgroup), match.group(), start)
        return Token("end", "", len(self.source))

    def fail(self, message: str, at: int | Token | None = None) -> NoReturn:
        """Raises AssemblyError with the position of `at`, by default that of the next token."""
        where = self.token.at if at is None else at if isinstance(at, int) else at.at
        line = self.source.count("\n", 0, where) + 1
        raise AssemblyError(message, line, where - (self.source.rfind("\n", 0, where) + 1) + 1)

    def take(self) -> Token:
        token = self.token
        self.token = self._next()
        return token

    def accept(self, text: str) -> bool:
        if self.token.text != text or self.token.kind == "text":
            return False
        self.take()
        return True

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.fail(f"{text!r} expected, got {self.token}")

    def kind(self, kind: str, what: str) -> Token:
        if self.token.kind != kind:
            self.fail(f"{what} expected, got {self.token}")
        return self.take()

    def text(self, what: str, nul: bool = False) -> str:
        """A quoted text. `nul`: it may contain a NUL, as texts in bytecode and attribute values may."""
        return self.unquote(self.kind("text", what), nul)

    def unquote(self, token: Token, nul: bool = False) -> str:
        """The text between quotes. Refuses what strings of a module cannot hold: characters without UTF-8, and NUL
        unless `nul`.
        """
        try:
            text = str(json.loads(token.text.removeprefix("@"), strict=False))
            text.encode()
        except ValueError as error:
            self.fail(f"bad text: {error}", token)
        if "\0" in text and not nul:
            self.fail("bad text: a module's strings hold no NUL", token)
        return text

    def name(self, what: str) -> str:
        """The name of a symbol that is being defined."""
        token = self.kind("symbol", f"{what} such as @name")
        if token.text.startswith("#"):
            self.fail(f"{what} such as @name expected, got {token}", token)
        return self.symbol_name(token)

    def symbol_name(self, token: Token) -> str:
        return self.unquote(token) if token.text.startswith('@"') else token.text[1:]

    def integer(self, what: str, low: int, high: int) -> int:
        token = self.kind("number", what)
        try:
            value = int(token.text, 0)
        except ValueError:
            self.fail(f"{what} expected, got {token}", token)
        if not low <= value <= high:
            self.fail(f"{what} {value} is not in {low} .. {high}", token)
        return value
