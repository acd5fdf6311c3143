"""A part of a file that holds parameters or an adapter."""

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FilePart:
    """Bytes of a file from `offset` on, `length` of them or all: an entry that a zip archive has stored as it is, say.

    `signature`: a file of its signatures, or their bytes; only a load with a policy looks at them. What is at a
    multiple of 16 KiB in the file is used where it lies, as in a file of its own.
    """

    path: str | os.PathLike[str]
    offset: int
    length: int | None = None
    signature: str | os.PathLike[str] | bytes | None = None

    def __str__(self) -> str:
        return f"{os.fspath(self.path)} at {self.offset}"
