"""The hooks for PyInstaller name everything that the runtime imports by a string. No PyInstaller is needed here;
`tests/tools/test_frozen_app.py` freezes an application with it.
"""

import re
import tomllib
from importlib import import_module
from pathlib import Path

from orchestrion.vm.pyinstaller import hook_dirs

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MODULE = r"(orchestrion(?:\.\w+)+)"


def hooks() -> dict[str, str]:
    """The module that a hook is for -> the hook's text."""
    paths = [path for folder in hook_dirs() for path in Path(folder).glob("hook-*.py")]
    return {path.stem.removeprefix("hook-"): path.read_text(encoding="utf-8") for path in paths}


def test_every_hook_is_for_a_module() -> None:
    assert PROJECT["entry-points"]["pyinstaller40"] == {"hook-dirs": f"{hook_dirs.__module__}:{hook_dirs.__name__}"}
    assert hooks()
    for name, text in hooks().items():
        import_module(name)
        compile(text, name, "exec")


def test_what_is_imported_by_a_string_is_named() -> None:
    sources = [
        path.read_text(encoding="utf-8") for part in ("schema", "hal", "vm") for path in (ROOT / part).rglob("*.py")
    ]
    wanted = {name for text in sources for name in re.findall(rf'"{MODULE}:\w+"', text)}
    points = PROJECT["entry-points"]
    collected = {
        value.partition(":")[0]
        for group in points
        if group in hooks()["orchestrion.hal"]
        for value in points[group].values()
    }
    literal = {name for text in hooks().values() for name in re.findall(f'"{MODULE}"', text)}
    assert len(wanted) >= 7
    assert wanted <= collected | literal, wanted - collected - literal
    for name in literal & wanted:
        import_module(name)


def test_the_schema_is_packed() -> None:
    from orchestrion.schema import layout

    opened = re.findall(r'with_name\("([^"]+)"\)', Path(layout.__file__).read_text(encoding="utf-8"))
    assert opened and all(Path(name).match("*.fbs") for name in opened)
    assert '"*.fbs"' in hooks()["orchestrion.schema"]
