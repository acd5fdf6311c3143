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
    install), also the names, sizes and times of the runtime's source files, or of the frozen program.

    Takes a few milliseconds, once per process.
    """
    from importlib.metadata import Distribution, PackageNotFoundError  # takes milliseconds, and few programs need it

    try:
        distribution = Distribution.from_name("orchestrion")
    except PackageNotFoundError:
        return f"not installed, {_fingerprint()}"
    if "orchestrion/hal/version.py," in (distribution.read_text("RECORD") or ""):
        return distribution.version
    return f"{distribution.version}, from sources, {_fingerprint()}"


def _fingerprint() -> str:
    found = [
        (f"{package}/{path.relative_to(folder)}", state.st_size, state.st_mtime_ns)
        for package in RUNTIME
        for folder in _folders(package)
        for path in sorted(folder.rglob("*.py"))
        for state in [path.stat()]
    ]
    if not found:
        state = os.stat(sys.executable)
        found = [(sys.executable, state.st_size, state.st_mtime_ns)]
    return sha256(repr(found).encode()).hexdigest()


def _folders(package: str) -> list[Path]:
    spec = find_spec(f"orchestrion.{package}")
    return [] if spec is None else [Path(place) for place in spec.submodule_search_locations or ()]
