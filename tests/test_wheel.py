"""The built wheel in a clean environment, without the repository: a module from here runs there."""

import json
import subprocess
import sys
import venv
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest
from cpu_devices import best_level

from orchestrion.compiler import compile as compile_text
from orchestrion.schema.hints import install

ROOT = Path(__file__).parent.parent
INPUTS = ("--input=4xf32=1,2,3,4", "--input=4xf32=10,20,30,40")


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from what git tracks, so that a file nobody added is missing here too."""
    folder = tmp_path_factory.mktemp("wheel")
    tracked = run("git", "archive", "--format=zip", "-o", folder / "source.zip", "HEAD", cwd=ROOT)
    if tracked.returncode:
        pytest.skip(f"not a git checkout: {tracked.stderr.strip()}")
    with zipfile.ZipFile(folder / "source.zip") as source:
        source.extractall(folder / "source")
    done = run(sys.executable, "-m", "build", "--wheel", "-o", folder, folder / "source", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(folder.glob("*.whl"))


@pytest.mark.long
def test_the_wheel_stands_alone(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    done = run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    program = tmp_path / "simple_mul.mlir"
    program.write_bytes((ROOT / "examples" / "simple_mul.generic.mlir").read_bytes())
    done = run(python.parent / "vm-compile", program, "-o", "simple_mul.fb", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run(python.parent / "vm-run", "simple_mul.fb", *INPUTS, "--expected-output=4xf32=10,40,90,160", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 of 1 results are as expected" in done.stdout
    if best_level() and find_spec("llvmlite") is not None:
        check_native_code(python, tmp_path)
    listed = run(python.parent / "vm-run", "--list-devices", cwd=tmp_path)
    assert install("opencl") in listed.stdout and install("vulkan") in listed.stdout
    check_conformance_suite(python, tmp_path)
    check_types(python, tmp_path)


def check_native_code(python: Path, folder: Path) -> None:
    """A module that was compiled elsewhere for the device `cpu` runs on it with NumPy and flatbuffers alone."""
    module = compile_text((ROOT / "examples" / "simple_mul.generic.mlir").read_text(), targets=["cpu"])
    (folder / "native.fb").write_bytes(module)
    done = run(python, "-c", "import llvmlite", cwd=folder)
    assert done.returncode == 1, "llvmlite is there"
    options = ("--allow-native-code", "--device=cpu", "--expected-output=4xf32=10,40,90,160")
    done = run(python.parent / "vm-run", "native.fb", *INPUTS, *options, cwd=folder)
    assert done.returncode == 0, done.stderr


#: what a user's checker must know of the runtime: lines with the type that is revealed
TYPED = """
import pickle
from orchestrion import vm
program = vm.load("model.fb", device="vulkan", build="lazy")
reveal_type(program)  # orchestrion.vm.program.Program
reveal_type(program.digest)  # str"
reveal_type(vm.__version__)  # str"
reveal_type(program.put([1.0]))  # orchestrion.vm.array.DeviceArray
reveal_type(program.functions)  # typing.Mapping
with program as same:
    reveal_type(same)  # orchestrion.vm.program.Program
    same.main.on_device(1, donate=0)
vm.load("model.fb", devise="vulkan")  # error: Unexpected keyword argument "devise"
program.statistics() + 1  # error: Unsupported operand types
"""


def check_types(python: Path, folder: Path) -> None:
    """mypy, which knows nothing of this repository, finds the types of the installed package."""
    (folder / "user.py").write_text(TYPED)
    done = run(sys.executable, "-m", "mypy", "--strict", f"--python-executable={python}", "user.py", cwd=folder)
    said = done.stdout.splitlines()
    for number, line in enumerate(TYPED.splitlines(), 1):
        code, _, wanted = line.partition("  # ")
        of_line = [one for one in said if one.startswith(f"user.py:{number}: ")]
        assert (wanted.removeprefix("error: ") in "".join(of_line)) if wanted else not of_line, (line, said)


def check_conformance_suite(python: Path, folder: Path) -> None:
    """The command runs where pytest is not, and the suite by pytest where it is; both write the report."""
    done = run(python, "-m", "orchestrion.hal.cts", "--device=null", "--report=by_command", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "null: conforms: " in done.stdout
    done = run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "pytest", cwd=folder)
    assert done.returncode == 0, done.stderr
    options = ("--hal-driver=null", "--cts-report=by_pytest", "-p", "no:cacheprovider", "-q")
    done = run(python, "-m", "pytest", "--pyargs", "orchestrion.hal.cts", *options, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    for way in ("by_command", "by_pytest"):
        (device,) = json.loads((folder / way / "conformance.json").read_text())["devices"]
        assert device["conforms"], device
        assert (folder / way / "conformance.html").stat().st_size > 10_000
