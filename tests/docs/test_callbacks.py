"""The code of docs/callbacks.md runs, and what it quotes is said."""

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "callbacks.md").read_text(encoding="utf-8")


def test_its_code_runs() -> None:
    pytest.importorskip("jax")
    names: dict[str, Any] = {}
    blocks = re.findall(r"(?<=^```python\n).*?(?=^```$)", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1
    exec(blocks[0], names)
    with pytest.raises(names["checkify"].JaxRuntimeError, match="the least element is -3.0"):
        names["err"].throw()


def test_the_ways_on_are_those_of_the_refusal() -> None:
    from orchestrion.compiler.stablehlo.functions import callbacks

    quoted = PAGE.partition("```text\n")[2].partition("```")[0].splitlines()
    ways = list(callbacks._ways(True, False))
    assert quoted[-len(ways) :] == ways
