"""vm-run: load a module, call one of its functions, print, save or check the results.

Arguments are written as IREE's tools take them: `--input=4xf32=1,2,3,4`, `--input=@x.npy`.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import cli

#: what only a call has; `--compare` and `--replay` step through dispatches, and refuse it
OF_CALLS = (
    "list_functions", "output", "expected_output", "repeat", "print_statistics", "trace", "fuel", "deadline", "memory",
    "device-memory", "report",
)  # fmt: skip
#: flags of loading, which `--replay` does not do: it only creates an executable
OF_LOADING = ("load-fuel", "load-deadline", "load-memory", "parameters", "adapter", "extra-parameters")
#: `--compare` and `--replay` take whole files
OF_PARTS = ("offset", "length", "modules")
#: name of an option -> its flag, where that is another
SPELLED = {"modules": "module"}
#: flag -> the flags that mean nothing beside it
ALONE = {
    "compare": ("replay", "native", *OF_PARTS, *OF_CALLS),
    "replay": ("input", "function", "native", *OF_PARTS, *OF_LOADING, *OF_CALLS),
    "check": ("compare", "replay", "input", "function", *OF_PARTS, *OF_LOADING, *OF_CALLS),
}

if TYPE_CHECKING:
    from orchestrion.tools.arrays import Array
    from orchestrion.vm.program import Program


def list_devices() -> int:
    """Every driver: its devices, or why there are none."""
    from orchestrion.hal.registry import list_devices as found

    for driver in found():
        if not driver.devices:
            print(f"{driver.name}: not available: {driver.reason or 'it has no devices'}")
        for info in driver.devices:
            print(f"{info.id}: {info.name} ({info.vendor}, {info.version})")
            print(f"  runs {', '.join(info.formats)}; features {', '.join(sorted(info.features)) or 'none'}")
            for note in info.notes:
                print(f"  {note}")
            if driver.package:
                print(f"  of package {driver.package}")
    return cli.DONE


def list_libraries() -> int:
    """Every library: its functions, or why there are none."""
    from orchestrion.hal.libraries.registry import libraries

    for library in libraries():
        if library.reason:
            print(f"{library.name}: not available: {library.reason}")
        for name, function in library.functions.items():
            print(f"{library.name}.{name}: {function.doc or 'no description'}")
    return cli.DONE


def run(options: argparse.Namespace) -> int:
    if options.list_devices:
        return list_devices()
    if options.list_libraries:
        return list_libraries()
    if options.list_plugins:
        from .plugins import list_plugins

        return list_plugins()
    if options.module is None:
        raise cli.UsageError("MODULE.fb is missing")
    refuse_together(options)
    if options.check:
        from . import check

        return check.run(options)
    if options.compare is not None:
        return compare_devices(options)
    if options.replay is not None:
        return replay_dispatch(options)
    program = load(options)
    try:
        for name, reason in program.skipped:
            print(f"vm-run: note: program {name} was passed over: {reason}", file=sys.stderr)
        if options.report is not None:
            placement = program.placement()
            cli.write_report(options.report, placement.text(), placement.data())
            if not options.input and options.function is None and not options.list_functions:
                return cli.DONE
        if options.list_functions:
            for export in program.exports:
                print(export)
            return cli.DONE
        return call(program, options)
    finally:
        program.close()


def load(options: argparse.Namespace) -> "Program":
    """Load the module. Where that fails, `--report` says what the device would have got."""
    from orchestrion import vm
    from orchestrion.hal.errors import HalError

    try:
        return vm.load(
            options.module,
            device=options.device,
            allow_native_code=options.allow_native_code,
            fuel=options.fuel,
            deadline=options.deadline,
            memory=options.memory,
            load_limits=cli.load_limits(options),
            profiling=options.trace is not None,
            build_deadline=options.build_deadline,
            **cli.device_memory(options),
            natives=options.native,
            **cli.parameters(options),
            **cli.policy(options),
            **cli.part(options),
            **cli.modules(options),
        )
    except (vm.VmError, HalError) as error:
        if options.report is not None:
            report_failure(options, str(error))
        raise


def report_failure(options: argparse.Namespace, failure: str) -> None:
    """Write the placement of a module that was not loaded, if it can be read and the device can be opened."""
    from orchestrion.hal.policy import Policy
    from orchestrion.hal.registry import open_device
    from orchestrion.schema.container import open_file
    from orchestrion.schema.decoder import decode
    from orchestrion.vm.placement import explain

    policy = Policy(options.allow_native_code)
    module = decode(open_file(options.module, **cli.part(options)))
    with open_device(options.device or "reference", policy=policy) as device:
        placement = explain(module, device.info, policy, failure)
    cli.write_report(options.report, placement.text(), placement.data())


def refuse_together(options: argparse.Namespace) -> None:
    """Raises UsageError where a flag would be passed over."""
    for flag, others in ALONE.items():
        if getattr(options, flag) in (None, False):
            continue
        for other in others:
            if getattr(options, other.replace("-", "_")) not in (None, [], False):
                raise cli.UsageError(f"--{flag} and --{SPELLED.get(other, other)} do not go together")


def call(program: "Program", options: argparse.Namespace) -> int:
    from .arrays import format_array, save_array

    name = choose(program, options.function)
    function = program[name]
    arguments, wanted = arrays_of(program, name, options.input, options.expected_output)
    results = as_tuple(function(*arguments))
    for _ in range((options.repeat or 1) - 1):
        results = as_tuple(function(*arguments))
    for flag, texts in (("--output", options.output), ("--expected_output", options.expected_output)):
        if len(texts) > len(results):
            raise cli.InputError(f"{flag} is there {len(texts)} times, the function has {len(results)} results")
    for i, result in enumerate(results):
        if i < len(options.output):
            save_array(options.output[i].removeprefix("@"), result)
        else:
            print(f"result[{i}]: {format_array(result) if hasattr(result, 'shape') else result}")
    if options.print_statistics is not None:
        statistics(program, options.print_statistics)
    if options.trace is not None:
        cli.write_whole(options.trace, json.dumps(program.profile().trace()).encode())
    return compare(results, wanted, options)


def compare_devices(options: argparse.Namespace) -> int:
    """Both devices, dispatch by dispatch."""
    if options.device is None:
        raise cli.UsageError("--compare needs --device, the device to be judged")
    from . import compare
    from .arrays import parse_array

    arguments = [parse_array(text) for text in options.input]
    report = compare.run(options.module, (options.compare, options.device), options.function, arguments, options)
    if report.difference is not None:
        agrees, _ = _replay(options.module, options.device, options.divergence, options)
        verdict = "agrees: it makes more of differences from before" if agrees else "differs too: it is what is wrong"
        again = f"vm-run {options.module} --device={options.device} --replay={options.divergence}"
        raise cli.InputError(
            f"{report.text}\n  given the inputs of {options.compare} it {verdict}\n"
            f"  saved in {options.divergence}, runs again by: {again}"
        )
    if not report.agrees:
        raise cli.InputError(report.text)
    print(report.text)
    return cli.DONE


def replay_dispatch(options: argparse.Namespace) -> int:
    """One dispatch that `--compare` saved."""
    agrees, text = _replay(options.module, options.device or "reference", options.replay, options)
    if not agrees:
        raise cli.InputError(text)
    print(text)
    return cli.DONE


def _replay(module: str, device: str, folder: str, options: argparse.Namespace) -> tuple[bool, str]:
    from pathlib import Path

    from .replay import replay

    tolerances = options.expected_rtol, options.expected_atol
    allowed, deadline = options.allow_native_code, options.build_deadline
    return replay(module, device, Path(folder), allowed, *tolerances, deadline, **cli.policy(options))


def arrays_of(
    program: "Program", name: str, inputs: Sequence[str], outputs: Sequence[str] = ()
) -> tuple[list["Array"], list["Array"]]:
    """The arrays that texts stand for: arguments of a function, and what it is to give."""
    from .arrays import parse_array

    export = next((export for export in program.exports if export.name == name), None)
    pairs = []
    for texts, values in ((inputs, export.arguments if export else ()), (outputs, export.results if export else ())):
        types = [value.dtype for value in values] + [None] * len(texts)
        pairs.append([parse_array(text, dtype) for text, dtype in zip(texts, types, strict=False)])
    return pairs[0], pairs[1]


def choose(program: "Program", name: str | None) -> str:
    names = [export.name for export in program.exports]
    if name is not None:
        return name
    if len(names) != 1:
        raise cli.InputError(f"--function is missing: the module exports {', '.join(names) or 'nothing'}")
    return names[0]


def as_tuple(results: Any) -> tuple[Any, ...]:
    if results is None:
        return ()
    return results if isinstance(results, tuple) else (results,)


def compare(results: Sequence["Array"], wanted: Sequence["Array"], options: argparse.Namespace) -> int:
    from .arrays import mismatch

    differences = []
    for i, (got, want) in enumerate(zip(results, wanted, strict=False)):
        difference = mismatch(got, want, options.expected_rtol, options.expected_atol)
        if difference is not None:
            differences.append(f"result[{i}] {difference}")
    if differences:
        raise cli.InputError("not as expected: " + "; ".join(differences))
    if wanted:
        print(f"{len(wanted)} of {len(results)} results are as expected")
    return cli.DONE


def statistics(program: "Program", path: str) -> None:
    text = json.dumps(program.statistics(), indent=2)
    if path == "-":
        print(text)
    else:
        cli.write_whole(path, (text + "\n").encode())


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not at least 1")
    return number


def main(argv: Sequence[str] | None = None) -> int:
    made = cli.parser("vm-run", "Runs a function of a module.")
    made.add_argument("module", metavar="MODULE.fb", nargs="?", help="what vm-compile wrote")
    made.add_argument(
        "--check",
        action="store_true",
        help="do not run: say for each device whether the module, bundle or manifest would, or why not",
    )
    made.add_argument("--device", metavar="NAME", help="such as vulkan or opencl:1 (default: reference)")
    made.add_argument("--function", metavar="NAME", help="needed when the module exports several")
    made.add_argument(
        "--input", metavar="ARRAY", action="append", default=[], help="argument: 4xf32=1,2,3,4 or @x.npy; repeat"
    )
    made.add_argument(
        "--output",
        metavar="@FILE.npy",
        action="append",
        default=[],
        help="save a result instead of printing it; repeat",
    )
    made.add_argument(
        "--expected_output", metavar="ARRAY", action="append", default=[], help="fail unless a result is this; repeat"
    )
    made.add_argument(
        "--expected_rtol", metavar="R", type=float, default=1e-5, help="tolerance, times each value (default: 1e-5)"
    )
    made.add_argument(
        "--expected_atol", metavar="A", type=float, default=1e-6, help="plus this times the greatest (default: 1e-6)"
    )
    made.add_argument("--repeat", metavar="N", type=positive, help="call N times")
    made.add_argument(
        "--print_statistics", metavar="FILE.json", nargs="?", const="-", help="what loading and the calls cost, as JSON"
    )
    made.add_argument(
        "--trace", metavar="FILE.json", help="when each dispatch ran, and where it comes from: for ui.perfetto.dev"
    )
    made.add_argument(
        "--compare",
        metavar="DEVICE",
        help="run on this device too, which is right, and name the first difference",
    )
    made.add_argument(
        "--divergence",
        metavar="DIR",
        default="divergence",
        help="where --compare saves it (default: divergence)",
    )
    made.add_argument("--replay", metavar="DIR", help="run only the dispatch that --compare saved there")
    made.add_argument("--allow-native-code", action="store_true", help="trust OpenCL C that was compiled elsewhere")
    made.add_argument(
        "--native",
        metavar="NAME",
        action="append",
        default=[],
        help="let the module call this native module of an installed package; repeat (--list_plugins names them)",
    )
    made.add_argument("--fuel", metavar="N", type=int, help="most instructions of a call, counted at loops and calls")
    made.add_argument("--deadline", metavar="SECONDS", type=float, help="longest time of a call")
    cli.add_build_deadline(made)
    cli.add_policy(made)
    cli.add_part(made)
    cli.add_modules(made)
    made.add_argument("--memory", metavar="BYTES", type=int, help="most memory held, host and device together")
    cli.add_device_memory(made)
    cli.add_load_limits(made)
    cli.add_report(
        made,
        "say which program and which code of the module were chosen for the device, and why; "
        "without --input and --function nothing is called",
    )
    cli.add_parameters(made)
    made.add_argument("--list_devices", action="store_true", help="list drivers and devices, and why one is missing")
    made.add_argument("--list_plugins", action="store_true", help="list what installed packages add, and what is wrong")
    made.add_argument("--list_libraries", action="store_true", help="list the library functions that programs may call")
    made.add_argument("--list_functions", action="store_true", help="list the exports with their signatures")
    return cli.run("vm-run", made, run, argv)


if __name__ == "__main__":
    sys.exit(main())
