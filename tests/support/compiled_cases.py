"""Modules of the programs of tests, the text of each phase, and what JAX computes, made once in a run of the tests.

All worker processes of pytest-xdist read them from one folder of the run. The next run compiles them again.
"""

import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from phase_texts import dumped_texts

from orchestrion.compiler.driver import Compilation

_MODULE = "module.fb"
#: tells processes that a test starts where the folder of the run is
_FOLDER = "ORCHESTRION_TEST_CASES"


def folder_of_run(config: pytest.Config, factory: pytest.TempPathFactory) -> Path:
    """A folder that all worker processes of this run of pytest share, and processes that a test starts with pytest."""
    if _FOLDER not in os.environ:
        own = factory.getbasetemp()
        os.environ[_FOLDER] = str((own.parent if hasattr(config, "workerinput") else own) / "cases")
    return Path(os.environ[_FOLDER])


class CompiledCases:
    """Compiles programs for all targets. A program is known by its name. `folder`: where the results are kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def module(self, name: str, lowered: Callable[[], Any]) -> bytes:
        """The module file of a program. `lowered` makes what `compiler.compile` takes, if it is not compiled yet."""
        return (self._of(name, lowered) / _MODULE).read_bytes()

    def texts(self, name: str, lowered: Callable[[], Any]) -> dict[str, str]:
        """Phase -> its text, in the order of the phases, written while the module was compiled."""
        return dumped_texts(self._of(name, lowered) / "phases")

    def wanted(self, name: str, computed: Callable[[], Any]) -> Any:
        """What `computed` gives, the results that a program is to have."""
        file = self._folder / f"{name}.wanted"
        if not file.exists():
            self._folder.mkdir(exist_ok=True)
            part = file.with_suffix(f".{os.getpid()}")
            part.write_bytes(pickle.dumps(computed()))
            part.rename(file)  # a whole file appears at once
        return pickle.loads(file.read_bytes())

    def _of(self, name: str, lowered: Callable[[], Any]) -> Path:
        found = self._folder / name
        if not found.exists():
            self._folder.mkdir(exist_ok=True)
            made = Path(mkdtemp(prefix=f"{name}.", dir=self._folder))
            (made / "phases").mkdir()
            Compilation(dump=made / "phases").write(lowered(), made / _MODULE)
            try:
                made.rename(found)  # a whole folder appears at once
            except OSError:  # another worker was faster
                shutil.rmtree(made)
        return found
