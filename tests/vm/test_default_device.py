"""The device of a load that names none: which one it is, and when a warning says why it is not `cpu`."""

import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
from cpu_devices import best_level
from signed_modules import keys_file, signed

from orchestrion import compiler, vm
from orchestrion.hal.cpu.driver import CpuDriver
from orchestrion.hal.errors import DriverUnavailable
from orchestrion.schema.trust import keys

pytest.importorskip("llvmlite")
if not best_level():
    pytest.skip("the driver cpu has no device here", allow_module_level=True)

TEXT = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
X = np.arange(4, dtype=np.float32)


def compiled(*targets: str, level: str = "") -> bytes:
    return compiler.compile(TEXT, targets=targets, target_cpu=(level,) if level else best_level())


def device_of(module: bytes, **options: object) -> str:
    """The device that a load takes, on which the function is right."""
    with vm.load(module, **options) as program:  # type: ignore[arg-type]
        np.testing.assert_array_equal(program.main(X), X + X)
        return program.device.info.id


def silently(module: bytes, **options: object) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return device_of(module, **options)


def test_cpu_where_it_may_run() -> None:
    assert silently(compiled("reference", "cpu")) == "cpu"
    assert silently(compiled("cpu", "spirv", "reference")) == "cpu"


def test_modules_for_reference_alone_say_nothing() -> None:
    assert silently(compiled("reference")) == "reference"


def test_modules_without_a_program_for_cpu() -> None:
    with pytest.warns(
        vm.DeviceWarning, match=r"it has no program for cpu; compile it for cpu \(python -m pip install"
    ) as seen:
        program = vm.load(compiled("reference", "spirv"))
    assert program.device.info.id == "reference"
    assert [row.filename for row in seen] == [__file__]
    assert silently(compiled("reference", "spirv"), device="reference") == "reference"


def test_code_for_another_processor() -> None:
    other = "x86-64-v2" if best_level() == ("aarch64",) else "aarch64"
    with pytest.warns(vm.DeviceWarning, match=f"{other}.*compile it for this processor"):
        assert device_of(compiled("reference", "cpu", level=other)) == "reference"


def test_code_that_is_not_trusted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = compiled("reference", "cpu")
    monkeypatch.setenv("ORCHESTRION_HOME", str(tmp_path))
    with pytest.warns(vm.DeviceWarning, match="native-image is native code and .* was not compiled on this machine"):
        assert device_of(module) == "reference"
    assert silently(module, allow_native_code=True) == "cpu"


def test_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    def devices(_: CpuDriver) -> None:
        raise DriverUnavailable("the driver cpu runs on Linux, this is plan9")

    monkeypatch.setattr(CpuDriver, "devices", devices)
    with pytest.warns(vm.DeviceWarning, match="runs on Linux, this is plan9"):
        assert device_of(compiled("reference", "cpu")) == "reference"


def test_a_warning_that_is_an_error_leaves_nothing_open() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(vm.DeviceWarning):
            vm.load(compiled("reference", "opencl"))


def test_a_module_that_neither_runs() -> None:
    with pytest.raises(vm.errors.NoProgram, match="no program of the module runs on device reference"):
        vm.load(compiled("spirv"))


def test_a_pickle_chooses_again() -> None:
    pickled = pickle.dumps(vm.load(compiled("reference", "cpu")))
    assert pickle.loads(pickled).device.info.id == "cpu"
    named = pickle.dumps(vm.load(compiled("reference", "cpu"), device="reference"))
    assert pickle.loads(named).device.info.id == "reference"


def test_reopen_keeps_the_device() -> None:
    program = vm.load(compiled("reference", "cpu"))
    program.reopen()
    assert program.device.info.id == "cpu"


def test_signatures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A module of a stranger runs on `cpu` if a key for native code signed it; otherwise the policy refuses it."""
    pytest.importorskip("cryptography")
    key = keys.generate("ed25519")
    module = signed(compiled("reference", "cpu"), key)
    monkeypatch.setenv("ORCHESTRION_HOME", str(tmp_path))
    scopes = 'scopes = ["code", "weights", "native"]'
    assert silently(module, policy=keys_file(tmp_path / "native.toml", key, scopes)) == "cpu"
    with pytest.raises(vm.Untrusted, match="native code"):
        vm.load(module, policy=keys_file(tmp_path / "keys.toml", key))
