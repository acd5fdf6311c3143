"""`--policy` and `--signature` of vm-run and vm-bench, also when two devices are compared."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cryptography")

from packing import refused
from signed_modules import detached, keys_file, signed

from orchestrion.schema.decoder import open_module
from orchestrion.schema.trust import keys
from orchestrion.tools.entries import entries_by_name

GOLDEN = Path(__file__).parents[1] / "golden" / "v1.0-simple_mul.fb"
INPUTS = ("--input=4xf32=1,2,3,4", "--input=4xf32=10,20,30,40")
RIGHT = "--expected-output=4xf32=10,40,90,160"

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def command(tmp_path: Path, command_folder: Path) -> Command:
    """`vm-NAME` in a folder where `m.fb` is signed in `s.fb` and by `m.sig`, with keys files `keys.toml` and
    `warn.toml`.
    """
    key, data = keys.generate("ed25519"), GOLDEN.read_bytes()
    (tmp_path / "m.fb").write_bytes(data)
    (tmp_path / "s.fb").write_bytes(signed(data, key))
    (tmp_path / "m.sig").write_bytes(detached(data, key))
    scopes = 'scopes = ["code", "weights", "native"]'
    keys_file(tmp_path / "keys.toml", key, scopes)
    keys_file(tmp_path / "warn.toml", key, scopes, '[policy]\nmode = "warn"')
    own = {"ORCHESTRION_HOME": str(tmp_path / "home"), "ORCHESTRION_CACHE": str(tmp_path / "cache")}

    def run(name: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        line = [str(command_folder / f"vm-{name}"), *arguments]
        return subprocess.run(line, capture_output=True, text=True, cwd=tmp_path, env=os.environ | own, timeout=120)

    return run


def test_run(command: Command) -> None:
    for arguments in (("s.fb", "--policy=keys.toml"), ("m.fb", "--policy=keys.toml", "--signature=m.sig")):
        done = command("run", *arguments, "--device=reference", *INPUTS, RIGHT)
        assert (done.returncode, done.stderr) == (0, "")
    refused(
        command("run", "m.fb", "--policy=keys.toml", "--device=reference", *INPUTS),
        1,
        "vm-run: module",
        "is not trusted: it is not signed",
    )
    refused(command("run", "m.fb", "--policy=nowhere.toml", "--device=reference", *INPUTS), 1, "nowhere.toml")
    refused(command("run", "m.fb", "--signature=m.sig", "--device=reference", *INPUTS), 2, "--signature needs --policy")
    done = command("run", "m.fb", "--policy=warn.toml", "--device=reference", *INPUTS, RIGHT)
    assert done.returncode == 0
    assert done.stderr.startswith("warning: module") and done.stderr.count("\n") == 1


def test_bench(command: Command) -> None:
    done = command("bench", "s.fb", "--policy=keys.toml", "--device=reference", "--seconds=0.01")
    assert (done.returncode, done.stderr) == (0, "")
    refused(
        command("bench", "m.fb", "--policy=keys.toml", "--device=reference", "--seconds=0.01"),
        1,
        "vm-bench: module",
        "it is not signed",
    )


def test_native_code_that_is_signed(command: Command) -> None:
    """Runs without `--allow-native-code`, also when dispatches are compared and replayed."""
    if "opencl: not available" in command("run", "--list-devices").stdout:
        pytest.skip("no OpenCL here")
    stranger = command("run", "s.fb", "--device=opencl", *INPUTS)
    assert stranger.returncode == 1 and "opencl-c is native code" in stranger.stderr
    done = command("run", "s.fb", "--device=opencl", "--policy=keys.toml", *INPUTS, RIGHT)
    assert (done.returncode, done.stderr) == (0, "")
    compared = command("run", "s.fb", "--device=opencl", "--compare=reference", "--policy=keys.toml", *INPUTS)
    assert compared.returncode == 0 and "agree" in compared.stdout, compared.stderr


def test_a_replayed_dispatch(command: Command, tmp_path: Path) -> None:
    """The folder that `--compare` saves, made by the test."""
    if "opencl: not available" in command("run", "--list-devices").stdout:
        pytest.skip("no OpenCL here")
    folder = tmp_path / "saved"
    folder.mkdir()
    x, y = np.array([1, 2, 3, 4], np.float32), np.array([10, 20, 30, 40], np.float32)
    for name, array in (("input-0", x), ("input-1", y), ("output-2", x * y)):
        np.save(folder / f"reference.{name}.npy", array)
    entry = next(iter(entries_by_name(open_module(tmp_path / "s.fb"), 0)))
    note = {
        "entry": entry,
        "ran": entry,
        "of_many": False,
        "workload": [4, 1, 1],
        "parameters": "",
        "right": "reference",
    }
    (folder / "dispatch.json").write_text(json.dumps(note))
    flags = ("--device=opencl", "--replay=saved")
    done = command("run", "s.fb", "--policy=keys.toml", *flags)
    assert done.returncode == 0 and "output 2, 4xf32, agrees" in done.stdout, done.stdout + done.stderr
    refused(command("run", "m.fb", "--policy=keys.toml", *flags), 1, "is not trusted: it is not signed")
    refused(command("run", "s.fb", *flags), 1, "opencl-c is native code")
