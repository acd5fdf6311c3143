"""Pickled programs: what travels, what stays behind, and that another file is not taken for the one that was meant."""

import inspect
import multiprocessing
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrion import vm
from orchestrion.hal.registry import open_device
from orchestrion.schema.assembler import assemble
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.writer import write

X = np.array([1, 2, 3, 4], np.float32)
Y = np.array([5, -1, 0.5, 2], np.float32)

OTHER = 'attribute "model.name" = "other"\n'

#: parameters of `load` that a pickle does not say, and why
STAY = {
    "module": "the first of what it holds",
    "device": "the second",
    "allow_native_code": "trust",
    "policy": "trust",
    "signature": "trust",
    "progress": "of the load alone",
}


def test_every_option_of_load_travels_or_is_trust(tensors: bytes) -> None:
    with vm.load(tensors) as program:
        _, (_, _, options) = program.__reduce__()
    assert set(options) | set(STAY) == set(inspect.signature(vm.load).parameters)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_bytes_device_and_limits_travel(tensors: bytes, protocol: int) -> None:
    with vm.load(tensors, device="reference", fuel=np.int64(10_000), profiling=True) as program:
        with pickle.loads(pickle.dumps(program, protocol)) as again:
            np.testing.assert_array_equal(again.main(X, Y), program.main(X, Y))
            assert again.digest == program.digest and again.device.info.id == program.device.info.id
            assert again.context.limits == program.context.limits
            assert again.profile()


def test_a_file_is_opened_again_where_it_was(tensors: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "parts.bin").write_bytes(b"before" + tensors + b"behind")
    monkeypatch.chdir(tmp_path)
    with vm.load("parts.bin", offset=6, length=len(tensors)) as program:
        text = pickle.dumps(program)
    assert len(text) < len(tensors)
    monkeypatch.chdir("/")
    with pickle.loads(text) as again:
        np.testing.assert_array_equal(again.main(X, Y), X * Y + np.array([1, 2, 3, 4], np.float32))


def test_another_file_in_its_place_is_refused(tensors: bytes, tmp_path: Path) -> None:
    path = tmp_path / "module.fb"
    path.write_bytes(tensors)
    with vm.load(path) as program:
        text, digest = pickle.dumps(program), program.digest
    path.write_bytes(write(assemble(OTHER)))
    with pytest.raises(ModuleError, match=f"another module: its digest is [0-9a-f]{{64}}, {digest} expected"):
        pickle.loads(text)


def test_digest_of_load(tensors: bytes) -> None:
    with vm.load(tensors) as program:
        digest = program.digest
    vm.load(tensors, digest=digest.upper()).close()
    with pytest.raises(ValueError, match="digest is 'abc', 64 hexadecimal digits expected"):
        vm.load(tensors, digest="abc")


def test_trust_stays_behind(tensors: bytes) -> None:
    with vm.load(tensors, allow_native_code=True) as program, pickle.loads(pickle.dumps(program)) as again:
        assert program.device.policy.allow_native_code and not again.device.policy.allow_native_code


def test_an_open_device_travels_by_its_name(tensors: bytes) -> None:
    with open_device("reference") as device, vm.load(tensors, device) as program:
        with pickle.loads(pickle.dumps(program)) as again:
            assert again.device.info.id == "reference"
        with pytest.raises(ValueError, match="the device reference does not pickle: open it again by its name"):
            pickle.dumps(device)


def test_what_does_not_pickle_says_what_does(tensors: bytes) -> None:
    with vm.load(tensors) as program:
        things: list[tuple[Any, str]] = [
            (program.main, "the function 'main' does not pickle: pickle the program"),
            (program.put(X), "an array on a device does not pickle: pickle np.asarray"),
            (program.create_context(), "a context does not pickle: pickle the program"),
        ]
        for thing, message in things:
            with pytest.raises(TypeError, match=message):
                pickle.dumps(thing)
        with vm.load(tensors, modules={"other": program}) as user, pytest.raises(TypeError, match="of another program"):
            pickle.dumps(user)


def test_a_started_process_has_it(tensors: bytes) -> None:
    with vm.load(tensors, fuel=10_000) as program, multiprocessing.get_context("spawn").Pool(1) as pool:
        found, fuel = pool.apply(_run, (program,))
        np.testing.assert_array_equal(found, program.main(X, Y))
        assert fuel == 10_000


def _run(program: vm.Program) -> tuple[Any, Any]:
    return program.main(X, Y), program.context.limits.fuel


def test_reprs(tensors: bytes) -> None:
    with vm.load(tensors) as program:
        assert repr(program.device) == "<Device reference: NumPy>"
        assert repr(program).startswith("<Program on reference: main, two, ")
        assert repr(program.main) == "<Function main(x: f32[4], y: f32[4]) -> (f32[4])>"
    assert repr(program).startswith("<Program closed: main, two, ")
