"""docs/kernel.md shows the ops and primitives as they are. `BLESS=1` writes the tables; review the diff."""

import os
from pathlib import Path

from orchestrion.compiler.kernel.dialect import DIALECT, SCALARS
from orchestrion.compiler.kernel.primitives import PRIMITIVES

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


def test_the_page_shows_the_tables() -> None:
    text = PAGE.read_text(encoding="utf-8")
    head = text[: text.index(START) + len(START)]
    if os.environ.get("BLESS"):
        PAGE.write_text(head + tables(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == head + tables()
