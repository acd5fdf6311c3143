"""The reference of the command line is what `--help` prints. `BLESS=1` writes it anew."""

import os
from pathlib import Path

from command_lines import TOOLS, commands

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"
HEAD = "# Reference\n"
COLUMNS = 120


def reference() -> str:
    parts = []
    for parser in TOOLS.values():
        for level, one in (("##", parser), *(("###", command) for command in commands(parser))):
            parts.append(f"\n{level} {one.prog}\n\n```text\n{one.help_text(COLUMNS)}```\n")
    return "".join(parts)


def test_the_page_shows_the_help_of_every_tool() -> None:
    text = PAGE.read_text(encoding="utf-8")
    start = text.index(HEAD) + len(HEAD)
    if os.environ.get("BLESS"):
        PAGE.write_text(text[:start] + reference(), encoding="utf-8")
        return
    assert text[start:] == reference(), "BLESS=1 python -m pytest tests/docs/test_command_line.py writes the page anew"
