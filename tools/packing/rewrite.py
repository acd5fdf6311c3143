"""The same module with fewer segments in its file: what `thin` and `strip` share.

The root stays as it is, byte for byte, and so do attachments and trailing sections: signatures stay valid, because the
digests that they are about do. Segments that stay are verified and written as they lie in the mapped file.
"""

import os
from collections.abc import Collection

from orchestrion.schema.container import build
from orchestrion.schema.files import write_whole
from orchestrion.schema.module import Module


def write_without(module: Module, dropped: Collection[int], path: str | os.PathLike[str]) -> tuple[int, int]:
    """Write the module's file without these segments: all of it, or `OSError` and nothing.

    Returns how many segments went that were there, and their bytes. `ModuleError`: a segment that stays is damaged.
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
    pieces = build(file.root, segments, file.attachments, file.sections)
    write_whole(path, pieces, "the module could not be written")
    return gone, size


def said(path: str, gone: int, size: int) -> str:
    """The line that a command prints."""
    what = f"{gone} segment{'' if gone == 1 else 's'} of {size:,} bytes taken out" if gone else "nothing to take out"
    return f"wrote {path}: {what}, {os.stat(path).st_size:,} bytes" if os.path.isfile(path) else f"wrote {path}: {what}"
