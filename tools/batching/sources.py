"""The inputs of a batch: a folder of `.npy` and `.npz` files, one `.npz` file, or one Parquet file.

Input `i` of a folder is its i-th file by name, with an array per argument. Input `i` of an `.npz` file is row `i` of
each of its arrays. Each process opens the files itself. Nothing is unpickled.
"""

import hashlib
import json
import os
import struct
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from orchestrion.schema.dtypes import DType
from orchestrion.schema.files import open_regular
from orchestrion.tools.array_files import BAD_FILE, Array, load_array, shortened
from orchestrion.tools.cli import InputError

#: element type and shape of each argument that inputs supply
Wanted = Mapping[str, tuple[DType, tuple[int, ...]]]

#: name, size in bytes, time of the last change in nanoseconds
FileRow = tuple[str, int, int]

_LOCAL_HEADER = struct.Struct("<4s22xHH")  # of a zip member: signature, lengths of its name and of the extra field


class Source(ABC):
    """Inputs by number, from 0. `wanted`: the arguments that they supply."""

    def __init__(self, path: Path, wanted: Wanted) -> None:
        self.path = path
        self.wanted = wanted

    @property
    @abstractmethod
    def count(self) -> int:
        """The number of inputs."""

    @property
    @abstractmethod
    def files(self) -> Sequence[Path]:
        """The files that contain the inputs."""

    @abstractmethod
    def read(self, index: int) -> dict[str, Array]:
        """The arrays of one input by argument. Raises InputError or OSError if it is missing or cannot be read."""

    def label(self, index: int) -> str | None:
        """The name of the file that is this input; None if inputs are rows of a file."""
        return None

    def listing(self) -> list[FileRow]:
        """The file of each input; empty if inputs are rows of a file."""
        return []

    def digest(self) -> str:
        """SHA-256 of the listing of all files; it changes with the inputs."""
        return digest_of(list_files(self.files))

    def identity(self) -> str:
        """SHA-256 of what must not change between a run and its continuation."""
        return self.digest()

    def ranks(self) -> dict[str, int]:
        """The ranks of the arguments, from the first readable input. Raises InputError if there is none."""
        reason = f"{self.path}: there are no inputs"
        for index in range(self.count):
            try:
                return {name: array.ndim for name, array in self.read(index).items()}
            except (InputError, OSError) as error:
                reason = reason if index else f"{self.path}: no input can be read; the first: {error}"
        raise InputError(reason)

    def refuse_columns(self, names: Iterable[str], place: str | os.PathLike[str]) -> None:
        """Raises InputError unless these are the arguments that inputs supply."""
        found = set(names)
        missing = [name for name in self.wanted if name not in found]
        unknown = sorted(found - self.wanted.keys())
        if missing or unknown:
            said = [f"has no array {missing[0]!r}"] if missing else []
            said += [f"has {unknown[0]!r}, which is no argument or is fixed"] if unknown else []
            raise InputError(f"{place}: {' and '.join(said)}; arguments with rows are {', '.join(self.wanted)}")


class FolderSource(Source):
    """A file per input. A `.npy` file holds the array of the only argument."""

    def __init__(self, path: Path, wanted: Wanted) -> None:
        super().__init__(path, wanted)
        self._files = sorted(file for file in path.iterdir() if not file.name.startswith("."))
        other = next((file for file in self._files if file.suffix not in (".npy", ".npz")), None)
        if other is not None:
            raise InputError(f"{other}: inputs are .npy and .npz files")

    @property
    def count(self) -> int:
        return len(self._files)

    @property
    def files(self) -> Sequence[Path]:
        return self._files

    def label(self, index: int) -> str:
        return self._files[index].name

    def listing(self) -> list[FileRow]:
        return list_files(self._files)

    def identity(self) -> str:
        """Names only, because a file that failed may be repaired."""
        return digest_of([file.name for file in self._files])

    def read(self, index: int) -> dict[str, Array]:
        path = self._files[index]
        if path.suffix == ".npy":
            if len(self.wanted) != 1:
                raise InputError(f"{path}: one array for {len(self.wanted)} arguments: {', '.join(self.wanted)}")
            name, (dtype, _) = next(iter(self.wanted.items()))
            return {name: as_element_type(load_array(str(path), dtype), dtype)}
        arrays = read_npz(path)
        self.refuse_columns(arrays, path)
        return {name: as_element_type(arrays[name], dtype) for name, (dtype, _) in self.wanted.items()}


class NpzSource(Source):
    """An input per row of the arrays. Uncompressed arrays are mapped, not read."""

    def __init__(self, path: Path, wanted: Wanted) -> None:
        super().__init__(path, wanted)
        arrays = read_npz(path)
        self.refuse_columns(arrays, path)
        self._arrays = {name: as_element_type(arrays[name], dtype) for name, (dtype, _) in wanted.items()}
        counts = {name: array.shape[0] if array.ndim else None for name, array in self._arrays.items()}
        if None in counts.values() or len(set(counts.values())) > 1:
            raise InputError(f"{path}: arrays have no common number of rows: {counts}")
        self._count = next(iter(counts.values())) or 0

    @property
    def count(self) -> int:
        return self._count

    @property
    def files(self) -> Sequence[Path]:
        return [self.path]

    def read(self, index: int) -> dict[str, Array]:
        return {name: array[index, ...] for name, array in self._arrays.items()}


def open_source(path: Path, wanted: Wanted) -> Source:
    """Opens the inputs at a path. Raises InputError or OSError if there are none that can be read."""
    if path.is_dir():
        return FolderSource(path, wanted)
    if path.suffix == ".parquet":
        from .parquet import ParquetSource

        return ParquetSource(path, wanted)
    if path.suffix == ".npz":
        return NpzSource(path, wanted)
    path.stat()  # raises if the path does not exist
    raise InputError(f"{path}: inputs are a folder, an .npz file or a .parquet file")


def list_files(files: Iterable[Path]) -> list[FileRow]:
    return [(file.name, state.st_size, state.st_mtime_ns) for file in files for state in [file.stat()]]


def digest_of(content: object) -> str:
    """SHA-256 of JSON data."""
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def as_element_type(array: Array, wanted: DType) -> Array:
    """The array in the byte order of this machine. Files do not name types of ml_dtypes, only their size."""
    if array.dtype.kind == "V" and wanted.foreign and array.dtype.itemsize == wanted.itemsize:
        return array.view(wanted.numpy)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def read_npz(path: Path) -> dict[str, Array]:
    """All arrays of an `.npz` file by name, mapped if they are uncompressed."""
    found: dict[str, Array] = {}
    try:
        with os.fdopen(open_regular(path), "rb") as file, zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                name = member.filename.removesuffix(".npy")
                stored = member.compress_type == zipfile.ZIP_STORED
                found[name] = _map(path, file, member) if stored else _read(archive, member)
    except BAD_FILE as error:
        raise InputError(f"{path}: not an .npz file: {shortened(str(error))}") from None
    return found


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    with archive.open(member) as file:
        array: Array = np.lib.format.read_array(file, allow_pickle=False)
    return array


def _map(path: Path, file: IO[bytes], member: zipfile.ZipInfo) -> Array:
    """Maps the array of a stored member."""
    file.seek(member.header_offset)
    signature, name, extra = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
    if signature != b"PK\x03\x04":
        raise ValueError(f"no member at byte {member.header_offset}")
    start = file.seek(name + extra, os.SEEK_CUR)
    version = np.lib.format.read_magic(file)
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, by_columns, dtype = header(file)
    size = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if dtype.hasobject or file.tell() - start + size != member.file_size:
        raise ValueError(f"{member.filename}: {dtype} of shape {shape} is no array of {member.file_size} bytes")
    if not size:
        return np.zeros(shape, dtype)
    mapped: np.memmap[Any, Any] = np.memmap(path, dtype, "r", file.tell(), shape, "F" if by_columns else "C")
    return mapped.view(np.ndarray)
