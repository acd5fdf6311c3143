"""The parser of every tool, by the tool's name in pyproject.toml, and those of its commands."""

import argparse
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from orchestrion.tools.arguments import Parser

_SCRIPTS = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "scripts"
]

TOOLS: dict[str, Parser] = {
    name: import_module(place.partition(":")[0]).parser() for name, place in sorted(_SCRIPTS.items())
}


def commands(parser: Parser) -> Iterator[Parser]:
    """The parsers of a tool's commands, in the order of its help."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.values()
