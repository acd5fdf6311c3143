"""What all commands share: exit statuses, errors as one line, atomic writes.

Exit status: 0 success, 1 invalid input (module, program, argument, expectation, file), 2 invalid command line.
`--verbose` adds the traceback of an error.
"""

import argparse
import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from orchestrion.schema import files
from orchestrion.schema.printable import printable, printable_text

from . import terminal
from .arguments import Example, Parser, seconds, some_seconds, whole, whole_or_inf

DONE, BAD_INPUT = 0, 1


class InputError(Exception):
    """The input of a command is invalid; the message states which, and why."""


class UsageError(Exception):
    """The command line is invalid in a way that argparse does not detect."""


def parser(command: str, description: str, examples: Sequence[Example] = ()) -> Parser:
    """The parser of a tool, with the flags of all tools."""
    made = Parser(command, description, examples)
    made.add_argument("--version", action=_Version, help="show the version and exit")
    made.add_argument("--verbose", action="store_true", help="show the traceback of an error")
    return made


def subcommand(
    subparsers: "argparse._SubParsersAction[Parser]",
    name: str,
    run: Callable[[argparse.Namespace], int],
    description: str,
    examples: Sequence[Example],
) -> Parser:
    """The parser of one command of a tool that has several; `run` gets its options. `--verbose` may
    follow the command.
    """
    made = subparsers.add_parser(name, help=description, description=description, examples=examples)
    made.add_argument(
        "--verbose", action="store_true", default=argparse.SUPPRESS, help="show the traceback of an error"
    )
    made.set_defaults(run=run)
    return made


class _Version(argparse.Action):
    """Looks up the version on request, because reading package metadata takes 20 ms."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"{parser.prog} {version('orchestrion')}")
        except PackageNotFoundError:
            print(f"{parser.prog} of a source tree")
        parser.exit()


def add_device(made: Parser) -> None:
    """Adds the flags for the device, and for what it may run."""
    group = made.group("device and code")
    group.add_argument(
        "--device",
        metavar="NAME",
        help="such as vulkan or opencl:1 (default: cpu if it can run the module, otherwise reference)",
    )
    add_device_profile(made)
    add_threads(made)
    group.add_argument(
        "--allow-native-code", action="store_true", help="trust machine code and OpenCL C from elsewhere"
    )


def add_build_deadline(made: Parser) -> None:
    group = made.group("limits")
    group.add_argument(
        "--build-deadline",
        metavar="SECONDS",
        type=some_seconds,
        help="time limit for building the module's code for the device; inf is none "
        "(default: none for modules compiled here, else by their size)",
    )


def add_parameters(made: Parser) -> None:
    """Adds the flags for a module's parameters; `parameters` converts them for `vm.load`."""
    group = made.group("parameters and other modules")
    group.add_argument(
        "--parameters",
        metavar="FILE",
        action="append",
        help="safetensors file, or a folder of them, with the module's parameters; repeat "
        "(default: what vm-compile wrote, beside the module)",
    )
    group.add_argument(
        "--adapter", metavar="FILE", action="append", default=[], help="low-rank adapter, added to parameters; repeat"
    )
    group.add_argument(
        "--extra-parameters", action="store_true", help="files may hold more parameters than the module needs"
    )


def parameters(options: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `vm.load` for these flags."""
    return {
        "parameters": options.parameters,
        "adapters": options.adapter,
        "extra_parameters": options.extra_parameters,
    }


def add_modules(made: Parser) -> None:
    """Adds the flag for modules that the module imports functions from; `modules` converts it for `vm.load`."""
    group = made.group("parameters and other modules")
    group.add_argument(
        "--module",
        metavar="[NAME=]FILE",
        action="append",
        default=[],
        dest="modules",
        help="module that the module imports functions from, by its name or that of its file; repeat, each may import "
        "from those before it",
    )


def modules(options: argparse.Namespace) -> dict[str, Any]:
    """The argument of `vm.load` for these flags. Raises UsageError for a repeated name."""
    found: dict[str, str] = {}
    for text in options.modules:
        name, equals, path = text.partition("=")
        if not equals:
            name, path = Path(text).stem, text
        if name in found:
            raise UsageError(f"--module={name} is there twice: {found[name]} and {path}")
        found[name] = path
    return {"modules": found} if found else {}


def add_policy(made: Parser) -> None:
    """Adds the flags for required signatures; `policy` converts them for `vm.load`."""
    group = made.group("trust")
    group.add_argument(
        "--policy",
        metavar="KEYS.toml",
        help="trusted keys: the module must have their signatures (default: not checked)",
    )
    group.add_argument("--signature", metavar="FILE", help="signatures that are not in the module, for --policy")


def policy(options: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `vm.load` for these flags. A warning about trust is printed as one line."""
    if options.policy is None:
        if options.signature is not None:
            raise UsageError("--signature needs --policy")
        return {}
    from orchestrion import vm

    _show(vm.TrustWarning)
    return {"policy": options.policy, "signature": options.signature}


def add_part(made: Parser) -> None:
    """Adds the flags for a module inside of another file; `part` converts them."""
    group = made.group("a module inside of another file")
    group.add_argument("--offset", metavar="BYTES", type=whole(), default=0, help="offset of the module in the file")
    group.add_argument(
        "--length", metavar="BYTES", type=whole(1), help="size of the module (default: to the end of the file)"
    )


def part(options: argparse.Namespace) -> dict[str, Any]:
    return {"offset": options.offset, "length": options.length}


def _show(category: type[Warning]) -> None:
    """From now on print warnings of this category, and others, as one line."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        terminal.erase()
        print(printable(f"warning: {message}"), file=sys.stderr)

    warnings.simplefilter("always", category)
    warnings.showwarning = show


def add_device_memory(made: Parser) -> None:
    """Adds the flag for the limit on device memory; `device_memory` converts it for `vm.load`."""
    group = made.group("limits")
    group.add_argument(
        "--device-memory",
        metavar="BYTES",
        type=whole(),
        help="device memory limit; constants that do not fit are copied to the device in each call",
    )


def device_memory(options: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `vm.load` for the flag."""
    if options.device_memory is not None:
        from orchestrion import vm

        _show(vm.StreamingWarning)
    return {"device_memory": options.device_memory}


def device(options: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `vm.load` for the flag `--device`. Without it, a warning about the choice is printed as one
    line.
    """
    if options.device is None:
        from orchestrion import vm

        _show(vm.DeviceWarning)
    return {"device": options.device}


def add_threads(made: Parser) -> None:
    """Adds the flag for the threads of the device."""
    made.group("device and code").add_argument(
        "--threads",
        metavar="N",
        type=whole(1),
        help="most threads of a dispatch on the device cpu (default: ORCHESTRION_THREADS, or the number of cores)",
    )


def add_device_profile(made: Parser) -> None:
    """Adds the flag for the profile of Vulkan devices; `run` applies it."""
    made.group("device and code").add_argument(
        "--device-profile",
        metavar="NAME",
        type=_profile_name,
        help="least: Vulkan devices with the least features and limits, as on some phones; full: all (default: full)",
    )


def _profile_name(text: str) -> str:
    from orchestrion.hal.vulkan.device_profile import profile_named

    try:
        profile_named(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no device profile: {error}") from None
    return text


@contextmanager
def _profiled_devices(options: argparse.Namespace) -> Iterator[None]:
    """A context manager: the Vulkan driver restricts devices to `--device-profile`, also in child processes."""
    name = getattr(options, "device_profile", None)
    if name is None:
        yield
        return
    from orchestrion.hal.vulkan.device_profile import PROFILE_VARIABLE

    before = os.environ.get(PROFILE_VARIABLE)
    os.environ[PROFILE_VARIABLE] = name
    try:
        yield
    finally:
        os.environ.pop(PROFILE_VARIABLE)
        if before is not None:
            os.environ[PROFILE_VARIABLE] = before


def add_load_limits(made: Parser) -> None:
    """Adds the flags for the limits of initializers; `load_limits` converts them for `vm.load`."""
    group = made.group("limits")
    why = "(default: docs/limits.md; inf for no limit)"
    group.add_argument("--load-fuel", metavar="N", type=whole_or_inf, help=f"instruction limit of initializers {why}")
    group.add_argument("--load-deadline", metavar="SECONDS", type=seconds, help=f"time limit of initializers {why}")
    group.add_argument("--load-memory", metavar="BYTES", type=whole_or_inf, help=f"memory limit while loading {why}")


def load_limits(options: argparse.Namespace) -> Any:
    """A `vm.Limits` of the flags; None without them."""
    from orchestrion import vm

    given = (options.load_fuel, options.load_deadline, options.load_memory)
    return None if given == (None, None, None) else vm.Limits(*given)


def add_report(made: Parser, what: str) -> None:
    """Adds the flag `--report[=FILE]`; `write_report` writes the report."""
    group = made.group("reports")
    group.add_argument(
        "--report",
        metavar="FILE",
        nargs="?",
        const="-",
        help=f"{what}: as text on standard output or in a file, as JSON in FILE.json",
    )


def write_report(path: str, text: str, data: object) -> None:
    """Writes a report in the form that `--report` requests."""
    if path == "-":
        print(text, end="")
    elif path.endswith(".json"):
        write_json(path, data)
    else:
        write_whole(path, text.encode())


def write_json(path: str, data: object) -> None:
    """Writes JSON to a file, or to standard output for `-`."""
    text = json.dumps(data, indent=2) + "\n"
    if path == "-":
        print(text, end="")
    else:
        write_whole(path, text.encode())


def note_null(command: str, device: str, what: str) -> None:
    """Prints a note to standard error if the device's driver does not compute."""
    from orchestrion.hal.registry import load_driver

    if not load_driver(device.partition(":")[0]).conformance.computes:
        print(f"{command}: note: device {device} computes nothing: {what}", file=sys.stderr)


def run(command: str, made: Parser, main: Callable[[argparse.Namespace], int], argv: Sequence[str] | None) -> int:
    """Parses and runs, and prints every error of the input as one line to standard error."""
    options = made.read(argv)
    try:
        with _profiled_devices(options):
            return main(options)
    except UsageError as error:
        made.error(str(error))
    except BrokenPipeError:
        # the reader of our output has closed it, as in `vm-dump m.fb | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if not is_expected(error):
            raise
        if options.verbose:
            traceback.print_exc()
        print(printable_text(f"{command}: {text_of(error)}"), file=sys.stderr)
        return BAD_INPUT


def is_expected(error: Exception) -> bool:
    """Whether the error describes a problem of the input or machine. Any other is an internal error and keeps its
    traceback.

    Types are looked up in the loaded modules, so that a command does not import what it does not use.
    """
    if isinstance(error, InputError | OSError):
        return True
    names = (
        ("orchestrion.schema.errors", "ModuleError"),
        ("orchestrion.schema.errors", "KeysError"),
        ("orchestrion.schema.errors", "PluginError"),
        ("orchestrion.hal.errors", "HalError"),
        ("orchestrion.vm.errors", "VmError"),
        ("orchestrion.compiler.errors", "CompileError"),
        ("orchestrion.schema.lexer", "AssemblyError"),
    )
    loaded = (getattr(sys.modules.get(module), name, None) for module, name in names)
    return any(kind is not None and isinstance(error, kind) for kind in loaded)


def text_of(error: Exception) -> str:
    """An error as commands print it, usually on one line."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename or repr('')}: {error.strerror}"
    return str(error)


def read_bytes(path: str) -> bytes:
    """A whole file or pipe, or standard input for `-`. Raises OSError for a device and for endless input."""
    if path != "-":
        return files.read_whole(path)
    data = sys.stdin.buffer.read(files.MAX_PIPED + 1)
    if len(data) > files.MAX_PIPED:
        raise InputError(f"standard input: gives more than {files.MAX_PIPED} bytes: write a file")
    return data


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes a file with `files.write_whole`; a failure (such as a full disk) leaves nothing behind."""
    files.write_whole(path, (data,), "could not be written")
