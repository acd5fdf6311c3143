"""Tests with Intel's OpenCL runtime for CPUs, a second OpenCL driver: conformance, the driver's own tests, programs.

Each test runs a child process in which Intel's is the only OpenCL platform. So PoCL stays device 0 of all other tests,
and the compilers of the two are never loaded into one process.
"""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrion.hal.cts import catalogue

ROOT = Path(__file__).parents[2]
#: the folder into which `.ci/drivers` unpacks it
RUNTIME = Path(sys.prefix) / "intel-opencl"
ALL = os.environ.get("ORCHESTRION_REAL_PROGRAMS") == "all"
#: seconds that a process may take
TIMEOUT = 7200 if ALL else 900
#: programs of every kind that have few kernels to build
SAMPLE = "opencl and (mlp or softmax or while or gather or sort or warm)"


def run(arguments: Sequence[str]) -> str:
    """The output of a Python process on Intel's runtime, which must succeed."""
    pytest.importorskip("pyopencl")
    if not (RUNTIME / "intel.icd").exists():
        pytest.skip("no Intel OpenCL runtime: `make drivers` unpacks it on Linux on x86-64")
    if " " in str(RUNTIME.resolve()):
        pytest.skip("Intel's OpenCL runtime opens no device if there is a blank in the path of its folder")
    environment = os.environ | {"OCL_ICD_VENDORS": str(RUNTIME)}
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
    return done.stdout


def run_tests(*arguments: str) -> str:
    return run(["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", *arguments])


def test_it_is_the_only_platform() -> None:
    said = run(["-m", "orchestrion.tools.run", "--list-devices"])
    assert "Intel(R) Corporation" in said and "PoCL" not in said and "opencl:1" not in said
    assert "calls replay command buffers" in said


@pytest.mark.long
def test_conformance() -> None:
    """One process for all groups, because starting one for each took three times as long as the cases."""
    said = run_tests("--pyargs", "orchestrion.hal.cts", "--hal-driver=opencl")
    found = re.search(r"(\d+) passed", said)
    assert found is not None and int(found[1]) > len(catalogue.CASES) // 2, said


def test_recordings() -> None:
    """Tests of binding tables, batches, mutable dispatch and caches; none is skipped on this runtime."""
    said = run_tests("tests/hal/test_opencl.py", "-k", "not conformance")
    assert "passed" in said and "mutable" not in said


@pytest.mark.long
def test_programs() -> None:
    """A sample of the programs of `test_devices.py`; all of them, and the real programs, if all are asked for."""
    files = ["tests/e2e/test_devices.py", *(["tests/e2e/test_real_programs.py"] if ALL else [])]
    assert "passed" in run_tests(*files, "-k", "opencl" if ALL else SAMPLE)


def test_interoperability() -> None:
    files = [f"tests/e2e/{name}.py" for name in ("test_native_events", "test_native_buffers", "test_shared_memory")]
    assert "passed" in run_tests(*files, "-k", "(opencl or cl_mem or kernel) and not vulkan")
