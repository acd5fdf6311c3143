"""Reading and writing files where something else may stand in their place: a pipe, a device, a folder, a link.

To open a pipe waits until another process writes into it, perhaps for ever; to read a device may never end.
"""

import errno
import mmap
import os
import stat
import time
from collections.abc import Iterable
from contextlib import suppress

#: bytes that are read from a pipe at the most
MAX_PIPED = 1 << 30
#: nanoseconds within which a file may be written twice at the same time, by the clock of its file system
COARSE_NS = 4_000_000_000

_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)


def open_regular(path: str | os.PathLike[str], follow: bool = True) -> int:
    """A descriptor of a regular file, for reading. `OSError`, and no wait, for anything else.

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
    """All bytes of a file, or of a pipe (a shell's `<(command)`), which is waited for: whoever names one means it.

    `OSError` for anything else, and for a pipe that gives more than MAX_PIPED bytes.
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
    """All bytes of a regular file, mapped: whoever shortens it crashes its readers. `OSError` for anything else."""
    file = open_regular(path)
    try:
        size = os.fstat(file).st_size
        return memoryview(mmap.mmap(file, 0, access=mmap.ACCESS_READ) if size else b"")
    finally:
        os.close(file)


def identity(state: os.stat_result) -> tuple[int, ...] | None:
    """Which file it is and when it was last written: as long as that stays the same, so do its bytes, unless somebody
    has the file mapped for writing: a page that waits to be written back may change again without a new time.

    None where that cannot be told: of a file that was written within the last seconds, as clocks of file systems are
    coarse, and where the system does not keep the time of the last change (POSIX does).
    """
    written = max(state.st_mtime_ns, state.st_ctime_ns)
    if os.name != "posix" or not stat.S_ISREG(state.st_mode) or abs(time.time_ns() - written) < COARSE_NS:
        return None
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def _read_regular(file: int, size: int) -> bytes:
    """All bytes of an open file: `size` is what it says, and what is wrong where the system makes its bytes up."""
    data = os.read(file, size + 1)
    if len(data) == size and size:
        return data
    parts = [data]
    while parts[-1]:
        parts.append(os.read(file, 1 << 20))
    return b"".join(parts)


def read_pipe(file: int) -> bytes:
    """What an open pipe gives until its end. `OSError` for more than MAX_PIPED bytes."""
    parts, size = [], 0
    while part := os.read(file, 1 << 20):
        parts.append(part)
        size += len(part)
        if size > MAX_PIPED:
            raise OSError(errno.EFBIG, f"gives more than {MAX_PIPED} bytes: write a file")
    return b"".join(parts)


def write_whole(path: str | os.PathLike[str], pieces: Iterable[bytes | memoryview], failed: str) -> None:
    """Put a file in place: whole and at once, or nothing at all.

    A file that is there is replaced, so that processes which have it mapped keep the old one. A pipe that somebody
    reads, or a device, such as `/dev/stdout`, is written to. `OSError` that begins with `failed`.
    """
    target = os.path.realpath(path)
    plain = os.path.isfile(target) or not os.path.exists(path)  # `/dev/stdout` may be a pipe, which has no real path
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
    """A descriptor of a pipe or a device, for writing. `OSError`, and no wait, for a pipe that nobody reads."""
    try:
        file = os.open(path, os.O_WRONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(error.errno, "is a pipe that nobody reads") from None
        raise
    if hasattr(os, "set_blocking"):
        os.set_blocking(file, True)
    return file


def no_file(mode: int, path: str | os.PathLike[str]) -> OSError:
    """The error for something that is not a regular file; it says what it is."""
    word = next((word for test, word in _KINDS if test(mode)), "thing of an unknown kind")
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
