"""OpenCL C source: a row per primitive, literals that keep their bits, text that people can read."""

import math
import struct
from typing import Any

import numpy as np
import pytest
from stablehlo_text import main, tensor

from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.kernel.dialect import (
    DIALECT,
    ByteOffset,
    Everywhere,
    HasPairProducts,
    LoadBytes,
    LoadSharedLanes,
    MultiplyAddBytes,
    MultiplyAddPairs,
    PrefersPanels,
    Prefetch,
    Scale,
    StoreSharedLanes,
    Transpose,
)
from orchestrion.compiler.scalars.primitives import PRIMITIVES
from orchestrion.compiler.targets.opencl.render import OpenCLBody
from orchestrion.compiler.targets.opencl.scalars import LANGUAGE
from orchestrion.compiler.targets.target import target
from orchestrion.schema.dtypes import BY_NAME, COMPUTED


def test_each_primitive_has_a_row_for_each_kind_and_no_other() -> None:
    wanted = {(row.name, kind) for row in PRIMITIVES for kind in row.kinds}
    assert {key for key in LANGUAGE.expressions if key[1] != "U"} == wanted
    assert {(name, "u") for name, kind in LANGUAGE.expressions if kind == "U"} <= wanted


def test_each_op_and_type_is_rendered() -> None:
    of_cpu = {op.name for op in (LoadSharedLanes, StoreSharedLanes, Prefetch, PrefersPanels, Scale, Everywhere)}
    of_cpu |= {
        op.name for op in (LoadBytes, ByteOffset, MultiplyAddBytes, HasPairProducts, MultiplyAddPairs, Transpose)
    }
    assert set(OpenCLBody._methods) == set(DIALECT.ops) - of_cpu - {"kernel.store_bits"}
    assert set(LANGUAGE.types) == {row.name for row in COMPUTED}


FLOATS = [0.0, 1.0, 0.1, 1e10, 16777217.0, 3.4028235e38, 1.1754944e-38, 1e-45, 1 / 3, math.pi, 1e300, 5e-324]


@pytest.mark.parametrize(("dtype", "code"), [("f32", "<f"), ("f64", "<d")])
@pytest.mark.parametrize("value", FLOATS + [-value for value in FLOATS])
def test_float_literals_read_back_to_the_same_bits(dtype: str, code: str, value: float) -> None:
    if dtype == "f32" and abs(value) > 3.5e38:
        return
    array = np.array(value, BY_NAME[dtype].numpy)
    text = LANGUAGE.literal(int(array.view(f"u{array.itemsize}")), BY_NAME[dtype]).strip("()")
    assert struct.pack(code, float(text.rstrip("f"))) == array.tobytes()
    assert text.endswith("f") == (dtype == "f32")


@pytest.mark.parametrize(
    ("dtype", "pattern", "text"),
    [
        ("f32", 0x7FC00001, "as_float(0x7FC00001u)"),
        ("f32", 0xFF800000, "as_float(0xFF800000u)"),
        ("f64", 0x7FF0000000000000, "as_double(0x7FF0000000000000ul)"),
        ("i32", 0x80000000, "(-2147483647 - 1)"),
        ("i64", 1 << 63, "(-9223372036854775807l - 1)"),
        ("i64", (1 << 64) - 5, "(-5l)"),
        ("ui64", (1 << 64) - 1, "18446744073709551615ul"),
        ("i8", 0x80, "(char)(-128)"),
        ("ui8", 0xFF, "(uchar)255u"),
        ("i1", 1, "true"),
    ],
)
def test_literals_that_c_cannot_say_plainly(dtype: str, pattern: int, text: str) -> None:
    assert LANGUAGE.literal(pattern, BY_NAME[dtype]) == text


def test_the_source_of_a_product(lowered: Any) -> None:
    t = tensor([4], "f32")
    text = main([t, t], [f'%r = "stablehlo.multiply"(%a0, %a1) : ({t}, {t}) -> {t}'], [("%r", t)])
    group = "get_group_id(0) + get_num_groups(0) * (get_group_id(1) + get_num_groups(1) * get_group_id(2))"
    local = "get_local_id(0) + get_local_size(0) * (get_local_id(1) + get_local_size(1) * get_local_id(2))"
    assert lowered(text, "opencl").payload.data.decode() == (
        "#pragma OPENCL FP_CONTRACT OFF\n\n"
        "__kernel __attribute__((reqd_work_group_size(64, 1, 1)))\n"
        "void test_main(__global const float* b0, __global const float* b1, __global float* b2)\n"
        "{\n"
        f"  const uint v0 = (uint)({local});\n"
        f"  const uint v1 = (uint)({group});\n"
        "  const uint v2 = (v1 * 64u) + v0;\n"
        "  if (v2 < 4u) {\n"
        "    const float v3 = b0[v2];\n"
        "    const float v4 = b1[v2];\n"
        "    const float v5 = v3 * v4;\n"
        "    b2[v2] = v5;\n"
        "  }\n"
        "}\n"
    )


@pytest.mark.parametrize(
    ("dtype", "features"), [("f32", set()), ("f64", {"float64"}), ("i64", {"int64"}), ("i1", {"int8"})]
)
@pytest.mark.parametrize("name", ["opencl", "spirv"])
def test_features_are_what_the_types_need(lowered: Any, name: str, dtype: str, features: set[str]) -> None:
    t = tensor([4], dtype)
    op = "not" if dtype == "i1" else "negate"
    payload = lowered(main([t], [f'%r = "stablehlo.{op}"(%a0) : ({t}) -> {t}'], [("%r", t)]), name).payload
    assert payload.features == features
    if name == "opencl":
        assert (b"cl_khr_fp64" in payload.data) == (dtype == "f64")


def test_products_are_not_contracted(computes: Any) -> None:
    """x * y - z is 0 when the product is rounded first."""
    t = tensor([1000], "f32")
    lines = [
        f'%p = "stablehlo.multiply"(%a0, %a1) : ({t}, {t}) -> {t}',
        f'%r = "stablehlo.subtract"(%p, %a2) : ({t}, {t}) -> {t}',
    ]
    rng = np.random.default_rng(0)
    x, y = rng.random((2, 1000), np.float32)
    for name in ("opencl", "spirv"):
        (got,) = computes(main([t, t, t], lines, [("%r", t)]), name, x, y, x * y)
        np.testing.assert_array_equal(got, 0)


def test_a_name_that_c_does_not_have_is_refused(lowered: Any) -> None:
    t = tensor([4], "f32")
    text = main([t], [f'%r = "stablehlo.negate"(%a0) : ({t}) -> {t}'], [("%r", t)])
    source = str(lowered(text, "opencl").module).replace('"test_main"', '"a-b"')
    with pytest.raises(CompileError, match="entry 'a-b' cannot be the name of an OpenCL kernel"):
        target("opencl").serialize(parse(source, "test.mlir").block.first)


@pytest.mark.parametrize("name", ["step", "double", "float4", "main", "kernel", "convert_int_rte", "vload4", "M_PI"])
def test_a_name_that_opencl_has_already_is_refused(lowered: Any, name: str) -> None:
    t = tensor([4], "f32")
    text = main([t], [f'%r = "stablehlo.negate"(%a0) : ({t}) -> {t}'], [("%r", t)])
    source = str(lowered(text, "opencl").module).replace('"test_main"', f'"{name}"')
    with pytest.raises(CompileError, match=f"entry '{name}' cannot be .* OpenCL C has it already"):
        target("opencl").serialize(parse(source, "test.mlir").block.first)
