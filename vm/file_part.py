"""A part of a file that contains parameters or an adapter."""

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FilePart:
    """The bytes of a file from `offset` on: `length` bytes, or all if None. For example an uncompressed entry of a zip
    archive.

    `signature`: a file of signatures, or their bytes; used only by a load with a policy. Data at a multiple of 16 KiB
    in the file is used without a copy, as in a separate file.
    """

    path: str | os.PathLike[str]
    offset: int
    length: int | None = None
    signature: str | os.PathLike[str] | bytes | None = None

    def __str__(self) -> str:
        return f"{os.fspath(self.path)} at {self.offset}"
