"""What the aliases of MLIR text stand for (`#a1 = [#a0, #a0]`), counted before a parser that writes them out sees it.

Aliases that double are 2^n of the first in n lines. The count takes time linear in the text. MLIR wants an alias to be
defined before the aliases that use it. An alias counts the characters of its definition and those that the aliases in
it stand for. What cannot belong to a definition any more ends it.
"""

from __future__ import annotations

import re
from typing import Final

from orchestrion.compiler.errors import ParseError

from .nesting import without_long_strings

#: characters of one alias with the aliases in it written out
MAX_EXPANDED: Final = 1 << 20
#: characters that aliases stand for in the whole text, where operations use them
MAX_EXPANDED_TOTAL: Final = 1 << 26
#: characters that an alias may stand for wherever it is used
ALWAYS_ALLOWED: Final = 1000

_STRING: Final = r'"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"?'
_COMMENT: Final = r"//[^\n\r]*+"
_NAME: Final = r"[#!](?:[0-9]++|[A-Za-z$._-][\w$.-]*+)"
_DEFINITION: Final = re.compile(rf"{_STRING}|{_COMMENT}|({_NAME})(?:\s|{_COMMENT})*+=(?!=)", re.ASCII)
_USE: Final = re.compile(rf"{_STRING}|{_COMMENT}|({_NAME})", re.ASCII)
#: what a definition consists of; groups: a resource section, what wants more behind it, brackets, words
_PART: Final = re.compile(
    rf"{_COMMENT}|(\{{-#)|(->|:)|[<>]=|([(\[{{<])|([)\]}}>])|({_STRING}|[#!@%^]?[\w$.+-]++)", re.ASCII
)
_SECTION, _MORE, _OPEN, _CLOSE, _WORD = range(1, 6)


def check_aliases(text: str, name: str) -> None:
    """Raises ParseError, with its place, where aliases stand for too much."""
    text = without_long_strings(text)  # a large constant is one attribute, however often it is used
    found = [match for match in _DEFINITION.finditer(text) if match[1] is not None]
    if not found:
        return
    ends = [*(match.start() for match in found[1:]), len(text)]
    sizes: dict[str, int] = {}
    spans: list[tuple[int, int]] = []
    printed: dict[str, int] = {}  # locations are not written out where they are used
    for match, limit in zip(found, ends, strict=True):
        start = match.end()
        end, is_location = _end(text, start, limit)
        size = end - start + _stands_for(text, start, end, sizes)
        if size > MAX_EXPANDED:
            raise _error(f"{match[1]} stands for more than {MAX_EXPANDED} characters", text, name, match.start())
        sizes[match[1]] = size
        spans.append((match.start(), end))
        if not is_location:
            printed[match[1]] = size
    if max(printed.values(), default=0) < ALWAYS_ALLOWED:
        return
    total = _stands_for(text, 0, len(text), printed) - sum(_stands_for(text, *span, printed) for span in spans)
    if total > MAX_EXPANDED_TOTAL:
        message = f"the aliases stand for more than {MAX_EXPANDED_TOTAL} characters"
        raise _error(message, text, name, found[0].start())


def _end(text: str, start: int, limit: int) -> tuple[int, bool]:
    """Where a definition ends, which is before `limit`, and whether it is that of a location."""
    depth, complete, first, end = 0, False, "", start
    for match in _PART.finditer(text, start, limit):
        kind = match.lastindex
        if kind == _SECTION or kind == _WORD and not depth and complete:
            break
        if kind is None:
            continue
        first = first or match[0]
        if kind == _OPEN:
            depth += 1
        elif kind == _CLOSE:
            depth -= 1
        if depth < 0:
            break
        complete = kind != _MORE
        end = match.end()
    return end, first == "loc"


def _stands_for(text: str, start: int, end: int, sizes: dict[str, int]) -> int:
    """Characters that the aliases between two places stand for."""
    return sum(sizes.get(used, 0) for used in _USE.findall(text, start, end) if used)


def _error(message: str, text: str, name: str, at: int) -> ParseError:
    return ParseError(message, name, text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))
