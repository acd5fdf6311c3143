"""Python text, laid out as ruff lays it out: lines of 120 characters, and brackets that break when they must.

A `Group` is a bracket with items. It stays on one line if it fits. Else the items of a call stand on a line of their
own if they fit there, and otherwise each on a line.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from typing import Final

WIDTH: Final = 120
_INDENT: Final = "    "
#: names that generated code uses itself, beside those that Python has
_OWN: Final = frozenset(
    "call self device made wait signal np npt upload storage described destination words wrapped quotient remainder "
    "create host_control_flow hashlib Program Variant Call Unwatched Recent Releasable ProgramFailed Resource Made "
    "Parameters NAME FOLDER MODULE MOST_RECORDINGS MOST_SIZES PROGRAMS".split()
)


@dataclass(frozen=True, slots=True)
class Group:
    """`head`, then items in brackets. `joined`: the items of a call, or parameters."""

    head: str
    items: Sequence[Node]
    brackets: str = "()"
    joined: bool = True

    def __str__(self) -> str:
        comma = "," if self.brackets == "()" and not self.joined and len(self.items) == 1 else ""
        return f"{self.head}{self.brackets[0]}{', '.join(map(str, self.items))}{comma}{self.brackets[1]}"


@dataclass(frozen=True, slots=True)
class Strings:
    """String literals that are one text: the only argument of a call, a line each."""

    parts: Sequence[str]

    def __str__(self) -> str:
        return " ".join(self.parts)


Node = str | Group | Strings


def sequence(items: Iterable[Node], brackets: str = "()") -> Group:
    """A tuple, a list or a dictionary."""
    return Group("", tuple(items), brackets, joined=False)


def layout(prefix: str, node: Node, suffix: str = "", room: int = 0) -> list[str]:
    """The lines of a statement. `room`: columns that it is indented by."""
    flat = f"{prefix}{node}{suffix}"
    if not isinstance(node, Group) or not node.items or len(flat) + room <= WIDTH:
        return [flat]
    first, last = f"{prefix}{node.head}{node.brackets[0]}", f"{node.brackets[1]}{suffix}"
    if isinstance(node.items[0], Strings):
        return [first, *indented(node.items[0].parts), last]
    inner = ", ".join(map(str, node.items))
    if node.joined and room + len(_INDENT) + len(inner) <= WIDTH:
        return [first, _INDENT + inner, last]
    lines = [line for item in node.items for line in layout("", item, ",", room + len(_INDENT))]
    return [first, *indented(lines), last]


def indented(lines: Iterable[str]) -> list[str]:
    """Lines one level deeper; empty lines stay empty."""
    return [_INDENT + line if line else line for line in lines]


def quoted(text: str) -> str:
    """A string literal, with the quotes that need fewer backslashes."""
    single, double = text.count("'"), text.count('"')
    quote = "'" if double > single else '"'
    body = "".join(_escaped(character, quote) for character in text)
    return quote + body + quote


def _escaped(character: str, quote: str) -> str:
    if character in (quote, "\\"):
        return "\\" + character
    return character if character.isascii() and character.isprintable() else ascii(character)[1:-1]


def plain(text: str, most: int = 400) -> str:
    """Text from a module for a comment or docstring: printable ASCII on one line, cut to `most` characters."""
    text = "".join(c if c.isascii() and c.isprintable() else "?" for c in text).replace("\\", "/").replace('"', "'")
    return text if len(text) <= most else f"{text[: most - 3]}..."


def wrapped(text: str, width: int) -> list[str]:
    """The words of a text in lines of at most `width` characters; a longer word has a line of its own."""
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def docstring(paragraphs: Sequence[str], room: int) -> list[str]:
    """The lines of a docstring. `room`: columns that it is indented by."""
    width = WIDTH - room
    first, *rest = wrapped(f'"""{paragraphs[0]}', width - 3) or ['"""']
    lines = [first, *rest]
    for paragraph in paragraphs[1:]:
        lines += ["", *wrapped(paragraph, width)]
    return [f'{lines[0]}"""'] if len(lines) == 1 else [*lines, '"""']


def identifier(text: str) -> str:
    """A name for a text from a module: `result[0]` -> `result_0`."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "value"
    name = f"_{name}" if name[0].isdigit() else name.lower() if name.isupper() else name
    return f"{name}_" if iskeyword(name) else name


class Names:
    """Unique names of one scope."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {*_OWN, *dir(builtins), *taken}

    def unique(self, text: str, *prefixes: str) -> str:
        """A name made of a text that no other value of the scope has, also not with one of the prefixes."""
        base = name = identifier(text)
        number = 1
        while not self._taken.isdisjoint((name, *[prefix + name for prefix in prefixes])):
            name, number = f"{base}_{number}", number + 1
        self._taken.update((name, *[prefix + name for prefix in prefixes]))
        return name
