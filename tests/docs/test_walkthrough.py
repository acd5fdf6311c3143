"""The pages with sessions show what the commands print. `BLESS=1` writes them anew; review the diff.

A page's `console` blocks are sessions: a line that starts with `$ ` is a command, what follows is its output. They
run in their order, those of one page in one folder. Times, how often was measured, and bytes of the host's memory, may
differ.
"""

import os
import re
from collections.abc import Callable, Container, Iterator
from difflib import unified_diff
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
#: tuning.md has a test of its own: a search prints other times and finds other schedules each time
PAGES = sorted(
    page for page in DOCS.glob("*.md") if page.name != "tuning.md" and "```console" in page.read_text(encoding="utf-8")
)
BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n", re.MULTILINE)
DEVICE = re.compile(r"--device=(\w+)")
VARYING = re.compile(
    r'"peak_host_bytes": \d+|"\w+": \d+(?:\.\d+(?:e-\d+)?|e-\d+)|\d+ calls?| *\d+ +[\d.,]+ us +[\d.]+%|[\d.,]+ us'
    r"|(?<=bytes, in )[\d.]+(?= s$)| +",
    re.MULTILINE,
)

Shell = Callable[[str], str]


def sessions(block: str) -> Iterator[tuple[str, str]]:
    """The commands of a block with their outputs."""
    _, *parts = COMMAND.split(block)
    yield from zip(parts[::2], parts[1::2], strict=True)


def rendered(page: Path, shell: Shell, missing: Container[str]) -> str:
    """The page with the outputs of its commands, but of those for devices that are missing here."""
    folder = page.stem
    shell(f"mkdir {folder} && ln -s ../examples {folder}/examples")

    def block(found: re.Match[str]) -> str:
        return "".join(f"$ {command}\n{output(command, shown)}" for command, shown in sessions(found[0]))

    def output(command: str, shown: str) -> str:
        named = DEVICE.search(command)
        if named and named[1] in missing:
            return shown
        got = shell(f"cd {folder}\n{command}")
        return shown if VARYING.sub("", got) == VARYING.sub("", shown) else got

    return BLOCK.sub(block, page.read_text(encoding="utf-8"))


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_it_shows_what_the_commands_print(page: Path, shell: Shell, missing_drivers: dict[str, str]) -> None:
    if page.name == "library-calls.md":
        pytest.importorskip("scipy")
    shown = page.read_text(encoding="utf-8")
    if "vm-pack keygen" in shown:
        pytest.importorskip("cryptography")
    now = rendered(page, shell, missing_drivers)
    if os.environ.get("BLESS"):
        page.write_text(now, encoding="utf-8")
        return
    difference = unified_diff(shown.splitlines(), now.splitlines(), "the page", "the commands", lineterm="")
    assert shown == now, "\n".join(difference)
