"""Zip archives: entries that were written are found at their offsets; ambiguous archives are refused."""

import io
import random
import struct
import subprocess
import zipfile
from pathlib import Path

import pytest

from orchestrion.schema.errors import ModuleError
from orchestrion.schema.shipping import archive
from orchestrion.schema.shipping.archive import Row, build, read_archive
from orchestrion.schema.shipping.bundle import find_entry

CHOOSE = random.Random(3)
ROWS = [
    Row("manifest.json", b'{"a": 1}\n'),
    Row("module.fb", CHOOSE.randbytes(70_000)),
    Row("code.bin", bytes(5000), deflate=True),
    Row("parameters/a.safetensors", CHOOSE.randbytes(300)),
    Row("empty", b""),
]


def built(rows: list[Row] = ROWS) -> bytes:
    return b"".join(build(rows))


def refused(data: bytes) -> str:
    """The error message of opening the archive and reading every entry."""
    with pytest.raises(ModuleError) as error:
        found = read_archive(data)
        found.check_form()
        for entry in found.entries.values():
            found.read(entry)
    return str(error.value)


def test_entries_are_found_again() -> None:
    found = read_archive(built())
    found.check_form()
    assert [*found.entries] == [row.name for row in ROWS]
    for row in ROWS:
        assert found.read(found.find(row.name)) == row.content


def test_stored_entries_are_aligned_and_deflated_ones_are_small() -> None:
    found = read_archive(built()).entries
    assert found["module.fb"].data % 16384 == 0
    assert all(entry.data % 64 == 0 for entry in found.values() if entry.method == archive.STORED)
    assert found["code.bin"].compressed < 100


def test_the_same_rows_give_the_same_bytes() -> None:
    assert built() == built()


def test_others_read_it(tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(built())) as other:
        assert other.testzip() is None
        assert [other.read(row.name) for row in ROWS] == [row.content for row in ROWS]
        assert {info.date_time for info in other.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    (tmp_path / "b.zip").write_bytes(built())
    try:
        done = subprocess.run(["unzip", "-t", tmp_path / "b.zip"], capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("no unzip")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_foreign_archive_is_read(tmp_path: Path) -> None:
    """An archive like an APK, made by another program: its module stored, other entries deflated or with sizes after
    the data.
    """
    path = tmp_path / "app.apk"
    with zipfile.ZipFile(path, "w") as other:
        other.writestr("AndroidManifest.xml", b"<a/>" * 100, zipfile.ZIP_DEFLATED)
        other.writestr("assets/modèle/module.fb", ROWS[1].content)
    data = path.read_bytes()
    place = find_entry(path, "assets/modèle/module.fb")
    assert data[place.offset : place.offset + place.length] == ROWS[1].content
    with pytest.raises(ModuleError, match="compressed"):
        find_entry(path, "AndroidManifest.xml")
    with pytest.raises(ModuleError, match="no entry 'x': the archive has AndroidManifest.xml, assets/"):
        find_entry(path, "x")
    stream = io.BytesIO()
    stream.seekable = lambda: False  # type: ignore[method-assign]
    with zipfile.ZipFile(stream, "w") as other:
        other.writestr("a", b"abc")
    streamed = read_archive(stream.getvalue())
    assert streamed.read(streamed.find("a")) == b"abc"


def test_each_changed_byte_is_found() -> None:
    rows = [Row("manifest.json", b"{}\n"), Row("code.bin", b"abc" * 50, deflate=True), Row("module.fb", b"x" * 90)]
    data = built(rows)
    unseen = []
    for at in range(len(data)):
        for change in (1, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[at] ^= change
            try:
                found = read_archive(damaged)
                found.check_form()
                same = all(found.read(found.find(row.name)) == row.content for row in rows)
            except ModuleError:
                continue
            unseen.append((at, change, same))
    # a deflated stream has bits that mean nothing: bundles have a digest of the bytes as they lie there
    assert all(same for _, _, same in unseen)
    entry = read_archive(data).find("code.bin")
    assert all(entry.data <= at < entry.end for at, _, _ in unseen)


@pytest.mark.parametrize("cut", [0, 1, 21, 22, 100, 5000])
def test_truncated(cut: int) -> None:
    assert refused(built()[:cut])
    assert refused(built()[: len(built()) - 1 - cut])


def test_two_entries_of_one_name() -> None:
    assert "two entries are named 'a'" in refused(built([Row("a", b"1"), Row("a", b"2")]))


def test_overlapping_entries() -> None:
    """The directory has a second row for an entry that lies inside the first one's data."""
    inner = built([Row("b", b"hello")])
    head = read_archive(inner).find("b").end
    outer = [Row("a", inner[:head])]
    data = built(outer)
    found = read_archive(data)
    entry = found.find("a")
    shifted = read_archive(inner).find("b")._replace(header=entry.data, data=entry.data + head - 5)
    tail = archive._tail([entry, shifted], found.directory)
    assert "begins inside of another" in refused(data[: found.directory] + tail)


def test_one_extra_field_of_many_headers_is_not_read_for_each() -> None:
    """The time to open a file is linear in its size, even if headers overlap and share an extra field of 64 KiB."""
    count, size, shared = 200, 30 + 6 + 20 + 4, 13_000
    headers, rows = b"", b""
    for number in range(count):
        name, rest = b"%06d" % number, (count - 1 - number) * size
        sizes = (0xFFFFFFFF, 0xFFFFFFFF, len(name), 24 + rest + 4 * shared)
        headers += archive._LOCAL.pack(b"PK\3\4", 20, 0, 0, 0, 33, 0, *sizes) + name
        headers += struct.pack("<HHQQHH", 1, 16, 0, 0, 9, rest)
        fixed = (20, 20, 0, 0, 0, 33, 0, 0, 0, len(name), 0, 0, 0, 0, 0, number * size)
        rows += archive._CENTRAL.pack(b"PK\1\2", *fixed) + name
    body = headers + struct.pack("<HH", 9, 0) * shared
    end = archive._END.pack(b"PK\5\6", 0, 0, count, count, len(rows), len(body), 0)
    said = refused(body + rows + end)
    assert "entry '000001' begins inside of another" in said


def test_local_header_and_directory_differ() -> None:
    data = bytearray(built())
    data[30] ^= 1  # the first letter of the first name
    assert "local header and central directory differ" in refused(data)


@pytest.mark.parametrize(
    ("at", "value", "words"),
    [
        (4, 1, "several disks"),
        (20, 5, "comment"),
        (8, 2, "several disks"),
        (12, 1, "does not end at"),
        (16, 1, "does not end at"),
    ],
)
def test_end_record(at: int, value: int, words: str) -> None:
    data = bytearray(built())
    struct.pack_into("<H", data, len(data) - 22 + at, value)
    assert words in refused(data)


def test_encryption_and_other_methods_are_refused() -> None:
    for offset, value in ((8, 1), (10, 12)):
        data = bytearray(built())
        struct.pack_into("<H", data, read_archive(data).directory + offset, value)
        assert "not a plain or deflated one" in refused(data)


def test_what_expands_to_more_than_it_can_is_refused_before_it_is_expanded() -> None:
    data = built([Row("a", bytes(100_000), deflate=True)])
    found = read_archive(data)
    entry = found.find("a")._replace(size=1 << 40)
    with pytest.raises(ModuleError, match="say"):
        found.read(entry)
    with pytest.raises(ModuleError, match="does not expand to its 99999 bytes"):
        found.read(entry._replace(size=99_999))


def test_entries_above_4_gib() -> None:
    """The zip64 headers, in a sparse file."""
    size = 5 << 30
    first = archive.Entry("large", archive.STORED, 7, size, size, 0, 0)
    head = archive._local(first, 0)
    first = first._replace(data=len(head))
    second = archive.Entry("behind", archive.STORED, 0, 0, 0, first.end, 0)
    tail_head = archive._local(second, first.end)
    second = second._replace(data=first.end + len(tail_head))
    tail = archive._tail([first, second], second.end)
    assert b"PK\6\6" in tail and b"PK\6\7" in tail
    path = Path(__file__).parents[2] / "build" / "tests" / "large.zip"
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("wb") as file:
            file.write(head)
            file.seek(first.end)
            file.write(tail_head + tail)
        found = archive.open_archive(path)
        found.check_form()
        assert found.entries == {"large": first, "behind": second}
        assert find_entry(path, "large") == (16384, size)
        with zipfile.ZipFile(path) as other:
            assert [(row.filename, row.file_size) for row in other.infolist()] == [("large", size), ("behind", 0)]
        del found
    finally:
        path.unlink(missing_ok=True)
