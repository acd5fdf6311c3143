"""`vm-pack` as a user runs it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from packing import Pack


@pytest.fixture
def pack(tmp_path: Path) -> Pack:
    """Runs `vm-pack COMMAND ...` in `tmp_path`; `input` is its standard input."""

    def run(*arguments: str | Path, input: str = "") -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "orchestrion.tools.pack", *map(str, arguments)]
        return subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, env=dict(os.environ), input=input, timeout=120
        )

    return run
