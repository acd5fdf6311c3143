"""The text form of SPIR-V agrees with the Khronos tools, and any words are printed or refused."""

import re
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrion import compiler
from orchestrion.schema.decoder import read_module
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.spirv import MAGIC, OPS, Op
from orchestrion.tools.spirv_text import ENUMERANTS, disassemble

PROGRAM = """
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<300x7xf64>) -> (tensor<4xf32>, tensor<7xf64>, tensor<4xi64>),
                  sym_name = "main"}> ({
  ^bb0(%x: tensor<4xf32>, %y: tensor<300x7xf64>):
    %0 = "stablehlo.tanh"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f64>}> : () -> tensor<f64>
    %2 = "stablehlo.reduce"(%y, %1) <{dimensions = array<i64: 0>}> ({
    ^bb0(%a: tensor<f64>, %b: tensor<f64>):
      %s = "stablehlo.add"(%a, %b) : (tensor<f64>, tensor<f64>) -> tensor<f64>
      "stablehlo.return"(%s) : (tensor<f64>) -> ()
    }) : (tensor<300x7xf64>, tensor<f64>) -> tensor<7xf64>
    %3 = "stablehlo.convert"(%x) : (tensor<4xf32>) -> tensor<4xi64>
    "func.return"(%0, %2, %3) : (tensor<4xf32>, tensor<7xf64>, tensor<4xi64>) -> ()
  }) : () -> ()
}) : () -> ()
"""

CONSTANT = re.compile(r"(.* = OpConstant %\d+) (\S+)")


@pytest.fixture(scope="module")
def payloads() -> list[bytes]:
    """Shaders with loops, shared memory, extended instructions, and constants of several types."""
    module = read_module(compiler.compile(PROGRAM, targets=["spirv"]))
    return [bytes(module.segment(row.payload)) for row in module.variants]


def test_it_is_what_spirv_dis_prints(payloads: list[bytes], tmp_path: Path) -> None:
    if shutil.which("spirv-dis") is None:
        pytest.skip("spirv-dis is not installed (Debian's spirv-tools)")
    for payload in payloads:
        (tmp_path / "a.spv").write_bytes(payload)
        command = ["spirv-dis", "--raw-id", "--no-header", "--no-indent", "--no-color", str(tmp_path / "a.spv")]
        want = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        got = disassemble(payload).splitlines()[1:]
        assert len(got) == len(want)
        for ours, theirs in zip(got, want, strict=True):
            assert same(ours.strip(), theirs), (ours, theirs)


def same(ours: str, theirs: str) -> bool:
    """Whether two lines are equal or name the same constant: the Khronos tools print some floats in hexadecimal."""
    if ours == theirs:
        return True
    mine, other = CONSTANT.fullmatch(ours), CONSTANT.fullmatch(theirs)
    if mine is None or other is None or mine[1] != other[1]:
        return False
    value = float.fromhex(other[2]) if "0x" in other[2] else float(other[2])
    with np.errstate(over="ignore"):
        return float(mine[2]) == value or np.float32(float(mine[2])) == np.float32(value)


def test_every_named_op_has_a_row() -> None:
    literals = {row.name: row.layout.count("n") for row in OPS}
    assert all(len(names) <= literals[name] for name, names in ENUMERANTS.items())


@given(st.lists(st.integers(0, 2**32 - 1), max_size=12), st.sampled_from(OPS))
def test_any_words_are_shown_or_refused(words: list[int], row: Op) -> None:
    body = [MAGIC, 0x10300, 0, 9, 0, (len(words) + 1) << 16 | row.code, *words]
    try:
        disassemble(struct.pack(f"<{len(body)}I", *body))
    except ModuleError:
        pass
