"""Packed weights on the device `cpu`: kept in the cache, mapped from there, and packed anew if the row is not sound."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from image_runner import levels_here

pytest.importorskip("llvmlite")
pytest.importorskip("jax")

import jax

from orchestrion import compiler, vm
from orchestrion.hal import registry
from orchestrion.hal.cache import Cache
from orchestrion.hal.cpu import buffer as cpu_buffer

RNG = np.random.default_rng(7)
X = RNG.standard_normal((64, 320)).astype(np.float32)
#: packed, it has whole pages and a part of one
W = RNG.standard_normal((320, 72)).astype(np.float32)
PACKED_BYTES = 320 * 72 * 4
PAGE = 4096


@pytest.fixture(scope="module")
def blob() -> bytes:
    """The reference program reads the constant in another layout, so the program of `cpu` packs it at load."""
    return compiled(W)


def compiled(weights: Any) -> bytes:
    """For all levels that this machine runs."""
    lowered = jax.jit(lambda x: x @ weights).lower(X)
    return compiler.compile(lowered, targets=["cpu", "reference"], target_cpu=levels_here())


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ORCHESTRION_CACHE", str(tmp_path))
    return tmp_path / "derived"


def row(folder: Path) -> Path:
    (found,) = folder.iterdir()
    return found


def launches(blob: bytes, weights: Any = W, mapped: Path | None = None) -> int:
    """Dispatches of a load. The result of a call is right. `mapped`: a row whose pages the program uses."""
    program = vm.load(blob, device="cpu", allow_native_code=True)
    try:
        if mapped is not None:
            assert str(mapped) in Path("/proc/self/maps").read_text()
        np.testing.assert_allclose(program.main(X), X @ weights, rtol=1e-4, atol=1e-3)
        return int(program.statistics()["load"]["dispatches"])
    finally:
        program.close()


def test_weights_are_packed_once(blob: bytes, folder: Path) -> None:
    assert launches(blob) == 1
    assert row(folder).stat().st_size - PACKED_BYTES == 72
    assert [launches(blob, mapped=row(folder)) for _ in range(2)] == [0, 0]


def test_the_row_may_go_while_it_is_mapped(blob: bytes, folder: Path) -> None:
    launches(blob)
    program = vm.load(blob, device="cpu", allow_native_code=True)
    row(folder).unlink()
    np.testing.assert_allclose(program.main(X), X @ W, rtol=1e-4, atol=1e-3)
    program.close()
    assert launches(blob) == 1


def test_rows_on_file_systems_of_other_hosts_are_copied(
    blob: bytes, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_buffer, "LOCAL_FILE_SYSTEMS", frozenset())
    assert [launches(blob), launches(blob)] == [1, 0]
    with pytest.raises(AssertionError):
        launches(blob, mapped=row(folder))


def _flipped(place: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "first byte": _flipped(0),
    "middle": _flipped(PACKED_BYTES // 2),
    "part of a page": _flipped(PACKED_BYTES - 1),
    "magic number": _flipped(PACKED_BYTES),
    "key": _flipped(PACKED_BYTES + 8),
    "check": _flipped(PACKED_BYTES + 71),
    "zero page": lambda data: bytes(PAGE) + data[PAGE:],
    "pages exchanged": lambda data: data[PAGE : 2 * PAGE] + data[:PAGE] + data[2 * PAGE :],
    "cut off": lambda data: data[:-1],
    "cut at a page": lambda data: data[:PAGE],
    "longer": lambda data: data + b"\0",
    "empty": lambda data: b"",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_row_is_packed_anew(blob: bytes, folder: Path, damage: Callable[[bytes], bytes]) -> None:
    launches(blob)
    whole = row(folder).read_bytes()
    row(folder).write_bytes(damage(whole))
    assert launches(blob) == 1
    assert row(folder).read_bytes() == whole
    assert launches(blob) == 0


def test_rows_of_other_weights_are_not_used(blob: bytes, folder: Path) -> None:
    launches(blob)
    first = row(folder)
    other = compiled(2 * W)
    assert launches(other, 2 * W) == 1
    (second,) = set(folder.iterdir()) - {first}
    first.rename(folder / "x")
    second.rename(first)
    (folder / "x").rename(second)
    assert [launches(blob), launches(other, 2 * W)] == [1, 1]


def test_a_row_of_another_level_is_not_used(blob: bytes, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of a row has the features of the processor, which decide about the level."""
    assert launches(blob) == 1
    driver = registry.load_driver("cpu")
    (info,) = driver.devices()
    levels = {name for name in info.features if name.startswith("x86-64-v")}
    if len(levels) < 2:
        pytest.skip("the processor has one level")
    lesser = replace(info, features=info.features - {max(levels, key=lambda name: (len(name), name))})
    monkeypatch.setattr(driver, "devices", lambda: [lesser])
    monkeypatch.setattr(registry, "load_driver", lambda name: driver)
    assert [launches(blob), launches(blob)] == [1, 0]
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize("cache", ["off", "file"])
def test_without_a_cache(blob: bytes, folder: Path, cache: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = folder.parent / "file"
    place.touch()
    monkeypatch.setenv("ORCHESTRION_CACHE", "off" if cache == "off" else str(place))
    assert [launches(blob), launches(blob)] == [1, 1]
    assert not folder.exists()


def test_a_cache_that_can_only_be_read(blob: bytes, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launches(blob)
    other = compiled(2 * W)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "read-only file system")

    monkeypatch.setattr(Cache, "_write", refuse)
    monkeypatch.setattr(os, "utime", refuse)
    assert [launches(other, 2 * W), launches(other, 2 * W)] == [1, 1]
    assert launches(blob) == 0


def test_processes_that_write_the_row_at_once(blob: bytes, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "module.fb").write_bytes(blob)
    np.savez(tmp_path / "values.npz", x=X, want=X @ W)
    code = """
import sys
import numpy as np
from orchestrion import vm
values = np.load(sys.argv[1] + "/values.npz")
for _ in range(3):
    program = vm.load(sys.argv[1] + "/module.fb", device="cpu", allow_native_code=True)
    np.testing.assert_allclose(program.main(values["x"]), values["want"], rtol=1e-4, atol=1e-3)
    program.close()
"""
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for process in processes:
        _, said = process.communicate()
        assert process.returncode == 0, said
    assert len(list(folder.iterdir())) == 1
    assert launches(blob) == 0
