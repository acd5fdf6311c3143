"""Modules from elsewhere on Vulkan: loaded by way of the helper process, and refused at the build deadline."""

import math
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from orchestrion import compiler, vm
from orchestrion.hal.errors import InvalidArgument
from orchestrion.tools import bench, run

EXAMPLES = Path(__file__).parents[2] / "examples"
X, Y = np.array([1, 2, 3, 4], np.float32), np.array([5, 6, 7, 8], np.float32)
INPUTS = ["--input=4xf32=1,2,3,4", "--input=4xf32=5,6,7,8"]


@pytest.fixture
def module(needs_vulkan: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that is not in the trust store, as one from somebody else. Nothing is built yet."""
    path = tmp_path / "module.fb"
    path.write_bytes(compiler.compile((EXAMPLES / "simple_mul.mlir").read_text(), targets=["spirv"]))
    monkeypatch.setenv("ORCHESTRION_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ORCHESTRION_CACHE", str(tmp_path / "cache"))
    return path


def test_a_module_from_elsewhere_runs(module: Path) -> None:
    from orchestrion.hal.vulkan import trial_build

    trial_build.helper.end()
    program = vm.load(module, device="vulkan")
    assert trial_build.helper.pid is not None
    np.testing.assert_array_equal(program.simple_mul(X, Y), X * Y)
    program.close()


def test_a_module_compiled_here_needs_no_helper(module: Path, tmp_path: Path) -> None:
    from orchestrion.hal.vulkan import trial_build

    path = tmp_path / "own.fb"
    compiler.compile_to_file((EXAMPLES / "simple_mul.mlir").read_text(), path, targets=["spirv"])
    trial_build.helper.end()
    program = vm.load(path, device="vulkan")
    np.testing.assert_array_equal(program.simple_mul(X, Y), X * Y)
    program.close()
    assert trial_build.helper.pid is None


def test_its_deadline_is_named(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from orchestrion.hal.vulkan import trial_build
    from orchestrion.schema.child_process import Child

    started = time.monotonic()
    with monkeypatch.context() as patch:
        patch.setattr(trial_build, "helper", Child("faulty_builds:spin"))
        with pytest.raises(vm.errors.BuildDeadlineExceeded, match=r"build deadline of 0\.3 s") as caught:
            vm.load(module, device="vulkan", build_deadline=0.3)
    assert time.monotonic() - started < 120
    assert caught.value.chain, "the place in the program that asked for the code"
    for deadline in (None, math.inf):
        program = vm.load(module, device="vulkan", build_deadline=deadline)
        np.testing.assert_array_equal(program.simple_mul(X, Y), X * Y)
        program.close()


FROZEN = """
import sys
sys.path[:], sys.frozen, sys.executable = {path!r}, True, {executable!r}
from orchestrion import vm
from orchestrion.hal.vulkan.trial_build import helper
{first}
import numpy as np
try:
    program = vm.load({module!r}, device="vulkan")
except vm.errors.DeviceError as error:
    print(error)
else:
    print(program.simple_mul(np.arange(4, dtype="f"), np.arange(4, dtype="f")).tolist(), helper.pid is not None)
"""


@pytest.mark.skipif(os.name != "posix", reason="the application is a shell script")
@pytest.mark.parametrize("supported", [True, False])
def test_a_frozen_application(module: Path, tmp_path: Path, supported: bool) -> None:
    """Its executable, started again, is the helper. It was refused before, whatever the application called."""
    app, source = tmp_path / "app", tmp_path / "source"
    first = "vm.freeze_support()" if supported else ""
    source.write_text(FROZEN.format(path=sys.path, executable=str(app), first=first, module=str(module)))
    app.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{source}" "$@"\n')
    app.chmod(0o755)
    done = subprocess.run([str(app)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    if supported:
        assert done.stdout == "[0.0, 1.0, 4.0, 9.0] True\n"
    else:
        assert "calls orchestrion.vm.freeze_support() at the top" in done.stdout and "build_deadline=inf" in done.stdout


def test_a_crash_of_the_driver_is_an_error(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from orchestrion.hal.vulkan import trial_build
    from orchestrion.schema.child_process import Child

    monkeypatch.setattr(trial_build, "helper", Child("faulty_builds:crash"))
    with pytest.raises(vm.errors.DeviceError, match="crashed while building code of this module"):
        vm.load(module, device="vulkan")


def test_commands_take_it(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [str(module), "--device=vulkan", *INPUTS]
    assert run.main([*command, "--build-deadline=0.000001"]) == 1
    said = capsys.readouterr().err
    assert "build deadline of 1e-06 s" in said and len(said.splitlines()) < 5 and "Traceback" not in said
    assert run.main([*command, "--build-deadline=100", "--expected-output=4xf32=5,12,21,32"]) == 0
    assert bench.main([*command, "--build-deadline=inf", "--seconds=0.01"]) == 0


def test_it_is_above_zero(module: Path) -> None:
    with pytest.raises(InvalidArgument, match="not above 0"):
        vm.load(module, device="vulkan", build_deadline=-1)
