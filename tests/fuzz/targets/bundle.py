"""A bundle is refused with ModuleError, or verifies: every entry is what the manifest says, and the same rows give the
same bytes. What is found in any archive lies within it and overlaps nothing.
"""

import random
from dataclasses import replace
from functools import cache
from hashlib import sha256

import module_corpus
from fuzzing import check
from mutate_numbers import unsigned

from orchestrion.schema import container
from orchestrion.schema.decoder import read_module
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.rows import SegmentKind
from orchestrion.schema.shipping import archive, bundle
from orchestrion.schema.shipping.archive import Row, build, read_archive
from orchestrion.schema.shipping.manifest import Entry, read_manifest, write_manifest
from orchestrion.vm.module_manifest import manifest_of

MAX_BYTES = 32768


@cache
def _seeds() -> list[bytes]:
    found = []
    for data in module_corpus.written():
        if len(data) > 6000:
            continue
        found += [_bundle(data, False), _bundle(data, True)]
    return [data for data in found if len(data) <= MAX_BYTES]


def _bundle(data: bytes, apart: bool) -> bytes:
    module = read_module(data)
    file = module.container
    code = [at for at, row in enumerate(module.segments) if row.kind == SegmentKind.Executable and apart]
    rows = [Row("licence.txt", b"as you like\n")]
    if code:
        left = [file.segment(at) if at not in code else None for at in range(len(file.spans))]
        pieces = container.build(file.root, left, file.attachments, file.sections)
        rows = [Row("module.fb", b"".join(pieces)), Row("code.bin", bundle.pack_code(code, file), True), *rows]
    else:
        rows = [Row("module.fb", data), *rows]
    roles = {"module.fb": "module", "code.bin": "code", "licence.txt": "licence"}
    manifest = replace(manifest_of(module), entries=_entries(rows, roles))
    return b"".join(build([Row("manifest.json", write_manifest(manifest)), *rows]))


def _entries(rows, roles):
    bodies = [(row.name, archive.packed(row)) for row in rows]
    return tuple(Entry(name, roles.get(name, "licence"), len(body), sha256(body).hexdigest()) for name, body in bodies)


def seeds():
    return list(_seeds())


def mutate(choose: random.Random, data: bytes) -> bytes:
    """Another archive of the same entries: some gone, doubled, swapped, renamed, cut off, with digests that fit; or a
    number of a header.
    """
    try:
        found = read_archive(data)
        rows = [Row(name, bytes(found.read(entry)), entry.method != 0) for name, entry in found.entries.items()]
        manifest = read_manifest(rows[0].content)
    except (ModuleError, IndexError):
        return choose.choice(_seeds())
    if choose.random() < 0.4:
        return _number(choose, data, found)
    at, other = choose.randrange(len(rows)), choose.randrange(len(rows))
    match choose.randrange(5):
        case 0:
            del rows[at]
        case 1:
            rows.insert(at, rows[other])
        case 2:
            rows[at] = rows[at]._replace(name=rows[other].name)
        case 3:
            content = bytearray(rows[at].content) or bytearray(1)
            content[choose.randrange(len(content))] ^= 1 << choose.randrange(8)
            rows[at] = rows[at]._replace(content=bytes(content), deflate=choose.random() < 0.5)
        case _:
            rows[at] = rows[at]._replace(content=rows[at].content[: choose.randrange(len(rows[at].content) + 1)])
    if choose.random() < 0.7 and rows and rows[0].name == "manifest.json":
        roles = {entry.name: entry.role for entry in manifest.entries}
        names = dict.fromkeys(row.name for row in rows[1:])
        fitting = replace(manifest, entries=_entries([row for row in rows[1:] if row.name in names], roles))
        rows[0] = Row("manifest.json", write_manifest(fitting))
    return b"".join(build(rows))


def _number(choose: random.Random, data: bytes, found: archive.Archive) -> bytes:
    """A field of a local header, of the directory or of the end record."""
    entry = choose.choice(list(found.entries.values()))
    starts = [(entry.header, 30), (found.directory, len(data) - found.directory - 4)]
    start, length = choose.choice(starts)
    width = choose.choice((2, 4))
    at = start + choose.randrange(max(1, length // 2)) * 2
    old = int.from_bytes(data[at : at + width], "little")
    return data[:at] + unsigned(choose, 8 * width, old).to_bytes(width, "little") + data[at + width :]


def one_input(data: bytes) -> None:
    try:
        found = read_archive(data)
    except ModuleError:
        return
    free = 0
    for entry in sorted(found.entries.values(), key=lambda entry: entry.header):
        check(
            free <= entry.header < entry.data <= entry.end <= found.directory, f"{entry} lies outside, or over another"
        )
        free = entry.end
    try:
        made = bundle.Bundle(found)
        made.verify()
    except ModuleError:
        return
    rows = [Row(name, bytes(found.data[row.data : row.end])) for name, row in found.entries.items() if not row.method]
    if len(rows) == len(found.entries):
        check(b"".join(build(rows)) == data, "an accepted bundle is built otherwise")
    whole = b"".join(made.module_pieces())
    check(sha256(whole).hexdigest() == made.manifest.file.sha256, "another module")
    check(read_module(whole).container.digest.hex() == made.manifest.file.digest, "another root")
