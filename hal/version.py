"""The version of this runtime. It is part of the keys of everything on disk that depends on the runtime's own code."""

import os
import sys
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

#: the sub-packages of the runtime
RUNTIME = ("schema", "hal", "vm")


@cache
def runtime_version() -> str:
    """The version of the installed package. If files may change without a new version (an editable install, or no
    install), the names, sizes and times of the runtime's source files, or of the frozen program.

    Takes a few milliseconds, once per process. `importlib.metadata` would take ten more.
    """
    return _installed(Path(__file__).parents[2]) or f"from sources, {_fingerprint()}"


def _installed(folder: Path) -> str | None:
    """The name and version of the distribution in a folder of installed packages whose record lists this file."""
    for record in folder.glob("orchestrion-*.dist-info/RECORD"):
        if "orchestrion/hal/version.py," in record.read_text(encoding="utf-8"):
            return record.parent.name
    return None


def _fingerprint() -> str:
    found = []
    for package in RUNTIME:
        for folder in map(str, _folders(package)):
            paths = [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names]
            states = [(path, os.stat(path)) for path in sorted(paths) if path.endswith(".py")]
            found += [(package + path[len(folder) :], state.st_size, state.st_mtime_ns) for path, state in states]
    if not found:
        state = os.stat(sys.executable)
        found = [(sys.executable, state.st_size, state.st_mtime_ns)]
    return sha256(repr(found).encode()).hexdigest()


def _folders(package: str) -> list[Path]:
    spec = find_spec(f"orchestrion.{package}")
    return [] if spec is None else [Path(place) for place in spec.submodule_search_locations or ()]
