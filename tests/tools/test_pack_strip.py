"""`vm-pack strip` removes debug segments; everything else stays, and the module runs as before."""

from pathlib import Path

import numpy as np
import pytest

from orchestrion import compiler, vm
from orchestrion.schema.decoder import open_module
from orchestrion.schema.rows import SegmentKind
from orchestrion.tools import pack

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    path = tmp_path / "whole.fb"
    compiler.compile_to_file(EXAMPLES / "mlp.mlir", path, targets=["reference", "spirv"])
    return path


def strip(path: Path) -> Path:
    out = path.with_name("stripped.fb")
    assert pack.main(["strip", str(path), "-o", str(out)]) == 0
    return out


def test_debug_segments_go_and_nothing_else(whole: Path) -> None:
    path = strip(whole)
    before, after = open_module(whole), open_module(path)
    assert bytes(after.container.root) == bytes(before.container.root)
    kinds = [row.kind for row in after.segments]
    assert SegmentKind.Debug in kinds
    for ordinal, kind in enumerate(kinds):
        assert bool(after.container.spans[ordinal][0]) == (kind != SegmentKind.Debug)
        if kind != SegmentKind.Debug:
            assert bytes(after.segment(ordinal)) == bytes(before.segment(ordinal))
    assert path.stat().st_size < whole.stat().st_size


def test_a_stripped_module_runs(whole: Path) -> None:
    x = np.load(EXAMPLES / "mlp_input.npy")
    results = []
    for path in (whole, strip(whole)):
        program = vm.load(path)
        results.append(np.asarray(next(iter(program.functions.values()))(x)))
        program.close()
    np.testing.assert_array_equal(*results)


def test_errors_name_function_and_pc_then(whole: Path) -> None:
    """The location would come from the debug information, which was removed."""
    program = vm.load(strip(whole))
    module = program.module
    assert module.location(0, 0, 0) is None
    assert module.source_ops(0, 0, 0) == () == module.binding_types(0, 0, 0)
    program.close()
    program = vm.load(whole)
    assert program.module.source_ops(0, 0, 0)
    program.close()


def test_stripping_again_changes_nothing(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = strip(whole)
    data = path.read_bytes()
    capsys.readouterr()
    assert pack.main(["strip", str(path), "-o", str(path)]) == 0
    assert "nothing to take out" in capsys.readouterr().out
    assert path.read_bytes() == data


def test_signatures_stay_valid(whole: Path, tmp_path: Path) -> None:
    key, signed = tmp_path / "key.pem", tmp_path / "signed.fb"
    assert pack.main(["keygen", "-o", str(key)]) == 0
    assert pack.main(["sign", str(whole), f"--key={key}", "-o", str(signed)]) == 0
    assert pack.main(["verify", str(strip(signed)), f"--key={tmp_path / 'key.pub.pem'}"]) == 0


def test_what_cannot_be_written_is_one_line(whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pack.main(["strip", str(whole), "-o", str(tmp_path / "missing" / "out.fb")]) == 1
    assert "the module could not be written" in capsys.readouterr().err
    assert pack.main(["strip", str(EXAMPLES / "mlp.mlir"), "-o", str(tmp_path / "out.fb")]) == 1
    assert "not a module" in capsys.readouterr().err
    assert not (tmp_path / "out.fb").exists()
