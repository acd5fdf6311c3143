"""vm-batch: runs a function of a module over many inputs, in processes of this machine or on a Ray cluster.

Results are written to a folder, a file per input. A killed run continues where it was when it is started again. Exit
status: 0 if all inputs have results, 1 if some failed (`failed.json` lists them) or the run could not continue.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from . import cli
from .arguments import Parser, whole

if TYPE_CHECKING:
    from orchestrion.schema.dtypes import DType
    from orchestrion.vm.batch_axis import BatchAxis, Names
    from orchestrion.vm.exports import Export

    from .batching.loop import Totals
    from .batching.outputs import Identity
    from .batching.pool import Workers
    from .batching.sources import FileRow, Source
    from .batching.worker import Ready, Setup, Task

EXAMPLES = (
    ("vm-batch m.fb --input=photos --output=results", "Calls the function for each file of a folder."),
    ("vm-batch m.fb --input=x.npz --output=results --device=vulkan --workers=4", "Four processes, on this device."),
    ("vm-batch m.fb --input=y.parquet --output=results --ray=auto", "On the Ray cluster that this machine is part of."),
)
#: inputs of a task, unless the module decides: enough to hide the cost of a message, few enough to repeat
TASK_INPUTS = 64
#: seconds between two updates of the progress line
_PROGRESS_SECONDS = 0.2


class Function(NamedTuple):
    """The function to call, as described by the file; needs no device."""

    digest: bytes
    export: "Export"
    names: "Names"

    @property
    def types(self) -> "dict[str, DType]":
        """Element types by argument."""
        return {name: value.dtype for name, value in zip(self.names.arguments, self.export.arguments, strict=True)}


class Plan(NamedTuple):
    """The work of a run, and its setup."""

    setup: "Setup"
    identity: "Identity"
    source: "Source"
    listing: "list[FileRow]"
    axis: "BatchAxis"


def batch(options: argparse.Namespace) -> int:
    from orchestrion.hal.errors import HalError

    from .batching.outputs import Outputs

    started = time.monotonic()
    plan = make_plan(options)
    outputs = Outputs(Path(plan.setup.output))
    before = outputs.done(plan.identity, plan.listing)
    missing = [index for index in range(plan.identity.total) if index not in before]
    if not missing:
        print(f"{plan.identity.total} inputs: all have results in {options.output}")
        return cli.DONE
    tasks = divide(missing, task_size(plan.axis, options.batch_size))
    outputs.create()
    if options.device is not None:
        with suppress(HalError):  # workers on other machines may have a driver that is missing here
            cli.note_null("vm-batch", options.device, "results mean nothing")
    workers = start_workers(options, plan.setup)
    progress = Progress(len(missing))
    try:
        totals = run_tasks(workers, options, plan, tasks, progress)
    finally:
        progress.clear()
        workers.close()
    outputs.end(totals.failures)
    print(summary(plan, len(before), totals, time.monotonic() - started))
    if totals.failures:
        first = min(totals.failures)
        name = f"input {first.input}" + (f" ({first.file})" if first.file else "")
        raise cli.InputError(
            f"{len(totals.failures)} of {plan.identity.total} inputs failed, see {outputs.folder / 'failed.json'}; "
            f"{name}: {first.reason}"
        )
    return cli.DONE


def make_plan(options: argparse.Namespace) -> Plan:
    """Plans the run. Raises every error that can be found without a worker."""
    from orchestrion.vm.batch_axis import find_axis
    from orchestrion.vm.errors import CallerError

    from .batching.outputs import Identity
    from .batching.sources import open_source
    from .batching.worker import Setup, read_fixed

    function = read_function(options.module, options.function)
    fixed_files = tuple(os.path.abspath(path) for path in options.fixed)
    fixed = read_fixed(fixed_files, function.types)
    rows = zip(function.names.arguments, function.export.arguments, strict=True)
    wanted = {name: (value.dtype, value.shape) for name, value in rows if name not in fixed}
    if not wanted:
        raise CallerError("all arguments are fixed: no argument is left that inputs are for")
    inputs = os.path.abspath(options.input)
    source = open_source(Path(inputs), wanted)
    if not source.count:
        raise cli.InputError(f"{options.input}: there are no inputs")
    axis = find_axis(function.export, function.names, fixed, source.ranks())
    check_batch_size(axis, options.batch_size)
    setup = Setup(
        module=os.path.abspath(options.module),
        module_digest=function.digest.hex(),
        device=options.device,
        function=function.export.name,
        batched=axis.batched,
        fixed=fixed_files,
        fixed_types={name: dtype for name, dtype in function.types.items() if name in fixed},
        wanted=wanted,
        inputs=inputs,
        inputs_digest=source.digest(),
        output=os.path.abspath(options.output),
        options=load_options(options),
    )
    identity = Identity(setup.module_digest, setup.function, source.identity(), source.count, digest_of_values(setup))
    return Plan(setup, identity, source, source.listing(), axis)


def read_function(module: str, name: str | None) -> Function:
    """The function of that name, or the only one. Raises the errors of `vm.load`."""
    from orchestrion.schema.container import open_file
    from orchestrion.schema.decoder import decode
    from orchestrion.vm.batch_axis import checked_names
    from orchestrion.vm.exports import read_exports
    from orchestrion.vm.predictor import choose_export

    opened = decode(open_file(module))
    export = choose_export(read_exports(opened), name)
    return Function(opened.container.digest, export, checked_names(export))


def load_options(options: argparse.Namespace) -> dict[str, Any]:
    """The options of `vm.load` for workers, with absolute paths."""
    found = {
        "allow_native_code": options.allow_native_code,
        "build_deadline": options.build_deadline,
        **cli.parameters(options),
        **cli.policy(options),
    }
    for name in ("policy", "signature"):
        if found.get(name) is not None:
            found[name] = os.path.abspath(found[name])
    for name in ("parameters", "adapters"):
        if found[name] is not None:
            found[name] = [os.path.abspath(path) for path in found[name]]
    return found


def digest_of_values(setup: "Setup") -> str:
    """SHA-256 of everything that results depend on, except module and inputs: fixed arguments, parameters, adapters."""
    from .batching.sources import digest_of, list_files

    groups = (setup.fixed, setup.options["parameters"] or (), setup.options["adapters"])
    return digest_of([list_files(files_at(map(Path, paths))) for paths in groups])


def files_at(paths: Iterable[Path]) -> list[Path]:
    """The files, and all files of folders, in order."""
    return [file for path in paths for file in (sorted(path.iterdir()) if path.is_dir() else [path])]


def check_batch_size(axis: "BatchAxis", size: int | None) -> None:
    """Raises InputError if the module does not allow the size of `--batch-size`."""
    if size is None:
        return
    if not axis.batched:
        raise cli.InputError(f"--batch-size={size}: the function takes one input a call")
    if size < axis.least or (axis.most is not None and size > axis.most):
        most = "any number" if axis.most is None else axis.most
        raise cli.InputError(f"--batch-size={size}: the function takes {axis.least} to {most} inputs a call")


def task_size(axis: "BatchAxis", size: int | None) -> int:
    """The number of inputs of a task: whole batches, so that padding is rare."""
    if not axis.batched:
        return TASK_INPUTS
    if axis.size is None:
        return size or min(max(axis.least, TASK_INPUTS), axis.most or TASK_INPUTS)
    return axis.size * max(1, TASK_INPUTS // axis.size)


def divide(indices: Sequence[int], size: int) -> "list[Task]":
    from .batching.worker import Task

    return [Task(tuple(indices[start : start + size])) for start in range(0, len(indices), size)]


def start_workers(options: argparse.Namespace, setup: "Setup") -> "Workers":
    if options.ray is not None:
        from .batching.ray_workers import RayWorkers

        return RayWorkers(setup, options.ray)
    from .batching.local import LocalWorkers

    return LocalWorkers(setup)


def run_tasks(
    workers: "Workers", options: argparse.Namespace, plan: Plan, tasks: "list[Task]", progress: "Progress"
) -> "Totals":
    from .batching.loop import Loop
    from .batching.outputs import Outputs

    outputs = Outputs(Path(plan.setup.output))
    written = False

    def started(ready: "Ready") -> None:
        nonlocal written
        if not written:  # only now, so that a module that cannot be loaded creates no run
            outputs.begin(plan.identity, plan.listing, ready.device)
        written = True

    wanted = options.workers or workers.default
    return Loop(workers, wanted, tasks, plan.source.label, started, progress.show).run()


def summary(plan: Plan, before: int, totals: "Totals", seconds: float) -> str:
    parts = [f"{totals.done} done", f"{before} were done before", f"{len(totals.failures)} failed"]
    if totals.replaced:
        parts.append(f"{totals.replaced} worker{'s' * (totals.replaced != 1)} replaced")
    where = ", ".join(sorted(totals.devices))
    return f"{plan.identity.total} inputs: {', '.join(parts)}; {seconds:.1f} s on {where}"


class Progress:
    """A progress line on a terminal's standard error, removed at the end."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._shown = 0.0
        self._is_terminal = sys.stderr.isatty()

    def show(self, totals: "Totals") -> None:
        now = time.monotonic()
        if self._is_terminal and now - self._shown >= _PROGRESS_SECONDS:
            self._shown = now
            done = totals.done + len(totals.failures)
            print(f"\r{done} of {self._count} inputs", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def parser() -> Parser:
    made = cli.parser("vm-batch", "Runs a function of a module over many inputs.", EXAMPLES)
    made.add_argument("module", metavar="MODULE.fb", help="what vm-compile wrote")
    group = made.group("inputs and results")
    group.add_argument(
        "--input",
        metavar="PATH",
        required=True,
        help="folder with an .npy or .npz file per input, or x.npz or y.parquet with an array or column per argument "
        "and a row per input",
    )
    group.add_argument("--output", metavar="DIR", required=True, help="where results go: 000042.npz for input 42")
    group = made.group("the call")
    group.add_argument("--function", metavar="NAME", help="the function to call; needed if the module exports several")
    group.add_argument(
        "--fixed",
        metavar="FILE.npz",
        action="append",
        default=[],
        help="arguments that are the same for all inputs, an array each; repeat",
    )
    group.add_argument(
        "--batch-size",
        metavar="N",
        type=whole(1),
        help=f"inputs of a call, if the module leaves that open (default: {TASK_INPUTS})",
    )
    group = made.group("workers")
    group.add_argument(
        "--workers", metavar="N", type=whole(1), help="how many (default: 2; with --ray one per machine)"
    )
    group.add_argument(
        "--ray",
        metavar="ADDRESS",
        help="run on this Ray cluster: auto, HOST:PORT or ray://HOST:PORT; local starts one on this machine",
    )
    group = made.group("device and code")
    group.add_argument(
        "--device",
        metavar="NAME",
        help="such as vulkan or opencl:1 (default: the first one that runs the module and is not reference)",
    )
    group.add_argument(
        "--allow-native-code", action="store_true", help="trust machine code and OpenCL C from elsewhere"
    )
    cli.add_parameters(made)
    cli.add_build_deadline(made)
    cli.add_policy(made)
    return made


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("vm-batch", parser(), batch, argv)


if __name__ == "__main__":
    sys.exit(main())
