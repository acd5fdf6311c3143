"""A row of the cache on disk gives the bytes that were put under its key, or nothing."""

import hashlib
import logging
import os
import random
import tempfile
from functools import cache as once
from pathlib import Path

from fuzzing import check

from orchestrion.hal.cache import DIGEST, MAGIC, Cache

_KEY = ("a device", b"a payload")
_BODY = b"what a driver built"


@once
def _cache() -> tuple[Cache, Path, bytes]:
    """A cache with one row, where it lies, and its bytes."""
    above = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
    folder = Path(tempfile.mkdtemp(dir=above, prefix="orchestrion-fuzz-"))
    made = Cache("k", folder=folder)
    made.put(_BODY, *_KEY)
    (row,) = (folder / "k").iterdir()
    return made, row, row.read_bytes()


def seeds():
    _, _, row = _cache()
    yield row
    yield row[: len(MAGIC) + 2 * DIGEST]
    yield row[:-5]
    yield b""


def mutate(choose: random.Random, data: bytes) -> bytes:
    """Another body, whose digest fits or does not; the key of another row."""
    _, _, row = _cache()
    body = choose.randbytes(choose.randrange(30))
    digest = hashlib.sha256(body).digest() if choose.random() < 0.5 else row[len(MAGIC) + DIGEST :][:DIGEST]
    key = row[len(MAGIC) :][:DIGEST] if choose.random() < 0.7 else choose.randbytes(DIGEST)
    return MAGIC + key + digest + body


def one_input(data: bytes) -> None:
    rows, path, whole = _cache()
    path.write_bytes(data)
    logging.disable(logging.CRITICAL)  # of a damaged row the cache says so, each time
    try:
        found = rows.get(*_KEY)
    finally:
        logging.disable(logging.NOTSET)
    head = len(MAGIC) + 2 * DIGEST
    key = whole[: len(MAGIC) + DIGEST]
    if found is None:
        fits = data[: len(key)] == key and data[len(key) : head] == hashlib.sha256(data[head:]).digest()
        check(not fits or len(data) < head, "a sound row is not found")
    else:
        check(data[: len(key)] == key and found == data[head:], "bytes that are not this row's")
        check(hashlib.sha256(found).digest() == data[len(key) : head], "bytes whose digest differs")
    check(os.path.exists(path), "the row is gone")
