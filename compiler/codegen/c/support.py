"""The C code that generated programs have in common, in files of the styles. `{n}` is the prefix of public names."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

#: the line by which a part of a file is found: that of a function, of a struct or of a macro
_NAME: Final = re.compile(r"^(?:(?:static|INLINE) .*?(\w+)\(|} (\w+);|#define (\w+)\()", re.MULTILINE)


@cache
def c_text(file: str) -> str:
    """A file such as `c/prologue.h` behind its first comment, with `{n}` for `prefix`."""
    text = (Path(__file__).parent.parent / file).read_text(encoding="utf-8")
    return text.partition("*/\n")[2].replace("prefix", "{n}")


@cache
def functions(file: str) -> dict[str, str]:
    """Name of a function, struct or macro of a file -> its definition."""
    parts = [f"{part.strip()}\n" for part in c_text(file).split("\n\n")]
    return {match[match.lastindex or 0]: part for part in parts if (match := _NAME.search(part))}


def used_functions(text: str, name: str, *files: str) -> str:
    """The functions of files that a text uses. `name`: the prefix of public names."""
    tables = {key: part for file in files for key, part in functions(file).items()}
    words = set(re.findall(r"[a-z]\w*", text))
    while True:
        used = "\n".join(tables[key] for key in tables if key in words)
        more = words | set(re.findall(r"[a-z]\w*", used))
        if more == words:
            return used.replace("{n}", name)
        words = more
