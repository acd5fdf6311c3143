"""Verifies segments before they are used, for modules that are loaded under a trust policy.

- Code (executables, source maps, custom segments) is copied out of the file, then hashed, then used. A change of the
  file in between has no effect.
- Constants stay mapped. They are hashed before their first use: piece by piece if the root has digests of pieces (1
  MiB), otherwise as a whole. Later writes to the mapped file are not detected.
- The process remembers what was hashed until the file is written, according to its times (`Container.identity`).

A guard belongs to one opened file, and is thread-safe.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, TypeVar

from orchestrion.schema.segments import CHUNK, DATA_KINDS, verify_chunk, verify_segment

if TYPE_CHECKING:
    from orchestrion.schema.container import Container
    from orchestrion.schema.module import Module

#: the most threads that hash pieces of one segment; hashing takes no lock
MAX_THREADS = 4
#: the piece number of a whole segment
WHOLE = -1

#: the most files whose verified pieces are remembered
_MAX_FILES = 64

Item = TypeVar("Item")
VerifiedPieces = dict[int, bytearray]  # segment -> per piece, whether it was verified

_files: dict[Hashable, VerifiedPieces] = {}


class Guard:
    __slots__ = ("_known", "_module")

    def __init__(self, module: Module) -> None:
        self._module = module
        self._known: VerifiedPieces | None = None

    def segment(self, ordinal: int) -> memoryview:
        """A verified copy of a segment; a constant itself, without a copy. Raises ModuleError if it is damaged or not
        in the file.
        """
        file, row = self._module.container, self._module.segments[ordinal]
        if row.kind in DATA_KINDS:
            self.verify(ordinal, 0, row.size)
            return file.segment(ordinal)
        data = memoryview(bytes(file.segment(ordinal)))
        verify_segment(row, data, f"segment {ordinal}", file.spans[ordinal][0])
        return data

    def verify(self, ordinal: int, start: int, end: int) -> None:
        """Verify the pieces of a segment that contain bytes `start` to `end`. Raises ModuleError if one is damaged."""
        module = self._module
        row = module.segments[ordinal]
        if self._known is None:
            self._known = _verified_pieces_of(module.container)
        verified = self._known.setdefault(ordinal, bytearray(max(1, row.chunks_end - row.chunks_start)))
        if start >= end:
            return
        if row.chunks_start == row.chunks_end:
            pieces = [] if verified[WHOLE] else [WHOLE]
        else:
            pieces = [piece for piece in range(start // CHUNK, -(-end // CHUNK)) if not verified[piece]]
        in_threads(lambda piece: _verify_piece(module, ordinal, piece), pieces)
        for piece in pieces:
            verified[piece] = 1


def _verified_pieces_of(file: Container) -> VerifiedPieces:
    """The verified pieces of the file; another file with the same root may be damaged."""
    if file.identity is None:
        return {}
    if len(_files) >= _MAX_FILES:
        _files.clear()
    return _files.setdefault((file.identity, file.digest), {})


def verify_all(module: Module) -> None:
    """Verify all segments in the file, in several threads. Segments with digests of pieces are verified by these only:
    whoever signs compares them with the digest of the segment (`verify_both`). Raises the errors of `_verify_piece`.
    """
    in_threads(lambda item: _verify_piece(module, *item), _pieces(module))


def verify_both(module: Module) -> None:
    """As `verify_all`, and for segments with digests of pieces also the digest of the whole."""
    both = {(ordinal, WHOLE) for ordinal, _ in _pieces(module)} | set(_pieces(module))
    in_threads(lambda item: _verify_piece(module, *item), sorted(both))


def _pieces(module: Module) -> Iterable[tuple[int, int]]:
    """Ordinal and piece of all segments in the file."""
    for ordinal, (offset, _) in enumerate(module.container.spans):
        row = module.segments[ordinal]
        count = row.chunks_end - row.chunks_start
        if offset:
            yield from [(ordinal, piece) for piece in range(count)] or [(ordinal, WHOLE)]


def _verify_piece(module: Module, ordinal: int, piece: int) -> None:
    """Verifies one piece of a segment in the file. Raises ModuleError if it is damaged or not in the file."""
    row, data, name = module.segments[ordinal], module.container.segment(ordinal), f"segment {ordinal}"
    if piece == WHOLE:
        verify_segment(row, data, name, module.container.spans[ordinal][0])
    else:
        verify_chunk(row, module.chunks, piece, data[piece * CHUNK : (piece + 1) * CHUNK], name)


def in_threads(work: Callable[[Item], object], items: Iterable[Item]) -> None:
    """Call `work` for each item, in several threads if there are several items. Raises the first error."""
    todo = list(items)
    threads = min(MAX_THREADS, os.cpu_count() or 1, len(todo))
    if threads < 2:
        for item in todo:
            work(item)
        return
    left = iter(todo)  # `next` of a list's iterator is atomic, so each item goes to one thread
    failures: list[BaseException] = []

    def take() -> None:
        try:
            for item in left:
                if failures:
                    return
                work(item)
        except BaseException as error:
            failures.append(error)

    started = [threading.Thread(target=take, daemon=True) for _ in range(threads - 1)]
    for thread in started:
        thread.start()
    take()
    for thread in started:
        thread.join()
    if failures:
        raise failures[0]
