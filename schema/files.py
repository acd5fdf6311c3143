"""Reads and writes files, and handles pipes, devices, folders and links in their place.

Opening a pipe waits until another process writes to it, perhaps for ever. Reading a device may never end.
"""

import errno
import mmap
import os
import stat
import time
from collections.abc import Iterable
from contextlib import suppress

#: the most bytes that are read from a pipe
MAX_PIPED = 1 << 30
#: nanoseconds within which two writes of a file may get the same time from the clock of its file system
COARSE_NS = 4_000_000_000

_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)


def open_regular(path: str | os.PathLike[str], follow: bool = True) -> int:
    """Returns a descriptor of a regular file, for reading. Raises OSError, without waiting, for anything else.

    `follow`: whether the last part of the path may be a symbolic link. Windows always follows it.
    """
    file = os.open(path, _FLAGS if follow else _FLAGS | getattr(os, "O_NOFOLLOW", 0))
    try:
        mode = os.fstat(file).st_mode
    except OSError:
        os.close(file)
        raise
    if not stat.S_ISREG(mode):
        os.close(file)
        raise no_file(mode, path)
    return file


def read_whole(path: str | os.PathLike[str]) -> bytes:
    """Returns all bytes of a file, or of a pipe (a shell's `<(command)`), which is waited for.

    Raises OSError for anything else, and for a pipe with more than MAX_PIPED bytes.
    """
    file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        state = os.fstat(file)
        if stat.S_ISFIFO(state.st_mode):
            return read_pipe(file)
        if not stat.S_ISREG(state.st_mode):
            raise no_file(state.st_mode, path)
        return _read_regular(file, state.st_size)
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None
    finally:
        os.close(file)


def map_file(path: str | os.PathLike[str]) -> memoryview:
    """Maps a regular file. Truncating the file crashes its readers. Raises OSError for anything else."""
    file = open_regular(path)
    try:
        size = os.fstat(file).st_size
        return memoryview(mmap.mmap(file, 0, access=mmap.ACCESS_READ) if size else b"")
    finally:
        os.close(file)


def identity(state: os.stat_result) -> tuple[int, ...] | None:
    """Identifies a file and its last modification. While it stays the same, so do the file's bytes. Exception: a
    process that has the file mapped for writing; its pages may change once more without a new time.

    None if that is not reliable: if the file was written within the last seconds, because clocks of file systems are
    coarse, and on systems that do not record the time of the last change (POSIX does).
    """
    written = max(state.st_mtime_ns, state.st_ctime_ns)
    if os.name != "posix" or not stat.S_ISREG(state.st_mode) or abs(time.time_ns() - written) < COARSE_NS:
        return None
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def _read_regular(file: int, size: int) -> bytes:
    """Returns all bytes of an open file. `size` is the file's stated size, which is wrong for files that the system
    generates.
    """
    data = os.read(file, size + 1)
    if len(data) == size and size:
        return data
    parts = [data]
    while parts[-1]:
        parts.append(os.read(file, 1 << 20))
    return b"".join(parts)


def read_pipe(file: int) -> bytes:
    """Reads an open pipe to its end. Raises OSError for more than MAX_PIPED bytes."""
    parts, size = [], 0
    while part := os.read(file, 1 << 20):
        parts.append(part)
        size += len(part)
        if size > MAX_PIPED:
            raise OSError(errno.EFBIG, f"gives more than {MAX_PIPED} bytes: write a file")
    return b"".join(parts)


def write_whole(path: str | os.PathLike[str], pieces: Iterable[bytes | memoryview], failed: str) -> None:
    """Writes a file atomically: either all of it, or nothing.

    An existing file is replaced, so processes that have it mapped keep the old one. A pipe with a reader, or a device,
    such as `/dev/stdout`, is written to. Raises OSError; its message begins with `failed`.
    """
    target = os.path.realpath(path)
    plain = os.path.isfile(target) or not os.path.exists(path)  # `/dev/stdout` may be a pipe without a real path
    folder, name = os.path.split(target)
    place = os.path.join(folder, f".{name}.{os.urandom(4).hex()}.tmp") if plain else os.fspath(path)
    try:
        with open(place, "xb") if plain else open(_open_stream(place), "wb") as file:
            file.writelines(pieces)
        if plain:
            os.replace(place, target)
    except BaseException as error:
        if plain:
            with suppress(FileNotFoundError):
                os.unlink(place)
        if isinstance(error, OSError):
            raise OSError(error.errno, f"{failed}: {error.strerror}", os.fspath(path)) from error
        raise


def _open_stream(path: str) -> int:
    """Returns a descriptor of a pipe or a device, for writing. Raises OSError, without waiting, for a pipe without a
    reader.
    """
    try:
        file = os.open(path, os.O_WRONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(error.errno, "is a pipe without a reader") from None
        raise
    if hasattr(os, "set_blocking"):
        os.set_blocking(file, True)
    return file


def no_file(mode: int, path: str | os.PathLike[str]) -> OSError:
    """Returns the error for something that is not a regular file; it states what it is."""
    word = next((word for test, word in _KINDS if test(mode)), "file of an unknown kind")
    number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
    return OSError(number, f"is a {word}, not a file", os.fspath(path))


_KINDS = (
    (stat.S_ISDIR, "directory"),
    (stat.S_ISFIFO, "pipe"),
    (stat.S_ISCHR, "device"),
    (stat.S_ISBLK, "device"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISLNK, "symbolic link"),
)
