"""The pages with sessions show what the commands print. `BLESS=1` writes them anew; review the diff.

A page's `console` blocks are sessions: a line that starts with `$ ` is a command, what follows is its output. They
run in their order in one folder. Times, how often was measured, and bytes of the host's memory, may differ.
"""

import os
import re
from collections.abc import Callable, Iterator
from difflib import unified_diff
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(page.name for page in DOCS.glob("*.md") if "```console" in page.read_text(encoding="utf-8"))
BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n", re.MULTILINE)
DEVICE = re.compile(r"--device=(\w+)")
VARYING = re.compile(r'"(?:seconds|peak_host_bytes)": [\d.e-]+|\d+ calls?| *\d+ +[\d.,]+ us +[\d.]+%|[\d.,]+ us| +')

Shell = Callable[[str], str]


def sessions(block: str) -> Iterator[tuple[str, str]]:
    """The commands of a block with their outputs."""
    _, *parts = COMMAND.split(block)
    yield from zip(parts[::2], parts[1::2], strict=True)


def rendered(page: str, shell: Shell, device: str | None) -> str:
    """The page with the outputs of the commands that name this device: None for those that name none."""

    def block(found: re.Match[str]) -> str:
        return "".join(f"$ {command}\n{output(command, shown)}" for command, shown in sessions(found[0]))

    def output(command: str, shown: str) -> str:
        named = DEVICE.search(command)
        if (named[1] if named else None) != device:
            return shown
        got = shell(command)
        return shown if VARYING.sub("", got) == VARYING.sub("", shown) else got

    return BLOCK.sub(block, page)


def compare(name: str, shell: Shell, device: str | None) -> None:
    page = (DOCS / name).read_text(encoding="utf-8")
    now = rendered(page, shell, device)
    if os.environ.get("BLESS"):
        (DOCS / name).write_text(now, encoding="utf-8")
        return
    difference = unified_diff(page.splitlines(), now.splitlines(), "the page", "the commands", lineterm="")
    assert page == now, "\n".join(difference)


@pytest.mark.parametrize("name", PAGES)
def test_it_shows_what_the_commands_print(name: str, shell: Shell) -> None:
    if name == "library-calls.md":
        pytest.importorskip("scipy")
    compare(name, shell, None)


@pytest.mark.parametrize("device", ["opencl", "vulkan"])
def test_it_shows_what_devices_compute(device: str, shell: Shell, missing_drivers: dict[str, str]) -> None:
    if device in missing_drivers:
        pytest.skip(f"{device}: {missing_drivers[device]}")
    shell("vm-compile examples/simple_mul.mlir -o simple_mul.fb")
    compare("walkthrough.md", shell, device)
