"""vm-tune: searches schedules for the kernels of a program on a device, and writes a file of them for vm-compile.

The kernels that take most of a call are searched first and longest. The choices go to standard output, or to the file
of `-o`; progress and the table at the end go to standard error. Layouts of operands are not searched.
"""

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack

from orchestrion.compiler.driver import SCHEDULED
from orchestrion.compiler.options import CHOICES
from orchestrion.compiler.pipeline import PHASES
from orchestrion.compiler.profiles import MACHINES
from orchestrion.compiler.targets.schedule_file import ScheduleFile

from . import cli, terminal
from .arguments import Parser, one_of, some_seconds, whole
from .compile import names_of

EXAMPLES = (
    ("vm-tune model.mlir --device=vulkan -o model.schedules", "Searches for a minute, and writes what it found."),
    (
        "vm-tune model.mlir --device=opencl --budget=600 --entries=5 --report=tuning.json -o model.schedules",
        "Searches the five kernels that take longest for ten minutes, and writes the table as JSON, too.",
    ),
)
#: seconds of a search without --budget
BUDGET = 60.0
#: phases whose text vm-tune takes
FROM = tuple(PHASES)[: list(PHASES).index(SCHEDULED) + 1]


def tune(options: argparse.Namespace) -> int:
    from .tuning.tuner import Tuner

    with ExitStack() as stack:
        line = None if options.quiet else stack.enter_context(terminal.line(sys.stderr))
        tuner = Tuner(options, (lambda text: None) if line is None else line.show)
        tuning, choices = tuner.run()
    if options.report is not None:
        cli.write_report(options.report, tuning.text(), tuning.data())
    if not options.quiet and options.report != "-":
        print(tuning.text(), end="", file=sys.stderr)
    text = ScheduleFile("", tuple(choices)).text()
    if options.output is None or options.output == "-":
        sys.stdout.write(text)
    else:
        cli.write_whole(options.output, text.encode())
    return cli.DONE


def parser() -> Parser:
    made = cli.parser("vm-tune", "Searches schedules for the kernels of a program on a device.", EXAMPLES)
    made.add_argument(
        "input", metavar="IN", help="StableHLO, or the text of a phase, as vm-compile takes it; - for stdin"
    )
    group = made.group("output")
    group.add_argument(
        "-o", dest="output", metavar="FILE", help="the schedules, for vm-compile --schedules (default: standard output)"
    )
    group.add_argument("--quiet", action="store_true", help="no progress, and no table at the end")
    group = made.group("the call")
    group.add_argument("--function", metavar="NAME", help="the function to call; needed if the program exports several")
    group.add_argument(
        "--input",
        metavar="[NAME=]ARRAY",
        action="append",
        dest="arrays",
        default=[],
        help="argument: 4xf32=1,2,3,4 or @x.npy, by its name x=@x.npy, several params=@p.npz; repeat "
        "(default: random numbers)",
    )
    _add_search(made)
    group = made.group("device and code")
    group.add_argument("--device", metavar="NAME", required=True, help="such as vulkan or opencl:1")
    group.add_argument(
        "--machine",
        metavar="NAME",
        type=_machine,
        help=f"kind of device that schedules are for: {', '.join(MACHINES)} (default: the device's own)",
    )
    group.add_argument(
        "--encodings",
        metavar="NAME",
        type=one_of(CHOICES["encodings"].values),
        default="default",
        help="as for vm-compile",
    )
    group.add_argument(
        "--compile-from",
        metavar="PHASE",
        type=one_of(FROM),
        default=FROM[0],
        help=f"IN is the text of this phase, one of {', '.join(FROM)}",
    )
    cli.add_report(made, "the table of times and schedules")
    return made


def _add_search(made: Parser) -> None:
    group = made.group("search")
    group.add_argument(
        "--budget",
        metavar="SECONDS",
        type=some_seconds,
        default=BUDGET,
        help=f"longest time of the search (default: {BUDGET:g})",
    )
    group.add_argument(
        "--trials", metavar="N", type=whole(), help="maximum number of schedules that are tried (default: no limit)"
    )
    group.add_argument(
        "--entries", metavar="N", type=whole(1), help="search the N kernels that take longest (default: all)"
    )
    group.add_argument("--seed", metavar="N", type=whole(), default=0, help="seed of the random numbers (default: 0)")


def _machine(text: str) -> str:
    (name,) = names_of("machine", list(MACHINES), text, "orchestrion.machines")[:1]
    if name != text:
        raise argparse.ArgumentTypeError(f"expected one machine, got {text!r}")
    return name


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("vm-tune", parser(), tune, argv)


if __name__ == "__main__":
    sys.exit(main())
