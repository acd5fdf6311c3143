"""The parser of all tools: the spelling of flags, the layout of help, the refusal of invalid command lines.

- Flags are spelled with dashes, and underscores are accepted in their place: `--list-devices`, `--list_devices`.
  Abbreviations are refused, because a new flag would change their meaning.
- A flag with an optional value (`nargs="?"`) takes a value only after `=`: `--report`, `--report=FILE`.
- An invalid command line prints one line to standard error, which names the flag. The exit status is 2.
- Help shows the usage, what the tool does, examples, then the flags by group. `Parser.group` returns the group of a
  title. Flags without a group come last.

The functions at the end are types of values, for `add_argument(type=...)`.
"""

import argparse
import difflib
import math
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

#: exit status of an invalid command line
USAGE = 2
#: columns before the description of a flag, and the least and greatest width of help
_INDENT, _NARROWEST, _WIDEST = 30, 70, 120

#: (command line, what it does)
Example = tuple[str, str]


class Parser(argparse.ArgumentParser):
    """The parser of a tool, or of one command of a tool. `examples` are shown by `--help`, in order."""

    def __init__(self, prog: str, description: str = "", examples: Sequence[Example] = (), **others: Any) -> None:
        super().__init__(prog=prog, description=description, **(others | {"allow_abbrev": False}))
        self.examples = tuple(examples)
        self._positionals.title = "arguments"

    def group(self, title: str, description: str | None = None) -> "argparse._ArgumentGroup":
        """Returns the group of that title, created on first use. Groups are shown in the order of their creation."""
        for group in self._action_groups:
            if group.title == title:
                return group
        return self.add_argument_group(title, description)

    def read(self, argv: Sequence[str] | None = None) -> argparse.Namespace:
        """Parses a command line (default: that of the process). Ends the process if it is invalid."""
        options: argparse.Namespace
        options, unknown = self.parse_known_args(argv)
        if unknown:
            self.error(self._unknown(unknown[0]))
        return options

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Overrides argparse, which also calls it for each command."""
        return super().parse_known_args(self._spelled(sys.argv[1:] if args is None else list(args)), namespace)

    def _spelled(self, argv: list[str]) -> list[str]:
        """The command line with dashes in the names of flags, and with omitted values made explicit."""
        left_out = {
            name: f"{name}={action.const}"
            for action in self._actions
            if action.nargs == "?"
            for name in action.option_strings
        }
        end = argv.index("--") if "--" in argv else len(argv)
        given = [_dashed(text) for text in argv[:end]]
        return [left_out.get(text, text) for text in given] + argv[end:]

    def error(self, message: str) -> NoReturn:
        """Prints one line to standard error and ends the process."""
        name = self.prog.partition(" ")[0]
        line = " ".join(message.removeprefix("argument ").split())
        if line.startswith("the following arguments are required: "):
            line = f"{line.partition(': ')[2]} is missing; {self.prog} --help shows the arguments"
        self.exit(USAGE, f"{name}: {line}\n")

    def format_help(self) -> str:
        return self.help_text(shutil.get_terminal_size().columns)

    def help_text(self, columns: int) -> str:
        """What `--help` prints on a terminal with this many columns."""
        width = min(max(columns, _NARROWEST), _WIDEST)
        parts = [f"usage: {self._usage()}", _filled(self.description or "", width, 0)]
        if self.examples:
            lines = [f"  {line}\n{_filled(what, width, 6)}" for line, what in self.examples]
            parts.append("\n".join(["examples:", *lines]))
        positionals, others, *groups = self._action_groups
        others.title = "other flags" if groups else "flags"
        for group in (positionals, *groups, others):
            lines = [line for action in group._group_actions for line in self._described(action, width)]
            if lines:
                head = [f"{group.title}:", *([_filled(group.description, width, 2)] if group.description else [])]
                parts.append("\n".join([*head, *lines]))
        return "\n\n".join(part for part in parts if part) + "\n"

    def _usage(self) -> str:
        positionals = [_placeholder(action) for action in self._positionals._group_actions]
        return " ".join([self.prog, *positionals, "[FLAG ...]"])

    def _described(self, action: argparse.Action, width: int) -> Iterator[str]:
        """The help lines of one argument; a line for each of several commands."""
        if action.help == argparse.SUPPRESS:
            return
        if isinstance(action, argparse._SubParsersAction):
            for row in action._get_subactions():
                yield from _columns(row.dest, row.help or "", width)
            return
        parameters = vars(action) | {"prog": self.prog}
        yield from _columns(_spelling(action), (action.help or "") % parameters, width)

    def _all_actions(self) -> Iterator[argparse.Action]:
        """The arguments of the tool and of its commands."""
        for action in self._actions:
            yield action
            if isinstance(action, argparse._SubParsersAction):
                for command in action.choices.values():
                    yield from command._all_actions()

    def _unknown(self, text: str) -> str:
        """The error for an unknown argument, with the most similar flag."""
        if not text.startswith("-"):
            return f"unexpected argument {text!r}; {self.prog} --help shows the arguments"
        name = text.partition("=")[0]
        known = [name for action in self._all_actions() for name in action.option_strings]
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]}?" if near else f"{self.prog} --help shows the flags"
        return f"no flag {name}; {hint}"


def _dashed(text: str) -> str:
    """An argument unchanged, or a flag with dashes in its name."""
    if not text.startswith("--"):
        return text
    name, equals, value = text.partition("=")
    return name.replace("_", "-") + equals + value


def _placeholder(action: argparse.Action) -> str:
    name = action.metavar or action.dest
    shown = name if isinstance(name, str) else " ".join(name)
    repeated = f"{shown} ..." if action.nargs in ("*", "+") else shown
    return f"[{repeated}]" if action.nargs in ("?", "*") else repeated


def _spelling(action: argparse.Action) -> str:
    """A flag with its value: `-o OUT`, `--device=NAME`, `--report[=FILE]`; the name of a positional argument."""
    if not action.option_strings:
        return action.metavar if isinstance(action.metavar, str) else action.dest
    if action.nargs == 0:
        return ", ".join(action.option_strings)
    value = action.metavar or "|".join(map(str, action.choices or ())) or action.dest.upper()
    found = []
    for name in action.option_strings:
        joined = f"{name}={value}" if name.startswith("--") else f"{name} {value}"
        found.append(f"{name}[={value}]" if action.nargs == "?" else joined)
    return ", ".join(found)


def _filled(text: str, width: int, indent: int) -> str:
    """A wrapped paragraph. Names of flags and tools are not broken at their hyphens."""
    space = " " * indent
    return textwrap.fill(text, width, initial_indent=space, subsequent_indent=space, break_on_hyphens=False)


def _columns(left: str, right: str, width: int) -> Iterator[str]:
    """`left`, and `right` beside or below it, as lines."""
    lines = textwrap.wrap(right, width - _INDENT, break_on_hyphens=False)
    fits = len(left) + 4 <= _INDENT
    yield f"  {left:{_INDENT - 2}}{lines.pop(0)}" if fits and lines else f"  {left}"
    yield from (" " * _INDENT + line for line in lines)


def whole(least: int = 0) -> Callable[[str], int]:
    """The type of whole numbers from `least` on."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"expected a whole number, got {text!r}") from None
        if number < least:
            raise argparse.ArgumentTypeError(f"{number} is not at least {least}")
        return number

    return read


def whole_or_inf(text: str) -> float:
    """A whole number, or infinity."""
    return math.inf if text == "inf" else whole()(text)


def number(what: str, most: float = math.inf) -> Callable[[str], float]:
    """The type of numbers from 0 to `most`. `what`: the unit for messages."""

    def read(text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if math.isnan(found) or not 0 <= found <= most:
            raise argparse.ArgumentTypeError(f"expected {what} of 0 or more, got {text!r}")
        return found

    return read


seconds = number("seconds")


def some_seconds(text: str) -> float:
    """Seconds above 0."""
    found = seconds(text)
    if not found:
        raise argparse.ArgumentTypeError(f"expected seconds above 0, got {text!r}")
    return found


tolerance = number("a tolerance", sys.float_info.max)


def meanings(rows: Mapping[str, str]) -> str:
    """Help for the values of a flag: value -> meaning."""
    return "; ".join(f"{name}: {doc}" for name, doc in rows.items())


def one_of(known: Iterable[str]) -> Callable[[str], str]:
    """The type of texts from a set of known ones."""
    names = tuple(known)

    def read(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(f"no {text!r}: there are {', '.join(names)}")
        return text

    return read
