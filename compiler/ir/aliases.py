"""Limits the expansion of aliases in MLIR text (`#a1 = [#a0, #a0]`), before a parser that expands them reads it.

Aliases that double have 2^n copies of the first in n lines. The check takes time linear in the text. MLIR requires an
alias to be defined before the aliases that use it. The length of an alias is that of its definition plus the lengths of
the aliases in it. A definition ends at the first token that cannot belong to it.
"""

from __future__ import annotations

import re
from typing import Final

from orchestrion.compiler.errors import ParseError

from .nesting import without_long_strings

#: Maximum characters of one alias after expansion.
MAX_EXPANDED: Final = 1 << 20
#: Maximum characters of all uses of aliases in operations, after expansion.
MAX_EXPANDED_TOTAL: Final = 1 << 26
#: Aliases of at most this many characters are never refused at a use.
ALWAYS_ALLOWED: Final = 1000

_STRING: Final = r'"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"?'
_COMMENT: Final = r"//[^\n\r]*+"
_NAME: Final = r"[#!](?:[0-9]++|[A-Za-z$._-][\w$.-]*+)"
_DEFINITION: Final = re.compile(rf"{_STRING}|{_COMMENT}|({_NAME})(?:\s|{_COMMENT})*+=(?!=)", re.ASCII)
_USE: Final = re.compile(rf"{_STRING}|{_COMMENT}|({_NAME})", re.ASCII)
#: Tokens of a definition; groups: a resource section, tokens that need a continuation, brackets, words.
_PART: Final = re.compile(
    rf"{_COMMENT}|(\{{-#)|(->|:)|[<>]=|([(\[{{<])|([)\]}}>])|({_STRING}|[#!@%^]?[\w$.+-]++)", re.ASCII
)
_SECTION, _MORE, _OPEN, _CLOSE, _WORD = range(1, 6)


def check_aliases(text: str, name: str) -> None:
    """Raises ParseError, with the location, if aliases expand to too much text."""
    text = without_long_strings(text)  # a large constant is one attribute, however often it is used
    found = [match for match in _DEFINITION.finditer(text) if match[1] is not None]
    if not found:
        return
    ends = [*(match.start() for match in found[1:]), len(text)]
    sizes: dict[str, int] = {}
    spans: list[tuple[int, int]] = []
    printed: dict[str, int] = {}  # locations are not expanded where they are used
    for match, limit in zip(found, ends, strict=True):
        start = match.end()
        end, is_location = _end(text, start, limit)
        size = end - start + _expanded_length(text, start, end, sizes)
        if size > MAX_EXPANDED:
            raise _error(f"{match[1]} stands for more than {MAX_EXPANDED} characters", text, name, match.start())
        sizes[match[1]] = size
        spans.append((match.start(), end))
        if not is_location:
            printed[match[1]] = size
    if max(printed.values(), default=0) < ALWAYS_ALLOWED:
        return
    total = _expanded_length(text, 0, len(text), printed) - sum(
        _expanded_length(text, *span, printed) for span in spans
    )
    if total > MAX_EXPANDED_TOTAL:
        message = f"the aliases stand for more than {MAX_EXPANDED_TOTAL} characters"
        raise _error(message, text, name, found[0].start())


def _end(text: str, start: int, limit: int) -> tuple[int, bool]:
    """The end of a definition, which is at most `limit`, and whether it defines a location."""
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


def _expanded_length(text: str, start: int, end: int, sizes: dict[str, int]) -> int:
    """Total length of the aliases used between two offsets, after expansion."""
    return sum(sizes.get(used, 0) for used in _USE.findall(text, start, end) if used)


def _error(message: str, text: str, name: str, at: int) -> ParseError:
    return ParseError(message, name, text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))
