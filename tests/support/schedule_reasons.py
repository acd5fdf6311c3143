"""Why schedules are refused: the texts of `legality.py` and of the errors in `schedule.py`, found in their source.

A reason is a text in which `{}` stands for whatever a message says about the case at hand.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from orchestrion.compiler.kernel import legality, schedule


@cache
def reasons() -> tuple[str, ...]:
    """Every text that a reason or an error may have."""
    found = [_text(node.value) for node in _nodes(legality.__file__) if isinstance(node, ast.Yield)]
    for node in _nodes(schedule.__file__):
        call = node.exc if isinstance(node, ast.Raise) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "ScheduleError":
            found.append(_text(call.args[0]))
    return tuple(dict.fromkeys(found))


def reason_of(message: str) -> str:
    """The reason that a message gives. Raises LookupError if it gives none."""
    for reason in sorted(reasons(), key=lambda text: -len(text)):
        if re.fullmatch(".*".join(map(re.escape, reason.split("{}"))), message, re.DOTALL):
            return reason
    raise LookupError(message)


def _nodes(path: str | None) -> Iterator[ast.AST]:
    assert path is not None
    return ast.walk(ast.parse(Path(path).read_text(encoding="utf-8")))


def _text(node: ast.expr | None) -> str:
    """The text of a string in source."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    assert isinstance(node, ast.JoinedStr), "a reason is written where it is given"
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
