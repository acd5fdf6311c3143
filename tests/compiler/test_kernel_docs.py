"""docs/kernel.md shows ops, primitives and schedules as they are. `BLESS=1` writes the tables; review the diff."""

import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path

from orchestrion.compiler.kernel import dialect
from orchestrion.compiler.kernel.body import DIMENSIONS
from orchestrion.compiler.kernel.choose import PATTERNS
from orchestrion.compiler.kernel.dialect import DIALECT, SCALARS
from orchestrion.compiler.kernel.schedule import STEPS, WAYS
from orchestrion.compiler.scalars.primitives import PRIMITIVES

PAGE = Path(__file__).parent.parent.parent / "docs" / "kernel.md"
START = "The tables are written by `BLESS=1 pytest tests/compiler/test_kernel_docs.py`.\n"


def tables() -> str:
    ops = [op for op in DIALECT.ops.values() if op.name not in {scalar.name for scalar in SCALARS.values()}]
    lines = ["", "| op | meaning |", "| --- | --- |"]
    lines += [f"| `{op.name}` | {(op.__doc__ or '').strip().splitlines()[0]} |" for op in ops]
    lines += [
        "",
        "Scalar ops, one per primitive; kinds are b(ool), s(igned), u(nsigned), f(loat), and `->` what it converts to:",
        "",
    ]
    lines += ["| op | kinds | meaning |", "| --- | --- | --- |"]
    for row in PRIMITIVES:
        kinds = ", ".join(f"{kind} -> {row.to[kind]}" for kind in row.kinds) if row.result == "U" else row.kinds
        lines.append(f"| `kernel.{row.name}` | {kinds} | {row.doc.replace('|', chr(92) + '|')} |")
    return "\n".join(lines) + "\n"


def steps() -> Iterator[str]:
    """A row per step, then one per word that it may have."""
    yield from ("| step | meaning |", "| --- | --- |")
    for name, (form, meaning) in STEPS.items():
        shown = form.replace("{", "").replace("}", "")
        yield f"| `{name}({shown})` | {meaning} |"
        for how, sense in WAYS.get(name, {}).items():
            yield f"| &nbsp;&nbsp;`how` = `{how}` | {sense} |"


def dimensions() -> Iterator[str]:
    yield from ("| dimension | what it counts |", "| --- | --- |")
    yield from (f"| `{name}` | {meaning} |" for name, meaning in DIMENSIONS.items())


def patterns() -> Iterator[str]:
    yield from ("| pattern | schedule |", "| --- | --- |")
    for name, pattern in PATTERNS:
        text = " ".join((inspect.getdoc(pattern) or "").split())
        yield f"| {name} | {text.removesuffix('.')} |"


#: the line in front of a table -> its lines
TABLES = {
    "`BLESS=1 pytest tests/compiler/test_kernel_docs.py` writes the tables of this section.": steps,
    "Dimensions:": dimensions,
    "`kernel/choose.py` chooses the schedule: the first pattern of this table that fits body and machine.": patterns,
}


def with_tables(text: str) -> str:
    """The page with the tables of `TABLES` behind their lines."""
    for line, rows in TABLES.items():
        head, found, tail = text.partition(f"\n{line}\n\n")
        assert found, line
        lines = tail.split("\n")
        while lines[0].startswith("|"):
            lines.pop(0)
        rest = "\n".join(lines).lstrip("\n")
        text = head + found + "\n".join(rows()) + "\n\n" + rest
    return text


def test_the_page_shows_schedules() -> None:
    text = PAGE.read_text(encoding="utf-8")
    if os.environ.get("BLESS"):
        PAGE.write_text(with_tables(text), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == with_tables(text)


def test_the_page_shows_the_tables() -> None:
    text = PAGE.read_text(encoding="utf-8")
    head = text[: text.index(START) + len(START)]
    if os.environ.get("BLESS"):
        PAGE.write_text(head + tables(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == head + tables()


def test_the_page_names_each_file() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("| part of `compiler/kernel/` |")[2].partition("\n\n")[0]
    named = list[str]()
    for part, contents in re.findall(r"^\| (`.+`) \| (.+) \|$", table, re.MULTILINE):
        parts = re.findall(r"`([^`]+)`", part)
        named += [parts[0] + name for name in re.findall(r"`(\w+\.py)`", contents)] if parts[0][-1] == "/" else parts
    kernel = Path(dialect.__file__).parent
    files = {str(path.relative_to(kernel)) for path in kernel.rglob("*.py") if path.name != "__init__.py"}
    assert sorted(named) == sorted(files)
