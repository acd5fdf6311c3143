"""The work of a worker, in any kind of process: it loads the module, reads inputs, calls, and writes results.

An input that cannot be read, or whose call fails, is a `Failure`. If the call of a batch fails, the batch is halved
until the failing inputs are found. Other problems are not the input's fault:

- `WorkerRefused`: the module, the inputs or the folder do not match the run. Ends the run.
- `WorkerLost`: the device was lost. The worker ends and is replaced, and its inputs are repeated.

Writing results twice writes the same file, so an input may be repeated.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from orchestrion.schema.dtypes import DType
from orchestrion.tools import cli
from orchestrion.tools.arrays import Array
from orchestrion.vm.errors import DeviceLost
from orchestrion.vm.predictor import Predictor

from .outputs import Failure, Outputs
from .sources import Wanted, as_element_type, open_source, read_npz


class WorkerRefused(Exception):
    """The worker cannot take part, so the run cannot continue; the message states why."""


class WorkerLost(Exception):
    """This worker cannot continue, but another one may."""


class Setup(NamedTuple):
    """Everything that a worker needs to know; it can be pickled. Paths are absolute, and the same on all machines."""

    module: str
    module_digest: str
    device: str | None
    function: str
    batched: bool
    fixed: tuple[str, ...]  #: `.npz` files with the values of fixed arguments
    fixed_types: Mapping[str, DType]  #: element types of the arguments that may be fixed
    wanted: Wanted
    inputs: str
    inputs_digest: str
    output: str
    options: Mapping[str, Any]  #: options of `vm.load`


class Ready(NamedTuple):
    """A worker has loaded the module."""

    pid: int
    device: str  #: id and name of the device


class Task(NamedTuple):
    """Inputs for one worker. `deaths`: the number of workers that ended during it."""

    inputs: tuple[int, ...]
    deaths: int = 0


class Outcome(NamedTuple):
    """The result of a task."""

    done: int
    failures: tuple[Failure, ...]


class Worker:
    """A loaded module with a source and a folder of results."""

    def __init__(self, setup: Setup) -> None:
        """Raises WorkerRefused if the module cannot be loaded, or something differs from where the run was started."""
        try:
            fixed = read_fixed(setup.fixed, setup.fixed_types)
            self._predictor = Predictor(
                setup.module,
                setup.device,
                function=setup.function,
                fixed=fixed,
                batched=setup.batched,
                **setup.options,
            )
            self._source = open_source(Path(setup.inputs), setup.wanted)
            inputs_digest = self._source.digest()
        except Exception as error:
            if not cli.is_expected(error):
                raise
            raise WorkerRefused(cli.text_of(error)) from error
        self._outputs = Outputs(Path(setup.output))
        program = self._predictor.program
        _compare("module", setup.module, setup.module_digest, program.module.container.digest.hex())
        _compare("inputs", setup.inputs, setup.inputs_digest, inputs_digest)
        if not self._outputs.folder.is_dir():
            raise WorkerRefused(f"{setup.output}: is no folder here: the workers must see the same files")
        info = program.device.info
        self.ready = Ready(os.getpid(), f"{info.id} ({info.name})")

    def run(self, task: Task) -> Outcome:
        """Runs the inputs of a task. Raises WorkerRefused if results cannot be written, WorkerLost if the device is
        lost.
        """
        failures: list[Failure] = []
        rows: dict[int, dict[str, Array]] = {}
        for index in task.inputs:
            try:
                rows[index] = self._source.read(index)
            except Exception as error:
                failures.append(self._failure(index, error))
        self._attempt(list(rows), rows, failures)
        return Outcome(len(task.inputs) - len(failures), tuple(failures))

    def _attempt(self, indices: Sequence[int], rows: Mapping[int, dict[str, Array]], failures: list[Failure]) -> None:
        """Calls for these inputs; if that fails, for each half of them."""
        if not indices:
            return
        try:
            columns = {name: [rows[index][name] for index in indices] for name in rows[indices[0]]}
            results = self._predictor(columns)
        except Exception as error:
            if isinstance(error, DeviceLost):
                raise WorkerLost(str(error)) from error
            if len(indices) == 1:
                failures.append(self._failure(indices[0], error))
                return
            if not cli.is_expected(error):
                raise
            half = len(indices) // 2
            self._attempt(indices[:half], rows, failures)
            self._attempt(indices[half:], rows, failures)
            return
        for place, index in enumerate(indices):
            try:
                self._outputs.write(index, {name: column[place] for name, column in results.items()})
            except OSError as error:
                raise WorkerRefused(cli.text_of(error)) from error

    def _failure(self, index: int, error: Exception) -> Failure:
        """The failure of an input. Raises the error again if it is an internal error."""
        if not cli.is_expected(error):
            raise error
        return Failure(index, self._source.label(index), cli.text_of(error))


def _compare(what: str, path: str, there: str, here: str) -> None:
    if there != here:
        raise WorkerRefused(
            f"{path}: the {what} have digest {here:.16} here, and {there:.16} where the run was started"
        )


def read_fixed(paths: Sequence[str], types: Mapping[str, DType]) -> dict[str, Array]:
    """The arrays of `.npz` files by argument. `types`: the arguments that may be fixed.

    Raises InputError if an array occurs twice or is no argument, or a file is malformed.
    """
    found: dict[str, Array] = {}
    for path in paths:
        for name, array in read_npz(Path(path)).items():
            if name in found:
                raise cli.InputError(f"{path}: argument {name!r} is fixed twice")
            if name not in types:
                raise cli.InputError(f"{path}: {name!r} is no argument: there are {', '.join(types)}")
            found[name] = as_element_type(array, types[name])
    return found
