"""The file around the root: what is accepted, and each way in which it may be damaged."""

import mmap
import os
import resource
import struct
import threading
from pathlib import Path

import pytest

from orchestrion.schema import container
from orchestrion.schema.errors import ModuleError

ROOT = struct.pack("<I4x4s", 96, b"ORCH") + bytes(range(88))
SEGMENTS = [b"one", b"", b"x" * 65, b"p" * 65536, b"last"]


def pack(segments: list[bytes] = SEGMENTS) -> bytes:
    middle, offsets = container.directory(ROOT, [len(s) for s in segments])
    data = ROOT + middle
    for offset, segment in zip(offsets, segments, strict=True):
        data += bytes(offset - len(data)) + segment
    return data


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
        assert offset % (4096 if len(segment) >= 65536 else 64) == 0


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
        (directory_start() + 12, struct.pack("<I", 1), "1 attachments"),
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
    middle, _ = container.directory(ROOT, [0, 3])
    spans = struct.pack("<QQQQ", 0, 0, 256, 3)
    data = ROOT + middle[:-32] + spans
    file = container.open_bytes(container.reseal(data + bytes(256 - len(data)) + b"two"))
    assert bytes(file.segment(1)) == b"two"
    with pytest.raises(ModuleError, match="segment 0 was taken out"):
        file.segment(0)


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
    assert container.reseal(pack()) == pack()


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
