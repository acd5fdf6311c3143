"""The code of each quick start runs, as one program in a process of its own; where its framework is installed."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "quickstart"
#: page -> the distributions' modules that it imports besides what the tests install in any case
FRAMEWORKS = {
    "jax": [],
    "flax": ["flax"],
    "equinox": ["equinox"],
    "optax": ["optax"],
    "keras": ["keras"],
    "solvers": ["diffrax"],
    "pytorch": ["torch", "torchax"],
    "tensorflow": ["tensorflow"],
}


def test_each_page_is_listed() -> None:
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| \[(\w+)\.md\]", index, re.MULTILINE) == list(FRAMEWORKS)
    assert {path.stem for path in FOLDER.glob("*.md")} == {"README", *FRAMEWORKS}


@pytest.mark.sampled(every=8)
@pytest.mark.parametrize("page", FRAMEWORKS)
def test_its_code_runs(page: str, tmp_path: Path) -> None:
    missing = [name for name in FRAMEWORKS[page] if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    text = (FOLDER / f"{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"(?<=^```python\n).*?(?=^```$)", text, re.MULTILINE | re.DOTALL)
    assert blocks
    (tmp_path / "program.py").write_text("\n".join(blocks), encoding="utf-8")
    done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
