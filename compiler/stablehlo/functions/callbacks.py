"""drop-callbacks: removes callbacks into Python with unused results, if the option `callbacks` asks for it.

JAX exports `jax.debug.print`, `jax.pure_callback`, `io_callback` and `eqx.error_if` as custom calls into the Python
process that traced the program. A module has no Python. `refusal` is the one diagnostic about all remaining callbacks,
with the source line of each and the alternatives. Ordered callbacks are chained by tokens (`tokens.py`), which are
removed as well. If any other op takes or returns a token, they stay, and the legality check refuses that op.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from orchestrion.compiler.errors import Diagnostic
from orchestrion.compiler.ir.attributes import StringAttr
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.effects import erase_dead
from orchestrion.compiler.ir.locations import FileLoc, Location, NameLoc, walk
from orchestrion.compiler.ir.types import is_token
from orchestrion.compiler.options import Options
from orchestrion.compiler.stablehlo.ops.func import Call, Func
from orchestrion.compiler.stablehlo.ops.tokens import PASS_ON_TOKENS, drop_tokens, has_token

from .calls import CallGraph

#: Names of JAX's callbacks, for all platforms and versions.
_PYTHON: Final = re.compile(r"_python_\w*callback")
#: Last part of the name in a callback's location -> the function that the user called.
_NAMES: Final[dict[str, str]] = {
    "debug_print": "jax.debug.print",
    "debug_callback": "jax.debug.callback",
    "io_callback": "io_callback",
    "pure_callback": "jax.pure_callback",
}
#: Files of libraries; their frames are not the user's.
_LIBRARY: Final = re.compile(r"[/\\](?:site|dist)-packages[/\\]")
#: The file that defines `eqx.error_if`.
_ERROR_IF: Final = re.compile(r"[/\\]equinox[/\\]_errors\.py$")
_EQUINOX: Final = "eqx.error_if"
#: Maximum number of lines about callbacks in the diagnostic.
_MOST_NAMED: Final = 20


class _Frame(NamedTuple):
    """A line of Python in an op's location, and the name of its function."""

    file: FileLoc
    function: str

    def __str__(self) -> str:
        place = f"{self.file.file}:{self.file.line}:{self.file.column}"
        return f"{place} in {self.function}" if self.function else place


def run(module: Module, options: Options) -> None:
    if options.callbacks != "drop" or not any(map(is_callback, module.walk())):
        return
    if all(op.name in PASS_ON_TOKENS or is_callback(op) or not has_token(op) for op in module.walk()):
        drop_tokens(module)
    while unneeded := [op for op in module.walk() if is_callback(op) and not any(result.uses for result in op.results)]:
        for op in reversed(unneeded):
            op.erase()
        erase_dead(module)  # the ops that computed its operands may have used another one


def is_callback(op: Operation) -> bool:
    """Whether the op calls Python."""
    target = op.get_as("call_target_name", StringAttr) if op.name == "stablehlo.custom_call" else None
    return target is not None and _PYTHON.search(target.value) is not None


def callbacks_diagnostic(module: Module, is_dropping: bool) -> Diagnostic | None:
    """The one diagnostic about all callbacks of a module; None if it has none."""
    found = [op for op in module.walk() if is_callback(op)]
    if not found:
        return None
    lines = dict.fromkeys(line for op in found for line in _lines(op, module))
    listed = [f"  {line}" for line in lines][:_MOST_NAMED]
    if len(lines) > _MOST_NAMED:
        listed.append(f"  and {len(lines) - _MOST_NAMED} others")
    ways = _ways(any(line.endswith(_EQUINOX) or f"{_EQUINOX}," in line for line in lines), is_dropping)
    head = "the program calls back into Python, and a module has no Python:"
    if is_dropping:
        head = "the program needs results of callbacks into Python, and a module has no Python:"
    return Diagnostic("\n".join([head, *listed, *ways]))


def _ways(has_equinox: bool, is_dropping: bool) -> Iterator[str]:
    if not is_dropping:
        yield 'callbacks="drop" (--callbacks=drop) leaves out those with unused results'
    if has_equinox:
        yield (
            f"EQX_ON_ERROR=nan in the environment, before equinox is imported, makes {_EQUINOX} give NaN instead of an "
            "error; EQX_ON_ERROR=off leaves the check out"
        )
    yield "the computation can be written in jax.numpy, or done by the caller and passed as an argument"


def _lines(op: Operation, module: Module) -> Iterator[str]:
    """A line with a callback's place and name; one line per caller of its function, if its place is in a library."""
    needed = any(result.uses and not is_token(result.type) for result in op.results)
    name = f"{_name(op)}, whose result is used" if needed else _name(op)
    for place in dict.fromkeys(_places(op, module)):
        yield f"{place}: {name}" if place else name


def _name(op: Operation) -> str:
    locations = list(walk(op.loc))
    if any(isinstance(item, FileLoc) and _ERROR_IF.search(item.file) for item in locations):
        return _EQUINOX
    parts = (item.name.rstrip(":").rpartition("/")[2] for item in locations if isinstance(item, NameLoc))
    target = op.get_as("call_target_name", StringAttr)
    return next((_NAMES[part] for part in parts if part in _NAMES), target.value if target is not None else op.name)


def _places(op: Operation, module: Module) -> Iterator[str]:
    """The user's source lines of an op: its own, or those of the calls of its function."""
    graph = CallGraph(module)
    callers: dict[Func, list[Call]] = {}
    for calls in graph.calls.values():
        for call, target in calls:
            callers.setdefault(target, []).append(call)
    stack, seen, is_found = [op], {op}, False
    while stack:
        current = stack.pop()
        own = next((frame for frame in _frames(current.loc) if not _LIBRARY.search(frame.file.file)), None)
        if own is not None:
            yield str(own)
            is_found = True
            continue
        function = next((one for one in current.enclosing() if isinstance(one, Func)), None)
        above = [] if function is None else [call for call in callers.get(function, ()) if call not in seen]
        seen.update(above)
        stack += reversed(above)
    if not is_found:
        yield next(map(str, _frames(op.loc)), "")


def _frames(location: Location) -> Sequence[_Frame]:
    """The Python frames in a location, innermost first."""
    found: dict[FileLoc, _Frame] = {}
    for item in walk(location):
        if isinstance(item, NameLoc) and isinstance(item.child, FileLoc):
            found.setdefault(item.child, _Frame(item.child, item.name))
        elif isinstance(item, FileLoc):
            found.setdefault(item, _Frame(item, ""))
    return list(found.values())
