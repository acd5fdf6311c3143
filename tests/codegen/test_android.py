"""The example of an Android app is built by CMake for aarch64, and gives the results of the example's arrays."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
ANDROID = EXAMPLES / "android"


def test_the_library_runs_on_aarch64(tmp_path: Path) -> None:
    for command in ("cmake", "make", "aarch64-linux-gnu-gcc", "qemu-aarch64"):
        if shutil.which(command) is None:
            pytest.skip(f"{command} is not installed")
    toolchain = f"-DCMAKE_TOOLCHAIN_FILE={ANDROID / 'aarch64-linux.cmake'}"
    codegen = f"-DVM_CODEGEN:STRING={sys.executable};-m;orchestrion.tools.codegen"
    for step in (["-S", ANDROID, "-B", tmp_path, toolchain, codegen], ["--build", tmp_path]):
        done = subprocess.run(["cmake", *step], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    np.savetxt(tmp_path / "rows.txt", np.load(EXAMPLES / "mlp_input.npy"))
    run = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", tmp_path / "classify"]
    with (tmp_path / "rows.txt").open() as rows:
        done = subprocess.run(
            [*run, tmp_path / "generated" / "mlp.weights"], stdin=rows, capture_output=True, text=True
        )
    assert done.returncode == 0, done.stderr
    found = [(int(label), float(p)) for label, p in re.findall(r"class (\d+), probability ([\d.]+)", done.stdout)]
    want = np.load(EXAMPLES / "mlp_output.npy")
    assert [label for label, _ in found] == want.argmax(axis=1).tolist()
    np.testing.assert_allclose([p for _, p in found], want.max(axis=1), atol=1e-4)
    (tmp_path / "short").write_bytes(b"\0" * 64)
    refused = subprocess.run([*run, tmp_path / "short"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert refused.returncode == 1 and refused.stderr == "classify: no file of weights\n"
