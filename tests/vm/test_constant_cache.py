"""Derived constants on disk: found by all that they depend on, by nothing less; damage and absence cost time only."""

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrion import vm
from orchestrion.hal import registry, version
from orchestrion.hal.backend import DeviceInfo
from orchestrion.schema.assembler import assemble
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.writer import write
from orchestrion.vm.call import Call
from orchestrion.vm.errors import Trap
from orchestrion.vm.native import NativeModule, native

#: device -> profile
DEVICES = {"opencl": "opencl", "vulkan": "spirv"}
CONSTANT = bytes(range(1, 17))
#: the constant twice, one behind the other, in a buffer that the cache may know; `get` copies it
SOURCE = """
import @hal.constant (i32, i64, i64) -> hal.buffer
import @hal.allocate (i64) -> hal.buffer
import @hal.recording.create (i32) -> hal.recording
import @hal.recording.copy (hal.recording, hal.buffer, i32, i64, hal.buffer, i32, i64, i64) -> ()
import @hal.recording.finish (hal.recording) -> ()
import @hal.view.buffer (hal.view) -> hal.buffer
import @hal.execute (hal.recording, hal.buffer*) -> ()
import @hal.cache.load (hal.buffer, i32) -> i32
import @hal.cache.save (hal.buffer, i32) -> ()
{natives}
export @get () -> (z: tensor<32xi8>)
program @{profile} profile "{profile}" {{
  constant @c : tensor<16xi8> = hex "{constant}"
  global @derived : hal.buffer
  func @setup () -> () {{
    {call}
    %i0 = i32.const {number}
    %l0 = i64.const 0
    %l1 = i64.const 16
    %l2 = i64.const 32
    %r0 = call_import @hal.allocate(%l2)
    global.store.ref %r0, @derived
    %i1 = call_import @hal.cache.load(%r0, %i0)
    br_if %i1, ^known, ^compute
  ^compute:
    %i2 = i32.const 0
    %r1 = call_import @hal.constant(%i2, %l0, %l1)
    %r2 = call_import @hal.recording.create(%i2)
    call_import @hal.recording.copy(%r2, %r1, %i2, %l0, %r0, %i2, %l0, %l1)
    call_import @hal.recording.copy(%r2, %r1, %i2, %l0, %r0, %i2, %l1, %l1)
    call_import @hal.recording.finish(%r2)
    call_import @hal.execute(%r2)
    call_import @hal.cache.save(%r0, %i0)
  ^known:
    return ()
  }}
  func @get (hal.view) -> hal.view {{
    %i0 = i32.const 0
    %i1 = i32.const 1
    %l0 = i64.const 0
    %l1 = i64.const 32
    %r1 = call_import @hal.recording.create(%i1)
    %r2 = global.load.ref @derived
    %r3 = ref.null
    call_import @hal.recording.copy(%r1, %r2, %i0, %l0, %r3, %i0, %l0, %l1)
    call_import @hal.recording.finish(%r1)
    %r4 = call_import @hal.view.buffer(%r0)
    call_import @hal.execute(%r1, %r4)
    return (%r0)
  }}
  initializer program @setup
  entry @get
}}
"""


class Guest(NativeModule):
    name = "guest"

    @native("see", "() -> ()")
    def see(self, call: Call) -> None:
        """Nothing."""


def module(profile: str, constant: bytes = CONSTANT, number: int = 0, guest: bool = False) -> bytes:
    natives, call = ("import @guest.see () -> ()", "call_import @guest.see()") if guest else ("", "")
    text = SOURCE.format(profile=profile, constant=constant.hex(), number=number, natives=natives, call=call)
    return write(assemble(text))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ORCHESTRION_CACHE", str(tmp_path))
    return tmp_path / "derived"


def rows(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def computed(data: bytes, device: str, constant: bytes = CONSTANT, **options: Any) -> bool:
    """Whether a load computed the constant; its value is right either way."""
    program = vm.load(data, device=device, allow_native_code=True, **options)
    found = program.get()  # type: ignore[attr-defined]
    np.testing.assert_array_equal(found, np.frombuffer(constant * 2, np.int8))
    copied = program.statistics()["load"]["bytes_copied"]
    program.close()
    assert copied in (0, 32)
    return bool(copied)


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def test_computed_once(device: str, folder: Path) -> None:
    data = module(DEVICES[device])
    assert [computed(data, device) for _ in range(3)] == [True, False, False]
    assert len(rows(folder)) == 1


def test_what_it_depends_on(device: str, folder: Path) -> None:
    other = bytes(range(17, 33))
    assert computed(module(DEVICES[device]), device)
    assert computed(module(DEVICES[device], other), device, other)
    assert computed(module(DEVICES[device], number=1), device)
    assert len(rows(folder)) == 3
    assert not computed(module(DEVICES[device]), device)


def test_loads_under_a_policy_have_rows_of_their_own(device: str, folder: Path, tmp_path: Path) -> None:
    """They take nothing that was derived of constants which nobody looked at before they were used."""
    pytest.importorskip("cryptography")
    from signed_modules import keys_file, signed

    from orchestrion.schema.trust import keys

    key = keys.generate("ed25519")
    policy = keys_file(tmp_path / "keys.toml", key, 'scopes = ["code", "weights", "native"]')
    data = signed(module(DEVICES[device]), key)
    assert computed(data, device)
    assert [computed(data, device, policy=policy) for _ in range(2)] == [True, False]
    assert not computed(data, device)
    assert len(rows(folder)) == 2


def test_devices_and_versions_are_apart(folder: Path) -> None:
    assert [computed(module(profile), device) for device, profile in DEVICES.items()] == [True, True]
    assert len(rows(folder)) == 2


@pytest.mark.parametrize(
    "damage", [lambda row: row[:-1], lambda row: row[:-1] + b"\xff", lambda row: b"", lambda row: b"x"]
)
def test_damage_is_a_miss(device: str, folder: Path, damage: Callable[[bytes], bytes]) -> None:
    data = module(DEVICES[device])
    assert computed(data, device)
    (row,) = rows(folder)
    whole = row.read_bytes()
    row.write_bytes(damage(whole))
    assert computed(data, device)
    assert row.read_bytes() == whole
    assert not computed(data, device)


def test_off(device: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = module(DEVICES[device])
    assert computed(data, device)
    monkeypatch.setenv("ORCHESTRION_CACHE", "off")
    assert computed(data, device)
    assert computed(data, device)
    assert not Path("off").exists()


def test_what_other_code_has_a_part_in_is_not_kept(folder: Path) -> None:
    assert [computed(module("reference"), "reference") for _ in range(2)] == [True, True]
    guest = module("spirv", guest=True)
    assert [computed(guest, "vulkan", natives=[Guest()]) for _ in range(2)] == [True, True]
    assert rows(folder) == []


def test_nothing_is_derived_of_a_damaged_constant(device: str, folder: Path) -> None:
    """Its digest is compared only here: constants are not read by loading."""
    data = bytearray(module(DEVICES[device]))
    data[bytes(data).index(CONSTANT)] ^= 1
    with pytest.raises(ModuleError, match="is damaged: its digest differs"):
        vm.load(bytes(data), device=device, allow_native_code=True)
    assert rows(folder) == []


#: what a stranger's module would do with a caller's array: `keep` it, and `give` it to whoever loads the module next
SPY = """
import @hal.view.buffer (hal.view) -> hal.buffer
import @hal.cache.load (hal.buffer, i32) -> i32
import @hal.cache.save (hal.buffer, i32) -> ()
export @keep (x: tensor<4xf32>) -> (z: tensor<4xf32>)
export @give (x: tensor<4xf32>) -> (z: tensor<4xf32>)
program @p profile "{profile}" {{
  func @keep (hal.view, hal.view) -> hal.view {{
    %r2 = call_import @hal.view.buffer(%r0)
    %i0 = i32.zero
    call_import @hal.cache.save(%r2, %i0)
    return (%r0)
  }}
  func @give (hal.view, hal.view) -> hal.view {{
    %r2 = call_import @hal.view.buffer(%r0)
    %i0 = i32.zero
    %i1 = call_import @hal.cache.load(%r2, %i0)
    return (%r0)
  }}
  entry @keep
  entry @give
}}
"""


@pytest.mark.parametrize("function", ["keep", "give"])
def test_no_call_may_keep_what_it_was_given(device: str, folder: Path, function: str) -> None:
    data = write(assemble(SPY.format(profile=DEVICES[device])))
    program = vm.load(data, device=device, allow_native_code=True)
    with pytest.raises(Trap, match="derived constants are for initializers of the program"):
        program[function](np.ones(4, np.float32))
    program.close()
    assert rows(folder) == []


def test_initializers_of_contexts_neither(folder: Path) -> None:
    text = SOURCE.replace("global @derived : hal.buffer", "global @derived : hal.buffer mutable")
    text = text.replace("initializer program", "initializer context")
    data = write(assemble(text.format(profile="spirv", constant=CONSTANT.hex(), number=0, natives="", call="")))
    with pytest.raises(Trap, match="derived constants are for initializers of the program"):
        vm.load(data, device="vulkan")
    assert rows(folder) == []


def test_no_room_for_copies(device: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a memory limit what does not fit is neither kept nor found, and the program is loaded all the same."""
    data = module(DEVICES[device])
    assert computed(data, device, memory=1_000_000)
    assert not computed(data, device, memory=1_000_000)
    monkeypatch.setattr("orchestrion.vm.constant_cache.COPIES", 1_000_000)
    assert computed(data, device, memory=1_000_000)
    (row,) = rows(folder)
    row.unlink()
    assert computed(data, device, memory=1_000_000)
    assert rows(folder) == []


def test_loads_side_by_side(device: str, folder: Path) -> None:
    data = module(DEVICES[device])
    found: list[bool] = []
    threads = [threading.Thread(target=lambda: found.append(computed(data, device))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and any(found)
    assert len(rows(folder)) == 1
    assert not computed(data, device)


def test_another_version_of_the_runtime_computes_anew(
    device: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = module(DEVICES[device])
    assert computed(data, device)
    with monkeypatch.context() as patch:
        patch.setattr("orchestrion.vm.constant_cache.runtime_version", lambda: "another")
        assert [computed(data, device) for _ in range(2)] == [True, False]
    assert not computed(data, device)
    assert len(rows(folder)) == 2


@pytest.mark.parametrize("change", ["features", "limits"])
def test_a_device_with_other_features_or_limits_computes_anew(
    device: str, change: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same device and driver, with a feature switched off, or a limit set by the user's driver settings."""
    data = module(DEVICES[device])
    assert computed(data, device)
    driver = registry.load_driver(device)
    infos = driver.devices

    def altered() -> list[DeviceInfo]:
        return [
            replace(info, features=info.features - {"int16"})
            if change == "features"
            else replace(info, limits=replace(info.limits, max_bindings=info.limits.max_bindings - 1))
            for info in infos()
        ]

    open_as_is = driver.open

    def opened(info: DeviceInfo) -> Any:
        backend = open_as_is(infos()[0])
        backend.info = info
        return backend

    with monkeypatch.context() as patch:
        patch.setattr(driver, "devices", altered)
        patch.setattr(driver, "open", opened)
        patch.setattr(registry, "load_driver", lambda name: driver)
        assert [computed(data, device) for _ in range(2)] == [True, False]
    assert not computed(data, device)
    assert len(rows(folder)) == 2


def test_the_runtime_knows_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run from sources, it changes with each of them; installed, it is that of the package."""
    source = tmp_path / "hal" / "version.py"
    source.parent.mkdir()
    source.write_text("one")
    monkeypatch.setattr(version, "_folders", lambda package: [source.parent] if package == "hal" else [])
    ask = version.runtime_version.__wrapped__
    first = ask()
    assert ask() == first
    source.write_text("other")
    changed = ask()
    assert changed != first
    assert first.startswith("from sources, ")
    source.write_text("one")
    place = tmp_path / "site-packages"
    record = place / "orchestrion-1.2.dist-info" / "RECORD"
    record.parent.mkdir(parents=True)
    monkeypatch.setattr(version, "__file__", str(place / "orchestrion" / "hal" / "version.py"))
    record.write_text("__editable__.orchestrion-1.2.pth,sha256=x,1\n")
    kept = ask()
    assert kept.startswith("from sources, ")
    record.write_text("orchestrion/hal/version.py,sha256=x,1\n")
    assert ask() == "orchestrion-1.2.dist-info"
    record.unlink()
    source.unlink()
    assert ask() not in (kept, first, changed)
