"""Bundles: one zip archive with everything that ships with a model, which apps map in place.

    manifest.json | module.fb | code.bin | parameters/<digest>.safetensors | licence.* | model-card.* | *.sig

- The manifest comes first, stored, so that a few KB of a download show whether the rest is useful. It lists every other
  entry, except its own signature set `manifest.json.sig`, with its size and SHA-256 in the archive.
- `code.bin` is optional and deflated. It holds code segments that `module.fb` lacks: u32 count, their u32 ordinals in
  ascending order, then their bytes. Such a bundle is unpacked before its module is loaded.
- The archive has the canonical form of `archive.build`, so that any changed byte is detected.

An app finds the module of a bundle, or of an APK that holds one as an asset, and loads it without unpacking:

    offset, length = find_entry("model.zip", "module.fb")
    program = vm.load("model.zip", offset=offset, length=length)
"""

import os
import re
import struct
from collections.abc import Iterator
from hashlib import sha256
from struct import Struct
from typing import NamedTuple

from orchestrion.schema import container, decoder
from orchestrion.schema.container import Container
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.files import map_file, write_whole
from orchestrion.schema.rows import SegmentKind

from . import archive
from .archive import Archive
from .manifest import Manifest, read_manifest

MANIFEST, MODULE, CODE = "manifest.json", "module.fb", "code.bin"
MANIFEST_SIGNATURES = "manifest.json.sig"
#: role of an entry -> its meaning
ROLES: dict[str, str] = {
    "module": "the module; segments of code that it lacks are in the code entry",
    "code": "segments of code, compressed",
    "parameters": "a file of parameters, named by its SHA-256",
    "licence": "the licence of the model",
    "model-card": "the model card",
    "signatures": "a signature set: module.fb.sig, or that of a file of parameters",
}

#: the form of names that are unpacked, in addition to the manifest and the module
_UNPACKED = re.compile(
    r"(?:module\.fb|manifest\.json|parameters/[0-9a-f]{64}\.safetensors)\.sig"
    r"|parameters/[0-9a-f]{64}\.safetensors|(?:licence|model-card)\.[a-z0-9_-]+"
)
_COUNT = Struct("<I")


class EntryRange(NamedTuple):
    """The range of a stored entry's bytes in the archive's file."""

    offset: int
    length: int


def find_entry(path: str | os.PathLike[str], name: str) -> EntryRange:
    """The range of a stored entry of a zip archive, for `vm.load(path, offset=, length=)`. Its bytes are not read.

    Raises OSError if the file cannot be read, ModuleError if it is not an archive with unambiguous entries
    (`archive.open_archive`), or the entry does not exist or is compressed.
    """
    found = archive.open_archive(path)
    entry = found.find(name)
    return EntryRange(entry.data, len(found.stored(entry)))


class Bundle:
    """An opened bundle whose manifest was read; `verify` checks everything else."""

    __slots__ = ("archive", "manifest")

    def __init__(self, found: Archive) -> None:
        self.archive = found
        first = next(iter(found.entries), None)
        if first != MANIFEST:
            raise ModuleError(f"not a bundle: the first entry is {first!r:.200}, not {MANIFEST!r}")
        found.stored(found.find(MANIFEST))
        self.manifest: Manifest = read_manifest(found.read(found.find(MANIFEST)))

    def content(self, name: str) -> memoryview:
        """The content of an entry, inflated if it is compressed, with its checksum checked."""
        return self.archive.read(self.archive.find(name))

    def verify(self) -> None:
        """Check every byte of the archive: its form, and the digest of each entry. Raises ModuleError with the reason.

        It proves that nothing changed since the manifest was written. Signatures prove who wrote it.
        """
        self.archive.check_form()
        listed = [entry.name for entry in self.manifest.entries]
        wanted = [MANIFEST, *listed]
        there = [name for name in self.archive.entries if name != MANIFEST_SIGNATURES]
        if there != wanted:
            odd = sorted(set(there) ^ set(wanted)) or ["their order"]
            raise ModuleError(f"the entries are not those that the manifest lists: {', '.join(odd)[:400]}")
        for entry in self.manifest.entries:
            self._check_entry(entry.name, entry.role, entry.bytes, entry.sha256)
        state = sha256()
        for piece in self.module_pieces():
            state.update(piece)
        if state.hexdigest() != self.manifest.file.sha256:
            raise ModuleError(f"{MODULE} is not the file whose digest the manifest gives")
        if MANIFEST_SIGNATURES in self.archive.entries:
            self._check_signed(MANIFEST_SIGNATURES)

    def _check_entry(self, name: str, role: str, size: int, digest: str) -> None:
        """The digest is that of the bytes in the archive, because deflate has many forms of one content."""
        if role not in ROLES:
            raise ModuleError(f"entry {name} has the role {role!r:.80}; there are {', '.join(ROLES)}")
        entry = self.archive.find(name)
        data = self.archive.data[entry.data : entry.end]
        if len(data) != size or sha256(data).hexdigest() != digest:
            raise ModuleError(f"entry {name} is damaged: its digest is not the one in the manifest", entry.data)
        self.archive.read(entry)

    def _check_signed(self, name: str) -> None:
        """Checks the form of a signature set, and that it is for the manifest; `keys.is_valid` checks signatures."""
        from orchestrion.schema.trust import signature_set

        found = signature_set.decode(self.content(name))
        if (found.kind, found.digest) != ("manifest", sha256(self.content(MANIFEST)).digest()):
            raise ModuleError(f"{name} has the signatures of another file")

    def module_pieces(self) -> list[bytes | memoryview]:
        """The pieces of the module file that was packed, including its code segments."""
        data = self.archive.stored(self.archive.find(MODULE))
        file = container.open_bytes(data)
        if file.digest.hex() != self.manifest.file.digest:
            raise ModuleError(f"{MODULE} is another module than the manifest describes")
        if CODE not in self.archive.entries:
            return [data]
        segments = [file.segment(at) if span[0] else None for at, span in enumerate(file.spans)]
        for ordinal, code in unpack_code(self.content(CODE), file):
            segments[ordinal] = code
        return container.build(file.root, segments, file.attachments, file.sections)


def open_bundle(path: str | os.PathLike[str]) -> Bundle:
    """Opens a bundle and reads its manifest. Raises OSError if it cannot be read, ModuleError if it is not a bundle."""
    return Bundle(archive.open_archive(path))


def unpack_bundle(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> list[str]:
    """Verifies a bundle and writes its files to a folder, each atomically, the module last. Returns their names.

    Parameters keep their names, `parameters/<digest>.safetensors`.
    """
    found = open_bundle(path)
    found.verify()
    names = [name for name in found.archive.entries if name not in (MODULE, CODE)]
    for name in names:
        if name != MANIFEST:
            _check_name(name)
    for name in names:
        target = os.path.join(folder, *name.split("/"))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        write_whole(target, (found.content(name),), "could not be written")
    write_whole(os.path.join(folder, MODULE), found.module_pieces(), "could not be written")
    return [*names, MODULE]


def verify_folder(folder: str | os.PathLike[str]) -> Manifest:
    """Checks the files of an unpacked or delivered bundle against the manifest in the folder.

    Files that it does not list are ignored. Raises OSError for a file that cannot be read, ModuleError for one that
    differs from the manifest.
    """
    manifest = read_manifest(map_file(os.path.join(folder, MANIFEST)))
    for entry in manifest.entries:
        if entry.name == CODE:
            continue
        if entry.name != MODULE:
            _check_name(entry.name)
        content = map_file(os.path.join(folder, *entry.name.split("/")))
        wanted = manifest.file.sha256 if entry.name == MODULE else entry.sha256
        if sha256(content).hexdigest() != wanted:
            raise ModuleError(f"{entry.name} is damaged: its digest is not the one in the manifest")
    return manifest


def _check_name(name: str) -> None:
    """Checks that a name belongs to a bundle: it stays inside of the folder, and no other tool's file has it."""
    if not _UNPACKED.fullmatch(name):
        raise ModuleError(f"entry {name!r:.200} is not a name that is unpacked")


def pack_code(ordinals: list[int], file: Container) -> bytes:
    """The content of `code.bin` for segments of a module."""
    head = _COUNT.pack(len(ordinals)) + b"".join(map(_COUNT.pack, ordinals))
    return head + b"".join([file.segment(ordinal) for ordinal in ordinals])


def unpack_code(content: memoryview, file: Container) -> Iterator[tuple[int, memoryview]]:
    """Yields (ordinal, bytes) of the segments in `code.bin`; the module's root states their lengths."""
    module = decoder.decode(file)
    try:
        (count,) = _COUNT.unpack_from(content)
        ordinals = Struct(f"<{count}I").unpack_from(content, _COUNT.size) if count <= len(module.segments) else ()
    except struct.error:
        raise ModuleError(f"{CODE} is truncated") from None
    if len(ordinals) != count or any(b <= a for a, b in zip(ordinals, ordinals[1:], strict=False)):
        raise ModuleError(f"{CODE} does not list segments of the module in their order")
    at = _COUNT.size * (1 + count)
    for ordinal in ordinals:
        if ordinal >= len(module.segments) or file.spans[ordinal][0]:
            raise ModuleError(f"{CODE} has segment {ordinal}, which the module has, or which it does not know")
        row = module.segments[ordinal]
        if row.kind != SegmentKind.Executable or len(content) - at < row.size:
            raise ModuleError(f"{CODE} has segment {ordinal}, which is no code or is cut off")
        yield ordinal, content[at : at + row.size]
        at += row.size
    if at != len(content):
        raise ModuleError(f"{CODE} has {len(content) - at} bytes behind its segments")
