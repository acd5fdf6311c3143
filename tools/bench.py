"""vm-bench: how long a module takes to load, to be called first and to be called again.

Arguments default to zeros of the declared types. Times are wall-clock seconds in this process; `--json` gives the same
numbers as data. `--profile` adds what each dispatch took on the device, which makes the calls themselves slower.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import cli

if TYPE_CHECKING:
    from orchestrion.vm.profile import Profile
    from orchestrion.vm.program import Program

PERCENTILES = (50, 90, 99, 100)


def bench(options: argparse.Namespace) -> int:
    from orchestrion import vm

    from .run import arrays_of, choose

    start = time.perf_counter()
    program = vm.load(
        options.module,
        device=options.device,
        allow_native_code=options.allow_native_code,
        load_limits=cli.load_limits(options),
        profiling=options.profile,
        build_deadline=options.build_deadline,
        **cli.device_memory(options),
        **cli.parameters(options),
        **cli.policy(options),
        **cli.part(options),
        **cli.modules(options),
    )
    load = time.perf_counter() - start
    try:
        name = choose(program, options.function)
        arguments = arrays_of(program, name, options.input)[0] or zeros(program, name)
        found = measure(program, name, arguments, options) | {"load_seconds": load}
        report(found, program.profile() if options.profile else None, options.json)
    finally:
        program.close()
    return cli.DONE


def zeros(program: "Program", name: str) -> list[Any]:
    import numpy as np

    export = next((export for export in program.exports if export.name == name), None)
    if export is not None and export.is_sized:
        raise cli.InputError(f"{export} has sizes that come with a call: --input must say them")
    return [] if export is None else [np.zeros(value.shape, value.dtype.numpy) for value in export.arguments]


def measure(program: "Program", name: str, arguments: list[Any], options: argparse.Namespace) -> dict[str, Any]:
    """The first call by itself, then calls until the time is up, each timed."""
    function = program[name]
    placed = [program.put(array) for array in arguments] if options.device_resident else arguments
    start = time.perf_counter()
    function(*placed)
    first = time.perf_counter() - start
    seconds: list[float] = []
    end = time.perf_counter() + options.seconds
    while not seconds or time.perf_counter() < end:
        start = time.perf_counter()
        function(*placed)
        seconds.append(time.perf_counter() - start)
    seconds.sort()
    return {
        "function": name,
        "device": program.device.info.id,
        "device_name": program.device.info.name,
        "first_call_seconds": first,
        "calls": len(seconds),
        "calls_per_second": len(seconds) / sum(seconds),
        "percentile_seconds": {str(p): seconds[max(0, -(-len(seconds) * p // 100) - 1)] for p in PERCENTILES},
    }


def report(found: dict[str, Any], profile: "Profile | None", as_json: bool) -> None:
    from . import profiles

    if as_json:
        print(json.dumps(found | ({} if profile is None else {"profile": profiles.data(profile)}), indent=2))
        return
    print(f"{found['function']} on {found['device']} ({found['device_name']})")
    print(f"  load        {1e6 * found['load_seconds']:12.1f} us")
    print(f"  first call  {1e6 * found['first_call_seconds']:12.1f} us")
    for percentile, seconds in found["percentile_seconds"].items():
        label = "longest" if percentile == "100" else f"{percentile}th pct."
        print(f"  {label:<11} {1e6 * seconds:12.1f} us")
    print(f"  throughput  {found['calls_per_second']:12.1f} calls/s over {found['calls']} calls")
    if profile is not None:
        print(f"\nby launch, with profiling, which takes time of its own:\n\n{profiles.table(profile)}")


def main(argv: Sequence[str] | None = None) -> int:
    made = cli.parser("vm-bench", "Measures load time and calls of a module.")
    made.add_argument("module", metavar="MODULE.fb", help="what vm-compile wrote")
    made.add_argument("--device", metavar="NAME", help="such as vulkan or opencl:1 (default: reference)")
    made.add_argument("--function", metavar="NAME", help="needed when the module exports several")
    made.add_argument(
        "--input",
        metavar="ARRAY",
        action="append",
        default=[],
        help="argument: 4xf32=1,2,3,4 or @x.npy; repeat (default: zeros)",
    )
    made.add_argument("--device-resident", action="store_true", help="keep the arguments on the device")
    made.add_argument("--seconds", metavar="S", type=float, default=1.0, help="how long to call (default: 1)")
    made.add_argument("--profile", action="store_true", help="a row for each dispatch: where it comes from, how long")
    made.add_argument("--allow-native-code", action="store_true", help="trust OpenCL C that was compiled elsewhere")
    cli.add_device_memory(made)
    cli.add_load_limits(made)
    cli.add_parameters(made)
    cli.add_build_deadline(made)
    cli.add_policy(made)
    cli.add_part(made)
    cli.add_modules(made)
    made.add_argument("--json", action="store_true", help="print the numbers as JSON")
    return cli.run("vm-bench", made, bench, argv)


if __name__ == "__main__":
    sys.exit(main())
