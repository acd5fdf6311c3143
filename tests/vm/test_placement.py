"""What a program says of its place on a device: which program and variants it got, why not the others, who built it."""

from collections.abc import Iterator
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrion import vm
from orchestrion.compiler.driver import Compilation
from orchestrion.hal.backend import DeviceInfo
from orchestrion.hal.policy import Policy
from orchestrion.hal.registry import list_devices, open_device
from orchestrion.schema.assembler import assemble
from orchestrion.schema.container import open_bytes
from orchestrion.schema.decoder import decode
from orchestrion.schema.trust.store import TrustStore
from orchestrion.schema.writer import write
from orchestrion.vm.dispatches import dispatches
from orchestrion.vm.placement import Placement, explain

EXAMPLES = Path(__file__).parents[2] / "examples"
MLP = EXAMPLES / "mlp.mlir"


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCHESTRION_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ORCHESTRION_CACHE", str(tmp_path / "cache"))


def rows(*targets: str, source: Path = MLP, **options: Any) -> Any:
    return Compilation(targets=targets, **options).rows(source)


def placement(blob: bytes, device: str, **options: Any) -> Placement:
    program = vm.load(blob, device=device, **options)
    try:
        return program.placement()
    finally:
        program.close()


def info(name: str) -> DeviceInfo:
    with open_device(name) as device:
        return device.info


@pytest.fixture
def opencl() -> Iterator[str]:
    found = [device.id for driver in list_devices() for device in driver.devices if driver.name == "opencl"]
    if not found:
        pytest.skip("no OpenCL device")
    yield found[0]


def test_programs() -> None:
    found = placement(write(rows("spirv", "opencl", "reference")), "reference")
    assert [(row.name, row.chosen, row.runs, row.reason) for row in found.programs] == [
        ("spirv", False, False, "wants spirv, the device runs tensor-bytecode"),
        ("opencl", False, False, "wants opencl-c, the device runs tensor-bytecode"),
        ("reference", True, True, ""),
    ]
    assert (found.program, found.device, found.failure, found.refusal) == ("reference", "reference", "", "")


def test_a_program_behind_one_that_runs() -> None:
    """For a graphics processor both programs run; any other lacks the feature that the first wants."""
    module = decode(open_bytes(write(rows("spirv", machines=("gpu", "cpu")))))
    device = info("reference")
    limits = replace(device.limits, shared_memory_bytes=1 << 16)
    plain = replace(device, formats=("spirv",), limits=limits)
    first, second = explain(module, plain, Policy()).programs
    assert (first.name, first.chosen, first.reason) == ("spirv_gpu", False, "wants gpu, which the device lacks")
    assert (second.name, second.chosen) == ("spirv", True)
    first, second = explain(module, replace(plain, features=plain.features | {"gpu"}), Policy()).programs
    assert (first.chosen, second.chosen, second.runs) == (True, False, True)
    assert second.reason == "it would run, and spirv_gpu stands in front of it"


def test_variants() -> None:
    module = rows("reference")
    for executable in module.programs[0].executables:
        (only,) = executable.variants
        wants = replace(only, features=frozenset({"gpu"})), replace(only, shared_memory_bytes=4096)
        executable.variants[:] = [*wants, replace(only, format="spirv"), only, only]
    device = info("reference")
    device = replace(device, limits=replace(device.limits, shared_memory_bytes=1024))
    found = explain(decode(open_bytes(write(module))), device, Policy())
    assert len(found.executables) == 4
    for row in found.executables:
        assert [(variant.chosen, variant.reason) for variant in row.variants] == [
            (False, "tensor-bytecode: wants gpu, which the device lacks"),
            (False, "tensor-bytecode: wants 4096 bytes of shared memory, the device has 1024"),
            (False, "spirv: the device runs tensor-bytecode"),
            (True, ""),
            (False, "it would run, and one of tensor-bytecode stands in front of it"),
        ]
    assert "    variant not chosen: tensor-bytecode: wants gpu" in found.text()


def test_entries_name_their_ops() -> None:
    blob = write(rows("reference"))
    found, module = placement(blob, "reference"), decode(open_bytes(blob))
    assert [row.name for row in found.executables] == [module.strings[row.name] for row in module.executables]
    first = found.executables[0].entries[0]
    assert first.source_ops == module.source_ops(0, 0, 0) and first.source_ops[0] == "stablehlo.dot_general"
    assert first.workgroup_size == (1, 1, 1)


@pytest.mark.parametrize("name", ["mlp", "spectral_norm", "center", "matmul_static"])
def test_dispatches_are_those_that_run(name: str) -> None:
    """What the code says without running is what a profile finds."""
    random = np.random.default_rng(0)
    program = vm.load(write(rows("reference", source=EXAMPLES / f"{name}.mlir")), profiling=True)
    (export,) = program.exports
    shapes = [[5 if size < 0 else size for size in x.shape] for x in export.arguments]
    arrays = [
        random.normal(size=shape).astype(x.dtype.numpy) for shape, x in zip(shapes, export.arguments, strict=True)
    ]
    program[export.name](*arrays)
    ran = {
        (program.module.strings[program.module.functions[command.place[0]].name], command.place[1], command.location)
        for command in (row.command for row in program.profile().rows())
        if command.kind == "dispatch" and command.place is not None
    }
    found = program.placement()
    said = {tuple(astuple(place)) for row in found.executables for entry in row.entries for place in entry.dispatches}
    program.close()
    assert ran and ran <= said and all(entry.dispatches for row in found.executables for entry in row.entries)


DISPATCHES = """
import @hal.executable.create (i32) -> hal.executable
import @hal.recording.create (i32) -> hal.recording
import @hal.recording.dispatch (hal.recording, hal.executable, i32, i64, i64, i64, (hal.buffer, i32, i64, i64)*) -> ()
export @main
program @reference profile "reference" {
  executable @one {
    entry @a bindings []
    variant "tensor-bytecode" workgroups [(1, 1, 1)] payload hex "00"
  }
  executable @two {
    entry @b bindings []
    entry @c bindings []
    variant "tensor-bytecode" workgroups [(1, 1, 1), (1, 1, 1)] payload hex "00"
  }
  global @kept : hal.executable
  global @either : hal.executable
  func @setup () -> () {
    %i0 = i32.const 1
    %r0 = call_import @hal.executable.create(%i0)
    global.store.ref %r0, @kept
    global.store.ref move %r0, @either
    %r0 = call_import @hal.executable.create(%i1)
    global.store.ref %r0, @either
    %r1 = call_import @hal.recording.create(%i1)
    call_import @hal.recording.dispatch(%r1, %r0, %i1, %l0, %l0, %l0)
    return ()
  }
  func @known () -> () {
    %r0 = global.load.ref @kept
    %r2 = ref.copy move %r0
    %i0 = i32.const 1
    %i2 = i32.copy %i0
    call_import @hal.recording.dispatch(%r1, move %r2, %i2, %l0, %l0, %l0)
    %r0 = global.load.ref @either
    call_import @hal.recording.dispatch(%r1, %r0, %i2, %l0, %l0, %l0)
    return ()
  }
  func @unknown (i32) -> () {
    %r0 = global.load.ref @kept
    call_import @hal.recording.dispatch(%r1, %r0, %i0, %l0, %l0, %l0)
    %i1 = i32.add %i0, %i0
    call_import @hal.recording.dispatch(%r1, %r0, %i1, %l0, %l0, %l0)
    br ^there
  ^there:
    call_import @hal.recording.dispatch(%r1, %r0, %i2, %l0, %l0, %l0)
    %r0 = global.load.ref @kept
    %i2 = i32.zero
    call_import @hal.recording.dispatch(%r1, %r0, %i2, %l0, %l0, %l0)
    return ()
  }
  func @main () -> () {
    return ()
  }
  entry @main
  initializer program @setup
}
"""


def test_dispatches_of_assembled_code() -> None:
    """What a branch may change is not known; a global to which two executables are stored is none of them."""
    module = decode(open_bytes(write(assemble(DISPATCHES))))
    found = [(row.executable, row.entry, row.function) for row in dispatches(module, 0)]
    assert found == [(0, 0, 0), (1, 1, 1), (1, 0, 2)]


def test_names_of_a_stranger() -> None:
    """Text has no line and no escape of the file's making; names are shown in short."""
    module = rows("reference", source=EXAMPLES / "simple_mul.mlir")
    (program,) = module.programs
    executables = [replace(row, name="\x1b[2J" + "x" * 100_000) for row in program.executables]
    module.programs[0] = replace(program, name="a\nprogram b: chosen", executables=executables)
    text = placement(write(module), "reference").text()
    assert "  program a?program b: chosen: chosen\n" in text and "\x1b" not in text
    assert "  ?[2Jxxx" in text and len(text) < 2000


def test_trust() -> None:
    blob = write(rows("reference"))
    assert placement(blob, "reference").trust == "not trusted: not compiled on this machine by this user"
    assert placement(blob, "reference", allow_native_code=True).trust == "trusted: the caller trusts every module"
    TrustStore().add(open_bytes(blob).digest)
    assert placement(blob, "reference").trust == "trusted: compiled on this machine by this user"


def test_signatures(tmp_path: Path, opencl: str) -> None:
    """Who signed it is said of a load under a policy; native code that was signed is not refused."""
    pytest.importorskip("cryptography")
    from signed_modules import keys_file, signed

    from orchestrion.schema.trust import keys

    key = keys.generate("ed25519")
    blob = signed(write(rows("opencl")), key)
    policy = keys_file(tmp_path / "keys.toml", key, 'scopes = ["code", "weights", "native"]')
    found = placement(blob, opencl, policy=policy)
    assert (found.signatures, found.refusal) == ("signed by publisher for code, native, weights", "")
    assert found.trust.startswith("not trusted") and "  signed by publisher for code" in found.text()
    assert placement(write(rows("reference")), "reference").signatures == ""


def test_code_that_is_there_already() -> None:
    blob = write(rows("reference"))
    with open_device("reference") as device:
        for built in ("built in this process", "built earlier in this process"):
            program = vm.load(blob, device=device)
            assert {row.built for row in program.placement().executables} == {built}
            program.close()


def test_refused_native_code(opencl: str) -> None:
    """What the policy refuses is said before and after the attempt to load it."""
    blob = write(rows("opencl"))
    with pytest.raises(vm.VmError) as failed:
        vm.load(blob, device=opencl)
    found = explain(decode(open_bytes(blob)), info(opencl), Policy(), str(failed.value))
    assert found.program == "opencl" and "opencl-c is native code" in found.refusal
    assert "  refused by the policy: opencl-c is native code" in found.text()
    assert "not loaded: opencl-c is native code" in found.text()
    allowed = placement(blob, opencl, allow_native_code=True)
    assert (allowed.refusal, allowed.failure) == ("", "")


def test_derived_constants(needs_vulkan: None) -> None:
    """A second load finds what the first computed, and builds no code for it."""
    blob = write(rows("spirv", source=EXAMPLES / "matmul_static.mlir"))
    first, second = (placement(blob, "vulkan", allow_native_code=True) for _ in range(2))
    assert (first.derived, second.derived) == ((0, 1), (1, 0))
    assert all(row.built.startswith("built in this process") for row in first.executables)
    found = {row.name: row.built for row in second.executables}
    assert [name for name, built in found.items() if "not built" in built] == ["initializer_dispatch_0", "encoding_0"]
    assert "constants were found in the user's cache" in found["encoding_0"]


def test_the_helper_process(needs_vulkan: None) -> None:
    """Code of a module that is not trusted is built in a helper first; the next process finds that on record."""
    blob = write(rows("spirv", source=EXAMPLES / "simple_mul.mlir"))
    first, second = (placement(blob, "vulkan").executables[0].built for _ in range(2))
    assert first.startswith("built in a helper process first, in ")
    assert second.startswith("built in a helper process first, by an earlier process, then in this process")


def test_a_module_that_nothing_runs() -> None:
    blob = write(rows("spirv"))
    with pytest.raises(vm.VmError) as failed:
        vm.load(blob)
    found = explain(decode(open_bytes(blob)), info("reference"), Policy(), str(failed.value))
    assert (found.program, found.executables) == ("", ())
    assert found.failure == str(failed.value) and not any(row.runs for row in found.programs)


def test_json_has_what_the_rows_have() -> None:
    found = placement(write(rows("reference")), "reference")
    data = found.data()
    assert data["version"] == 1 and len(data["executables"]) == len(found.executables)
    assert data["programs"][0] == {
        "name": "reference", "target": "reference", "chosen": True, "runs": True, "reason": "",
    }  # fmt: skip
