"""Programs in C: what compilers say, what they compute, and how they are used. `tests/e2e/test_c_code.py` has more."""

import functools
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from c_programs import PLUS_PLUS, STRICT, Array, CProgram, c_program
from code_examples import ALLOWED, DYNAMIC, EXAMPLES, SHAPES, inputs, need, on_device, same_bits

from orchestrion.compiler.codegen.c.body import CBody
from orchestrion.compiler.codegen.c.language import LANGUAGE, comment, is_reserved, literal
from orchestrion.compiler.codegen.subject import Subject
from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.kernel.dialect import DIALECT
from orchestrion.compiler.scalars.primitives import PRIMITIVES
from orchestrion.tools import codegen

#: flags for this processor: where it fuses multiply-adds, the device cpu does
NATIVE = ("-O2", "-march=native")


@pytest.fixture(scope="module")
def wanted() -> Callable[[str], list[Array]]:
    """The results of an example on the device cpu."""
    pytest.importorskip("llvmlite")
    return functools.cache(lambda name: on_device(EXAMPLES / f"{name}.mlir", *inputs(name), target="cpu"))


@pytest.mark.sampled
@pytest.mark.parametrize("command", [("gcc", *STRICT), ("clang++", *PLUS_PLUS)], ids=["c", "c++"])
@pytest.mark.parametrize("name", SHAPES)
def test_examples_give_the_bits_of_the_device_cpu(
    name: str, command: tuple[str, ...], wanted: Callable[[str], list[Array]], tmp_path: Path
) -> None:
    need(command[0])
    program = c_program(EXAMPLES / f"{name}.mlir", tmp_path, name).build(*command, *NATIVE)
    same_bits(program(*inputs(name)), wanted(name))


@pytest.mark.sampled
@pytest.mark.parametrize("command", [("clang", *STRICT), ("g++", *PLUS_PLUS)], ids=["clang", "g++"])
@pytest.mark.parametrize("name", ["mlp", "spectral_norm"])
def test_other_compilers_have_nothing_to_say(name: str, command: tuple[str, ...], tmp_path: Path) -> None:
    need(command[0])
    c_program(EXAMPLES / f"{name}.mlir", tmp_path, name).write()
    subprocess.run([*command, "-c", tmp_path / f"{name}.c", "-o", tmp_path / "program.o"], check=True)


def test_the_example_of_setup_in_c(tmp_path: Path) -> None:
    """A program that enters at the phase hl_seq and fills its result first."""
    need("gcc")
    (tmp_path / "dot.mlir").write_text((EXAMPLES / "dot.hl_seq.mlir").read_text().replace('"opencl"', '"cpu"'))
    program = c_program(tmp_path / "dot.mlir", tmp_path, start="hl_seq")
    random = np.random.default_rng(5)
    a, b = random.normal(size=(8, 16)).astype(np.float32), random.normal(size=(16, 32)).astype(np.float32)
    (got,) = program.build("gcc", *STRICT)(a, b)
    np.testing.assert_allclose(got, a @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.sampled
@pytest.mark.parametrize("flags", [("-O0",), ("-O2",), NATIVE, ("-O0", "-march=native")])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("name", ["spectral_norm", "matmul_static"])
def test_an_object_file_needs_no_library(name: str, compiler: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    need(compiler)
    program = c_program(EXAMPLES / f"{name}.mlir", tmp_path, name)
    program.write()
    object_file = tmp_path / "program.o"
    subprocess.run([compiler, *STRICT, *flags, "-c", tmp_path / f"{name}.c", "-o", object_file], check=True)
    found = subprocess.run(["nm", "-u", object_file], check=True, capture_output=True, text=True).stdout.split()
    assert set(found) - {"U"} <= ALLOWED
    defined = subprocess.run(["nm", "-g", "--defined-only", object_file], check=True, capture_output=True, text=True)
    assert all(line.split()[-1].startswith(f"{name}_") for line in defined.stdout.splitlines())


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_packed_panels_give_the_bits_of_the_device_cpu(compiler: str, tmp_path: Path) -> None:
    need(compiler)
    pytest.importorskip("llvmlite")
    got = c_program(PRODUCT, tmp_path).build(compiler, *STRICT, *NATIVE)(*factors())
    same_bits(got, on_device(PRODUCT, *factors(), target="cpu"))


@pytest.mark.sampled
@pytest.mark.parametrize("flags", [("-O2",), NATIVE, ("-O0", "-fsanitize=undefined", "-fno-sanitize-recover=all")])
@pytest.mark.parametrize("dtype", ["i32", "ui32", "i64"])
def test_products_of_integers_wrap(dtype: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    """In vectors, of which C computes with the bits."""
    need("gcc")
    t = [f"tensor<{rows}x{columns}x{dtype}>" for rows, columns in ((33, 20), (20, 48), (33, 48))]
    text = f"""func.func @main(%x: {t[0]}, %y: {t[1]}) -> {t[2]} {{
      %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : ({t[0]}, {t[1]}) -> {t[2]}
      return %r : {t[2]}
    }}"""
    random, limits = np.random.default_rng(6), np.iinfo(dtype.replace("i", "int"))
    x, y = (random.integers(limits.min, limits.max, shape, limits.dtype) for shape in ((33, 20), (20, 48)))
    program = c_program(text, tmp_path)
    assert f"{dtype}x16_multiply" in str(program.files["model.c"])
    (got,) = program.build("gcc", *STRICT, *flags)(x, y)
    np.testing.assert_array_equal(got, x @ y)


WINOGRAD = """
func.func @main(%x: tensor<1x16x16x64xf32>, %w: tensor<3x3x64x64xf32>) -> tensor<1x16x16x64xf32> {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x16x16x64xf32>, tensor<3x3x64x64xf32>) -> tensor<1x16x16x64xf32>
  return %y : tensor<1x16x16x64xf32>
}
"""


def test_a_convolution_that_prefetches_gives_the_bits_of_the_device_cpu(tmp_path: Path) -> None:
    need("gcc")
    pytest.importorskip("llvmlite")
    random = np.random.default_rng(4)
    given = [random.normal(size=shape).astype(np.float32) for shape in ((1, 16, 16, 64), (3, 3, 64, 64))]
    program = c_program(WINOGRAD, tmp_path)
    assert "PREFETCH(b" in str(program.files["model.c"])
    same_bits(program.build("gcc", *STRICT, *NATIVE)(*given), on_device(WINOGRAD, *given, target="cpu"))


def test_sanitizers_find_nothing(tmp_path: Path) -> None:
    need("gcc")
    flags = ("-O0", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    for name in ("mlp", "spectral_norm"):
        program = c_program(EXAMPLES / f"{name}.mlir", tmp_path / name, name)
        program.build("gcc", *STRICT, *flags)(*inputs(name))
    dynamic = c_program(DYNAMIC, tmp_path / "dynamic").build("gcc", *STRICT, *flags)
    dynamic(np.ones((3, 4), np.float32), np.ones((4, 4), np.float32))


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize(
    ("compiled_by", "run_by", "order"),
    [
        ("aarch64-linux-gnu-gcc", "qemu-aarch64", "<"),
        ("s390x-linux-gnu-gcc", "qemu-s390x", ">"),
    ],
)
@pytest.mark.parametrize("name", ["mlp"])
def test_other_processors_give_the_same_bits(
    name: str, compiled_by: str, run_by: str, order: str, tmp_path: Path
) -> None:
    need(compiled_by, run_by, "gcc")
    source, arrays = EXAMPLES / f"{name}.mlir", inputs(name)
    here = c_program(source, tmp_path / "here", name).build("gcc", *STRICT, *NATIVE)(*arrays)
    there = c_program(source, tmp_path / "there", name).build(compiled_by, *STRICT, "-O2", "-static")
    same_bits(there(*arrays, runner=(run_by,), order=order), here)


def test_any_number_of_rows(tmp_path: Path) -> None:
    need("gcc")
    program = c_program(DYNAMIC, tmp_path).build("gcc", *STRICT, "-O2")
    random = np.random.default_rng(7)
    for rows in (1, 3, 700):
        x, y = random.normal(size=(rows, 4)).astype(np.float32), random.uniform(size=(4, 4)).astype(np.float32)
        got = program(x, y)
        want = on_device(DYNAMIC, x, y, target="reference")
        for found, wanted in zip(got, want, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5)


#: a product whose right operand is transposed into a panel, with more rows than a block and more places than a slice
PRODUCT = """
func.func @main(%x: tensor<100x700xf32>, %y: tensor<96x700xf32>) -> tensor<100x96xf32> {
  %p = stablehlo.dot_general %x, %y, contracting_dims = [1] x [1]
    : (tensor<100x700xf32>, tensor<96x700xf32>) -> tensor<100x96xf32>
  return %p : tensor<100x96xf32>
}
"""


def factors() -> list[Array]:
    random = np.random.default_rng(4)
    return [random.normal(size=(rows, 700)).astype(np.float32) for rows in (100, 96)]


def test_threads_of_the_app_have_scratch_memory_each(tmp_path: Path) -> None:
    need("gcc")
    alone = c_program(PRODUCT, tmp_path / "alone").build("gcc", *STRICT, "-O1")
    threads = c_program(PRODUCT, tmp_path / "threads", threads=True).build(
        "gcc", *STRICT, "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"
    )
    header = alone.files["model.h"]
    assert isinstance(header, str) and int(re.findall(r"model_PART_BYTES (\d+)u", header)[0]) > 32 << 10
    same_bits(threads(*factors()), alone(*factors()))


def test_parts_need_memory(tmp_path: Path) -> None:
    need("gcc")
    c_program(PRODUCT, tmp_path).write()
    (tmp_path / "main.c").write_text(PARTS)
    subprocess.run(["gcc", *STRICT, tmp_path / "main.c", tmp_path / "model.c", "-o", tmp_path / "parts"], check=True)
    said = subprocess.run([tmp_path / "parts"], check=True, capture_output=True, text=True).stdout
    assert said == "1 2 0 2 0 0 1 "


PARTS = """
#include <stdio.h>
#include "model.h"

static void parallel_for(void *user, size_t count, model_task *task, void *data)
{
  (void)user;
  task(data, 0, count);
}

static unsigned char space[model_MEMORY_BYTES + 2 * model_PART_BYTES + 64];

int main(void)
{
  model_context c;
  unsigned char *memory = space + (64 - (uintptr_t)space % 64);
  const size_t least = model_MEMORY_BYTES, more = model_MEMORY_BYTES + 2 * model_PART_BYTES - 1;
  model_fini(NULL);
  printf("%d ", model_use_threads(NULL, parallel_for, NULL, 2));
  printf("%d ", model_init(&c, memory, least - 1, NULL));
  printf("%d ", model_init(&c, memory, more, NULL));
  printf("%d ", model_use_threads(&c, parallel_for, NULL, 3));
  printf("%d ", model_use_threads(&c, parallel_for, NULL, 2));
  printf("%d ", model_use_threads(&c, NULL, NULL, 3));
  model_fini(&c);
  printf("%d ", model_use_threads(&c, parallel_for, NULL, 2));
  return 0;
}
"""


def test_weights_in_a_file(tmp_path: Path) -> None:
    need("gcc")
    array = c_program(EXAMPLES / "mlp.mlir", tmp_path / "array").build("gcc", *STRICT, "-O1")
    file = c_program(EXAMPLES / "mlp.mlir", tmp_path / "file", weights="file").build("gcc", *STRICT, "-O1")
    assert set(file.files) == {"model.h", "model.c", "model.weights"} and set(array.files) == {"model.h", "model.c"}
    same_bits(file(*inputs("mlp")), array(*inputs("mlp")))


def test_two_programs_in_one(tmp_path: Path) -> None:
    need("gcc")
    for name in ("mlp", "spectral_norm"):
        c_program(EXAMPLES / f"{name}.mlir", tmp_path, name).write()
    (tmp_path / "both.c").write_text(
        '#include "mlp.h"\n#include "spectral_norm.h"\n'
        "int main(void) { return mlp_init(0, 0, 0, 0) != mlp_ERROR_CONTEXT || "
        "spectral_norm_init(0, 0, 0, 0) != spectral_norm_ERROR_CONTEXT; }\n"
    )
    files = [tmp_path / f"{name}.c" for name in ("both", "mlp", "spectral_norm")]
    subprocess.run(["gcc", *STRICT, *files, "-o", tmp_path / "both"], check=True)
    subprocess.run([tmp_path / "both"], check=True)


SEVERAL = """
module {
  func.func @double(%x: tensor<4xf32>) -> tensor<4xf32> {
    %y = stablehlo.add %x, %x : tensor<4xf32>
    return %y : tensor<4xf32>
  }
  func.func @count(%x: tensor<?xi32>) -> tensor<i32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<?xi32>, tensor<i32>) -> tensor<i32>
    return %s : tensor<i32>
  }
  func.func @one() -> tensor<2xf32> {
    %y = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
    return %y : tensor<2xf32>
  }
}
"""

CALLS = """
#include <stdio.h>
#include "model.h"

int main(void)
{
  static model_context context;
  float x[4] = {1, 2, 3, 4}, y[4], one[2];
  int32_t numbers[5] = {1, 2, 3, 4, 5}, sum;
  model_inputs_double first = {{x}};
  model_outputs_double doubled = {{y}};
  model_inputs_count second = {{numbers, {5}}};
  model_outputs_count counted = {{&sum}};
  model_outputs_one third = {{one}};
  size_t bytes;
  int status = model_init(&context, NULL, 0, NULL) || model_sizes_count(&second, &bytes) || bytes != 0;
  status = status || model_run_double(&context, &first, &doubled) || model_run_count(&context, &second, &counted);
  status = status || model_run_one(&context, &third);
  printf("%g %g %d %g", (double)y[0], (double)y[3], (int)sum, (double)one[1]);
  return status;
}
"""


def test_a_program_with_several_exports(tmp_path: Path) -> None:
    need("gcc")
    c_program(SEVERAL, tmp_path).write()
    (tmp_path / "main.c").write_text(CALLS)
    files = [tmp_path / "main.c", tmp_path / "model.c"]
    subprocess.run(["gcc", *STRICT, *files, "-o", tmp_path / "calls"], check=True)
    assert subprocess.run([tmp_path / "calls"], check=True, capture_output=True, text=True).stdout == "2 8 15 2"


MISUSE = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model.h"

int main(void)
{
  static model_context context;
  unsigned char *memory = (unsigned char *)malloc(1 << 20);
  float x[12] = {0}, y[16] = {0}, e[12], t[4];
  model_inputs inputs = {{x, {3, 4}}, {y}};
  model_outputs outputs = {{e, {3, 4}}, {t}};
  size_t bytes = 0;
  memory += 64 - (size_t)memory % 64;
  printf("%s\\n", model_error_text(model_run(&context, &inputs, &outputs)));
  printf("%s\\n", model_error_text(model_init(&context, memory + 1, 1 << 19, NULL)));
  printf("%s\\n", model_error_text(model_init(&context, memory, 1 << 19, NULL)));
  inputs.arg0.sizes[1] = 5;
  printf("%s\\n", model_error_text(model_run(&context, &inputs, &outputs)));
  inputs.arg0.sizes[1] = 4;
  inputs.arg0.sizes[0] = 0;
  printf("%s\\n", model_error_text(model_sizes(&inputs, &outputs, &bytes)));
  inputs.arg0.sizes[0] = 3;
  outputs.result0.sizes[0] = 4;
  printf("%s\\n", model_error_text(model_run(&context, &inputs, &outputs)));
  printf("%s\\n", model_error_text(model_sizes(&inputs, &outputs, &bytes)));
  printf("%d\\n", bytes > model_MEMORY_BYTES);
  model_init(&context, memory, bytes - 1, NULL);
  printf("%s\\n", model_error_text(model_run(&context, &inputs, &outputs)));
  model_init(&context, memory, bytes, NULL);
  outputs.result1.data = x + 10;
  printf("%s\\n", model_error_text(model_run(&context, &inputs, &outputs)));
  outputs.result1.data = (float *)((char *)t + 1);
  printf("%s\\n", model_error_text(model_run(&context, &inputs, &outputs)));
  outputs.result1.data = t;
  printf("%s\\n", model_error_text(model_run(&context, &inputs, &outputs)));
  model_fini(&context);
  printf("%s\\n", model_error_text(model_run(&context, &inputs, &outputs)));
  printf("%s\\n", model_error_text(-1));
  return 0;
}
"""


def test_misuse_gives_errors_with_texts(tmp_path: Path) -> None:
    need("gcc")
    program = c_program(DYNAMIC, tmp_path)
    program.write()
    (tmp_path / "main.c").write_text(MISUSE)
    files = [tmp_path / "main.c", tmp_path / "model.c"]
    subprocess.run(["gcc", "-std=c99", *files, "-o", tmp_path / "misuse"], check=True)
    said = subprocess.run([tmp_path / "misuse"], check=True, capture_output=True, text=True).stdout.splitlines()
    assert said == [
        "the context is not initialised",
        "the memory is absent, not aligned or too small",
        "no error",
        "a size of an input or output is not that of its type",
        "condition not met: size d0 is arg0_0, 1 is the least",
        "a size of an input or output is not that of its type",
        "no error",
        "1",
        "the memory is absent, not aligned or too small",
        "an output overlaps an input or another output",
        "an input or output has no data, or data that is not aligned to its elements",
        "no error",
        "the context is not initialised",
        "no error of this program",
    ]


def test_equal_programs_give_equal_files(tmp_path: Path) -> None:
    first, second = (c_program(EXAMPLES / "mlp.mlir", tmp_path, "mlp").files for _ in range(2))
    assert first == second
    for name, text in first.items():
        assert isinstance(text, str) and f"{name}: " in text and "SPDX-License-Identifier: Apache-2.0" in text
        assert not re.search(r"/(home|tmp|work)/", text)


NAMES = r"""
func.func @main(%x: tensor<4xf32> {orchestrion.name = "INLINE"}, %y: tensor<4xf32> {orchestrion.name = "launch"})
    -> tensor<4xf32> attributes {orchestrion.doc = "a /* doc */ with ??/ and \0A *\5C \0A/ int"} {
  %z = stablehlo.multiply %x, %y : tensor<4xf32>
  return %z : tensor<4xf32>
}
"""


@pytest.mark.parametrize("style", ["c", "vulkan"])
def test_texts_of_a_program_are_no_code(style: str, tmp_path: Path) -> None:
    need("gcc")
    path = tmp_path / "names.mlir"
    path.write_text(NAMES)
    assert codegen.main([str(path), f"--style={style}", "-o", str(tmp_path), "--quiet"]) == 0
    text = (tmp_path / "names.c").read_text()
    assert all(is_reserved(name) for name in re.findall(r"#define (\w+)", text))
    if style == "vulkan" and not Path("/usr/include/vulkan/vulkan_core.h").exists():
        pytest.skip("the headers of Vulkan are not installed")
    subprocess.run(["gcc", *STRICT, "-c", tmp_path / "names.c", "-o", tmp_path / "names.o"], check=True)


def test_literals_and_comments_end_where_they_must() -> None:
    assert literal('a"\\b???/') == r'"a\"\\b?\?\?/"'
    assert literal("a\r\nb") == '"a  b"'
    assert comment("/*/ x *\\ \n/ ???/\n/\x00") == "/ * / x *\n/ ?? ?/\n/?"


def test_what_has_no_c_is_refused_by_name(tmp_path: Path) -> None:
    called = """
module @m {
  func.func private @other.f(tensor<4xf32>) -> tensor<4xf32>
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %y = call @other.f(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
"""
    with pytest.raises(CompileError, match="ll_seq.imported_call: style c: has no C"):
        c_program(called, tmp_path)
    library = """func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %y, %info = stablehlo.custom_call @lapack.potrf(%x) {api_version = 4 : i32, backend_config = {lower = true}}
    : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<i32>)
  %z = stablehlo.custom_call @blas.gemm(%y, %y) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %z : tensor<4x4xf32>
}"""
    with pytest.raises(CompileError, match="style c: has no library functions: compile .* with --lapack=loops"):
        c_program(library, tmp_path)
    module = Compilation(targets=("reference",)).module(EXAMPLES / "simple_mul.mlir", "executables")
    with pytest.raises(CompileError, match="has no program for target cpu, only for reference"):
        Subject("m.fb", lambda: pytest.fail("style c reads IR"), lambda: module).program("cpu")


def test_every_primitive_and_op_has_c() -> None:
    wanted = {(row.name, kind) for row in PRIMITIVES for kind in row.kinds}
    assert {key for key in LANGUAGE.expressions if key[1] != "U"} == wanted
    elsewhere = {"kernel.shared", "kernel.barrier", "kernel.store_bits", "kernel.scale"}  # of workgroups, bits, images
    elsewhere |= {"kernel.multiply_add_pairs", "kernel.everywhere"}  # of instruction sets
    assert set(CBody._methods) == set(DIALECT.ops) - elsewhere


ROUNDING: dict[str, Callable[[Array], Array]] = {
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "round_nearest_even": np.rint,
    "abs": np.abs,
}


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize(("compiled_by", "run_by"), [("gcc", ""), ("s390x-linux-gnu-gcc", "qemu-s390x")])
def test_functions_without_a_library_round_as_they_must(
    compiled_by: str, run_by: str, dtype: str, tmp_path: Path
) -> None:
    """On s390x the square root is the portable one."""
    for command in filter(None, (compiled_by, run_by)):
        need(command)
    numbers = np.dtype({"f32": np.float32, "f64": np.float64}[dtype])
    random, bits = np.random.default_rng(11), f"u{numbers.itemsize}"
    fixed = np.array([0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 4.0, np.inf, 8388607.5, -8388608.0, 0.3, 1e-40, 5e-324])
    any_bits = random.integers(0, np.iinfo(bits).max, 4000, bits, endpoint=True).view(numbers)
    x = np.concatenate([fixed.astype(numbers), any_bits, (random.normal(size=2000) * 100).astype(numbers)])
    x = x[~np.isnan(x)]
    lines = [f"  %{name} = stablehlo.{name} %x : tensor<{x.size}x{dtype}>" for name in ROUNDING]
    types = ", ".join([f"tensor<{x.size}x{dtype}>"] * len(ROUNDING))
    text = "\n".join(
        [f"func.func @main(%x: tensor<{x.size}x{dtype}>) -> ({types}) {{", *lines]
        + [f"  return {', '.join(f'%{name}' for name in ROUNDING)} : {types}", "}"]
    )
    program = c_program(text, tmp_path).build(compiled_by, *STRICT, "-O1", *(["-static"] if run_by else []))
    results = program(x, runner=(run_by,) if run_by else (), order=">" if run_by else "<")
    with np.errstate(invalid="ignore"):
        for function, got in zip(ROUNDING.values(), results, strict=True):
            want = function(x)
            wrong = ~((got.view(bits) == want.view(bits)) | (np.isnan(got) & np.isnan(want)))
            assert not wrong.any(), (function, x[wrong][:5], got[wrong][:5], want[wrong][:5])


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize(("sizes", "flags"), [((0, 16, 32, 64), ()), ((0, 16, 32), ("-mavx2", "-mfma"))])
def test_vectors_of_every_size(sizes: tuple[int, ...], flags: tuple[str, ...], compiler: str, tmp_path: Path) -> None:
    """A processor without vectors, and others; with multiply-adds that round twice, and once."""
    need(compiler)
    if flags and not {"avx2", "fma"} <= set(Path("/proc/cpuinfo").read_text().split()):
        pytest.skip("this processor has no AVX2 and FMA")
    found: list[list[Array]] = []
    for bytes in sizes:
        program = c_program(PRODUCT, tmp_path / str(bytes))
        text = program.files["model.c"]
        assert isinstance(text, str)
        start = text.index("#if !defined(__GNUC__) && !defined(__clang__)\n#define VECTOR_BYTES")
        end = text.index("/* Functions on elements")
        changed = f"{text[:start]}#define VECTOR_BYTES {bytes}\n{text[end:]}"
        program = CProgram(program.folder, "model", {**program.files, "model.c": changed}, program.exports)
        found.append(program.build(compiler, *STRICT, "-O1", "-Wno-psabi", *flags)(*factors()))
    for other in found[1:]:
        same_bits(other, found[0])
