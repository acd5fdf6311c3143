"""Every page: its links lead somewhere, the files, commands and flags that it names are there.

A page about a decision opens with its facts.
"""

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from orchestrion.hal.cts.__main__ import parser as cts_parser
from orchestrion.tools.pack import COMMANDS as COMMANDS_OF_PACK

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md"), *ROOT.glob("tests/**/*.md")]
)
COMMANDS = ("compile", "run", "dump", "opt", "asm", "bench", "pack", "batch", "tune", "codegen")

LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"(\w[\w.-]*)/[\w./-]*")
FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]*")

DECISIONS = sorted(path for path in ROOT.glob("docs/decisions/*.md") if path.name != "README.md")


@pytest.fixture(params=PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def page(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


def prose(page: Path) -> str:
    """The page without its fenced blocks, which show what is not there yet."""
    return re.sub(r"^\s*```.*?^\s*```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """As GitHub makes them from headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def code(page: Path) -> Iterator[str]:
    yield from CODE.findall(prose(page))


def test_links(page: Path) -> None:
    for link in LINK.findall(prose(page)):
        if link.startswith(("https:", "http:")):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("folder", ["docs", "docs/decisions"])
def test_the_index_lists_every_page(folder: str) -> None:
    index = ROOT / folder / "README.md"
    assert set(LINK.findall(prose(index))) >= {page.name for page in index.parent.glob("*.md")} - {index.name}


@pytest.mark.parametrize("path", DECISIONS, ids=[path.stem for path in DECISIONS])
def test_a_decision_opens_with_its_facts(path: Path) -> None:
    """Date, status, question and choice, a line each; the index repeats the last two."""
    lines = path.read_text(encoding="utf-8").split("\n")
    facts = [re.match(r"- \*\*(\w+):\*\* (\S.*)$", line) for line in lines[2:6]]
    assert lines[0].startswith("# ") and lines[1] == lines[6] == ""
    assert [fact and fact[1] for fact in facts] == ["Date", "Status", "Question", "Choice"]
    date, status, question, choice = (fact[2] for fact in facts if fact)
    assert re.match(r"20\d\d-\d\d-\d\d", date)
    assert status.startswith(("in force", "superseded by "))
    assert f"| [{path.name}]({path.name}) | {question} | {choice} |" in (path.parent / "README.md").read_text("utf-8")


def test_files(page: Path) -> None:
    """What begins with one of the root's folders is there."""
    for span in code(page):
        for name in span.split():
            found = FILE.fullmatch(name)
            if found and (ROOT / found[1]).is_dir():
                assert (ROOT / name).exists(), name


def test_make_targets(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    known = re.findall(r"^([a-z-]+):", makefile, re.MULTILINE)
    variables = re.findall(r"\$\((?:or \$\()?([A-Z]+)\)", makefile)
    for span in code(page):
        if span.startswith("make "):
            words = span.split()[1:]
            assert {word for word in words if "=" not in word} <= set(known), span
            assert {word.partition("=")[0] for word in words if "=" in word} <= set(variables), span


@pytest.fixture(scope="module")
def flags() -> set[str]:
    """Of all commands, and of the commands of vm-pack."""
    packing = [["pack", command.__name__.rpartition(".")[2]] for command in COMMANDS_OF_PACK]
    found: set[str] = set()
    for command, *own in [*([command] for command in COMMANDS), *packing]:
        with pytest.raises(SystemExit), pytest.MonkeyPatch.context() as patch:
            printed: list[str] = []
            patch.setattr(sys.stdout, "write", printed.append)
            import_module(f"orchestrion.tools.{command}").main([*own, "--help"])
        found |= set(FLAG.findall("".join(printed)))
    return found | set(FLAG.findall(cts_parser().format_help()))


def test_flags(page: Path, flags: set[str]) -> None:
    """A flag that is named alone or with one of our commands is one of ours, in either spelling."""
    for span in code(page):
        if span.startswith(("vm-", "--")):
            named = {flag.replace("_", "-") for flag in FLAG.findall(span)}
            assert named <= flags | {"--hal-driver", "--cts-report"}, span
