"""Makes text from files and programs safe to print in one line."""


def printable(line: str) -> str:
    """The line with `?` for every character that is not printable: terminals interpret some of them, and others end
    lines.
    """
    return line if line.isprintable() else "".join([one if one.isprintable() else "?" for one in line])
