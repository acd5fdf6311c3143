"""The folder of results: a file per input, and the files that a later run needs to continue.

    000042.npz    the results of input 42 by name; it has this name only when it is complete
    run.json      the module, function and inputs of the results, written when the first worker has loaded the module
    failed.json   inputs without results, each with the reason; absent if there are none

Only one run at a time may use a folder. Workers write results; the command writes the other files.
"""

import io
import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from orchestrion.schema import files
from orchestrion.tools.arrays import Array
from orchestrion.tools.cli import InputError

from .sources import FileRow

RUN, FAILED = "run.json", "failed.json"
VERSION = 1
_RESULT = re.compile(r"(\d{6,})\.npz", re.ASCII)
_LEFT_OVER = re.compile(r"\.(\d{6,}\.npz|run\.json|failed\.json)\.[0-9a-f]{8}\.tmp", re.ASCII)


class Failure(NamedTuple):
    """An input without results. `file`: its name if it is a file."""

    input: int
    file: str | None
    reason: str


class Identity(NamedTuple):
    """What the results in a folder belong to. All digests are SHA-256 in hexadecimal."""

    module: str  #: digest of the module's root
    function: str
    inputs: str  #: `Source.identity`
    total: int  #: number of inputs
    fixed: str  #: digest of the fixed arguments and parameter files

    def difference(self, other: "Identity") -> str | None:
        """The first difference to another run, with both values; None if they are equal."""
        for name, mine, its in zip(self._fields, self, other, strict=True):
            if mine != its:
                return f"{_WORDS[name]} {its!s:.16}, this run has {mine!s:.16}"
        return None


_WORDS = {
    "module": "the module with digest",
    "function": "the function",
    "inputs": "input files with digest",
    "total": "this many inputs:",
    "fixed": "fixed arguments and parameters with digest",
}


class Outputs:
    """The folder of results. Nothing is created before `begin`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def done(self, identity: Identity, listing: Sequence[FileRow]) -> set[int]:
        """The inputs that have results from an earlier run. `listing`: the file of each input, if each is a file.

        Raises InputError if the folder holds results of another module, function or inputs, if it is neither empty nor
        of a run, or if an input with results has changed.
        """
        if not self.folder.exists():
            return set()
        names = [path.name for path in self.folder.iterdir()]  # OSError if it is a file
        if RUN not in names:
            others = [name for name in names if not _LEFT_OVER.fullmatch(name)]
            if others:
                raise InputError(f"{self.folder}: has no {RUN} but {others[0]}: results need a folder of their own")
            return set()
        before, files_before = self._read()
        difference = identity.difference(before)
        if difference is not None:
            raise InputError(f"{self.folder}: its results are of another run: {difference}")
        found = {int(match[1]) for name in names if (match := _RESULT.fullmatch(name))}
        found = {index for index in found if index < identity.total}
        for index in sorted(found):
            if listing and list(listing[index]) != files_before[index]:
                raise InputError(f"{self.folder}: input {index} ({listing[index][0]}) has changed since it was done")
        return found

    def create(self) -> None:
        """Creates the folder, and removes temporary files of a killed run."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for path in self.folder.iterdir():
            if _LEFT_OVER.fullmatch(path.name):
                path.unlink()

    def begin(self, identity: Identity, listing: Sequence[FileRow], device: str) -> None:
        """Writes `run.json`. `device`: that of the first worker, for information."""
        content = {"version": VERSION, **identity._asdict(), "device": device, "files": list(listing)}
        self._write(RUN, content)

    def write(self, index: int, results: Mapping[str, Array]) -> None:
        """Writes the results of an input atomically. Raises OSError."""
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as archive:  # np.savez refuses some names, such as `file`
            for name, array in results.items():
                with archive.open(f"{name}.npy", "w") as member:
                    np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
        files.write_whole(self.folder / f"{index:06d}.npz", (data.getvalue(),), "could not be written")

    def end(self, failures: Sequence[Failure]) -> None:
        """Writes `failed.json`, or removes it if nothing failed."""
        path = self.folder / FAILED
        if failures:
            self._write(FAILED, [failure._asdict() for failure in sorted(failures)])
        else:
            path.unlink(missing_ok=True)

    def _read(self) -> tuple[Identity, list[list[Any]]]:
        path = self.folder / RUN
        try:
            found = json.loads(files.read_whole(path))
            version = found["version"]
            if version == VERSION:
                identity = Identity(**{name: found[name] for name in Identity._fields})
                rows = found["files"]
                if isinstance(rows, list) and len(rows) in (0, identity.total):
                    return identity, rows
                raise ValueError(f"{identity.total} inputs, and files {rows!s:.80}")
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path}: not the file of a run: {error}") from None
        raise InputError(f"{path}: version {version}, this vm-batch reads version {VERSION}")

    def _write(self, name: str, content: object) -> None:
        data = (json.dumps(content, indent=2) + "\n").encode()
        files.write_whole(self.folder / name, (data,), "could not be written")
