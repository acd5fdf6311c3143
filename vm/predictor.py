"""Calls a function of a module for any number of rows, in batches. For `ray.data.Dataset.map_batches` and `vm-batch`.

    dataset.map_batches(vm.Predictor, fn_constructor_args=("model.fb",), concurrency=2, batch_format="numpy")

Each worker constructs one Predictor, which maps the module once. A call takes a dict of arrays by argument name, whose
leading dimension is the number of rows. It returns such a dict by result name. It forms batches of the sizes that the
module takes (`batch_axis.py`). The last batch may be padded with copies of its last row, whose results are removed.
Rows of different shapes are put into different batches.

A Predictor uses the `reference` device only if the caller names it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from orchestrion.hal.backend import DeviceInfo
from orchestrion.hal.errors import HalError
from orchestrion.hal.registry import list_devices

from .array import DeviceArray
from .batch_axis import BatchAxis, checked_names, find_axis
from .errors import CallerValueError, DeviceError, LoadError, ParameterError
from .exports import Export
from .program import Program, load
from .program_context import ModuleSource
from .tensors import as_array

Array = npt.NDArray[Any]
#: the rows of one argument: an array with a leading dimension, or an array per row
Rows = Array | Sequence[Array]

#: drivers that are used only if the caller names them: one is slow, the other computes nothing
NAMED_ONLY = ("reference", "null")


class Predictor:
    """`predictor(columns) -> columns`. Its arguments can be pickled; the object cannot."""

    def __init__(
        self,
        module: str | os.PathLike[str] | bytes,
        device: str | None = None,
        *,
        function: str | None = None,
        fixed: Mapping[str, Any] | None = None,
        keep: Sequence[str] = (),
        batched: bool | None = None,
        policy: str | os.PathLike[str] | None = None,
        allow_native_code: bool = False,
        **options: Any,
    ) -> None:
        """Load a module, from a path or from bytes, for a device.

        `device`: None is the first device, GPUs first, that runs the module and is not `reference`.
        `function`: the name of the export; needed if the module exports several.
        `fixed`: values of arguments that are the same for all rows, by argument name. They are copied once.
        `keep`: names of columns that are not arguments and are returned unchanged, such as an id. Other columns raise.
        `batched`: whether the leading dimension of the arguments is the batch. None: the first call decides, by the
        rank of its rows.
        `policy`, `allow_native_code` and `options`: arguments of `vm.load`.

        Raises what `vm.load` raises. Raises `LoadError` if no device but `reference` runs the module, with the reason
        for each device, and `CallerError` for an unknown function or argument.
        """
        options |= {"policy": policy, "allow_native_code": allow_native_code}
        #: the loaded program
        self.program = load_on_device(module, device, options)
        try:
            self.export = choose_export(self.program.exports, function)
            self.names = checked_names(self.export)
            self._fixed = self._placed(fixed or {})
            taken = next((name for name in keep if name in self.names.results), None)
            if taken is not None:
                raise CallerValueError(f"column {taken!r} of keep has the name of a result")
        except BaseException:
            self.program.close()
            raise
        named = self.program[self.export.name]
        self._function = getattr(named, "flat", named)
        self._rows_of = [name for name in self.names.arguments if name not in self._fixed]
        self._keep = tuple(keep)
        self._batched = batched
        self._axes: dict[tuple[int, ...], BatchAxis] = {}

    def __call__(self, batch: Mapping[str, Rows]) -> dict[str, Any]:
        """The results for rows: an array per result name, with as many rows, and the columns of `keep`.

        A column whose rows have different shapes is an object array or a list of arrays. Results of different shapes
        are an object array.

        Raises `CallerError` if a column is missing, unknown or of another length, or its rows do not fit the argument.
        Raises what a call of the function raises.
        """
        count = self._check_columns(batch)
        groups = self._groups(batch, count)
        if not groups:
            found = self._empty()
        elif len(groups) == 1:
            found = self._run(groups[0][1], count)
        else:
            found = self._scattered(groups, count)
        return found | {name: np.asarray(batch[name]) for name in self._keep}

    def axis(self, ranks: Mapping[str, int]) -> BatchAxis:
        """The number of rows that a call takes. `ranks`: of rows, by argument name. Raises what `find_axis` raises."""
        key = tuple([ranks[name] for name in self._rows_of])
        axis = self._axes.get(key)
        if axis is None:
            axis = find_axis(self.export, self.names, self._fixed, ranks)
            if self._batched is None:
                self._batched = axis.batched
            if axis.batched != self._batched:
                raise CallerValueError(
                    f"rows have the ranks {list(key)}, which is {_per_call(axis.batched)}; "
                    f"the rows before had {_per_call(self._batched)}"
                )
            self._axes[key] = axis
        return axis

    def close(self) -> None:
        """Release the program."""
        self._fixed = {}
        self.program.close()

    def _placed(self, fixed: Mapping[str, Any]) -> dict[str, DeviceArray]:
        """The values of fixed arguments, on the device."""
        found = {}
        for name, given in fixed.items():
            if name not in self.names.arguments:
                raise CallerValueError(f"{name!r} is no argument of {self.export}")
            value = self.export.arguments[self.names.arguments.index(name)]
            found[name] = self.program.put(as_array(given, value.dtype, value.shape, name))
        return found

    def _check_columns(self, batch: Mapping[str, Rows]) -> int:
        """The number of rows. `CallerError` for missing or unknown columns, or columns of different lengths."""
        wanted = (*self._rows_of, *self._keep)
        missing = [name for name in wanted if name not in batch]
        unknown = [name for name in batch if name not in wanted]
        if missing or unknown:
            said = [f"column {missing[0]!r} is missing"] if missing else []
            said += [f"column {unknown[0]!r} is no argument and not in keep"] if unknown else []
            raise CallerValueError(f"{'; '.join(said)}; rows are for {', '.join(self._rows_of)} of {self.export}")
        counts = {name: len(batch[name]) for name in wanted}
        if len(set(counts.values())) > 1:
            raise CallerValueError(f"columns have different numbers of rows: {counts}")
        return next(iter(counts.values()))

    def _groups(self, batch: Mapping[str, Rows], count: int) -> list[tuple[Sequence[int], list[Array]]]:
        """Groups of rows with the same shapes: the numbers of the rows, and an array per argument."""
        columns = [batch[name] for name in self._rows_of]
        if all(isinstance(column, np.ndarray) and column.dtype != object for column in columns):
            return [(range(count), [np.asarray(column) for column in columns])] if count else []
        rows = [[np.asarray(row) for row in column] for column in columns]
        places: dict[tuple[object, ...], list[int]] = {}
        for place in range(count):
            key = tuple([(column[place].shape, column[place].dtype) for column in rows])
            places.setdefault(key, []).append(place)
        return [(group, [np.stack([column[i] for i in group]) for column in rows]) for group in places.values()]

    def _run(self, columns: list[Array], count: int) -> dict[str, Any]:
        """The results of at least one row, all of the same shapes."""
        axis = self.axis({name: column.ndim - 1 for name, column in zip(self._rows_of, columns, strict=True)})
        if not axis.batched:
            calls = [self._call([column[place, ...] for column in columns]) for place in range(count)]
            return {name: _joined([one[i] for one in calls]) for i, name in enumerate(self.names.results)}
        pieces: list[list[Array]] = []
        step = axis.most or count
        for start in range(0, count, step):
            rows = min(step, count - start)
            arrays = [_padded(column[start : start + rows], axis.least) for column in columns]
            pieces.append([result[:rows] for result in self._call(arrays)])
        if len(pieces) == 1:
            return dict(zip(self.names.results, pieces[0], strict=True))
        return {name: _concatenated([one[i] for one in pieces]) for i, name in enumerate(self.names.results)}

    def _call(self, arrays: Sequence[Array]) -> Sequence[Array]:
        """The results of one call. `arrays`: for the arguments that are not fixed."""
        rest = iter(arrays)
        given: list[Array | DeviceArray] = []
        for name in self.names.arguments:
            fixed = self._fixed.get(name)
            given.append(next(rest) if fixed is None else fixed)
        found = self._function(*given)
        if len(self.names.results) == 1:
            found = (found,)
        return [np.asarray(one) for one in found]

    def _scattered(self, groups: Sequence[tuple[Sequence[int], list[Array]]], count: int) -> dict[str, Any]:
        """The results of several groups, in the order of the rows."""
        found: dict[str, list[Any]] = {name: [None] * count for name in self.names.results}
        for places, columns in groups:
            for name, results in self._run(columns, len(places)).items():
                for place, result in zip(places, results, strict=True):
                    found[name][place] = result
        return {name: _joined(results) for name, results in found.items()}

    def _empty(self) -> dict[str, Any]:
        """The results of no rows. Dynamic dimensions are 0."""
        skipped = 1 if self._batched else 0
        return {
            name: np.empty((0, *[max(size, 0) for size in value.shape[skipped:]]), value.dtype.numpy)
            for name, value in zip(self.names.results, self.export.results, strict=True)
        }


def choose_export(exports: Sequence[Export], name: str | None) -> Export:
    """The export of that name, or the only one if None. `CallerError` lists the exports."""
    there = ", ".join(export.name for export in exports) or "nothing"
    if name is None and len(exports) != 1:
        raise CallerValueError(f"the module exports {there}: name the function")
    found = next((export for export in exports if name in (None, export.name)), None)
    if found is None:
        raise CallerValueError(f"no function {name!r}: the module exports {there}")
    if not found.results or not found.arguments:
        raise CallerValueError(f"{found} takes or gives no arrays")
    return found


def load_on_device(module: ModuleSource, device: str | None, options: Mapping[str, Any]) -> Program:
    """Load a module on the device of that name. None: the first device, GPUs first, that runs it and is not
    `reference`.

    Raises what `vm.load` raises, and `LoadError` if no device runs it, with the reason for each device.
    """
    if device is not None:
        return load(module, device, **options)
    reasons: list[str] = []
    candidates: list[DeviceInfo] = []
    for driver in list_devices():
        if driver.name in NAMED_ONLY:
            continue
        candidates += driver.devices
        if not driver.devices:
            reasons.append(f"{driver.name}: {driver.reason or 'it has no devices'}")
    for info in sorted(candidates, key=lambda info: "gpu" not in info.features):
        try:
            return load(module, info.id, **options)
        except ParameterError:
            raise
        except (LoadError, DeviceError, HalError) as error:
            reasons.append(f"{info.id}: {error}")
    lines = "".join(f"\n  {reason}" for reason in reasons)
    raise LoadError(f"only the device reference runs the module, and it is used only if it is named:{lines}")


def _per_call(batched: bool | None) -> str:
    return "many rows a call" if batched else "one row a call"


def _padded(rows: Array, least: int) -> Array:
    """The rows, padded to at least `least` rows with copies of the last one."""
    return rows if len(rows) >= least else np.concatenate([rows, np.repeat(rows[-1:], least - len(rows), axis=0)])


def _concatenated(pieces: Sequence[Array]) -> Array:
    """The rows of several arrays as one array; an object array if their shapes differ."""
    if len({piece.shape[1:] for piece in pieces}) == 1:
        return np.concatenate(pieces)
    return _joined([row for piece in pieces for row in piece])


def _joined(rows: Sequence[Array]) -> Array:
    """The rows as one array; an object array if their shapes differ."""
    if len({row.shape for row in rows}) == 1:
        return np.stack(rows)
    found = np.empty(len(rows), object)
    for place, row in enumerate(rows):
        found[place] = row
    return found
