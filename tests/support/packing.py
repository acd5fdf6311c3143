"""`vm-pack` in a process of its own, for its tests (the fixture `pack` of `tests/tools/conftest.py`)."""

import subprocess
from collections.abc import Callable

Pack = Callable[..., "subprocess.CompletedProcess[str]"]


def refused(done: "subprocess.CompletedProcess[str]", status: int, *words: str) -> None:
    """Ended with this status and one line that says why (2: after the usage), without a traceback."""
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert status == 2 or done.stderr.count("\n") == 1, done.stderr
    for word in words:
        assert word in done.stderr, done.stderr
