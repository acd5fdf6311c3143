"""The largest elements of rows: as a stable sort in total order has them, bit for bit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from orchestrion import compiler

LoadOn = Callable[[bytes, str], Any]
Array = np.ndarray[Any, Any]
ROWS, COLUMNS = 7, 100


def arrays() -> dict[str, Array]:
    """Arrays with ties, the least numbers, and every kind of float."""
    random, shape = np.random.default_rng(0), (ROWS, COLUMNS)
    x = random.standard_normal(shape).astype(np.float32)
    x[0], x[1, 3:90], x[1, 50], x[2], x[4] = np.nan, -0.0, 0.0, -np.inf, -np.nan
    x[3, 5], x[3, 9], x[3, 20:40], x[6, ::7] = np.nan, -np.nan, np.inf, 3
    x[5].view(np.int32)[:] = -1  # the least float in total order
    x[5, 7] = 1
    least = np.full(shape, -(2**31), np.int32)
    least[:, 9] = 7
    words = random.integers(0, 2**32, shape, dtype=np.uint64).astype(np.uint32)
    words[0], words[1] = 0, 2**32 - 1
    return {"f32": x, "i32": random.integers(-5, 5, shape).astype(np.int32), "least i32": least, "ui32": words}


def expected(x: Array, count: int) -> tuple[Array, Array]:
    bits = x.view(np.int32).astype(np.int64)
    key = np.where(bits < 0, bits ^ 0x7FFFFFFF, bits) if x.dtype == np.float32 else x.astype(np.int64)
    places = np.argsort(-key, 1, kind="stable")[:, :count]
    return np.take_along_axis(x, places, 1), places


@pytest.mark.sampled
@pytest.mark.parametrize("device", ["reference", "cpu", "opencl", "vulkan"])
@pytest.mark.parametrize("name", arrays())
def test_the_largest_elements(name: str, device: str, load_on: LoadOn) -> None:
    """Few are found one after the other; 17 are the start of a sort."""
    x = arrays()[name]
    dtype = name.split()[-1]
    counts = (1, 3, 16, 17) if device in ("reference", "cpu") else (3,)
    t, head, body, names = f"tensor<{ROWS}x{COLUMNS}x{dtype}>", [], "", []
    for count in counts:
        values, places = f"tensor<{ROWS}x{count}x{dtype}>", f"tensor<{ROWS}x{count}xi32>"
        body += f'%r{count}:2 = "chlo.top_k"(%x) {{k = {count} : i64}} : ({t}) -> ({values}, {places})\n'
        head += [values, places]
        names += [f"%r{count}#0", f"%r{count}#1"]
    text = (
        f"func.func @main(%x: {t}) -> ({', '.join(head)}) {{\n{body}return {', '.join(names)} : {', '.join(head)}\n}}"
    )
    module = compiler.compile(text, targets=["spirv" if device == "vulkan" else device])
    found = [np.asarray(one) for one in load_on(module, device).main(x)]
    for number, count in enumerate(counts):
        values, places = expected(x, count)
        np.testing.assert_array_equal(found[2 * number].view(np.int32), values.view(np.int32))
        np.testing.assert_array_equal(found[2 * number + 1], places)
