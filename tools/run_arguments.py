"""The command line of vm-run: its flags by group, its examples, and the flags that exclude each other."""

import argparse

from . import cli
from .arguments import Parser, seconds, tolerance, whole

EXAMPLES = (
    (
        "vm-run m.fb --input=4xf32=1,2,3,4 --input=@y.npy",
        "Calls the function on the device cpu, if it runs the module, and prints results.",
    ),
    (
        "vm-run m.fb --device=vulkan --input=@x.npy --output=@out.npy",
        "Runs on the first Vulkan device and saves the first result.",
    ),
    (
        "vm-run m.fb --input=params=@params.npz --input=x=@x.npy --output=@results.npz",
        "Takes the arrays of params from an archive, and saves all results in another.",
    ),
    (
        "vm-run m.fb --device=opencl --input=@x.npy --expected-output=@want.npy",
        "Checks a result. The exit status is 1 where it differs.",
    ),
    (
        "vm-run m.fb --device=vulkan --compare=reference --input=@x.npy",
        "Names the first dispatch that computes something else on vulkan than on reference.",
    ),
    ("vm-run m.fb --list-functions", "Lists the functions with the types of their arguments and results."),
    ("vm-run --list-devices", "Lists the devices of this machine."),
)

#: flags of calls; `--compare` and `--replay` run single dispatches, and refuse them
OF_CALLS = (
    "list-functions", "output", "expected-output", "repeat", "print-statistics", "trace", "fuel", "deadline", "memory",
    "device-memory", "report",
)  # fmt: skip
#: flags of loading; `--replay` does not load, it only creates an executable
OF_LOADING = ("load-fuel", "load-deadline", "load-memory", "parameters", "adapter", "extra-parameters")
#: flags of partial files; `--compare` and `--replay` take whole files
OF_PARTS = ("offset", "length", "module")
#: flag -> name of its option, if it differs
OPTIONS = {"module": "modules"}
#: flag -> the flags that it excludes
ALONE = {
    "compare": ("replay", "native", *OF_PARTS, *OF_CALLS),
    "replay": ("input", "function", "native", *OF_PARTS, *OF_LOADING, *OF_CALLS),
    "check": ("compare", "replay", "input", "function", *OF_PARTS, *OF_LOADING, *OF_CALLS),
}


def refuse_together(options: argparse.Namespace) -> None:
    """Raises UsageError if a flag would have no effect."""
    for flag, others in ALONE.items():
        if getattr(options, flag) in (None, False):
            continue
        for other in others:
            if getattr(options, OPTIONS.get(other, other.replace("-", "_"))) not in (None, [], False):
                raise cli.UsageError(f"--{flag} and --{other} cannot be combined")
    if options.compare_report is not None and options.compare is None:
        raise cli.UsageError("--compare-report needs --compare")


def parser() -> Parser:
    made = cli.parser("vm-run", "Runs a function of a module.", EXAMPLES)
    made.add_argument("module", metavar="MODULE.fb", nargs="?", help="what vm-compile wrote")
    _add_call(made)
    _add_device(made)
    _add_expectations(made)
    _add_comparison(made)
    cli.add_parameters(made)
    cli.add_modules(made)
    _add_limits(made)
    _add_reports(made)
    cli.add_policy(made)
    cli.add_part(made)
    _add_lists(made)
    return made


def _add_call(made: Parser) -> None:
    group = made.group("the call")
    group.add_argument("--function", metavar="NAME", help="the function to call; needed if the module exports several")
    group.add_argument(
        "--input",
        metavar="[NAME=]ARRAY",
        action="append",
        default=[],
        help="argument: 4xf32=1,2,3,4 or @x.npy, by its name x=@x.npy or params.w=0, several params=@p.npz; repeat",
    )
    group.add_argument(
        "--output",
        metavar="[NAME=]@FILE",
        action="append",
        default=[],
        help="save a result as .npy, or several as .npz, instead of printing them; repeat",
    )
    group.add_argument("--repeat", metavar="N", type=whole(1), help="call N times")


def _add_device(made: Parser) -> None:
    cli.add_device(made)
    made.group("device and code").add_argument(
        "--native",
        metavar="NAME",
        action="append",
        default=[],
        help="let the module call this native module of an installed package; repeat (--list-plugins names them)",
    )


def _add_expectations(made: Parser) -> None:
    group = made.group("expected results")
    group.add_argument(
        "--expected-output",
        metavar="[NAME=]ARRAY",
        action="append",
        default=[],
        help="fail unless a result is this; repeat",
    )
    group.add_argument(
        "--expected-rtol",
        metavar="R",
        type=tolerance,
        help="relative tolerance (default: 1e-5; with --replay that of the comparison)",
    )
    group.add_argument(
        "--expected-atol",
        metavar="A",
        type=tolerance,
        help="absolute tolerance, times the greatest value (default: 1e-6; with --replay that of the comparison)",
    )


def _add_comparison(made: Parser) -> None:
    group = made.group("comparing devices", "docs/comparing-devices.md shows how.")
    group.add_argument(
        "--compare",
        metavar="DEVICE",
        help="also run on this device, whose results are correct, and name the first difference",
    )
    group.add_argument(
        "--divergence", metavar="DIR", default="divergence", help="where --compare saves it (default: divergence)"
    )
    group.add_argument(
        "--compare-report",
        metavar="FILE.json",
        help="write the difference of each dispatch of --compare, for vm-dump --html --compare",
    )
    group.add_argument("--replay", metavar="DIR", help="run only the dispatch that --compare saved there")


def _add_limits(made: Parser) -> None:
    group = made.group("limits")
    group.add_argument(
        "--fuel", metavar="N", type=whole(), help="instruction limit of a call, counted at loops and calls"
    )
    group.add_argument("--deadline", metavar="SECONDS", type=seconds, help="time limit of a call")
    group.add_argument("--memory", metavar="BYTES", type=whole(), help="memory limit, host and device together")
    cli.add_device_memory(made)
    cli.add_load_limits(made)
    cli.add_build_deadline(made)


def _add_reports(made: Parser) -> None:
    group = made.group("reports")
    group.add_argument(
        "--print-statistics", metavar="FILE.json", nargs="?", const="-", help="what loading and the calls cost, as JSON"
    )
    group.add_argument(
        "--trace", metavar="FILE.json", help="when each dispatch ran, and its source location, for ui.perfetto.dev"
    )
    cli.add_report(
        made,
        "say which program and which code of the module were chosen for the device, and why; "
        "without --input and --function nothing is called",
    )


def _add_lists(made: Parser) -> None:
    group = made.group("instead of a call")
    group.add_argument(
        "--check",
        action="store_true",
        help="print for each device whether the module, bundle or manifest would run there, or why not",
    )
    group.add_argument("--list-functions", action="store_true", help="list the exports with their signatures")
    group.add_argument("--list-devices", action="store_true", help="list drivers and devices, and why one is missing")
    group.add_argument("--list-plugins", action="store_true", help="list what installed packages add, and their errors")
    group.add_argument(
        "--list-libraries", action="store_true", help="list the library functions that programs may call"
    )
