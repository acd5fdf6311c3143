"""Narrow float formats in plain Python, compared with ml_dtypes: all values, and rounding from f32."""

import math

import numpy as np
import pytest

from orchestrion.schema.dtypes import BY_NAME, DTYPES, FLOAT_FORMATS, of_numpy

pytest.importorskip("ml_dtypes")


@pytest.mark.parametrize("name", FLOAT_FORMATS)
def test_every_value(name: str) -> None:
    row, dtype = FLOAT_FORMATS[name], BY_NAME[name]
    codes = np.arange(1 << row.bits).astype(f"u{dtype.itemsize}")
    with np.errstate(invalid="ignore"):
        want = codes.view(dtype.numpy).astype(np.float64)
    got = np.array([row.value(int(code)) for code in codes])
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0]))


@pytest.mark.parametrize("name", FLOAT_FORMATS)
def test_rounding(name: str) -> None:
    """Halfway values, the f32 values next to them, and special values. Representable values do not change."""
    row, dtype = FLOAT_FORMATS[name], BY_NAME[name]
    with np.errstate(all="ignore"):
        values = np.unique(np.arange(1 << row.bits).astype(f"u{dtype.itemsize}").view(dtype.numpy).astype(np.float64))
        values = values[np.isfinite(values)][:: 1 if row.bits <= 8 else 37]
        middle = ((values[1:] + values[:-1]) / 2).astype(np.float32)
        middle = middle[np.abs(middle) >= np.finfo(np.float32).tiny] if name == "f8E8M0FNU" else middle
        beside = [np.nextafter(middle, np.float32(end)) for end in (-np.inf, np.inf)]
        x = np.concatenate([middle, *beside, np.array([0, -0.0, np.inf, -np.inf, np.nan, 3e38, -3e38], np.float32)])
        want = x.astype(dtype.numpy)
    got = np.array([row.rounded(float(v)) for v in x], f"u{dtype.itemsize}")
    nan = np.array([math.isnan(row.value(int(code))) for code in want.view(got.dtype)])
    np.testing.assert_array_equal(got[~nan], want.view(got.dtype)[~nan])
    assert all(math.isnan(row.value(int(code))) for code in got[nan])


def test_every_row_is_found_by_its_numpy_type() -> None:
    assert all(of_numpy(row.numpy) is row for row in DTYPES)
    assert of_numpy(np.dtype("<M8[s]")) is None and of_numpy(np.dtype("V2")) is None
    assert len({row.code for row in DTYPES}) == len(DTYPES)
