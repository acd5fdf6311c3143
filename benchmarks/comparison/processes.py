"""Processes of one version: `vm-compile`, whole, and workers, which load a module and time blocks of calls."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .programs import Program

#: device -> the target to compile for
TARGETS = {"vulkan": "spirv", "opencl": "opencl", "reference": "reference"}

WORKER = """
import json, sys, time
import numpy as np
from orchestrion import vm

module, device, resident, cases = sys.argv[1:]
program = vm.load(module, device=device, allow_native_code=True)
(function,) = program.functions.values()
calls = []
for inputs in json.loads(cases):
    arguments, out = [np.load(path) for path in inputs], {}
    if resident == "yes":
        result = function(*arguments)
        arguments, out = [program.put(array) for array in arguments], {"out": program.put(np.zeros_like(result))}
    for _ in range(3):
        function(*arguments, **out)
    calls.append((arguments, out))
print(json.dumps("ready"), flush=True)
for line in sys.stdin:
    case, count = map(int, line.split())
    arguments, out = calls[case]
    start, processor = time.perf_counter(), time.process_time()
    for _ in range(count):
        function(*arguments, **out)
    spent = time.perf_counter() - start, time.process_time() - processor
    print(json.dumps([seconds / count for seconds in spent]), flush=True)
"""


@dataclass(frozen=True)
class Version:
    """The folder that holds `orchestrion/`, and a folder for its bytecode, caches and modules."""

    folder: Path
    work: Path

    def environment(self) -> dict[str, str]:
        """Bytecode files are written, as in an installed package, but not into the version's folder."""
        kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        paths = {"PYTHONPATH": self.folder, "ORCHESTRION_HOME": self.work / "home", "PYTHONPYCACHEPREFIX": self.work}
        return kept | {key: str(path) for key, path in paths.items()}

    def compile_command(self, source: Path, target: str, module: Path, flags: tuple[str, ...]) -> list[str]:
        command = [sys.executable, "-m", "orchestrion.tools.compile", str(source), "-o", str(module), "--quiet"]
        return [*command, f"--target={target}", *flags]


class Worker:
    """A process in which one version times calls of one program."""

    def __init__(self, version: Version, module: Path, device: str, resident: bool, cases: list[list[str]]) -> None:
        script = version.work / "worker.py"
        script.write_text(WORKER)
        words = [str(script), str(module), device, "yes" if resident else "no", json.dumps(cases)]
        self._process = subprocess.Popen(
            [sys.executable, *words],
            env=version.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answer()

    def seconds(self, case: int, calls: int) -> tuple[float, float]:
        """The seconds of a call in a block of `calls`: elapsed time and processor time."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{case} {calls}\n")
        self._process.stdin.flush()
        wall, processor = self._answer()
        return wall, processor

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"a version ended with {self._process.wait()}")
        return json.loads(line)


class Compiled:
    """A program as a module of each version, and its arguments in files."""

    def __init__(self, versions: list[Version], program: Program, device: str, work: Path) -> None:
        self._versions, self._device, self._resident = versions, device, program.resident
        source = work / "program.mlir"
        source.write_text(program.text)
        self._modules = [version.work / "module.fb" for version in versions]
        for version, module in zip(versions, self._modules, strict=True):
            command = version.compile_command(source, TARGETS[device], module, program.flags)
            subprocess.run(command, env=version.environment(), check=True)
        self._cases = [saved(work, number, arrays) for number, arrays in enumerate(program.cases.values())]

    def worker(self, side: int) -> Worker:
        return Worker(self._versions[side], self._modules[side], self._device, self._resident, self._cases)


def saved(work: Path, case: int, arrays: list[Any]) -> list[str]:
    """The paths of files with the arrays."""
    paths = [work / f"{case}.{number}.npy" for number in range(len(arrays))]
    for path, array in zip(paths, arrays, strict=True):
        np.save(path, array)
    return [str(path) for path in paths]
