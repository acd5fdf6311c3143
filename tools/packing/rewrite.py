"""The same module with fewer segments in its file: what `thin` and `strip` share.

The root stays as it is, byte for byte, and so do attachments and trailing sections: signatures stay valid, because the
digests that they are about do. Segments that stay are verified and written as they lie in the mapped file.
"""

import os
import sys
from collections.abc import Collection

from orchestrion.schema.container import build
from orchestrion.schema.files import write_whole
from orchestrion.schema.module import Module


def write_without(module: Module, dropped: Collection[int], path: str | os.PathLike[str]) -> tuple[int, int]:
    """Write the module's file without these segments: all of it, or `OSError` and nothing.

    Returns how many segments went that were there, and their bytes. `ModuleError`: a segment or an attachment that
    stays is damaged.
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
        row.verified()  # else the damage would get a checksum that fits
    pieces = build(file.root, segments, file.attachments, file.sections)
    write_whole(path, pieces, "the module could not be written")
    return gone, size


def say(path: str, gone: int, size: int) -> None:
    """Print what was done; to standard error where the module itself may go to standard output."""
    what = f"{gone} segment{'' if gone == 1 else 's'} of {size:,} bytes taken out" if gone else "nothing to take out"
    if os.path.isfile(path):
        print(f"wrote {path}: {what}, {os.stat(path).st_size:,} bytes")
    else:
        print(f"wrote {path}: {what}", file=sys.stderr)
