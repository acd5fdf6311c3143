"""Plugins: additions of other packages, found by their entry points.

- A kind of plugin is an entry-point group, a row of `GROUPS`. The entry point's name is the plugin's name, its value
  the object. docs/hal-driver.md describes the objects.
- Scanning entry points takes 20 ms. It happens once per process, when a name is requested that no built-in table has.
- A name that two packages declare belongs to neither. A built-in name belongs to this package, whoever declares it.
- An exception while a package is loaded becomes a `PluginError` that names the plugin and the package, so that one
  broken package hides no other.
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

#: entry-point group -> the name of one of its plugins in messages
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
#: the name of this package, which also declares its own drivers by entry points
OURS = "orchestrion"
#: the most characters of another package's message that are quoted
MAX_SAID = 500


@dataclass(frozen=True, slots=True)
class Plugin:
    """One declared plugin. `packages`: name and version of the declaring packages; more than one if they collide."""

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
    """The packages whose entry points cannot be read, and why, a text each."""
    return _scan()[1]


def find(group: str, name: str, kind: type[_T]) -> _T | None:
    """Returns the plugin of that name, an instance of `kind`; None if no package declares it. Raises PluginError if two
    packages declare it, it cannot be loaded, or it is of another type.
    """
    plugin = declared(group).get(name)
    if plugin is None:
        return None
    found = load(plugin)
    if not isinstance(found, kind):
        raise PluginError(f"{plugin} is a {type(found).__name__}, not a {kind.__name__}")
    return found


def load(plugin: Plugin) -> object:
    """Returns the object that a plugin's entry point names."""
    if len(plugin.packages) > 1:
        raise PluginError(f"{plugin} is declared twice: uninstall one of the packages")
    with contained(f"{plugin} cannot be loaded"):
        return plugin.point.load()


@contextmanager
def contained(what: str) -> Iterator[None]:
    """A context manager that turns every exception of another package's code into a PluginError whose message begins
    with `what`.

    `KeyboardInterrupt` and `SystemExit` pass through: signal handlers raise them inside of any code.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit, PluginError):
        raise
    except BaseException as error:
        raise PluginError(f"{what}: {type(error).__name__}: {one_line_message(error)}") from error


def one_line_message(error: BaseException) -> str:
    """The message of another package's exception in one line, shortened."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        return "its message cannot be read"
    return text if len(text) <= MAX_SAID else f"{text[: MAX_SAID - 3]}..."


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
            problems.append(f"{_package_path(distribution)}: {type(error).__name__}: {one_line_message(error)}")
            continue
        key = re.sub(r"[-_.]+", "-", name).lower()
        if not points or key == OURS or key in seen:  # the first on the path hides others, as in imports
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


def _package_path(distribution: object) -> str:
    """The path of a package whose name may not be readable."""
    return str(getattr(distribution, "_path", None) or distribution)


def rescan() -> None:
    """Scan again on the next lookup: for tests, and for a process that installed a package while it ran."""
    _scan.cache_clear()
