"""The data of a profile or a comparison about a module's commands, from the files of `vm-run`.

Both files name the module by its digest. A file of another module, or with another form, is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from orchestrion.tools.cli import InputError
from orchestrion.tools.deviations import KIND

if TYPE_CHECKING:
    from orchestrion.schema.module import Module

#: categories of trace events that are commands of the device
_COMMANDS: Final = ("dispatch", "copy", "fill")


def profile(path: str, module: Module) -> dict[str, Any]:
    """Reads a trace of `vm-run --trace`: by `function:pc`, how often and how long the command ran. Raises
    InputError.
    """
    return _read(path, "trace of vm-run --trace", lambda found: _profile(path, module, found))


def comparison(path: str, module: Module) -> dict[str, Any]:
    """Reads a report of `vm-run --compare-report`: by entry, the deviation between both devices. Raises InputError."""
    return _read(path, "report of vm-run --compare-report", lambda found: _comparison(path, module, found))


def _read(path: str, what: str, form: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    try:
        return form(json.loads(Path(path).read_bytes()))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise InputError(f"{path} is no {what}: {type(error).__name__}: {error}") from None


def _profile(path: str, module: Module, found: Any) -> dict[str, Any]:
    about = found["otherData"]
    _same(path, module, about["module"])
    times: dict[str, list[float]] = {}
    for event in found["traceEvents"]:
        if event.get("cat") in _COMMANDS and "place" in event["args"]:
            function, pc = event["args"]["place"]
            times.setdefault(f"{int(function)}:{int(pc)}", []).append(_finite(event["dur"]) / 1e6)
    total = sum(map(sum, times.values())) or 1.0
    places = {
        place: {
            "launches": len(taken),
            "median_seconds": sorted(taken)[len(taken) // 2],
            "total_seconds": sum(taken),
            "share": sum(taken) / total,
        }
        for place, taken in times.items()
    }
    title = f"{about['device']} ({about['device_name']})"
    return {"title": title, "program": _ordinal(module, about["ordinal"]), "places": places}


def _comparison(path: str, module: Module, found: Any) -> dict[str, Any]:
    if found["kind"] != KIND:
        raise InputError(f"{path} is of kind {found['kind']!r:.60}, {KIND!r} wanted")
    _same(path, module, found["module"])
    entries = {
        str(name): {
            "runs": int(row["runs"]),
            "absolute": _number(row["absolute"]),
            "relative": _number(row["relative"]),
            "differs": bool(row["differs"]),
            "lines": [str(line) for line in row["lines"]],
        }
        for name, row in found["entries"].items()
    }
    right, judged = found["devices"]
    title = f"{judged} beside {right}"
    program = _ordinal(module, found["programs"][1])
    return {"title": title, "program": program, "text": str(found["text"]), "entries": entries}


def _number(value: Any) -> float | None:
    return None if value is None else _finite(value)


def _finite(value: Any) -> float:
    """A finite number; Python also reads others, which JSON does not have."""
    if not isfinite(value):
        raise ValueError(f"{value} is not finite")
    return float(value)


def _ordinal(module: Module, value: Any) -> int:
    if not 0 <= int(value) < len(module.programs):
        raise ValueError(f"program {value} of {len(module.programs)}")
    return int(value)


def _same(path: str, module: Module, digest: str) -> None:
    own = module.container.digest.hex()
    if digest != own:
        raise InputError(f"{path} is of the module {digest:.16}, this one is {own:.16}")
