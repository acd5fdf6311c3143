"""docs/library-calls.md: the function that it writes is one, and does what it says."""

import re
from pathlib import Path

import numpy as np
import pytest

from orchestrion import compiler, vm
from orchestrion.hal.libraries import registry

PAGE = (Path(__file__).parents[2] / "docs" / "library-calls.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"(?<=^```python\n).*?(?=^```$)", PAGE, re.MULTILINE | re.DOTALL)

PROGRAM = """func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.custom_call @mine.softplus(%x) {api_version = 4 : i32, backend_config = {sharpness = SHARPNESS}}
    : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}"""


def test_its_function_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})
    exec(PYTHON[1], {})
    x = np.array([-1, 0, 2], np.float32)

    def run(sharpness: str) -> object:
        return vm.load(compiler.compile(PROGRAM.replace("SHARPNESS", sharpness), targets=["reference"])).main(x)

    np.testing.assert_allclose(run("2.0 : f64"), np.log1p(np.exp(2 * x)), rtol=1e-6)
    with pytest.raises(vm.VmError, match="refuses the call: attribute sharpness must be a float"):
        run("2 : i64")


def test_its_call_from_jax_is_one() -> None:
    jax = pytest.importorskip("jax")
    pytest.importorskip("scipy")
    line = PYTHON[0].partition(" = ")[2]
    function = eval(f"lambda x, w: {line}", {"jax": jax, "np": np})
    x, w = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    program = vm.load(compiler.compile(jax.jit(function).lower(x, w), targets=["reference"]))
    np.testing.assert_array_equal(program.main(x, w), np.full((2, 4), 6, np.float32))
