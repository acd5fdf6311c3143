"""Arrays on the command line: which are read, which are refused, which count as equal."""

import io
import os
import warnings
import zipfile
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrion.schema.dtypes import of_numpy
from orchestrion.tools.array_files import load, load_array, save_array, save_arrays
from orchestrion.tools.arrays import mismatch, parse_array
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
    """Decimal numbers are rounded once; values from a file are read as the requested type."""
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


#: `vm-run --input` from a stranger's instructions: sizes, ranks and digits that nothing can hold
IMPOSSIBLE = [
    (f"{10**30}xf32=0", "a size of 31 digits, the limit is 18"),
    (f"{'9' * 5000}xf32=0", "a size of 5000 digits"),
    (f"{'x'.join(['1'] * 5000)}xf32=0", "rank 5000, arrays have 64 axes at the most"),
    ("999999999999999xf32=0", "3999999999999996 bytes, this machine has"),
    ("100000000x100000000x100000000xf32=0", "bytes, this machine has"),
    ("-4xf32=0", "expected DIMSxTYPE=VALUES"),
    ("\N{ARABIC-INDIC DIGIT FOUR}xf32=0", "expected DIMSxTYPE=VALUES"),
    (f"i64={'1' * 5000}", "not all values are i64"),
    (f"i32=0x{'f' * 5000}", "not all values are i32"),
    (f"f32={'x' * 5000}", "not all values are f32"),
    (f"i1={'y' * 5000}", "not all values are i1"),
    (f"complex<f32>={'z' * 5000}", "not all values are complex<f32>"),
    (f"f{'3' * 5000}=1", "no element type"),
    ("q" * 100_000, "expected DIMSxTYPE=VALUES"),
    (f"{'2x' * 40}f32=1,2", "2 values for 1099511627776 elements"),
]


@pytest.mark.parametrize(("text", "message"), IMPOSSIBLE, ids=[text[:20] for text, _ in IMPOSSIBLE])
def test_impossible_arrays_are_refused_in_one_short_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse_array(text)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 1000


def header(text: str, version: tuple[int, int] = (1, 0), length: int | None = None) -> bytes:
    """The first bytes of a `.npy` file with this header text."""
    size = len(text) if length is None else length
    width = 2 if version == (1, 0) else 4
    return b"\x93NUMPY" + bytes(version) + size.to_bytes(width, "little") + text.encode("latin1")


def described(descr: str = "'<f4'", order: str = "False", shape: str = "(4,)") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


FOUR = np.arange(4, dtype=np.float32)


def archive(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as made:
        for name, content in members.items():
            made.writestr(name, content)
    return data.getvalue()


def changed_zip(place: int, value: int) -> bytes:
    """An archive of an array with another value in both of its headers; in the directory the field is two
    bytes later.
    """
    data = bytearray(archive({"x.npy": header(described()) + FOUR.tobytes()}))
    for start in (0, data.index(b"PK\1\2") + 2):
        data[start + place] = value
    return bytes(data)


BAD_FILES = {
    "empty": b"",
    "magic": b"\x93NUMPY",
    "version": b"\x93NUMPY\x09\x00\x10\x00",
    "no header": header("", length=100),
    "header of 4 GB": header(described(), (2, 0), 0xFFFFFFFF),
    "long header": header(described() + " " * 60000),
    "no dictionary": header("[1, 2]"),
    "no keys": header("{}"),
    "not closed": header("{'descr': ("),
    "deep": header("(" * 9000),
    "deep list": header("{'descr': " + "[" * 4000),
    "minus": header("-" * 9000 + "1"),
    "code": header("__import__('os').abort()"),
    "digits": header(described(shape=f"({'9' * 5000},)")) + FOUR.tobytes(),
    "negative": header(described(shape="(-4,)")) + FOUR.tobytes(),
    "bool": header(described(shape="(True,)")) + FOUR.tobytes(),
    "huge": header(described(shape="(1000000000000000,)")) + FOUR.tobytes(),
    "overflow": header(described(shape="(4294967296, 4294967296)")) + FOUR.tobytes(),
    "empty overflow": header(described(shape=f"({10**30}, 0)")),
    "rank": header(described(shape=f"({'1, ' * 100})")) + FOUR.tobytes()[:4],
    "short": header(described()) + FOUR.tobytes()[:-1],
    "long": header(described()) + FOUR.tobytes() + b"x",
    "objects": header(described("'|O'")) + FOUR.tobytes(),
    "objects inside": header(described("[('a', '|O')]")) + FOUR.tobytes(),
    "structured": header(described("[('a', '<f4')]")) + FOUR.tobytes(),
    "many fields": header(described("[" + ", ".join(f"('f{i}', '<f4')" for i in range(500)) + "]")) + FOUR.tobytes(),
    "no type": header(described("'nonsense'")) + FOUR.tobytes(),
    "type of thousands": header(described(f"'{'f' * 9000}'")) + FOUR.tobytes(),
    "number": header(described("7")) + FOUR.tobytes(),
    "no bytes": header(described("'V0'", shape="(1000000000000,)")),
    "unicode": header(described("'<U1'")) + FOUR.tobytes(),
    "version 3": header(described("[('a', '<f4')]"), (3, 0)) + FOUR.tobytes(),
    "zip": b"PK\x03\x04" + bytes(100),
    "encrypted": changed_zip(6, 1),
    "other compression": changed_zip(8, 12),
    "another checksum": changed_zip(14, 7),
    "a name of rubbish": archive({"x\n\x1b.txt": b"no array"}),
    "twice": archive({"x.npy": header(described()) + FOUR.tobytes(), "x": b""}),
    "a bomb": archive({"x.npy": bytes(1 << 24)}, zipfile.ZIP_DEFLATED),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_malformed_files_are_refused_in_one_short_line(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(BAD_FILES[name])
    with pytest.raises(InputError, match="x.npy: ") as caught:
        load_array(str(path))
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 1000


def test_orders_and_versions_are_read(tmp_path: Path) -> None:
    want = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "x.npy", np.asfortranarray(want))
    np.testing.assert_array_equal(load_array(str(tmp_path / "x.npy")), want)
    for version in ((1, 0), (2, 0), (3, 0)):
        (tmp_path / "x.npy").write_bytes(header(described(shape="(2, 3)"), version) + want.tobytes())
        np.testing.assert_array_equal(load_array(str(tmp_path / "x.npy")), want)


@pytest.mark.parametrize("dtype", [">f4", ">i2", ">c16", ">f8"])
def test_big_endian_files_are_read_in_the_order_of_the_machine(dtype: str, tmp_path: Path) -> None:
    want = np.arange(6).reshape(2, 3).astype(dtype)
    np.save(tmp_path / "x.npy", np.asfortranarray(want))
    np.savez_compressed(tmp_path / "x.npz", x=want)
    found = load(str(tmp_path / "x.npz"))
    assert isinstance(found, dict)
    for array in (load_array(str(tmp_path / "x.npy")), found["x"]):
        np.testing.assert_array_equal(array, want)
        assert array.dtype == want.dtype.newbyteorder("=") and array.dtype.isnative


def test_archives_are_those_of_numpy(tmp_path: Path) -> None:
    want = {"params/w": np.ones((4, 3), np.float32), "x": np.arange(5, dtype=np.int8), "empty": np.zeros((0, 2))}
    np.savez(tmp_path / "theirs.npz", **want)
    np.savez_compressed(tmp_path / "small.npz", **want)
    save_arrays(str(tmp_path / "ours.npz"), want)
    for name in ("theirs", "small", "ours"):
        found = load(str(tmp_path / f"{name}.npz"))
        assert isinstance(found, dict) and list(found) == list(want)
        with np.load(tmp_path / f"{name}.npz", allow_pickle=False) as theirs:
            for key, array in want.items():
                np.testing.assert_array_equal(found[key], array, strict=True)
                np.testing.assert_array_equal(theirs[key], array, strict=True)
    with pytest.raises(InputError, match=r"ours.npz: an archive of 3 arrays, one array expected"):
        load_array(str(tmp_path / "ours.npz"))


def test_archives_take_no_more_than_the_machine_has(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "x.npz", x=np.zeros(1 << 16, np.uint8), y=np.zeros(1 << 16, np.uint8))
    with mock.patch("orchestrion.tools.array_files.most_bytes", lambda: 100_000):
        with pytest.raises(InputError, match=r"its members have 13\d+ bytes, this machine has 100000"):
            load(str(tmp_path / "x.npz"))


def test_headers_of_python_2_are_read_without_a_warning(tmp_path: Path) -> None:
    want = np.arange(3, dtype=np.float32)
    (tmp_path / "x.npy").write_bytes(header(described(shape="(3L,)"), (1, 0)) + want.tobytes())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(load_array(str(tmp_path / "x.npy")), want)


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for path, kind in ((tmp_path / "pipe", "pipe"), (tmp_path / "folder", "directory"), (Path("/dev/zero"), "device")):
        with pytest.raises(OSError, match=f"is a {kind}, not a file"):
            load_array(str(path))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damaged_files_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    whole = bytearray(header(described()) + FOUR.tobytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(whole) - 1))
        piece = data.draw(st.sampled_from([b"(", b"'", b"9" * 20, b"O", b"-", b"{", b"\x00", b"\xff", b"[", b"V", b""]))
        whole[at : at + data.draw(st.integers(0, 3))] = piece
    path = tmp_path_factory.mktemp("damaged") / "x.npy"
    path.write_bytes(bytes(whole))
    try:
        assert load_array(str(path)).nbytes <= len(whole)
    except InputError as error:
        assert "\n" not in str(error)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="0123456789xfi=,.-+e[] \n@<>cu", max_size=40).filter(lambda text: not text.startswith("@")))
def test_any_text_is_an_array_or_refused(text: str) -> None:
    try:
        with mock.patch("orchestrion.tools.arrays.most_bytes", lambda: 1 << 20):
            assert parse_array(text).nbytes <= 1 << 20
    except InputError as error:
        assert len(str(error)) < 1000
