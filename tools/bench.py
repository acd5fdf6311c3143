"""vm-bench: measures how long a module takes to load, for the first call, and for later calls.

Arguments are zeros of the declared types by default. Times are those of this process; `--json` writes them in the form
of Google Benchmark. `--profile` adds the time of each dispatch on the device, which makes the calls slower.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from orchestrion.schema.printable import printable, printable_text

from . import cli
from .arguments import Parser, number, whole
from .load_progress import loading
from .measurements import Clock, Measurement, document, statistics, timed

if TYPE_CHECKING:
    from orchestrion.vm.program import Program

EXAMPLES = (
    ("vm-bench m.fb --device=vulkan", "Measures calls with arguments of zeros for a second."),
    ("vm-bench m.fb --warmup=10 --repeat=100 --json=times.json", "Measures 100 calls after 10 others."),
    ("vm-bench m.fb --device=opencl --input=@x.npy --profile", "Adds a row for each dispatch."),
)
#: default of --seconds, without --repeat
SECONDS = 1.0
#: statistic -> its name in the report
TITLES = {
    "mean": "mean",
    "median": "median",
    "stddev": "deviation",
    "min": "shortest",
    "p90": "90th pct.",
    "p99": "99th pct.",
    "max": "longest",
}


def bench(options: argparse.Namespace) -> int:
    from orchestrion import vm

    from .call_arrays import arguments_of
    from .run import choose

    if options.repeat is not None and options.seconds is not None:
        raise cli.UsageError("--repeat and --seconds cannot be combined")
    with loading(options.module) as progress, Clock() as load:
        program = vm.load(
            options.module,
            **cli.device(options),
            allow_native_code=options.allow_native_code,
            load_limits=cli.load_limits(options),
            profiling=options.profile,
            build_deadline=options.build_deadline,
            progress=progress,
            **cli.device_memory(options),
            threads=options.threads,
            **cli.parameters(options),
            **cli.policy(options),
            **cli.part(options),
            **cli.modules(options),
        )
    try:
        cli.note_null("vm-bench", program.device.info.id, "times are those of the host alone")
        name = choose(program, options.function)
        arguments = arguments_of(program, name, options.input) if options.input else zeros(program, name)
        calls = measure(program, name, arguments, options)
        report(program, [timed(f"{name}/load", [(load.real, load.cpu)]), *calls], options)
    finally:
        program.close()
    return cli.DONE


def zeros(program: "Program", name: str) -> list[Any]:
    import numpy as np

    export = next((export for export in program.exports if export.name == name), None)
    if export is not None and export.is_dynamic:
        raise cli.InputError(f"{export} has dynamic sizes: give its arrays with --input")
    return [] if export is None else [np.zeros(value.shape, value.dtype.numpy) for value in export.arguments]


def measure(program: "Program", name: str, arguments: list[Any], options: argparse.Namespace) -> list[Measurement]:
    """The first call, and those after the warm-up: `--repeat` of them, or as many as begin within `--seconds`."""
    function = program[name].flat
    placed = [program.put(array) for array in arguments] if options.device_resident else arguments
    clock = Clock()

    def call() -> tuple[float, float]:
        with clock:
            function(*placed)
        return clock.real, clock.cpu

    first = call()
    for _ in range(options.warmup):
        function(*placed)
    if options.repeat is not None:
        calls = [call() for _ in range(options.repeat)]
    else:
        end = time.perf_counter() + (SECONDS if options.seconds is None else options.seconds)
        calls = [call()]
        while time.perf_counter() < end:
            calls.append(call())
    return [timed(f"{name}/first_call", [first]), timed(f"{name}/call", calls)]


def report(program: "Program", measured: list[Measurement], options: argparse.Namespace) -> None:
    """Prints the text, and writes JSON if requested."""
    from . import profiles

    info = program.device.info
    profile = program.profile() if options.profile else None
    if options.json is not None:
        found = document({"device": info.id, "device_name": info.name}, measured, options.repeat is not None)
        found |= {} if profile is None else {"profile": profiles.data(profile)}
        cli.write_json(options.json, found)
    if options.json != "-":
        print(printable(f"{measured[-1].name.removesuffix('/call')} on {info.id} ({info.name})"))
        print(printable_text(table(measured, options.warmup)), end="")
        if profile is not None:
            print(f"\nby launch, with profiling, which takes time of its own:\n\n{profiles.table(profile)}")


def table(measured: list[Measurement], warmup: int) -> str:
    """Load time, first call, and the statistics of the others, in microseconds."""
    load, first, calls = measured
    found = statistics(calls.real)
    after = f" after {warmup} of warm-up" if warmup else ""
    rows = [("load", load.real[0]), ("first call", first.real[0])]
    rows += [(title, found[name]) for name, title in TITLES.items()]
    lines = [f"  {title:<11} {1e6 * value:12.1f} us" for title, value in rows]
    lines[2 + list(TITLES).index("stddev")] += f"  ({found['cv']:.1%} of the mean)"
    lines.append(f"  {'throughput':<11} {1 / found['mean']:12.1f} calls/s over {len(calls.real)} calls{after}")
    return "\n".join(lines) + "\n"


def parser() -> Parser:
    made = cli.parser("vm-bench", "Measures load time and calls of a module.", EXAMPLES)
    made.add_argument("module", metavar="MODULE.fb", help="what vm-compile wrote")
    group = made.group("the call")
    group.add_argument("--function", metavar="NAME", help="the function to call; needed if the module exports several")
    group.add_argument(
        "--input",
        metavar="[NAME=]ARRAY",
        action="append",
        default=[],
        help="argument: 4xf32=1,2,3,4 or @x.npy, by its name x=@x.npy, several params=@p.npz; repeat (default: zeros)",
    )
    group.add_argument("--device-resident", action="store_true", help="keep the arguments on the device")
    cli.add_device(made)
    group = made.group("measurement")
    group.add_argument(
        "--warmup",
        metavar="N",
        type=whole(),
        default=0,
        help="calls after the first that are not measured (default: 0)",
    )
    group.add_argument("--repeat", metavar="N", type=whole(1), help="measure N calls")
    group.add_argument(
        "--seconds",
        metavar="S",
        type=number("seconds", sys.float_info.max),
        help=f"measure calls for S seconds (default: {SECONDS:g}, without --repeat)",
    )
    group.add_argument("--profile", action="store_true", help="a row for each dispatch: source location and time")
    group.add_argument(
        "--json",
        metavar="FILE",
        nargs="?",
        const="-",
        help="write the times as JSON of Google Benchmark; without FILE to standard output, instead of the text",
    )
    cli.add_parameters(made)
    cli.add_modules(made)
    cli.add_device_memory(made)
    cli.add_load_limits(made)
    cli.add_build_deadline(made)
    cli.add_policy(made)
    cli.add_part(made)
    return made


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("vm-bench", parser(), bench, argv)


if __name__ == "__main__":
    sys.exit(main())
