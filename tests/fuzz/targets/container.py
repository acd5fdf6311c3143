"""A file is a sound container or ModuleError: digest, checksum and bounds of every segment hold."""

import random
from hashlib import sha256

import module_corpus
import mutate_file
from fuzzing import check

from orchestrion.schema import container
from orchestrion.schema.errors import ModuleError

_CHANGES = (mutate_file.directory, mutate_file.any_bytes, mutate_file.segments)


def seeds():
    for data in module_corpus.written():
        file = container.open_bytes(data)
        yield container.reseal(data)
        root = bytes(file.root[:200])
        root = (len(root) - 4).to_bytes(4, "little") + root[4:]
        between, offsets = container.directory(root, [5, 0, 70])
        yield (root + between).ljust(offsets[2], b"\0") + b"a" * 70


def mutate(choose: random.Random, data: bytes) -> bytes:
    return choose.choice(_CHANGES)(choose, data)


def repair(data: bytes) -> bytes:
    try:
        return container.reseal(data)
    except ModuleError:
        return data


def one_input(data: bytes) -> None:
    try:
        file = container.open_bytes(data)
    except ModuleError:
        return
    check(file.digest == sha256(file.root).digest(), "the digest is not the root's")
    check(container.reseal(data) == data, "an accepted file is sealed otherwise")
    free = len(file.root)
    for ordinal, (offset, size) in enumerate(file.spans):
        if not offset and not size:
            continue
        check(free <= offset and offset + size <= len(data), f"segment {ordinal} lies outside, or over another")
        check(file.segment(ordinal) == data[offset : offset + size], f"segment {ordinal} has other bytes")
        free = offset + size
