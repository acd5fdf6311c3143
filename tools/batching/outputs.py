"""Where results go: a folder with a file per input, and what a later run needs to go on.

    000042.npz    the results of input 42 by name; it has this name only when it is complete
    run.json      which module, function and inputs they belong to, written when the first worker has loaded the module
    failed.json   inputs without results, each with the reason; absent if there are none

One run at a time may use a folder. Workers write results, the command writes the other files.
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
    """An input without results. `file`: its name if it is one."""

    input: int
    file: str | None
    reason: str


class Identity(NamedTuple):
    """What the results in a folder belong to. All digests are SHA-256 in hexadecimal."""

    module: str  #: of the module's root
    function: str
    inputs: str  #: `Source.identity`
    total: int  #: inputs
    fixed: str  #: of the values of fixed arguments, and of parameter files

    def difference(self, other: "Identity") -> str | None:
        """What is not the same in another run, with both values; None if nothing."""
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
        """The inputs that have results from an earlier run. `listing`: the file of each input, if each is one.

        `InputError`: the folder holds results of another module, function or inputs, or is not empty and not a run's,
        or an input with results has changed.
        """
        if not self.folder.exists():
            return set()
        names = [path.name for path in self.folder.iterdir()]  # OSError where it is a file
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
        """Make the folder, without what a killed run left in it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for path in self.folder.iterdir():
            if _LEFT_OVER.fullmatch(path.name):
                path.unlink()

    def begin(self, identity: Identity, listing: Sequence[FileRow], device: str) -> None:
        """Write `run.json`. `device`: of the first worker, for people."""
        content = {"version": VERSION, **identity._asdict(), "device": device, "files": list(listing)}
        self._write(RUN, content)

    def write(self, index: int, results: Mapping[str, Array]) -> None:
        """Put the results of an input in place, whole or not at all. `OSError`: they cannot be written."""
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as archive:  # np.savez refuses some names, such as `file`
            for name, array in results.items():
                with archive.open(f"{name}.npy", "w") as member:
                    np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
        files.write_whole(self.folder / f"{index:06d}.npz", (data.getvalue(),), "could not be written")

    def end(self, failures: Sequence[Failure]) -> None:
        """Write `failed.json`, or remove it if nothing failed."""
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
