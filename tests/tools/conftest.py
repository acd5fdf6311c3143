"""Runs `vm-pack` as a user does."""

import os
import subprocess
from pathlib import Path

import pytest
from packing import Pack


@pytest.fixture
def pack(tmp_path: Path, command_folder: Path) -> Pack:
    """Runs `vm-pack COMMAND ...` in `tmp_path`; `input` is its standard input."""

    def run(*arguments: str | Path, input: str = "") -> "subprocess.CompletedProcess[str]":
        command = [str(command_folder / "vm-pack"), *map(str, arguments)]
        return subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, env=dict(os.environ), input=input, timeout=120
        )

    return run
