"""vm-run: loads a module, calls one of its functions, and prints, saves or checks the results.

Arguments are written as IREE's tools take them: `--input=4xf32=1,2,3,4`, `--input=@x.npy`.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orchestrion.schema.printable import printable, printable_text

from . import cli
from .load_progress import loading
from .run_arguments import parser, refuse_together
from .tolerances import Tolerances, chosen

if TYPE_CHECKING:
    from orchestrion.tools.arrays import Array
    from orchestrion.vm.program import Program


def list_devices() -> int:
    """Prints every driver: its devices, or why it has none."""
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
    """Prints every library: its functions, or why it has none."""
    from orchestrion.hal.libraries.registry import libraries

    for library in libraries():
        if library.reason:
            print(f"{library.name}: not available: {library.reason}")
        for name, function in library.functions.items():
            print(f"{library.name}.{name}: {function.doc or 'no description'}")
    return cli.DONE


def list_functions(options: argparse.Namespace) -> int:
    """Prints the exports of the file. No device is opened, because its programs may be for other machines."""
    from orchestrion.schema.container import open_file
    from orchestrion.schema.decoder import decode
    from orchestrion.vm.exports import read_exports

    for export in read_exports(decode(open_file(options.module, **cli.part(options)))):
        print(printable(str(export)))
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
    if options.list_functions and options.policy is None and options.report is None:
        return list_functions(options)
    program = load(options)
    try:
        for name, reason in program.skipped:
            print(printable(f"vm-run: note: program {name} was passed over: {reason}"), file=sys.stderr)
        if options.report is not None:
            placement = program.placement()
            cli.write_report(options.report, placement.text(), placement.data())
            if not options.input and options.function is None and not options.list_functions:
                return cli.DONE
        if options.list_functions:
            for export in program.exports:
                print(printable(str(export)))
            return cli.DONE
        return call(program, options)
    finally:
        program.close()


def load(options: argparse.Namespace) -> "Program":
    """Loads the module. If that fails, `--report` shows what the device would have received."""
    from orchestrion import vm
    from orchestrion.hal.errors import HalError

    try:
        with loading(options.module) as progress:
            return vm.load(
                options.module,
                **cli.device(options),
                allow_native_code=options.allow_native_code,
                fuel=options.fuel,
                deadline=options.deadline,
                memory=options.memory,
                load_limits=cli.load_limits(options),
                profiling=options.trace is not None,
                build_deadline=options.build_deadline,
                progress=progress,
                **cli.device_memory(options),
                threads=options.threads,
                natives=options.native,
                **cli.parameters(options),
                **cli.policy(options),
                **cli.part(options),
                **cli.modules(options),
            )
    except (vm.VmError, HalError) as error:
        if options.report is not None:
            report_failure(options, str(error))
        if isinstance(error, vm.errors.NoProgram) and options.device is None:
            raise cli.InputError(f"{error}; --device=NAME names another (--list-devices)") from error
        raise


def report_failure(options: argparse.Namespace, failure: str) -> None:
    """Writes the placement of a module that was not loaded, if it can be read and the device can be opened."""
    from orchestrion.hal.policy import Policy
    from orchestrion.hal.registry import open_device
    from orchestrion.schema.container import open_file
    from orchestrion.schema.decoder import decode
    from orchestrion.vm.default_device import default_device
    from orchestrion.vm.placement import explain

    policy = Policy(options.allow_native_code)
    module = decode(open_file(options.module, **cli.part(options)))
    name = options.device or default_device(module, options.allow_native_code, None)[0]
    with open_device(name, policy=policy) as device:
        placement = explain(module, device.info, policy, failure)
    cli.write_report(options.report, placement.text(), placement.data())


def call(program: "Program", options: argparse.Namespace) -> int:
    from .arrays import format_array
    from .call_arrays import arguments_of, expected_of, result_titles, save_results

    cli.note_null("vm-run", program.device.info.id, "results mean nothing")
    name = choose(program, options.function)
    function = program[name].flat
    arguments = arguments_of(program, name, options.input)
    wanted = expected_of(program, name, options.expected_output)
    results = as_tuple(function(*arguments))
    for _ in range((options.repeat or 1) - 1):
        results = as_tuple(function(*arguments))
    saved = save_results(program, name, options.output, results)
    titles = result_titles(program, name, len(results))
    for i, result in enumerate(results):
        if i not in saved:
            print(f"{printable(titles[i])}: {format_array(result) if hasattr(result, 'shape') else result}")
    if options.print_statistics is not None:
        statistics(program, options.print_statistics)
    if options.trace is not None:
        cli.write_whole(options.trace, json.dumps(program.profile().trace()).encode())
    return compare(results, wanted, titles, options)


def compare_devices(options: argparse.Namespace) -> int:
    """Compares both devices, dispatch by dispatch."""
    if options.device is None:
        raise cli.UsageError("--compare needs --device, the device to be judged")
    from . import compare

    for device in (options.compare, options.device):
        cli.note_null("vm-run", device, "the comparison means nothing")
    report = compare.run(options.module, (options.compare, options.device), options.function, options.input, options)
    if options.compare_report is not None:
        cli.write_whole(options.compare_report, json.dumps(report.data, indent=2, allow_nan=False).encode())
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
    print(printable_text(report.text))
    return cli.DONE


def replay_dispatch(options: argparse.Namespace) -> int:
    """Runs one dispatch that `--compare` saved."""
    cli.note_null("vm-run", options.device or "reference", "the comparison means nothing")
    agrees, text = _replay(options.module, options.device or "reference", options.replay, options)
    if not agrees:
        raise cli.InputError(text)
    print(printable_text(text))
    return cli.DONE


def _replay(module: str, device: str, folder: str, options: argparse.Namespace) -> tuple[bool, str]:
    from pathlib import Path

    from .replay import replay

    def tolerances(recorded: Tolerances) -> Tolerances:
        return chosen(options, recorded)

    allowed, deadline = options.allow_native_code, options.build_deadline
    return replay(module, device, Path(folder), allowed, tolerances, deadline, **cli.policy(options))


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


def compare(
    results: Sequence["Array"], wanted: Mapping[int, "Array"], titles: Sequence[str], options: argparse.Namespace
) -> int:
    """Compares results with the expected ones, by position."""
    from .arrays import mismatch

    differences = []
    for place, want in sorted(wanted.items()):
        difference = mismatch(results[place], want, *chosen(options))
        if difference is not None:
            differences.append(f"{titles[place]} {difference}")
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


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("vm-run", parser(), run, argv)


if __name__ == "__main__":
    sys.exit(main())
