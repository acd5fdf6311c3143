"""Plugins: what other packages add to this one, found by their entry points.

- A kind of plugin is an entry-point group, a row of `GROUPS`. The entry point's name is the plugin's name, its value
  the object. docs/hal-driver.md says what each object is.
- Looking for entry points takes 20 ms. It happens once per process, when a name is asked for that no built-in table
  has.
- A name that two packages declare belongs to neither. A built-in name belongs to this package, whoever declares it.
- What a package raises while it is loaded becomes a `PluginError` that names the plugin and the package, so that one
  bad package hides no other.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from .errors import PluginError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_T = TypeVar("_T")

#: entry-point group -> what one of its plugins is, in messages
GROUPS: dict[str, str] = {
    "orchestrion.hal": "driver",
    "orchestrion.formats": "executable format",
    "orchestrion.profiles": "target profile",
    "orchestrion.features": "device feature",
    "orchestrion.machines": "machine",
    "orchestrion.targets": "compiler target",
    "orchestrion.conformance": "conformance kernels",
    "orchestrion.natives": "native module",
}
#: this package, which declares its own drivers by entry points, too
OURS = "orchestrion"
#: characters of a foreign message that are repeated
MOST_SAID = 500


@dataclass(frozen=True, slots=True)
class Plugin:
    """One declared plugin. `packages`: name and version of the packages that declare it, one unless they collide."""

    group: str
    name: str
    packages: tuple[str, ...]
    point: "EntryPoint"

    def __str__(self) -> str:
        return f"{GROUPS[self.group]} {self.name} of package {' and of package '.join(self.packages)}"


def check_version(plugin: Plugin, stated: object, ours: tuple[int, int], interface: str) -> None:
    """Checks the version of an interface that a plugin was written for: the major version is the same, the minor one
    is no later.

    Raises PluginError for another version, and for what is no pair of numbers.
    """
    if not (isinstance(stated, tuple) and len(stated) == 2 and all(type(part) is int for part in stated)):
        raise PluginError(f"{plugin} states the api_version {stated!r}, not a pair of numbers such as (1, 0)")
    if stated[0] == ours[0] and stated[1] <= ours[1]:
        return
    versions = f"version {stated[0]}.{stated[1]} of the {interface}, this is version {ours[0]}.{ours[1]}"
    cure = "orchestrion" if stated > ours else "the package"
    raise PluginError(f"{plugin} was written for {versions}: update {cure}")


def declared(group: str) -> Mapping[str, Plugin]:
    """The plugins of a group by name, sorted, without those of this package."""
    return _scan()[0].get(group, MappingProxyType({}))


def unreadable() -> tuple[str, ...]:
    """Packages whose entry points cannot be read, and why, a line each."""
    return _scan()[1]


def find(group: str, name: str, kind: type[_T]) -> _T | None:
    """The plugin of that name, an instance of `kind`; None if no package declares one.

    `PluginError`: two packages declare it, it cannot be loaded, or it is something else.
    """
    plugin = declared(group).get(name)
    if plugin is None:
        return None
    found = load(plugin)
    if not isinstance(found, kind):
        raise PluginError(f"{plugin} is a {type(found).__name__}, not a {kind.__name__}")
    return found


def load(plugin: Plugin) -> object:
    """The object that a plugin's entry point names."""
    if len(plugin.packages) > 1:
        raise PluginError(f"{plugin} is declared twice: uninstall one of the packages")
    with contained(f"{plugin} cannot be loaded"):
        return plugin.point.load()


@contextmanager
def contained(what: str) -> Iterator[None]:
    """Turns every exception of foreign code into a `PluginError` that begins with `what`.

    `KeyboardInterrupt` and `SystemExit` go through: signal handlers raise them in the middle of any code.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit, PluginError):
        raise
    except BaseException as error:
        raise PluginError(f"{what}: {type(error).__name__}: {said(error)}") from error


def said(error: BaseException) -> str:
    """The message of a foreign exception in one line, shortened."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        return "its message cannot be read"
    return text if len(text) <= MOST_SAID else f"{text[: MOST_SAID - 3]}..."


@cache
def _scan() -> tuple[Mapping[str, Mapping[str, Plugin]], tuple[str, ...]]:
    """All plugins by group and name, and the packages whose entry points cannot be read."""
    from importlib.metadata import distributions

    found: dict[str, dict[str, Plugin]] = {}
    seen: set[str] = set()
    problems: list[str] = []
    for distribution in distributions():
        try:
            points = [point for point in distribution.entry_points if point.group in GROUPS]
            name, version = (distribution.name, distribution.version) if points else ("", "")
        except Exception as error:
            problems.append(f"{_place(distribution)}: {type(error).__name__}: {said(error)}")
            continue
        key = re.sub(r"[-_.]+", "-", name).lower()
        if not points or key == OURS or key in seen:  # the first on the path hides the others, as in imports
            continue
        seen.add(key)
        for point in points:
            _add(found.setdefault(point.group, {}), point, f"{name} {version}")
    frozen = {group: MappingProxyType(dict(sorted(rows.items()))) for group, rows in found.items()}
    return MappingProxyType(frozen), tuple(problems)


def _add(rows: dict[str, Plugin], point: "EntryPoint", package: str) -> None:
    before = rows.get(point.name)
    packages = (package,) if before is None else tuple(sorted((*before.packages, package)))
    rows[point.name] = Plugin(point.group, point.name, packages, point)


def _place(distribution: object) -> str:
    """Where a package lies whose name may not be readable."""
    return str(getattr(distribution, "_path", None) or distribution)


def rescan() -> None:
    """Look again at the next question: for a process that installed a package while it ran, and for tests."""
    _scan.cache_clear()
