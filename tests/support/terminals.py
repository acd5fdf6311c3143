"""Pseudo terminals."""

import os


def read_all(terminal: int) -> str:
    """What was written to a pseudo terminal whose other end is closed."""
    found = b""
    while True:
        try:
            piece = os.read(terminal, 1 << 16)
        except OSError:  # Linux says so where the other end is closed
            piece = b""
        if not piece:
            os.close(terminal)
            return found.decode()
        found += piece
