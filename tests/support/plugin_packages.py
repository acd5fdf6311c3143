"""Packages with plugins, written into a folder as an installer leaves them: modules, and metadata with entry points."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrion.schema import plugins

#: entry-point group -> name -> `module:attribute`
EntryPoints = Mapping[str, Mapping[str, str]]


class PluginFolder:
    """A folder on the path of this process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.modules: set[str] = set()

    def install(self, package: str, points: EntryPoints, version: str = "1.0", **modules: str) -> None:
        """Write a package: `modules` are the texts of its modules by name."""
        write_package(self.path, package, points, version, **modules)
        self.modules |= modules.keys()
        plugins.rescan()


@contextmanager
def plugin_folder(path: Path) -> Iterator[PluginFolder]:
    """A folder for packages, for as long as the context lasts; their modules are forgotten at its end."""
    folder = PluginFolder(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(path))
        plugins.rescan()
        try:
            yield folder
        finally:
            for name in folder.modules:
                sys.modules.pop(name, None)
    plugins.rescan()


def write_package(path: Path, package: str, points: EntryPoints, version: str = "1.0", **modules: str) -> None:
    """Write a package into a folder that is, or will be, on somebody's path."""
    metadata = path / f"{package.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir(parents=True, exist_ok=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    lines = [
        line for group, rows in points.items() for line in (f"[{group}]", *[f"{k} = {v}" for k, v in rows.items()])
    ]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
    for name, text in modules.items():
        (path / f"{name}.py").write_text(text)
