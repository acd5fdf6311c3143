"""Applications frozen by PyInstaller from the wheel in a separate environment.

`examples/app` is frozen as a folder and `frozen_probe.py` as one file. This takes minutes and needs a package index, so
it runs only if ORCHESTRION_FROZEN_APP is set.
"""

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest

from orchestrion.schema.container import open_bytes
from orchestrion.schema.decoder import decode
from orchestrion.schema.hints import install

ROOT = Path(__file__).parents[2]
SUPPORT = Path(__file__).parents[1] / "support"
PACKAGES = ("pyinstaller>=6.10", "setuptools")
#: seconds for PyInstaller, on a machine that is busy
LONG = 900.0
#: format of device code -> the device that runs it
DEVICES = {"tensor-bytecode": "reference", "spirv": "vulkan"}

pytestmark = [
    pytest.mark.skipif("ORCHESTRION_FROZEN_APP" not in os.environ, reason="minutes: make frozen-app"),
    pytest.mark.skipif(sys.platform != "linux", reason="tried on Linux only"),
]

Done = subprocess.CompletedProcess[str]


def run(*command: str | Path, cwd: Path, **environment: str) -> Done:
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=LONG,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | environment,
    )


def checked(*command: str | Path, cwd: Path, **environment: str) -> Done:
    done = run(*command, cwd=cwd, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands folder of an environment with PyInstaller and the wheel of what git tracks."""
    folder = tmp_path_factory.mktemp("environment")
    with zipfile.ZipFile(folder / "source.zip", "w") as source:
        for name in checked("git", "ls-files", "-z", cwd=ROOT).stdout.split("\0")[:-1]:
            if (ROOT / name).is_file():
                source.write(ROOT / name, name)
    with zipfile.ZipFile(folder / "source.zip") as source:
        source.extractall(folder / "source")
    checked(sys.executable, "-m", "build", "--wheel", "-o", folder, folder / "source", cwd=folder)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "env", with_pip=True)
    checked(folder / "env/bin/python", "-m", "pip", "install", "-q", f"{wheel}[vulkan,sign]", *PACKAGES, cwd=folder)
    return folder / "env/bin"


def environment(folder: Path) -> dict[str, str]:
    """Environment variables of a user without compilers, whose Python is broken."""
    settings = {"ORCHESTRION_HOME": "home", "ORCHESTRION_CACHE": "cache", "PYTHONPATH": "none", "PYTHONHOME": "none"}
    return {name: str(folder / value) for name, value in settings.items()}


@pytest.fixture(scope="module")
def app(commands: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example as its script builds it; the folder in which it was built is deleted."""
    folder = tmp_path_factory.mktemp("build")
    path = f"{commands}{os.pathsep}{os.environ['PATH']}"
    checked("sh", ROOT / "examples/app/build.sh", folder, cwd=folder, PATH=path, ORCHESTRION_HOME=str(folder / "home"))
    moved = tmp_path_factory.mktemp("installed") / "app"
    shutil.move(folder / "dist/app", moved)
    for name in ("model.fb", "unsigned.fb", "publisher.pem"):
        shutil.move(folder / name, moved.parent / name)
    shutil.rmtree(folder)
    return moved / "app"


def start(app: Path, folder: Path, *arguments: str | Path) -> Done:
    return run(app, *arguments, cwd=folder, **environment(folder))


@pytest.mark.parametrize("device", ["reference", "vulkan"])
def test_it_runs_its_signed_module(app: Path, tmp_path: Path, device: str) -> None:
    done = start(app, tmp_path, f"--device={device}")
    if device == "vulkan" and "no device" in done.stderr:
        pytest.skip(done.stderr)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[ 10.  40.  90. 160.]\n", "")


def refused(done: Done) -> str:
    """Checks for status 1, one line on standard error, and no output; returns the line."""
    assert done.returncode == 1 and done.stdout == "", done.stdout + done.stderr
    (line,) = done.stderr.splitlines()
    assert " is refused: " in line and "Traceback" not in line
    return line


def changed(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]


def test_it_refuses_what_was_tampered_with(app: Path, tmp_path: Path) -> None:
    """A changed byte in root, directory or signature."""
    good = (app.parent.parent / "model.fb").read_bytes()
    file = open_bytes(good)
    (signature,) = file.attachments
    at_signature = good.index(bytes(signature.data))
    for at in [*range(8, file.spans[0][0], 200), at_signature + 8, at_signature + 100, len(good) - 1]:
        (tmp_path / "changed.fb").write_bytes(changed(good, at))
        refused(start(app, tmp_path, "changed.fb"))
    (tmp_path / "whole.fb").write_bytes(good)
    assert start(app, tmp_path, "whole.fb").returncode == 0


@pytest.mark.parametrize("form", DEVICES)
def test_it_refuses_code_that_was_tampered_with(app: Path, tmp_path: Path, form: str) -> None:
    """On the device that would run the code. A load does not check code that it does not use."""
    good = (app.parent.parent / "model.fb").read_bytes()
    file = open_bytes(good)
    module = decode(file)
    (payload,) = [row.payload for row in module.variants if module.strings[row.format] == form]
    offset, size = file.spans[payload]
    (tmp_path / "changed.fb").write_bytes(changed(good, offset + size // 2))
    for other, device in DEVICES.items():
        done = start(app, tmp_path, "changed.fb", f"--device={device}")
        if "no device" in done.stderr:
            pytest.skip(done.stderr)
        if other == form:
            assert f"segment {payload}" in refused(done)
        else:
            assert done.returncode == 0, done.stderr


def test_it_refuses_its_own_module_if_that_was_changed(app: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(app.parent, copy, symlinks=True)
    path = copy / "_internal/model.fb"
    path.write_bytes(changed(path.read_bytes(), 200))
    refused(start(copy / "app", tmp_path))


def test_it_refuses_what_others_signed_or_nobody(app: Path, commands: Path, tmp_path: Path) -> None:
    assert "sign" in refused(start(app, tmp_path, app.parent.parent / "unsigned.fb"))
    pack = commands / "vm-pack"
    checked(pack, "keygen", "--type=ed25519", "-o", "other.pem", cwd=tmp_path)
    checked(pack, "sign", app.parent.parent / "unsigned.fb", "--key=other.pem", "-o", "other.fb", cwd=tmp_path)
    assert "is not in the keys file" in refused(start(app, tmp_path, "other.fb"))


@pytest.fixture(scope="module")
def probe(commands: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file, which unpacks itself when it starts."""
    folder = tmp_path_factory.mktemp("probe")
    script = SUPPORT / "frozen_probe.py"
    checked(commands / "pyinstaller", "--onefile", "--log-level=WARN", "--distpath=.", script, cwd=folder)
    return folder / "frozen_probe"


def probed(probe: Path, module: Path, folder: Path, *arguments: str) -> dict[str, Any]:
    done = start(probe, folder, module, *arguments)
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    if said["drivers"]["vulkan"]:
        pytest.skip(said["drivers"]["vulkan"])
    return said


PRODUCT = [1.0, 4.0, 9.0, 16.0]


def test_code_of_strangers_is_built_in_a_child(app: Path, probe: Path, tmp_path: Path) -> None:
    from orchestrion.hal.vulkan.trial_build import MEMORY_BYTES

    said = probed(probe, app.parent.parent / "model.fb", tmp_path)
    assert said["frozen"] is True
    assert said["drivers"].keys() == {"null", "reference", "opencl", "vulkan"}
    assert install("opencl") in said["drivers"]["opencl"]
    assert said["libraries"] == ["blas", "lapack"]
    assert said["reference"] == said["vulkan"] == said["vulkan without a deadline"] == PRODUCT
    assert said["vulkan in no time"].startswith("BuildDeadlineExceeded: ")
    assert said["limits"] == {"Max data size": MEMORY_BYTES, "Max core file size": 0}


def test_without_freeze_support_the_way_on_is_named(app: Path, probe: Path, tmp_path: Path) -> None:
    said = probed(probe, app.parent.parent / "model.fb", tmp_path, "late")
    assert said["reference"] == said["vulkan without a deadline"] == PRODUCT
    for reason in (said["vulkan"], said["limits"]):
        assert "frozen_probe is an application and no Python" in reason
        assert "calls orchestrion.vm.freeze_support() at the top of its main" in reason
    assert said["vulkan"].startswith("DeviceError: ") and "build_deadline=inf" in said["vulkan"]
