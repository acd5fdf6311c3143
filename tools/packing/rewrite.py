"""Writes a module's file with fewer segments, for `thin` and `strip`.

The root, attachments and trailing sections stay the same, byte for byte, so signatures stay valid. Remaining segments
are verified and written from the mapped file.
"""

import os
import sys
from collections.abc import Collection

from orchestrion.schema.container import build
from orchestrion.schema.files import write_whole
from orchestrion.schema.module import Module


def write_without(module: Module, dropped: Collection[int], path: str | os.PathLike[str]) -> tuple[int, int]:
    """Writes the module's file without these segments, atomically. Returns the number and bytes of the removed
    segments.

    Raises ModuleError if a remaining segment or attachment is damaged, OSError if the file cannot be written.
    """
    file = module.container
    segments: list[memoryview | None] = []
    gone = size = 0
    for ordinal, (offset, length) in enumerate(file.spans):
        if not offset:
            segments.append(None)
        elif ordinal in dropped:
            segments.append(None)
            gone, size = gone + 1, size + length
        else:
            segments.append(module.segment(ordinal))
    for row in file.attachments:
        row.verified()  # otherwise a damaged one would get a matching checksum
    pieces = build(file.root, segments, file.attachments, file.sections)
    write_whole(path, pieces, "the module could not be written")
    return gone, size


def say(path: str, gone: int, size: int) -> None:
    """Prints the result, to standard error if the module goes to standard output."""
    what = f"{gone} segment{'' if gone == 1 else 's'} of {size:,} bytes taken out" if gone else "nothing to take out"
    if os.path.isfile(path):
        print(f"wrote {path}: {what}, {os.stat(path).st_size:,} bytes")
    else:
        print(f"wrote {path}: {what}", file=sys.stderr)
