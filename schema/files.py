"""Opening a regular file, where others may have put something else in its place: a pipe, a device, a folder, a link.

To open a pipe waits until another process writes into it, perhaps for ever; to read a device may never end.
"""

import errno
import os
import stat

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
