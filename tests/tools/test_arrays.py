"""Arrays on the command line: what is read, what is refused, what counts as equal."""

from pathlib import Path

import numpy as np
import pytest

from orchestrion.schema.dtypes import of_numpy
from orchestrion.tools.arrays import load_array, mismatch, parse_array, save_array
from orchestrion.tools.cli import InputError

READ = [
    ("4xf32=1,2,3,4", np.array([1, 2, 3, 4], np.float32)),
    ("2x2xi32=[[1 2][3 4]]", np.array([[1, 2], [3, 4]], np.int32)),
    ("f64=2.5", np.array(2.5)),
    ("3xi1=1 false TRUE", np.array([True, False, True])),
    ("2x3xui8=0xff", np.full((2, 3), 255, np.uint8)),
    ("0x4xf32=", np.zeros((0, 4), np.float32)),
    ("3xf32=nan,-inf,-0.0", np.array([np.nan, -np.inf, -0.0], np.float32)),
    ("i64=-9223372036854775808", np.array(-(2**63))),
]

REFUSED = [
    ("4xf32=1,2", "2 values for 4 elements"),
    ("4xf33=1", "no element type 'f33'"),
    ("bogus", "expected DIMSxTYPE=VALUES"),
    ("2xi8=1,300", "not all values are i8"),
    ("2xi1=0,2", "not all values are i1"),
    ("0xf32=1", "1 values for 0 elements"),
    ("2xi32=1.5,2", "not all values are i32"),
]


@pytest.mark.parametrize(("text", "want"), READ, ids=[text for text, _ in READ])
def test_read(text: str, want: np.ndarray) -> None:
    got = parse_array(text)
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[text for text, _ in REFUSED])
def test_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_array(text)


def test_files_go_there_and_back(tmp_path: Path) -> None:
    want = np.arange(6, dtype=np.int16).reshape(2, 3)
    save_array(str(tmp_path / "x.npy"), want)
    np.testing.assert_array_equal(load_array(str(tmp_path / "x.npy")), want)
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


def test_pickles_and_rubbish_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    (tmp_path / "rubbish.npy").write_bytes(b"not an array")
    (tmp_path / "cut.npy").write_bytes((tmp_path / "objects.npy").read_bytes()[:20])
    for name in ("objects", "rubbish", "cut"):
        with pytest.raises(InputError, match="not a .npy file"):
            load_array(str(tmp_path / f"{name}.npy"))


def test_tolerances_apply_to_floats_alone() -> None:
    want = np.array([1.0, np.nan, np.inf, 1000.0], np.float32)
    near = want.copy()
    near[0] += 5e-4
    assert mismatch(near, want, 1e-5, 1e-6) is None
    near[3] = 1001
    assert "differs in 1 of 4 elements, first at [3]" in str(mismatch(near, want, 1e-5, 1e-6))
    whole = np.array([1, 2])
    assert mismatch(whole, whole + 1, 1.0, 1.0) is not None
    assert "expected 2xi64" in str(mismatch(want, whole, 1.0, 1.0))


@pytest.mark.parametrize(
    ("text", "name", "values"),
    [
        ("4xbf16=1,2,3.00390625,-inf", "bfloat16", [1, 2, 3, -np.inf]),
        ("2xf8E4M3FN=448,465", "float8_e4m3fn", [448, np.nan]),
        ("3xi4=-8 7 0x3", "int4", [-8, 7, 3]),
        ("2xf16=0.1", "float16", [np.float16(0.1)] * 2),
    ],
)
def test_narrow_types(text: str, name: str, values: list[float], tmp_path: Path) -> None:
    """From digits, rounded once; through a file, where the type is the one that is wanted."""
    pytest.importorskip("ml_dtypes")
    got = parse_array(text)
    assert got.dtype.name == name
    np.testing.assert_array_equal(got.astype(np.float64), np.array(values, np.float64))
    save_array(str(tmp_path / "x.npy"), got)
    back = parse_array(f"@{tmp_path / 'x.npy'}", of_numpy(got.dtype))
    assert back.dtype == got.dtype and mismatch(back, got, 0, 0) is None
    if name != "int4":  # neighbours agree within a tolerance
        got = got[np.isfinite(values)]
        beside = np.nextafter(got, np.zeros_like(got))
        assert mismatch(beside, got, 1e-5, 1e-6) is None and mismatch(beside, got, 0, 0) is not None
        assert mismatch(np.nextafter(beside, np.zeros_like(got)), got, 1e-5, 1e-6) is not None


def test_narrow_types_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("ml_dtypes")
    with pytest.raises(InputError, match="ui2 holds 0 to 3"):
        parse_array("1xui2=4")
    save_array(str(tmp_path / "x.npy"), parse_array("4xbf16=1"))
    with pytest.raises(InputError, match="is not one of"):
        parse_array(f"@{tmp_path / 'x.npy'}")
