"""safetensors files: the package and our code read each other's files, and invalid files are refused by name."""

import json
import struct

import numpy as np
import pytest

from orchestrion.schema.dtypes import BY_NAME
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.safetensors import (
    DTYPES,
    MAX_HEADER,
    PAGE,
    Values,
    open_bytes,
    open_file,
    pieces,
    write_file,
)

#: types that the package and NumPy both have
PLAIN = ("i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64", "f16", "f32", "f64", "complex<f32>")


def values_of(*arrays):
    rows = {np.dtype(BY_NAME[name].numpy): BY_NAME[name] for name in PLAIN}
    return {f"t{i}": Values(rows[array.dtype], array.shape, array) for i, array in enumerate(arrays)}


def file_of(header, data=b"", size=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if size is None else size) + text + data


def row(shape, begin, end, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def written(tensors, metadata=None):
    return b"".join(pieces(tensors, metadata))


def arrays():
    random = np.random.default_rng(7)
    for name in PLAIN:
        yield random.integers(0, 2, (3, 5)).astype(BY_NAME[name].numpy)
    yield np.zeros((0, 4), np.float32)
    yield np.array(2.5)


def test_the_package_reads_what_we_write(tmp_path):
    st = pytest.importorskip("safetensors.numpy")
    given = values_of(*arrays())
    write_file(tmp_path / "a.safetensors", given, {"from": "here", "ä": "ö"})
    found = st.load_file(tmp_path / "a.safetensors")
    assert found.keys() == given.keys()
    for name, value in given.items():
        assert found[name].dtype == value.data.dtype and np.array_equal(found[name], value.data)
    from safetensors import safe_open

    with safe_open(tmp_path / "a.safetensors", "np") as file:
        assert file.metadata() == {"from": "here", "ä": "ö"}


def test_we_read_what_the_package_writes(tmp_path):
    st = pytest.importorskip("safetensors.numpy")
    given = {f"layer.{i}/w['x']": array for i, array in enumerate(arrays())}
    st.save_file(given, tmp_path / "b.safetensors", {"format": "np"})
    file = open_file(tmp_path / "b.safetensors")
    assert file.metadata == {"format": "np"} and file.tensors.keys() == given.keys()
    for name, array in given.items():
        tensor = file.tensors[name]
        assert tensor.dims == array.shape and tensor.dtype.numpy == array.dtype
        assert bytes(file.bytes_of(name)) == array.tobytes()


@pytest.mark.parametrize("name", ["bf16", "f8E4M3FN", "f8E4M3FNUZ", "f8E5M2", "f8E5M2FNUZ", "f8E8M0FNU"])
def test_narrow_types_have_the_packages_names(name):
    st = pytest.importorskip("safetensors")
    dtype = BY_NAME[name]
    data = np.arange(8 * dtype.itemsize, dtype=np.uint8)
    spec = st.TensorSpec(dtype=dtype.numpy_name, shape=[2, 4], data_ptr=data.ctypes.data, data_len=data.nbytes)
    tensor = open_bytes(st.serialize({"x": spec})).tensors["x"]
    assert (tensor.dtype, tensor.dims) == (dtype, (2, 4))
    ((entry, found),) = st.deserialize(written({"x": Values(dtype, (2, 4), data)}))
    assert entry == "x" and found["shape"] == [2, 4] and bytes(found["data"]) == data.tobytes()


def test_the_same_tensors_give_the_same_bytes_in_whatever_order():
    given = values_of(*arrays())
    turned = dict(reversed(given.items()))
    assert written(given, {"a": "1", "b": "2"}) == written(turned, {"b": "2", "a": "1"})


def test_tensors_lie_at_multiples_of_the_power_of_two_in_their_size(tmp_path):
    sizes = (3 * PAGE, 5 * PAGE, 4096, 100, 64, 4)
    given = values_of(*(np.full(size // 4, size, np.int32) for size in sizes))
    write_file(tmp_path / "c.safetensors", given)
    file = open_file(tmp_path / "c.safetensors")
    for tensor in file.tensors.values():
        size = tensor.end - tensor.start
        assert tensor.start % min(size & -size, PAGE) == 0
    assert [bytes(file.bytes_of(name)) for name in given] == [value.data.tobytes() for value in given.values()]


def test_the_digest_is_that_of_the_file(tmp_path):
    from hashlib import sha256

    digest = write_file(tmp_path / "d.safetensors", values_of(np.arange(5)))
    assert digest == sha256((tmp_path / "d.safetensors").read_bytes()).digest()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (b"", "no safetensors file: 0 bytes"),
        (b"\0" * 7, "no safetensors file: 7 bytes"),
        (file_of({}, size=MAX_HEADER + 1), "a header of 8388609 bytes, the limit is 8388608"),
        (file_of({}, size=3), "truncated: a header of 3 bytes"),
        (file_of(b""), "does not begin with '{'"),
        (file_of(b" {}"), "does not begin with '{'"),
        (file_of(b"{}\n"), "does not end with '}' and spaces"),
        (file_of(b'{"\xff":1}'), "the header is no UTF-8"),
        (file_of(b"{x}"), "the header is no JSON"),
        (file_of(b"{} {}"), "the header is no JSON: extra data"),
        (file_of(b'{"a":' + b"[" * 100_000 + b"}"), "nested too deeply"),
        (file_of(b'{"a":' + b"9" * 5000 + b"}"), "the header is no JSON"),
        (file_of(b'{"a":NaN}'), "holds the number 'NaN'"),
        (file_of(b'{"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}}', b"1234"), "holds the number '1.0'"),
        (file_of(b'{"a":1,"a":2}'), "the key 'a' twice"),
        (file_of({"a": 1}), "tensor 'a' has no object"),
        (file_of({"a": {"dtype": "F32", "shape": []}}), "tensor 'a' has the keys 'dtype', 'shape', not"),
        (file_of({"a": {**row([], 0, 4), "x": 1}}, b"1234"), "tensor 'a' has the keys"),
        (file_of({"a": row([], 0, 4, "F4")}, b"1234"), "tensor 'a' is of type 'F4'; known are BOOL"),
        (file_of({"a": row([], 0, 4, 3)}, b"1234"), "tensor 'a' is of type '3'"),
        (file_of({"a": row([-1], 0, 4)}, b"1234"), "holds the number '-1'; only whole ones from 0 on"),
        (file_of(b'{"a":{"dtype":"U8","shape":[],"data_offsets":[-0,1]}}', b"1"), "holds the number '-0'"),
        (file_of({"a": row([2**63], 0, 4)}, b"1234"), "its shape is no list of at most 64 sizes"),
        (file_of({"a": row([True], 0, 4)}, b"1234"), "its shape is no list"),
        (file_of({"a": row([1] * 65, 0, 4)}, b"1234"), "its shape is no list"),
        (file_of({"a": row("1", 0, 4)}, b"1234"), "its shape is no list"),
        (file_of({"a": row([2**62, 2**62, 0], 0, 0)}), "more than 9223372036854775807 bytes"),
        (file_of({"a": {**row([1], 0, 4), "data_offsets": [0]}}, b"1234"), "its data_offsets are not two sizes"),
        (file_of({"a": row([1], 4, 0)}, b"1234"), "bytes 4 to 0, but 1xf32 takes 4"),
        (file_of({"a": row([2], 0, 4)}, b"1234"), "bytes 0 to 4, but 2xf32 takes 8"),
        (file_of({"a": row([1], 0, 4)}, b"123"), "truncated: the tensors take 4 bytes, the file has 3"),
        (file_of({"a": row([1], 0, 4)}, b"12345"), "bytes follow the last tensor"),
        (file_of({"a": row([1], 4, 8)}, b"12345678"), "leave a gap of 4 bytes"),
        (
            file_of({"a": row([2], 0, 8), "b": row([1], 4, 8)}, b"12345678"),
            "tensor 'b' begins at 4: it and tensor 'a' ov",
        ),
        (file_of({"a": row([1], 0, 4), "b": row([1], 0, 4)}, b"1234"), "tensor 'b' begins at 0"),
        (file_of({"__metadata__": {"a": 1}}), "__metadata__ is no object of texts"),
        (file_of({"__metadata__": "a"}), "__metadata__ is no object of texts"),
        (file_of(b'{"\\ud800":1}'), "half of a surrogate pair"),
        (file_of(b'{"__metadata__":{"a":"\\ud800"}}'), "half of a surrogate pair"),
    ],
)
def test_unsound_files_are_refused(given, message):
    with pytest.raises(ModuleError) as caught:
        open_bytes(given)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_the_package_refuses_what_breaks_the_format_too():
    """The package's reader also refuses gaps, overlaps and trailing bytes."""
    st = pytest.importorskip("safetensors")
    for given in (
        file_of({"a": row([1], 4, 8)}, b"12345678"),
        file_of({"a": row([2], 0, 8), "b": row([1], 4, 8)}, b"12345678"),
        file_of({"a": row([1], 0, 4)}, b"12345"),
    ):
        with pytest.raises(st.SafetensorError):
            st.deserialize(given)


def test_every_truncation_is_refused():
    whole = written(values_of(*arrays()))
    for size in range(len(whole)):
        with pytest.raises(ModuleError):
            open_bytes(whole[:size])


@pytest.mark.parametrize(
    ("tensor", "name"),
    [
        (Values(BY_NAME["i4"], (2,), b"12"), "a"),
        (Values(BY_NAME["f32"], (2,), b"1234"), "a"),
        (Values(BY_NAME["f32"], (4, 4), np.zeros((8, 4), np.float32)[::2]), "a"),
        (Values(BY_NAME["f32"], (1,), b"1234"), "__metadata__"),
    ],
)
def test_what_the_format_cannot_hold_is_not_written(tensor, name):
    with pytest.raises(ValueError, match="tensor"):
        pieces({name: tensor})


def test_every_type_of_the_format_is_one_of_ours():
    assert set(DTYPES.values()) <= set(BY_NAME)
