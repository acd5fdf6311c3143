"""The container around the root: which files are accepted, and each kind of damage that is refused."""

import mmap
import os
import resource
import struct
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrion.schema import container
from orchestrion.schema.container import Attachment, Section
from orchestrion.schema.errors import ModuleError

ROOT = struct.pack("<I4x4s", 96, b"ORCH") + bytes(range(88))
SEGMENTS = [b"one", b"", b"x" * 65, b"p" * 65536, b"last"]


ATTACHMENTS = [Attachment("SIGN", b"who signed"), Attachment("ABC", b"", 2), Attachment("SIGN", b"s" * 65)]
SECTIONS = [Section("first", b"data"), Section("twelve-bytes", b"", 6)]


def pack(
    segments: Sequence[bytes | None] = SEGMENTS,
    attachments: Sequence[Attachment] = (),
    sections: Sequence[Section] = (),
) -> bytes:
    return b"".join(container.build(ROOT, segments, attachments, sections))


def directory_start() -> int:
    return 128


def change(data: bytes, offset: int, new: bytes) -> bytes:
    return data[:offset] + new + data[offset + len(new) :]


def test_gives_back_root_and_segments() -> None:
    file = container.open_bytes(pack())
    assert bytes(file.root) == ROOT
    assert [bytes(file.segment(i)) for i in range(len(SEGMENTS))] == SEGMENTS


def test_segments_are_aligned() -> None:
    for (offset, _), segment in zip(container.open_bytes(pack()).spans, SEGMENTS, strict=True):
        assert offset % (16384 if len(segment) >= 65536 else 64) == 0


def test_no_segments() -> None:
    assert container.open_bytes(pack([])).spans == ()


@pytest.mark.parametrize("segments", [SEGMENTS, [b"small"]], ids=["mapped", "read"])
def test_opens_a_file(tmp_path: Path, segments: list[bytes]) -> None:
    path = tmp_path / "m.fb"
    path.write_bytes(pack(segments))
    file = container.open_file(path)
    assert isinstance(file.data.obj, mmap.mmap) == (len(pack(segments)) >= 65536)
    path.unlink()
    assert [bytes(file.segment(i)) for i in range(len(segments))] == segments
    assert file.data.readonly


def test_segments_are_views() -> None:
    data = pack()
    segment = container.open_bytes(data).segment(3)
    assert segment.obj is data


def test_every_truncation_is_refused() -> None:
    data = pack([b"one", b"two" * 50])
    for length in range(len(data)):
        with pytest.raises(ModuleError):
            container.open_bytes(data[:length])


def test_every_flip_in_root_and_directory_is_refused() -> None:
    data = pack([b"one", b"two"])
    end = container.open_bytes(data).spans[0][0]
    covered = [*range(len(ROOT)), *range(directory_start(), directory_start() + 48 + 32)]
    assert end >= covered[-1]
    for offset in covered:
        for bit in range(8):
            with pytest.raises(ModuleError):
                container.open_bytes(change(data, offset, bytes([data[offset] ^ 1 << bit])))


def test_bytes_behind_the_last_segment_are_refused() -> None:
    with pytest.raises(ModuleError, match="bytes follow the last segment"):
        container.open_bytes(pack() + b"\0")


SPANS = directory_start() + 48


@pytest.mark.parametrize(
    ("offset", "new", "message"),
    [
        (0, struct.pack("<I", 2**32 - 1), "truncated"),
        (8, b"ORCX", "identifier is b'ORCX'"),
        (directory_start(), b"ORCX", "directory starts with b'ORCX'"),
        (directory_start() + 8, struct.pack("<I", 2**32 - 1), "4294967295 segments"),
        (directory_start() + 12, struct.pack("<I", 2**32 - 1), "4294967295 attachments"),
        (SPANS, struct.pack("<Q", 2**64 - 64), "not aligned|truncated|lies at"),
        (SPANS + 8, struct.pack("<Q", 2**64 - 1), "not aligned|truncated|lies at"),
        (SPANS, struct.pack("<Q", 64), "segment 0 lies at 64; the first free byte is"),
        (SPANS + 16, struct.pack("<Q", 64), "segment 1 lies at 64; the first free byte is"),
        (SPANS, struct.pack("<Q", 257), "segment 0 lies at 257, not aligned"),
        (SPANS + 3 * 16, struct.pack("<Q", 64 * 65), "segment 3 lies at 4160, not aligned"),
    ],
)
def test_damage_behind_the_digests_is_named(offset: int, new: bytes, message: str) -> None:
    damaged = change(pack(), offset, new)
    if offset >= 12:
        damaged = container.reseal(damaged)
    with pytest.raises(ModuleError, match=message):
        container.open_bytes(damaged)


def test_a_segment_may_be_taken_out() -> None:
    file = container.open_bytes(pack([None, b"two", None, b"", None]))
    assert bytes(file.segment(1)) == b"two" and bytes(file.segment(3)) == b""
    assert not file.complete and container.open_bytes(pack()).complete
    assert [offset > 0 for offset, _ in file.spans] == [False, True, False, True, False]
    with pytest.raises(ModuleError, match="segment 0 was taken out"):
        file.segment(0)


def test_attachments_and_sections_stand_behind_the_segments() -> None:
    data = pack(SEGMENTS, ATTACHMENTS, SECTIONS)
    file = container.open_bytes(data)
    assert [(row.tag, bytes(row.data), row.flags) for row in file.attachments] == [row[:3] for row in ATTACHMENTS]
    assert [(row.name, bytes(row.data), row.flags) for row in file.sections] == [row[:3] for row in SECTIONS]
    assert [bytes(file.segment(i)) for i in range(len(SEGMENTS))] == SEGMENTS
    assert all(row.offset % 64 == 0 for row in (*file.attachments, *file.sections))
    assert [bytes(row.verified()) for row in file.attachments] == [row.data for row in ATTACHMENTS]
    assert file.attachments[0].data.obj is data
    assert file.digest == container.open_bytes(pack()).digest, "the root says what a module is, and nothing else"


def test_a_section_may_be_appended_by_whoever_has_the_file() -> None:
    data = pack([b"one"], ATTACHMENTS)
    padding = bytes(container.aligned_offset(len(data), 0) - len(data))
    appended = data + padding + container.section_header(SECTIONS[0]) + b"data"
    assert appended == pack([b"one"], ATTACHMENTS, SECTIONS[:1])


def test_every_flip_in_attachments_and_sections_is_found() -> None:
    """Except in the data of a section, which has no digest."""
    data = pack([b"one"], ATTACHMENTS, SECTIONS)
    sections = container.open_bytes(data).sections
    unnamed = {sections[0].offset + 32 + at for at in range(len(sections[0].data))}
    for at in range(container.open_bytes(data).spans[0][0] + 3, len(data)):
        try:
            file = container.open_bytes(change(data, at, bytes([data[at] ^ 4])))
        except ModuleError:
            continue
        if at not in unnamed:
            with pytest.raises(ModuleError, match="the attachment '.*' is damaged: its checksum differs"):
                [row.verified() for row in file.attachments]


def test_every_truncation_behind_the_segments_is_refused_or_ends_a_section() -> None:
    data = pack([b"one"], ATTACHMENTS, SECTIONS)
    ends = {row.offset + 32 + len(row.data) for row in container.open_bytes(data).sections}
    last = container.open_bytes(data).attachments[-1]
    for length in range(len(data)):
        if length in ends or length == last.offset + len(last.data):
            continue  # what was appended is gone
        with pytest.raises(ModuleError):
            container.open_bytes(data[:length])


def test_what_must_be_understood_and_is_not_known_is_refused_by_name() -> None:
    with pytest.raises(ModuleError, match="attachment 'NEW1' must be understood .*; this version knows SIGN"):
        container.open_bytes(pack([], [Attachment("NEW1", b"", container.MUST_UNDERSTAND)]))
    with pytest.raises(ModuleError, match="section 'newer' must be understood .*; this version knows none"):
        container.open_bytes(pack([], [], [Section("newer", b"", container.MUST_UNDERSTAND)]))
    file = container.open_bytes(pack([], [Attachment("SIGN", b"", container.MUST_UNDERSTAND)]))
    assert file.attachments[0].flags == container.MUST_UNDERSTAND


@pytest.mark.parametrize("name", ["", "nöt", "a b", "a\0b", "longer than that"])
def test_names_that_no_file_can_hold_are_the_callers_mistake(name: str) -> None:
    with pytest.raises(ValueError, match="printable ASCII"):
        pack([], [Attachment(name, b"")])
    with pytest.raises(ValueError, match="printable ASCII"):
        pack([], [], [Section(name, b"")])


def row_of(number: int) -> int:
    return SPANS + 16 + 32 * number


@pytest.mark.parametrize(
    ("offset", "new", "message"),
    [
        (row_of(0), b"\0ABC", "an attachment's tag is b'\\\\x00ABC', printable ASCII wanted"),
        (row_of(0), b"A\0BC", "an attachment's tag is"),
        (row_of(0) + 8, struct.pack("<Q", 64), "attachment 'SIGN' lies at 64; the first free byte is"),
        (
            row_of(0) + 8,
            struct.pack("<Q", 448),
            r"attachment 'SIGN' lies at 448 after a gap of \d+ bytes, expected at 384",
        ),
        (row_of(0) + 8, struct.pack("<Q", 449), "attachment 'SIGN' lies at 449, not aligned"),
        (row_of(0) + 16, struct.pack("<Q", 2**64 - 1), "truncated: .* 'SIGN' ends at"),
        (row_of(0) + 28, b"\1\0\0\0", "the row of attachment 'SIGN' ends with 0x1, 0 wanted"),
    ],
)
def test_damage_of_attachments_is_named(offset: int, new: bytes, message: str) -> None:
    with pytest.raises(ModuleError, match=message):
        container.open_bytes(container.reseal(change(pack([b"one"], ATTACHMENTS), offset, new)))


def test_gaps_are_no_larger_than_alignment_asks_for_and_zero() -> None:
    data = pack([b"one", b"two"])
    first, second = (offset for offset, _ in container.open_bytes(data).spans)
    moved = data[:second] + bytes(64) + b"two"
    moved = container.reseal(change(moved, SPANS + 16, struct.pack("<Q", second + 64)))
    with pytest.raises(ModuleError, match=f"segment 1 lies at {second + 64} after a gap of 125 bytes"):
        container.open_bytes(moved)
    for at in (len(ROOT), first + 3, second - 1):
        with pytest.raises(ModuleError, match=f"padding at {at} is not zero but 0x01"):
            container.open_bytes(container.reseal(change(data, at, b"\1")))
    pages = pack([b"one", b"p" * 65536])
    with pytest.raises(ModuleError, match="padding at 16383 is not zero"):
        container.open_bytes(change(pages, 16383, b"\1"))


@pytest.mark.parametrize("segments", [SEGMENTS, [b"small"]], ids=["mapped", "read"])
@pytest.mark.parametrize("offset", [0, 1, 64, 4096, 70001])
def test_opens_a_part_of_a_file(tmp_path: Path, segments: list[bytes], offset: int) -> None:
    data = pack(segments, ATTACHMENTS, SECTIONS)
    path = tmp_path / "archive.zip"
    path.write_bytes(b"z" * offset + data + b"the end")
    file = container.open_file(path, offset, len(data))
    assert [bytes(file.segment(i)) for i in range(len(segments))] == segments
    assert bytes(file.data) == data and len(file.sections) == len(SECTIONS)
    with pytest.raises(ModuleError):
        container.open_file(path, offset, len(data) + 1)
    path.write_bytes(b"z" * offset + data)
    assert container.open_file(path, offset).digest == file.digest


@pytest.mark.parametrize(("offset", "length"), [(-1, None), (11, None), (0, 11), (5, -1), (5, 6), (2**70, None)])
def test_a_part_that_the_file_does_not_have_is_the_callers_mistake(
    tmp_path: Path, offset: int, length: int | None
) -> None:
    (tmp_path / "ten").write_bytes(b"x" * 10)
    with pytest.raises(ValueError, match=f"offset {offset} and length {length} are no part of a file of 10 bytes"):
        container.open_file(tmp_path / "ten", offset, length)


@pytest.mark.parametrize("data", [b"", b"ORCH", b"\0" * 12, bytes(4) + b"\0\0\0\0ORCH", b"\xff" * 200])
def test_what_is_no_module_is_refused(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(ModuleError):
        container.open_bytes(data)
    path = tmp_path / "m.fb"
    path.write_bytes(data)
    with pytest.raises(ModuleError):
        container.open_file(path)


def test_an_unreadable_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere.fb"):
        container.open_file(tmp_path / "nowhere.fb")
    with pytest.raises(IsADirectoryError, match=tmp_path.name):
        container.open_file(tmp_path)


def test_a_file_over_4_gib_opens_without_reading_its_segments(tmp_path: Path) -> None:
    sizes = [5 << 30, 16]
    middle, offsets = container.directory(ROOT, sizes)
    path = tmp_path / "big.fb"
    with path.open("wb") as file:
        file.write(ROOT + middle)
        file.seek(offsets[1])
        file.write(b"behind the hole!")
    assert offsets[1] > 2**32
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    opened = container.open_file(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 64
    assert bytes(opened.segment(1)) == b"behind the hole!"
    assert len(opened.segment(0)) == 5 << 30
    assert os.stat(path).st_blocks * 512 < 1 << 20


def test_reseal_leaves_a_sound_file_as_it_is() -> None:
    for data in (pack(), pack([b"one"], ATTACHMENTS, SECTIONS)):
        assert container.reseal(data) == data


def test_reseal_refuses_what_has_no_directory() -> None:
    with pytest.raises(ModuleError, match="truncated"):
        container.reseal(change(pack(), 0, b"\xff\xff\xff\xff"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_is_read_to_its_end_and_a_device_is_refused(tmp_path: Path) -> None:
    golden = Path(__file__).parents[1] / "golden" / "v1.0-simple_mul.fb"
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(golden.read_bytes(),))
    writer.start()
    opened = container.open_file(tmp_path / "pipe")
    writer.join(60)
    assert opened.digest == container.open_file(golden).digest
    with pytest.raises(OSError, match="is a device, not a file"):
        container.open_file("/dev/zero")
    with pytest.raises(OSError, match="is a directory, not a file"):
        container.open_file(tmp_path)
