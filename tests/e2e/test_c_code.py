"""The programs of `test_devices.py` and of `test_real_programs.py` as C without a runtime give JAX's numbers, and those
of the device cpu, with every compiler, under sanitizers and valgrind, and on other processors.

All programs run if `ORCHESTRION_REAL_PROGRAMS=all` asks for it.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from c_programs import PLUS_PLUS, STRICT, Array, CProgram, c_program
from code_examples import need
from jax import export
from real_programs import PROGRAMS, RealProgram

from orchestrion import compiler

Check = Callable[[Any, list[Any]], None]
LoadOn = Callable[..., Any]
ALL = os.environ.get("ORCHESTRION_REAL_PROGRAMS") == "all"
#: with optimisation gcc takes four times as long, and sanitizers see less
SANITIZE = ("-O0", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
NATIVE = ("-O1", "-march=native")
#: what builds a program whose results have the bits of the device cpu
BUILDS: dict[str, tuple[str, ...]] = {
    "gcc": ("gcc", *STRICT, *NATIVE, *SANITIZE),
    "gcc-O3": ("gcc", *STRICT, "-O3", "-march=native"),
    "clang": ("clang", *STRICT, *NATIVE),
    "g++": ("g++", *PLUS_PLUS, *NATIVE),
    "clang++": ("clang++", *PLUS_PLUS, *NATIVE),
}
#: programs that run by default
SAMPLE = frozenset(
    """
    residual softmax scan_gradient sort_axes collatz cond_in_loop switch donated cache conv_groups top_k
    narrow_neighbours special_values matmul_f64 arithmetic_int8 rotated zero_elements
    """.split()
)
#: real programs that run by default
REAL_SAMPLE = frozenset({"adam_step", "lstm", "life"})
SOME = [program for program in PROGRAMS if ALL or program.name in REAL_SAMPLE]
BATCHED = [program for program in SOME if program.batch]


@dataclass(frozen=True, slots=True)
class Processor:
    """Another processor: its compiler, flags with which it fuses multiply-adds, what runs its code, its byte order."""

    compiler: str
    flags: tuple[str, ...]
    runner: str
    order: str


PROCESSORS = {
    "aarch64": Processor("aarch64-linux-gnu-gcc", (), "qemu-aarch64", "<"),
    "s390x": Processor("s390x-linux-gnu-gcc", (), "qemu-s390x", ">"),
    "arm, 32 bits": Processor("arm-linux-gnueabihf-gcc", ("-mfpu=neon-vfpv4",), "qemu-arm", "<"),
}
#: programs that run on other processors; the first two run under valgrind by default
ELSEWHERE = ("residual", "softmax", "sort_axes", "matmul_f64", "arithmetic_int8", "narrow_neighbours", "special_values")


def same_numbers(got: Sequence[Any], want: Any) -> None:
    """Equal numbers, or both NaN."""
    for found, wanted in zip(got, jax.tree.leaves(want), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.sampled(every=4)
@pytest.mark.programs(SAMPLE)
@pytest.mark.parametrize("build", BUILDS if ALL else ["gcc"])
def test_program_in_c(
    case: Any,
    build: str,
    tmp_path: Path,
    check: Check,
    module_of: Callable[[Any], bytes],
    load_on: LoadOn,
) -> None:
    need(BUILDS[build][0])
    results = c_program(case.lowered(), tmp_path).build(*BUILDS[build])(*case.arguments())
    check(case, results)
    if ALL:
        same_numbers(results, load_on(module_of(case), "cpu").main(*case.arguments()))


@pytest.mark.long
@pytest.mark.parametrize("build", BUILDS if ALL else ["gcc"])
@pytest.mark.parametrize("program", SOME, ids=lambda program: program.name)
def test_real_program_in_c(program: RealProgram, build: str, tmp_path: Path, load_on: LoadOn) -> None:
    need(BUILDS[build][0])
    function, arguments = program.made()
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(arguments)]
    with jax.enable_x64(False):
        lowered = jax.jit(function).lower(*arguments)
        loaded = load_on(compiler.compile(lowered, targets=["cpu"]), "cpu")
        same_numbers(c_program(lowered, tmp_path).build(*BUILDS[build])(*leaves), loaded.main(*leaves))


#: name -> sizes of the image and of the kernel, channels, those of results, groups, type, and what the code contains
CONVOLUTIONS = {
    "squares of results": (20, 3, 32, 32, 1, "float32", "PREFETCH(b1"),
    "depthwise, eight workgroups of channels": (9, 3, 128, 128, 128, "float32", "multiply_add_f32("),
    "depthwise, three workgroups of channels": (9, 3, 48, 48, 48, "float32", "multiply_add_f32("),
    "depthwise, f64": (9, 5, 64, 64, 64, "float64", "multiply_add_f64("),
    "columns of three halves of a tile": (20, 1, 8, 48, 1, "float32", "f32x16_multiply_add("),
}


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("compiler_of", ["gcc", "gcc-O3", "clang++"])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution_in_c(name: str, compiler_of: str, tmp_path: Path, load_on: LoadOn) -> None:
    """Sums have the bits of the device, next to elements that are not finite, and behind comparisons with zeros of both
    signs.
    """
    need(BUILDS[compiler_of][0])
    size, window, channels, columns, groups, dtype, part = CONVOLUTIONS[name]
    random = np.random.default_rng(size)
    image = random.standard_normal((1, size, size, channels)).astype(dtype)
    image[0, 4, 5, 6:8] = np.inf, np.nan
    kernel = random.standard_normal((window, window, channels // groups, columns)).astype(dtype)

    def function(x: Any, w: Any) -> Any:
        layout = ("NHWC", "HWIO", "NHWC")
        y = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=layout, feature_group_count=groups)
        clipped = jax.numpy.minimum(jax.numpy.maximum(y, 0.0), 6.0)
        return clipped + jax.numpy.minimum(y, -0.0)

    with jax.enable_x64(dtype == "float64"):
        lowered = jax.jit(function).lower(image, kernel)
        program = c_program(lowered, tmp_path)
        loaded = load_on(compiler.compile(lowered, targets=["cpu"]), "cpu")
    assert part in program.files["model.c"]
    (got,), want = program.build(*BUILDS[compiler_of])(image, kernel), loaded.main(image, kernel)
    assert got.tobytes() == np.asarray(want).tobytes()


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("compiler_of", ["gcc", "clang++"])
@pytest.mark.parametrize("turned", [False, True])
def test_products_of_bytes_in_c(compiler_of: str, turned: bool, tmp_path: Path) -> None:
    """Exact sums, with the least number among the factors; words that are loaded, and that are joined from bytes."""
    need(BUILDS[compiler_of][0])
    random, depth = np.random.default_rng(1), 68 if turned else 67
    x, y = (random.integers(-128, 128, shape).astype(np.int8) for shape in ((21, depth), (depth, 40)))
    x[:, 3], y[3] = -128, -128
    given = y.T.copy() if turned else y

    def function(x: Any, y: Any) -> Any:
        return jax.numpy.matmul(x, y.T if turned else y, preferred_element_type=np.int32)

    program = c_program(jax.jit(function).lower(x, given), tmp_path)
    assert "i32x16_multiply_add_bytes(" in program.files["model.c"]
    (got,) = program.build(*BUILDS[compiler_of])(x, given)
    np.testing.assert_array_equal(got, x.astype(np.int32) @ y.astype(np.int32))


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("rows", [21, 2])
@pytest.mark.parametrize("turned", [False, True])
def test_products_of_bf16_in_c(tmp_path: Path, rows: int, turned: bool) -> None:
    """C widens bf16: code for products of pairs is left out. Numbers are exact, and so are their sums."""
    need("gcc")
    random = np.random.default_rng(1)
    x, y = (random.integers(-8, 9, shape).astype(jax.numpy.bfloat16) for shape in ((rows, 132), (132, 272)))
    y = y.T.copy() if turned else y

    def function(x: Any, y: Any) -> Any:
        return jax.numpy.matmul(x, y.T if turned else y, preferred_element_type=np.float32)

    program = c_program(jax.jit(function).lower(x, y), tmp_path)
    assert "f32x16_multiply_add(" in program.files["model.c"] and "pairs" not in program.files["model.c"]
    (got,) = program.build(*BUILDS["gcc"])(x, y)
    right = y.T if turned else y
    np.testing.assert_array_equal(got, x.astype(np.float32) @ right.astype(np.float32))


@pytest.mark.long
@pytest.mark.parametrize("program", BATCHED, ids=lambda program: program.name)
def test_real_program_of_any_batch_in_c(program: RealProgram, tmp_path: Path, load_on: LoadOn) -> None:
    """The sizes of a call decide how much memory it needs."""
    need("gcc")
    function, arguments = program.made()
    leaves, tree = jax.tree.flatten(arguments)
    with jax.enable_x64(False):
        exported = export.export(jax.jit(function))(*program.symbolic(leaves, tree))
        loaded = load_on(compiler.compile(exported, targets=["cpu"]), "cpu")
        code = c_program(exported, tmp_path).build(*BUILDS["gcc"])
    for size in (3, 1, 6):
        call = [np.asarray(leaf) for leaf in program.sized(leaves, size)]
        same_numbers(code(*call), loaded.main(*call))


@pytest.mark.sampled
@pytest.mark.parametrize("name", ELSEWHERE if ALL else ELSEWHERE[:3])
@pytest.mark.parametrize("processor", PROCESSORS)
def test_program_on_another_processor(name: str, processor: str, cases: dict[str, Any], tmp_path: Path) -> None:
    case, row = cases[name], PROCESSORS[processor]
    need("gcc", row.compiler, row.runner)
    here = c_program(case.lowered(), tmp_path / "here").build("gcc", *STRICT, *NATIVE)(*case.arguments())
    there = c_program(case.lowered(), tmp_path / "there").build(row.compiler, *STRICT, "-O2", "-static", *row.flags)
    same_numbers(there(*case.arguments(), runner=(row.runner,), order=row.order), here)


@pytest.mark.programs(ELSEWHERE[:2])
def test_program_under_valgrind(case: Any, tmp_path: Path, check: Check) -> None:
    """It reads no memory that was never written. Valgrind knows no AVX-512."""
    need("gcc", "valgrind")
    built: CProgram = c_program(case.lowered(), tmp_path).build("gcc", *STRICT, "-O1", "-g")
    results: list[Array] = built(*case.arguments(), runner=("valgrind", "--error-exitcode=99", "--quiet"))
    check(case, results)
