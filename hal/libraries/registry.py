"""The registry of library functions: `library.function` -> `Function`.

Functions given to `register` in this process take precedence. Then come the libraries of packages: our own
(`BUILT_IN`), and those with an entry point in the group `orchestrion.libraries`, whose value is a mapping as `register`
takes. A package is imported when a module, or a caller of `libraries`, names its library. All functions are
thread-safe.

An untrusted module may name any function here, and chooses its attributes, shapes and values. Nothing filters these
calls, so a function must be safe to call with any of them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from orchestrion.hal.errors import InvalidArgument, LibraryUnavailable
from orchestrion.hal.fork import new_rlock
from orchestrion.schema.errors import PluginError
from orchestrion.schema.library_call import Value, name_problem
from orchestrion.schema.plugins import contained

GROUP = "orchestrion.libraries"
BUILT_IN: dict[str, str] = {
    "blas": "orchestrion.hal.libraries.blas:FUNCTIONS",
    "lapack": "orchestrion.hal.libraries.lapack:FUNCTIONS",
}

Array = npt.NDArray[Any]


class Spec(NamedTuple):
    """The element type and shape of an array that does not exist yet."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]


#: run(inputs, outputs, attributes) fills every output. All arrays are C-contiguous and aligned, with the types and
#: shapes that the program states. Inputs are read-only. Outputs are uninitialised. No array may be kept after return.
Run = Callable[[Sequence[Array], Sequence[Array], Mapping[str, Value]], None]
#: check(inputs, outputs, attributes) raises ValueError for a call that `run` does not support
Check = Callable[[Sequence[Spec], Sequence[Spec], Mapping[str, Value]], None]


@dataclass(frozen=True, slots=True)
class Function:
    """A library function. `check` is called once, when a program that calls the function is loaded.

    `workspace`: the memory that a run takes, as a multiple of its operands' bytes; it counts against memory limits.
    """

    run: Run
    check: Check | None = None
    doc: str = ""
    workspace: int = 0


class LibraryStatus(NamedTuple):
    """A library: its functions by name, or the reason why it has none."""

    name: str
    functions: Mapping[str, Function]
    reason: str


_lock = new_rlock()  # importing a package may register more
_registered: dict[str, dict[str, Function]] = {}
_installed: dict[str, dict[str, Function]] = {}


def register(library: str, functions: Mapping[str, Function | Run], replace: bool = False) -> None:
    """Make functions available to programs that are loaded from now on. They replace a package's functions of the same
    name.

    Loaded programs keep their functions, and so does a device that has such a program open. Raises InvalidArgument if a
    name is invalid, a value is no function, or the name is registered already and `replace` is False.
    """
    made = _functions(library, functions)
    with _lock:
        known = _registered.setdefault(library, {})
        twice = [name for name in made if name in known]
        if twice and not replace:
            raise InvalidArgument(f"{library}.{twice[0]} is registered already; replace=True takes the new one")
        known |= made


def find(name: str) -> Function:
    """Returns the function called `library.function`. Raises LibraryUnavailable, which lists the existing functions and
    how to add one.
    """
    if problem := name_problem(name):
        raise InvalidArgument(problem)
    library, _, function = name.partition(".")
    with _lock:
        found = _registered.get(library, {}).get(function) or _of_package(library).get(function)
        if found is not None:
            return found
        there = sorted({*_registered.get(library, ()), *_of_package(library)})
    if there:
        raise LibraryUnavailable(
            f"library {library} has no function {function}: it has {', '.join(there)}; "
            f'add one with orchestrion.hal.libraries.register("{library}", {{"{function}": ...}})'
        )
    raise LibraryUnavailable(
        f"the program calls library function {name}, and there is no library {library}: there are "
        f"{', '.join(_names())}; make it known with orchestrion.hal.libraries.register, or install a package with an "
        f"entry point {library} in the group {GROUP}"
    )


def libraries() -> Iterator[LibraryStatus]:
    """Yields every library by name, with its registered functions and those of its package. Imports all packages."""
    for name in _names():
        with _lock:
            functions, reason = dict(_registered.get(name, {})), ""
            try:
                functions = {**_of_package(name), **functions}
            except LibraryUnavailable as error:
                reason = str(error)
        yield LibraryStatus(name, dict(sorted(functions.items())), reason)


def _names() -> list[str]:
    with _lock:
        return sorted({*_registered, *packages()})


def packages() -> dict[str, str]:
    """The libraries of packages: name -> `module:attribute`."""
    from importlib.metadata import entry_points  # 20 ms, and only names that are not ours need it

    return {point.name: point.value for point in entry_points(group=GROUP)} | BUILT_IN


def _of_package(library: str) -> dict[str, Function]:
    """The functions of a package's library, imported now if necessary; empty without such a package."""
    if library not in _installed:
        place = BUILT_IN.get(library) or packages().get(library)
        if place is None:
            return {}
        _installed[library] = _imported(library, place)
    return _installed[library]


def _imported(library: str, place: str) -> dict[str, Function]:
    module, _, attribute = place.partition(":")
    try:
        with contained(f"library {library} at {place} cannot be loaded"):
            return _functions(library, getattr(import_module(module), attribute))
    except PluginError as error:
        raise LibraryUnavailable(str(error)) from error


def _functions(library: str, given: object) -> dict[str, Function]:
    if not isinstance(given, Mapping):
        raise InvalidArgument(f"the functions of library {library} must be a mapping, are {type(given).__name__}")
    made = {}
    for name, value in given.items():
        problem = name_problem(f"{library}.{name}")
        if problem:
            raise InvalidArgument(problem)
        if not isinstance(value, Function) and not callable(value):
            raise InvalidArgument(f"{library}.{name} is {type(value).__name__}, expected a function")
        made[name] = value if isinstance(value, Function) else Function(value, doc=_first_line(value))
    return made


def _first_line(function: Any) -> str:
    return (function.__doc__ or "").strip().partition("\n")[0]
