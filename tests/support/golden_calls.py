"""The calls of the golden modules, as `tests/golden/*.json` keep them: a row per call. Needs NumPy alone."""

from typing import Any

import numpy as np

Call = dict[str, Any]


def array(x: np.ndarray[Any, Any]) -> Call:
    return {"dtype": str(x.dtype), "shape": list(x.shape), "values": x.ravel().tolist()}


def value(x: Any) -> Any:
    """The array that `array` wrote down, or the number."""
    return np.array(x["values"], x["dtype"]).reshape(x["shape"]) if isinstance(x, dict) else x


def call(function: str, arguments: list[Any], *results: Any) -> Call:
    return {"function": function, "arguments": arguments, "results": list(results)}


def compare(got: tuple[Any, ...], want: list[Any]) -> None:
    assert len(got) == len(want)
    for one, other in zip(got, want, strict=True):
        if not isinstance(other, np.ndarray):
            assert one == other
            continue
        assert one.dtype == other.dtype and one.shape == other.shape
        scale = np.max(np.abs(other), where=np.isfinite(other), initial=0.0)
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6 * scale)
