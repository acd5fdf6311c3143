"""Files are read and written completely. Pipes and other special files in their place are refused by name."""

import errno
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrion.schema import files
from orchestrion.schema.files import read_whole, write_whole

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a system without named pipes")


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    for path, kind in ((tmp_path, "directory"), (Path("/dev/zero"), "device"), (Path("/dev/null"), "device")):
        with pytest.raises(OSError, match=f"is a {kind}, not a file") as caught:
            read_whole(path)
        assert caught.value.filename == str(path)
    with pytest.raises(FileNotFoundError):
        read_whole(tmp_path / "missing")


def beside(act: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    return thread


def test_a_pipe_is_read_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = beside(lambda: pipe.write_bytes(b"abc"))
    assert read_whole(pipe) == b"abc"
    writer.join()
    monkeypatch.setattr(files, "MAX_PIPED", 1000)

    def endless() -> None:
        with pipe.open("wb", buffering=0) as file, pytest.raises(BrokenPipeError):
            while True:
                file.write(bytes(100))

    writer = beside(endless)
    with pytest.raises(OSError, match="gives more than 1000 bytes: write a file") as caught:
        read_whole(pipe)
    assert caught.value.filename == str(pipe)
    writer.join(30)
    assert not writer.is_alive()


def test_a_pipe_that_somebody_reads_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="no good: is a pipe without a reader") as caught:
        write_whole(pipe, (b"abc",), "no good")
    assert caught.value.errno == errno.ENXIO and caught.value.filename == str(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(pipe, (b"ab", b"c"), "no good")
    assert os.read(reader, 10) == b"abc"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_device_is_written_to_and_stays() -> None:
    terminal, other = os.openpty()
    path = os.ttyname(other)
    write_whole(path, (b"abc",), "no good")
    assert os.read(terminal, 10) == b"abc"
    assert stat.S_ISCHR(os.stat(path).st_mode)
    os.close(terminal)
    os.close(other)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="descriptors have no names here")
def test_a_pipe_without_a_name_is_written_to() -> None:
    """As with `/dev/stdout` in a shell pipeline, whose real path is no path of a file."""
    reader, other = os.pipe()
    write_whole(f"/proc/self/fd/{other}", (b"abc",), "no good")
    assert os.read(reader, 10) == b"abc"
    os.close(reader)
    os.close(other)


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for path in (folder, tmp_path / "missing" / "x", Path("")):
        with pytest.raises(OSError, match="no good: ") as caught:
            write_whole(path, (b"abc",), "no good")
        assert caught.value.filename == str(path)
    assert os.listdir(tmp_path) == ["folder"] and os.listdir(folder) == []


def test_a_file_is_replaced_and_a_link_followed(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to("file")
    with (tmp_path / "file").open("rb") as before:
        write_whole(tmp_path / "link", (b"new",), "no good")
        assert before.read() == b"old"
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_bytes() == b"new"
