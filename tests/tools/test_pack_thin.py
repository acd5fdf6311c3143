"""`vm-pack thin` removes programs and variants; the root and so the signatures stay valid, and the rest runs."""

import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from orchestrion import vm
from orchestrion.compiler.driver import Compilation
from orchestrion.hal.registry import list_devices
from orchestrion.schema import writer
from orchestrion.schema.container import Attachment, Section
from orchestrion.schema.decoder import open_module
from orchestrion.schema.dtypes import BY_NAME
from orchestrion.schema.rows import SegmentKind
from orchestrion.tools import pack
from orchestrion.tools.packing.module_parts import constants_of, is_complete

EXAMPLES = Path(__file__).parents[2] / "examples"
TARGETS = ("reference", "spirv", "opencl")
Rows = writer.Module


@pytest.fixture(scope="module")
def rows() -> Rows:
    return Compilation(targets=TARGETS, machines=("gpu", "cpu")).rows(EXAMPLES / "mlp.mlir")


@pytest.fixture
def whole(rows: Rows, tmp_path: Path) -> Path:
    path = tmp_path / "whole.fb"
    writer.write_file(path, rows)
    return path


def thin(path: Path, *flags: str) -> Path:
    out = path.with_name("thin.fb")
    assert pack.main(["thin", str(path), *flags, "-o", str(out)]) == 0
    return out


def there(path: Path) -> list[str]:
    """The programs that are complete."""
    module = open_module(path)
    return [module.strings[row.name] for row in module.programs if is_complete(module, row)]


def gone(whole: Path, path: Path) -> set[int]:
    before, after = open_module(whole).container.spans, open_module(path).container.spans
    return {at for at, (span, other) in enumerate(zip(before, after, strict=True)) if span[0] and not other[0]}


def run(path: Path, device: str) -> np.ndarray:
    x = np.load(EXAMPLES / "mlp_input.npy")
    program = vm.load(path, device, allow_native_code=True)
    try:
        return np.asarray(next(iter(program.functions.values()))(x))
    finally:
        program.close()


DEVICES = {"reference": "reference", "opencl": "opencl", "vulkan": "spirv"}


def needs(device: str) -> None:
    driver = next(row for row in list_devices() if row.name == device)
    if not driver.devices:
        pytest.skip(str(driver.reason))


@pytest.mark.parametrize("target", TARGETS)
def test_one_target_stays(whole: Path, target: str) -> None:
    """The root is the same, byte for byte. Segments that stay are unchanged; those removed belong only to others."""
    path = thin(whole, f"--target={target}")
    before, after = open_module(whole), open_module(path)
    assert bytes(after.container.root) == bytes(before.container.root)
    names = {before.strings[row.name] for row in before.programs if before.strings[row.profile] == target}
    assert set(there(path)) == names
    assert path.stat().st_size < whole.stat().st_size
    for ordinal in range(len(after.segments)):
        if after.container.spans[ordinal][0]:
            assert bytes(after.segment(ordinal)) == bytes(before.segment(ordinal))
    kept = [row for row in after.programs if after.strings[row.profile] == target]
    assert not gone(whole, path) & set().union(*(constants_of(after, row) for row in kept))


@pytest.mark.parametrize("device", DEVICES)
def test_a_thinned_module_runs(whole: Path, device: str, tmp_path: Path) -> None:
    """With the parts that its device needs; without them the loader's error states the reason."""
    needs(device)
    target = DEVICES[device]
    np.testing.assert_array_equal(run(thin(whole, f"--target={target}"), device), run(whole, device))
    others = [name for name in TARGETS if name != target]
    path = thin(whole, f"--target={','.join(others)}")
    with pytest.raises(vm.errors.NoProgram, match="was taken out of this file"):
        run(path, device)


def test_signatures_stay_valid(whole: Path, tmp_path: Path) -> None:
    key, signed = tmp_path / "key.pem", tmp_path / "signed.fb"
    assert pack.main(["keygen", "-o", str(key)]) == 0
    assert pack.main(["sign", str(whole), f"--key={key}", "-o", str(signed)]) == 0
    path = thin(signed, "--target=reference")
    assert pack.main(["verify", str(path), f"--key={tmp_path / 'key.pub.pem'}"]) == 0
    policy = tmp_path / "keys.toml"
    policy.write_text('[[key]]\nname = "publisher"\nfile = "key.pub.pem"\nscopes = ["code", "weights", "native"]\n')
    program = vm.load(path, "reference", policy=policy)
    program.close()


def test_features_choose_the_program_that_such_devices_take(whole: Path) -> None:
    module = open_module(whole)
    spirv = [module.strings[row.name] for row in module.programs if module.strings[row.profile] == "spirv"]
    assert len(spirv) == 2
    assert there(thin(whole, "--target=spirv", "--feature=gpu,int64")) == [spirv[0]]
    assert there(thin(whole, "--target=spirv", "--feature=")) == [spirv[1]]
    assert there(thin(whole, "--target=spirv")) == spirv


def test_variants_that_need_other_features_go(rows: Rows, tmp_path: Path) -> None:
    program = next(row for row in rows.programs if row.profile == "spirv" and not row.features)
    executables = []
    for row in program.executables:
        wide = [replace(one, payload=bytes(one.payload) + b"\0", features=frozenset({"int64"})) for one in row.variants]
        executables.append(replace(row, variants=[*wide, *row.variants]))
    path = tmp_path / "variants.fb"
    writer.write_file(path, replace(rows, programs=[replace(program, executables=executables)]))
    module = open_module(path)
    wide = {row.payload for row in module.variants if row.features}
    assert gone(path, thin(path, "--target=spirv", "--feature=gpu")) == wide
    assert gone(path, thin(path, "--target=spirv", "--feature=int64")) == set()


def test_what_belongs_to_no_program_stays(rows: Rows, tmp_path: Path) -> None:
    path = tmp_path / "more.fb"
    note, tail = Attachment("WHAT", b"a note"), Section("tail", b"end")
    more = replace(rows, custom={"preview": b"picture"}, attachments=[note], sections=[tail])
    writer.write_file(path, more)
    module = open_module(thin(path, "--target=reference"))
    assert bytes(module.custom("preview") or b"") == b"picture"
    assert [(row.tag, bytes(row.data)) for row in module.container.attachments] == [("WHAT", b"a note")]
    assert [(row.name, bytes(row.data)) for row in module.container.sections] == [("tail", b"end")]


def test_thinning_a_thinned_file(whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Gives the same bytes in the end, also in place; what was removed cannot be selected again."""
    direct = thin(whole, "--target=reference").read_bytes()
    two = thin(whole, "--target=spirv,reference")
    assert pack.main(["thin", str(two), "--target=reference", "-o", str(two)]) == 0
    assert two.read_bytes() == direct
    capsys.readouterr()
    assert pack.main(["thin", str(two), "--target=spirv", "-o", str(two)]) == 1
    assert "the programs for target spirv were taken out of this file" in capsys.readouterr().err
    assert two.read_bytes() == direct


@pytest.mark.parametrize(
    ("flags", "status", "words"),
    [
        (["--target=metal"], 2, "no target is called metal; there are reference, spirv, spirv_least, opencl"),
        (["--target=spirv", "--feature=warp"], 2, "no feature is called warp; there are int8, "),
        (["--target="], 2, "no target is given"),
        (["--feature=gpu"], 2, "--target"),
    ],
)
def test_bad_flags(
    whole: Path, flags: list[str], status: int, words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(SystemExit) as ended:
        pack.main(["thin", str(whole), *flags, "-o", str(tmp_path / "never.fb")])
    assert ended.value.code == status
    assert words in capsys.readouterr().err
    assert not (tmp_path / "never.fb").exists()


def test_targets_that_the_module_has_no_program_for(
    rows: Rows, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "one.fb", tmp_path / "never.fb"
    needing = [replace(row, features=frozenset({"float64"})) for row in rows.programs if row.profile == "reference"]
    writer.write_file(path, replace(rows, programs=needing))
    assert pack.main(["thin", str(path), "--target=spirv", "-o", str(out)]) == 1
    assert "the module has no program for target spirv; it has reference" in capsys.readouterr().err
    assert pack.main(["thin", str(path), "--target=reference", "--feature=int8", "-o", str(out)]) == 1
    words = "no program for target reference is for devices with int8: reference needs float64"
    assert words in capsys.readouterr().err
    assert not out.exists()


def test_a_damaged_segment_is_not_copied(whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = open_module(whole)
    ordinal = next(at for at, row in enumerate(module.segments) if row.kind == SegmentKind.Constant)
    data = bytearray(whole.read_bytes())
    data[module.container.spans[ordinal][0]] ^= 1
    damaged, out = tmp_path / "damaged.fb", tmp_path / "never.fb"
    damaged.write_bytes(data)
    assert pack.main(["thin", str(damaged), "--target=reference", "-o", str(out)]) == 1
    assert f"segment {ordinal} is damaged: its digest differs" in capsys.readouterr().err
    assert not out.exists()


def test_a_damaged_attachment_gets_no_new_checksum(
    rows: Rows, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "noted.fb", tmp_path / "never.fb"
    data = bytearray(writer.write(replace(rows, attachments=[Attachment("WHAT", b"a note")])))
    data[data.rindex(b"a note")] ^= 1
    path.write_bytes(data)
    assert pack.main(["thin", str(path), "--target=reference", "-o", str(out)]) == 1
    assert "the attachment 'WHAT' is damaged: its checksum differs" in capsys.readouterr().err
    assert not out.exists()


def test_the_file_may_go_to_standard_output(whole: Path) -> None:
    command = [sys.executable, "-m", "orchestrion.tools.pack", "thin", "--target=reference", "-o", "/dev/stdout"]
    done = subprocess.run([*command, str(whole)], capture_output=True, check=True)
    assert done.stdout == thin(whole, "--target=reference").read_bytes()
    assert b"taken out" in done.stderr


def test_large_segments_are_not_read_into_memory(tmp_path: Path) -> None:
    data = np.zeros(64 << 20, np.uint8)
    data[::4096] = 7
    constant = writer.Constant("big", data, BY_NAME["ui8"], (len(data),))
    rows = Compilation(targets=("reference", "spirv")).rows(EXAMPLES / "simple_mul.mlir")
    programs = [replace(row, constants=(*row.constants, constant)) for row in rows.programs]
    path = tmp_path / "big.fb"
    writer.write_file(path, replace(rows, programs=programs))
    del data
    tracemalloc.start()
    try:
        out = thin(path, "--target=spirv")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert out.stat().st_size > 64 << 20
    assert peak < 16 << 20
