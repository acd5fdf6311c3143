"""docs/embedding.md: its functions load what they say, from files and from archives, and refuse the rest."""

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrion import vm
from orchestrion.tools import compile as vm_compile
from orchestrion.tools import pack

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "app"
PAGE = (ROOT / "docs" / "embedding.md").read_text(encoding="utf-8")
BUILD = (EXAMPLE / "build.sh").read_text(encoding="utf-8")
LOADING, STORED = re.findall(r"(?<=^```python\n).*?(?=^```$)", PAGE, re.MULTILINE | re.DOTALL)
#: module -> what its refusal says
REFUSED = {"unsigned.fb": "not signed", "changed.fb": "digest", "old.fb": "version 1", "missing.fb": "No such file"}
X = np.array([1, 2, 3, 4], np.float32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The example with its signed module, as `build.sh` makes it, an older one, and an unsigned one. Not frozen."""
    pytest.importorskip("cryptography")
    for name in ("app.py", "keys.toml"):
        shutil.copy(EXAMPLE / name, tmp_path)
    key, unsigned = tmp_path / "publisher.pem", tmp_path / "unsigned.fb"
    assert pack.main(["keygen", "--type=p256", "-o", str(key)]) == 0
    (command,) = re.findall(r'^vm-compile "\$here/../(.*)" (.*) -o unsigned.fb$', BUILD, re.MULTILINE)
    source, flags = ROOT / "examples" / command[0], command[1].split()
    for name, version in ("old.fb", "1"), ("model.fb", "2"):
        found = [*flags[:-1], f"--model-version={version}"]
        assert vm_compile.main([str(source), *found, "-o", str(unsigned)]) == 0
        assert pack.main(["sign", str(unsigned), f"--key={key}", "-o", str(tmp_path / name)]) == 0
    assert found == flags
    return tmp_path


def functions(text: str, folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {"__file__": str(folder / "app.py")}
    exec(text, found)
    return found


def test_the_lines_that_load(folder: Path) -> None:
    page = functions(LOADING, folder)
    page["main"]()
    program = page["load"](folder / "model.fb")
    np.testing.assert_array_equal(program.simple_mul(X, X), X * X)
    program.close()
    with pytest.raises(vm.Untrusted):
        page["load"](folder / "unsigned.fb")


@pytest.mark.parametrize("padding", [0, 1, 16000])
def test_a_stored_entry_is_loaded_where_it_lies(folder: Path, padding: int) -> None:
    stored_entry = functions(STORED, folder)["stored_entry"]
    apk = folder / "base.apk"
    with zipfile.ZipFile(apk, "w") as archive:
        archive.writestr("classes.dex", bytes(padding))
        entry = zipfile.ZipInfo("assets/model.fb")
        entry.extra = b"\x35\xd9\x06\x00\x00\x40\x00\x00\x00\x00"  # as zipalign pads
        archive.writestr(entry, (folder / "model.fb").read_bytes())
        archive.write(folder / "model.fb", "assets/deflated.fb", zipfile.ZIP_DEFLATED)
    program = vm.load(apk, policy=folder / "keys.toml", **stored_entry(apk, "assets/model.fb"))
    np.testing.assert_array_equal(program.simple_mul(X, X), X * X)
    program.close()
    with pytest.raises(ValueError, match="assets/deflated.fb is compressed"):
        stored_entry(apk, "assets/deflated.fb")


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "app.py", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


def test_the_example(folder: Path) -> None:
    done = run(folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[ 10.  40.  90. 160.]\n", "")
    changed = bytearray((folder / "model.fb").read_bytes())
    changed[200] ^= 1
    (folder / "changed.fb").write_bytes(changed)
    for name, reason in REFUSED.items():
        done = run(folder, name)
        assert reason in done.stderr
        assert done.returncode == 1 and done.stdout == ""
        assert done.stderr.startswith(f"{name} is refused: ") and len(done.stderr.splitlines()) == 1


def test_the_page_names_the_parts_of_the_example() -> None:
    for path in EXAMPLE.iterdir():
        assert f"`{path.relative_to(ROOT)}`" in PAGE or path.name == "__pycache__"
    lines = len((EXAMPLE / "app.py").read_text(encoding="utf-8").splitlines())
    assert f"of {lines} lines" in PAGE
