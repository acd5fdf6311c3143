"""Makes text from files and programs safe to print: terminals interpret some characters."""


def printable(line: str) -> str:
    """The line with `?` for every character that is not printable, ends of lines included."""
    return line if line.isprintable() else "".join([one if one.isprintable() else "?" for one in line])


def printable_text(text: str) -> str:
    """The text with `?` for every character that is not printable, except for ends of lines and tabs."""
    return text if text.isprintable() else "".join([one if one.isprintable() or one in "\n\t" else "?" for one in text])
