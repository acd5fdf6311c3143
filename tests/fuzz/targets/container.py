"""A file is a sound container or ModuleError: each byte is of the root, the directory, a segment, an attachment, a
section or a zero between them, and no gap is longer than alignment asks for.
"""

import random
from hashlib import sha256
from zlib import crc32

import later_format
import module_corpus
import mutate_file
from fuzzing import check

from orchestrion.schema import container
from orchestrion.schema.errors import ModuleError

_CHANGES = (
    mutate_file.directory,
    mutate_file.any_bytes,
    mutate_file.segments,
    mutate_file.thinned,
    mutate_file.behind,
)


def seeds():
    for name in ("attachment", "section", "section to understand"):
        yield later_format.files()[name].data
    for data in module_corpus.written():
        file = container.open_bytes(data)
        yield container.reseal(data)
        root = bytes(file.root[:200])
        root = (len(root) - 4).to_bytes(4, "little") + root[4:]
        attachment, section = container.Attachment("SIGN", b"signed"), container.Section("notes", b"text")
        for attachments, sections in (([], []), ([attachment], [section]), ([attachment] * 2, [section] * 2)):
            yield b"".join(container.build(root, [b"12345", b"", None, b"a" * 70], attachments, sections))


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
    sound = all(crc32(row.data) == row.checksum for row in file.attachments)
    check(not sound or container.reseal(data) == data, "an accepted file is sealed otherwise")
    start = container.aligned_offset(len(file.root), 0)
    free = start + 48 + 16 * len(file.spans) + 32 * len(file.attachments)
    check(not any(data[len(file.root) : start]), "padding behind the root is not zero")
    for ordinal, (offset, size) in enumerate(file.spans):
        if offset or size:
            free = _follows(data, free, offset, size, container.PAGE if size >= container.PAGED_FROM else 64)
            check(file.segment(ordinal) == data[offset : offset + size], f"segment {ordinal} has other bytes")
    check(file.complete == all(offset for offset, _ in file.spans), "whether segments are missing is told wrong")
    for row in file.attachments:
        free = _follows(data, free, row.offset, len(row.data), 64)
        check(row.data == data[row.offset : free], f"attachment {row.tag} has other bytes")
    for section in file.sections:
        free = _follows(data, free, section.offset, 32 + len(section.data), 64)
        check(section.data == data[section.offset + 32 : free], f"section {section.name} has other bytes")
    for row in (*file.attachments, *file.sections):
        check(not row.flags & container.MUST_UNDERSTAND or row[0] == "SIGN", f"{row[0]} is not known")
    check(free == len(data), f"the file has {len(data)} bytes, {free} of them are of something")


def _follows(data: bytes, free: int, offset: int, size: int, alignment: int) -> int:
    """Where something ends that must lie at the first aligned place, behind zeros."""
    check(offset == -(-free // alignment) * alignment, f"{offset} does not follow {free}")
    check(not any(data[free:offset]), f"padding before {offset} is not zero")
    check(offset + size <= len(data), f"{offset} to {offset + size} lies outside")
    return offset + size
