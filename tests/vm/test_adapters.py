"""Low-rank adapters: W + scale * (B @ A), rounded once; what does not fit is refused with names and types."""

import re
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrion.schema.dtypes import BY_NAME, DType, of_numpy
from orchestrion.schema.safetensors import TensorFile, Values, open_bytes, open_file, pieces
from orchestrion.vm.adapters import apply_updates, parameters_in, update_of

Array = np.ndarray[Any, Any]


def adapter(arrays: Mapping[str, Array], metadata: Mapping[str, str] | None = None) -> TensorFile:
    rows = {name: Values(_row(array), array.shape, array) for name, array in arrays.items()}
    return open_bytes(b"".join(pieces(rows, metadata)))


def _row(array: Array) -> DType:
    row = of_numpy(array.dtype)
    assert row is not None
    return row


def whole(seed: int, *shape: int, dtype: Any = np.float32) -> Array:
    """Small whole numbers: products and sums of them are exact."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def changed(weights: Array, *files: TensorFile, name: str = "w") -> Array:
    row = _row(weights)
    updates = [update_of(file, name, row, weights.shape) for file in files]
    found = apply_updates(memoryview(weights.tobytes()), row, updates)
    assert found.readonly
    return np.frombuffer(found, weights.dtype).reshape(weights.shape)


@pytest.mark.parametrize(
    ("metadata", "scale"),
    [
        (None, 1.0),
        ({"scale": "0.5"}, 0.5),
        ({"alpha": "8"}, 2.0),
        ({"alpha": "8", "use_rslora": "true"}, 4.0),
        ({"alpha": "8", "use_rslora": "False"}, 2.0),
        ({"scale": "-3", "note": "anything"}, -3.0),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_the_sum(dtype: str, metadata: Mapping[str, str] | None, scale: float) -> None:
    kind = np.dtype(dtype) if dtype != "bfloat16" else np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    w, a, b = whole(1, 6, 5, dtype=kind), whole(2, 4, 5), whole(3, 6, 4, dtype=kind)
    want = w.astype(np.float64) + scale * (b.astype(np.float64) @ a.astype(np.float64))
    assert np.array_equal(changed(w, adapter({"w.lora_A": a, "w.lora_B": b}, metadata)), want.astype(kind))


def test_several_adapters_are_added_before_the_sum_is_rounded() -> None:
    bfloat16 = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    w = np.full((2, 2), 256, bfloat16)
    half = adapter({"w.lora_A": np.ones((1, 2), np.float32), "w.lora_B": np.ones((2, 1), np.float32)})
    assert np.array_equal(changed(w, half), w)  # 257 is rounded to 256
    assert np.array_equal(changed(w, half, half), w + np.array(2, bfloat16))


def test_rounding_to_bf16_is_that_of_ml_dtypes() -> None:
    bfloat16 = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    bits = np.random.default_rng(5).integers(0, 1 << 32, 1 << 16, np.uint32)
    bits[:8] = (0, 1 << 31, 0x7F7FFFFF, 0x7F7F8000, 0x7F800000, 0x7F800001, 0x3F808000, 0x3F818000)
    numbers = bits.view(np.float32).reshape(256, 256)
    numbers = np.where(np.isnan(numbers), np.float32(np.nan), numbers)
    zero = np.zeros((256, 256), bfloat16)
    found = changed(zero, adapter({"w.lora_A": np.eye(256, dtype=np.float32), "w.lora_B": _finite(numbers)}))
    want = _finite(numbers).astype(bfloat16)
    assert np.array_equal(found.view(np.uint16), (want + zero).view(np.uint16))


def _finite(numbers: Array) -> Array:
    """A product with the unit matrix leaves finite numbers alone; an infinity makes NaN of the others in its row."""
    return np.where(np.isfinite(numbers), numbers, np.float32(0)).astype(np.float32)


def test_infinities_and_nan_stay_what_they_are() -> None:
    bfloat16 = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    w = np.array([[np.inf, -np.inf], [np.nan, 1]], bfloat16)
    zero = adapter({"w.lora_A": np.zeros((1, 2), np.float32), "w.lora_B": np.zeros((2, 1), np.float32)})
    assert np.array_equal(changed(w, zero).astype(np.float32), w.astype(np.float32), equal_nan=True)


def test_more_axes() -> None:
    w, a, b = whole(1, 3, 2, 4), whole(2, 2, 2, 4), whole(3, 3, 2)
    assert np.array_equal(changed(w, adapter({"w.lora_A": a, "w.lora_B": b})), w + np.tensordot(b, a, 1))


def test_a_transposed_product() -> None:
    """Weights of shape (in, out), with an adapter made for (out, in)."""
    w, a, b = whole(1, 5, 6), whole(2, 4, 5), whole(3, 6, 4)
    file = adapter({"w.lora_A": a, "w.lora_B": b}, {"fan_in_fan_out": "true"})
    assert np.array_equal(changed(w, file), w + (b @ a).T)


@pytest.mark.parametrize(
    ("a", "b", "metadata", "message"),
    [
        (whole(2, 4, 5), whole(3, 6, 3), {}, "lora_B of 6x3xf32 times lora_A of 4x5xf32 does not have its shape"),
        (whole(2, 4, 6), whole(3, 6, 4), {}, "does not have its shape"),
        (whole(2, 0, 5), whole(3, 6, 0), {}, "does not have its shape"),
        (np.array(1.0), whole(3, 6, 4), {}, "does not have its shape"),
        (whole(2, 4, 5), whole(3, 6, 4), {"fan_in_fan_out": "true"}, "does not have its shape"),
        (
            whole(2, 4, 5, dtype=np.int32),
            whole(3, 6, 4),
            {},
            "lora_A is 4x5xi32; adapters and their parameters are f16, bf16",
        ),
        (whole(2, 4, 5), whole(3, 6, 4), {"scale": "1", "alpha": "1"}, "there are both scale and alpha"),
        (whole(2, 4, 5), whole(3, 6, 4), {"scale": "inf"}, "scale is 'inf', a finite number wanted"),
        (whole(2, 4, 5), whole(3, 6, 4), {"alpha": "much"}, "alpha is 'much', a finite number wanted"),
        (whole(2, 4, 5), whole(3, 6, 4), {"fan_in_fan_out": "1"}, "fan_in_fan_out is '1', true or false wanted"),
    ],
)
def test_what_does_not_fit(a: Array, b: Array, metadata: Mapping[str, str], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        changed(whole(1, 6, 5), adapter({"w.lora_A": a, "w.lora_B": b}, metadata))
    assert message in str(caught.value)


def test_integers_have_no_adapter() -> None:
    with pytest.raises(
        ValueError, match="parameter 'w' of 6x5xi32: lora_A is 4x5xf32; adapters and their parameters are"
    ):
        changed(whole(1, 6, 5, dtype=np.int32), adapter({"w.lora_A": whole(2, 4, 5), "w.lora_B": whole(3, 6, 4)}))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["w.lora_A"], "tensor 'w.lora_B' is missing"),
        (["w.lora_B"], "tensor 'w.lora_A' is missing"),
        (["w.lora_A", "w.lora_B", "w"], "tensor 'w' is called neither"),
        ([".lora_A"], "tensor '.lora_A' is called neither"),
        (["w.lora_A.weight"], "tensor 'w.lora_A.weight' is called neither <parameter>.lora_A nor <parameter>.lora_B"),
    ],
)
def test_tensors_that_are_no_pair(names: list[str], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        parameters_in(adapter({name: whole(1, 2, 2) for name in names}))
    assert message in str(caught.value)


def test_the_memory_of_the_sum_begins_at_a_page() -> None:
    """So that devices can import it."""
    updates = [
        update_of(adapter({"w.lora_A": whole(2, 1, 9), "w.lora_B": whole(3, 7, 1)}), "w", BY_NAME["f32"], (7, 9))
    ]
    found = apply_updates(memoryview(bytes(252)), BY_NAME["f32"], updates)
    assert np.frombuffer(found, np.uint8).ctypes.data % 4096 == 0


def test_the_page_converts_what_peft_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The block of docs/parameters.md, on files with PEFT's names."""
    st = pytest.importorskip("safetensors.numpy")
    page = (Path(__file__).parents[2] / "docs" / "parameters.md").read_text(encoding="utf-8")
    block = re.search(r"\n((?:    .*\n)*    import json\n(?:    .*\n)*)", page)
    assert block is not None
    layer = "base_model.model.layers.0.q_proj"
    a, b, w = whole(2, 4, 5), whole(3, 6, 4), whole(1, 6, 5)
    monkeypatch.chdir(tmp_path)
    st.save_file({f"{layer}.lora_A.weight": a, f"{layer}.lora_B.weight": b}, "adapter_model.safetensors")
    Path("adapter_config.json").write_text('{"lora_alpha": 8, "r": 4, "use_rslora": false}')
    exec(textwrap.dedent(block[1]), {"names": {layer: "w"}})
    assert np.array_equal(changed(w, open_file("adapter.safetensors")), w + 2 * (b @ a))
