"""Inputs from a Parquet file: one per row, with a column per argument. Needs pyarrow (extra `ray`).

A column holds numbers, lists of numbers, nested lists, or fixed-shape tensors. A flat list with as many numbers as the
argument has elements, with or without its leading dimension, takes the argument's shape. Row groups are read on demand,
and the last one is cached.
"""

from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from orchestrion.schema.hints import pip
from orchestrion.tools.arrays import Array
from orchestrion.tools.cli import InputError

from .sources import Source, Wanted, as_element_type


class ParquetSource(Source):
    """The rows of one file."""

    def __init__(self, path: Path, wanted: Wanted) -> None:
        super().__init__(path, wanted)
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError as error:
            raise InputError(f"{path}: reading Parquet needs pyarrow: {pip('pyarrow')} ({error})") from None
        path.stat()
        try:
            self._file = pq.ParquetFile(path, memory_map=True)
        except pa.ArrowException as error:
            raise InputError(f"{path}: not a Parquet file: {error}") from None
        self._failure: type[Exception] = pa.ArrowException
        self.refuse_columns(self._file.schema_arrow.names, path)
        metadata = self._file.metadata
        sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        self._ends = np.cumsum(sizes)
        self._group = -1
        self._columns: dict[str, Any] = {}

    @property
    def count(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    @property
    def files(self) -> Sequence[Path]:
        return [self.path]

    def read(self, index: int) -> dict[str, Array]:
        group = int(np.searchsorted(self._ends, index, side="right"))
        if group != self._group:
            self._load(group)
        place = index - (int(self._ends[group - 1]) if group else 0)
        found = {}
        for name, (dtype, shape) in self.wanted.items():
            column = self._columns[name]
            array = column[place] if isinstance(column, np.ndarray) else self._value(column[place], name)
            found[name] = _shaped(as_element_type(array, dtype), shape)
        return found

    def _load(self, group: int) -> None:
        try:
            table = self._file.read_row_group(group, columns=list(self.wanted))
        except (self._failure, OSError) as error:
            raise InputError(f"{self.path}: row group {group} cannot be read: {error}") from None
        self._columns = {name: _column(table.column(name).combine_chunks()) for name in self.wanted}
        self._group = group

    def _value(self, scalar: Any, name: str) -> Array:
        """The value of a row that is a list, or of a column with nulls."""
        import pyarrow as pa

        if not scalar.is_valid:
            raise InputError(f"{self.path}: column {name!r} is null")
        leaf = scalar.type
        depth = 0
        while pa.types.is_list(leaf) or pa.types.is_large_list(leaf) or pa.types.is_fixed_size_list(leaf):
            leaf, depth = leaf.value_type, depth + 1
        try:
            if depth == 1 and not scalar.values.null_count:
                array: Array = scalar.values.to_numpy(zero_copy_only=False)
                return array
            return np.array(scalar.as_py(), leaf.to_pandas_dtype())
        except (TypeError, ValueError, NotImplementedError) as error:
            raise InputError(f"{self.path}: column {name!r} holds no array of numbers: {error}") from None


def _column(chunks: Any) -> Any:
    """A column as an array with a leading dimension; unchanged if its rows differ in shape or some are null."""
    import pyarrow as pa

    array = chunks.combine_chunks() if isinstance(chunks, pa.ChunkedArray) else chunks
    if array.null_count:
        return array
    if isinstance(array, pa.FixedShapeTensorArray):
        return array.to_numpy_ndarray()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    shape, values = [len(array)], array
    while pa.types.is_fixed_size_list(values.type) and not values.null_count:
        shape.append(values.type.list_size)
        values = values.flatten()
    if values.null_count or not (pa.types.is_primitive(values.type) or pa.types.is_boolean(values.type)):
        return array
    return values.to_numpy(zero_copy_only=False).reshape(shape)


def _shaped(row: Array, shape: tuple[int, ...]) -> Array:
    """A flat row in the shape of an argument, with or without its leading dimension, if the number of
    elements matches.
    """
    if row.ndim != 1 or len(shape) < 2:
        return row
    for wanted in (shape[1:], shape):
        if -1 not in wanted and prod(wanted) == row.size:
            return row.reshape(wanted)
    return row
