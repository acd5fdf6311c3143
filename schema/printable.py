"""Text from files and programs, as lines that are shown may hold it."""


def printable(line: str) -> str:
    """The line with `?` for every character that is not printable: terminals obey some, and lines end at others."""
    return line if line.isprintable() else "".join([one if one.isprintable() else "?" for one in line])
