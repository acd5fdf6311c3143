"""docs/adding.md: its blocks apply to a copy of the source, its programs then run, and a forgotten step is reported.

Blocks that the source already contains, because they show how a part of it was added, are taken out of the copy first.
The copy is laid out as the package, so that a child process imports it instead of the installed one.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

pytest.importorskip("jaxlib")

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adding.md").read_text(encoding="utf-8")
FOLDERS = ("schema", "compiler", "hal", "vm", "tools")
DEVICES = ("reference", "opencl", "vulkan")


@dataclass(frozen=True)
class Edit:
    """Lines of a file, which occur there once, and what replaces them."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class Section:
    """An addition: its edits by the number of their step, its program, and the message without a step."""

    steps: dict[int, list[Edit]]
    program: str
    messages: dict[int, str]


def edits(block: str) -> Iterator[Edit]:
    """The edits of a block: its first line names the file, `...` stands between them."""
    head, *parts = re.split(r"^ \.\.\.\n", block, flags=re.MULTILINE)
    for part in parts:
        lines = part.splitlines()
        old, new = ("".join(f"{line[1:]}\n" for line in lines if line[:1] != mark) for mark in "+-")
        yield Edit(head.removeprefix(" # ").strip(), old, new)


def section(text: str) -> Section:
    steps = {}
    for number, step in re.findall(r"^(\d)\. (.*?)(?=^\d\. |^\S|\Z)", text, re.MULTILINE | re.DOTALL):
        (block,) = re.findall(r"^   ```diff\n(.*?)^   ```$", step, re.MULTILINE | re.DOTALL)
        steps[int(number)] = list(edits(dedent(re.sub(r"^   ", "", block, flags=re.MULTILINE))))
    (program,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    messages = re.findall(r"^\| (\d) \| `(.*)` \|$", text, re.MULTILINE)
    return Section(steps, program, {int(number): message for number, message in messages})


SECTIONS = {title: section(text) for title, text in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)}


class Copy:
    """A copy of the source, with the steps of sections applied to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in FOLDERS:
            shutil.copytree(ROOT / name, folder / "orchestrion" / name)
        self.original = {edit.path: self.file(edit.path).read_text(encoding="utf-8") for edit in _all_edits()}
        for edit in _all_edits():
            self.original[edit.path] = self.original[edit.path].replace(edit.new, edit.old)

    def file(self, path: str) -> Path:
        return self.folder / "orchestrion" / path

    def set(self, title: str, without: int = 0) -> None:
        """Applies all sections up to one, without a step of the last."""
        texts = dict(self.original)
        for name, one in SECTIONS.items():
            for number, step in one.steps.items():
                for edit in step if (name, number) != (title, without) else ():
                    assert texts[edit.path].count(edit.old) == 1, f"{edit.path} has once:\n{edit.old}"
                    texts[edit.path] = texts[edit.path].replace(edit.old, edit.new)
            if name == title:
                break
        for path, text in texts.items():
            self.file(path).write_text(text, encoding="utf-8")

    def run(self, title: str, devices: list[str]) -> subprocess.CompletedProcess[str]:
        """Runs the program of a section; no code of an earlier state is kept."""
        path = {"PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        home = {"ORCHESTRION_HOME": str(self.folder / ".home"), "ORCHESTRION_CACHE": str(self.folder / ".cache")}
        command = [sys.executable, "-c", SECTIONS[title].program, *devices]
        return subprocess.run(command, capture_output=True, text=True, env=os.environ | path | home, timeout=120)


def _all_edits() -> Iterator[Edit]:
    return (edit for one in SECTIONS.values() for step in one.steps.values() for edit in step)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("adding"))


def test_every_step_has_a_message() -> None:
    assert list(SECTIONS) == ["A scalar op", "A StableHLO op", "A schedule", "An element type"]
    assert all(list(one.steps) == list(one.messages) for one in SECTIONS.values())


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("title", SECTIONS)
def test_the_program_runs(title: str, source: Copy, missing_drivers: dict[str, str]) -> None:
    source.set(title)
    done = source.run(title, [device for device in DEVICES if device not in missing_drivers])
    assert done.returncode == 0, done.stderr
    missing = [f"{device}: {missing_drivers[device]}" for device in DEVICES if device in missing_drivers]
    if missing and "sys.argv" in SECTIONS[title].program:
        pytest.skip(f"ran on the devices that are there, not on {'; '.join(missing)}")


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("title", "number"), [(title, number) for title, one in SECTIONS.items() for number in one.steps]
)
def test_a_forgotten_step_is_reported(title: str, number: int, source: Copy) -> None:
    source.set(title, without=number)
    done = source.run(title, ["reference"])
    assert done.returncode != 0
    assert SECTIONS[title].messages[number] in done.stderr, done.stderr
