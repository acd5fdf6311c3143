"""A shell for the commands that pages show: the package's commands on the path, a folder, a trust store and caches of
its own. Pages speak from the root of the repository, so `examples/` is there.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: runs a command line, gives what it prints
Shell = Callable[[str], str]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory, command_folder: Path) -> Shell:
    folder = tmp_path_factory.mktemp("shell")
    (folder / "examples").symlink_to(ROOT / "examples")
    environment = {
        "PATH": os.pathsep.join((str(command_folder), str(Path(sys.executable).parent), os.environ["PATH"])),
        "ORCHESTRION_HOME": str(folder / ".home"),
        "ORCHESTRION_CACHE": str(folder / ".cache"),
    }

    def run(command: str) -> str:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            capture_output=True,
            text=True,
            cwd=folder,
            env=os.environ | environment,
            timeout=120,
        )
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
        return done.stdout

    return run


@pytest.fixture(scope="module")
def missing_drivers(shell: Shell) -> dict[str, str]:
    """The drivers without a device here: name -> why."""
    return dict(re.findall(r"^(\w+): not available: (.*)$", shell("vm-run --list-devices"), re.MULTILINE))
