"""Limits the nesting of brackets in MLIR text, before a recursive parser reads it.

The check takes time linear in the text. Brackets in strings and comments do not count. A closing bracket that does not
match the innermost open one is ignored, so the count is never too low for text that a parser accepts.

`MAX_NESTING` far exceeds real programs: the deepest JAX export in the tests nests 14 brackets, including inline source
locations, and the deepest text that this compiler prints for its own phases nests 15.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from orchestrion.compiler.errors import ParseError

#: Maximum number of open brackets: regions, attributes, types and locations together.
MAX_NESTING: Final = 200
#: Strings of at least this many characters without a bracket are skipped.
LONG_STRING: Final = 1 << 16

_CLOSING: Final = {"(": ")", "[": "]", "{": "}", "<": ">"}
#: Strings, comments, arrows and comparisons are tokens, so that brackets in them do not count. An unterminated string
#: ends at its line's end, where a parser stops.
_TOKEN: Final = re.compile(r'"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"?|//[^\n\r]*+|->|[<>]=|[()\[\]{}<>]')
_MARKS: Final = "()[]{}<>/\\\n\r"
_BRACKET: Final = re.compile(r"[()\[\]{}<>]")


def check_nesting(text: str, name: str) -> None:
    """Raises ParseError, with the location, if more than MAX_NESTING brackets are open."""
    short = without_long_strings(text)
    if sum(map(short.count, _CLOSING)) <= MAX_NESTING:
        return
    at = _too_deep(_TOKEN.findall(short))
    if at is None:
        return
    place = next(islice(_TOKEN.finditer(text), at, None)).start()
    line, column = text.count("\n", 0, place) + 1, place - text.rfind("\n", 0, place)
    raise ParseError(f"nested too deeply: more than {MAX_NESTING} brackets are open", name, line, column)


def _too_deep(tokens: list[str]) -> int | None:
    """Index of the first token at which more than MAX_NESTING brackets are open; None if there is none."""
    closing = _CLOSING
    open: list[str] = []
    for index, token in enumerate(tokens):
        if token in closing:
            open.append(closing[token])
            if len(open) > MAX_NESTING:
                return index
        elif open and token == open[-1]:
            open.pop()
        elif token[:2] == "//" and open and open[-1] == ">":
            # a dialect attribute inside `<>` has no comments: the text after the slashes counts as well
            inner = _BRACKET.findall(token)
            if len(open) + len(inner) > MAX_NESTING:
                return index
            _update_open(open, inner)
    return None


def _update_open(open: list[str], brackets: list[str]) -> None:
    """Updates the open brackets. `open`: the expected closing brackets, innermost last."""
    for bracket in brackets:
        if bracket in _CLOSING:
            open.append(_CLOSING[bracket])
        elif open and bracket == open[-1]:
            open.pop()


def without_long_strings(text: str) -> str:
    """The text without the hex digits of long constants, which would dominate the time.

    The omitted text contains no bracket, comment or line break, so all other tokens stay the same.
    """
    if len(text) < LONG_STRING:
        return text
    kept = []
    done, at = 0, text.find('"0x')
    while at >= 0:
        end = text.find('"', at + 3)
        if end - at > LONG_STRING and all(text.find(mark, at + 3, end) < 0 for mark in _MARKS):
            kept.append(text[done : at + 3])
            done = end
        at = text.find('"0x', end + 1) if end >= 0 else -1
    return "".join([*kept, text[done:]])
