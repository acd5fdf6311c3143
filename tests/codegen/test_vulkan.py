"""Programs in C that call Vulkan: what compilers say, what they compute, and how they are used, on the loader's first
device with its validation layer. `tests/e2e/test_vulkan_code.py` has more.
"""

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from c_programs import PLUS_PLUS, STRICT, Array
from code_examples import ALLOWED, DYNAMIC, EXAMPLES, SHAPES, inputs, on_device, same_bits
from vulkan_programs import LINKED, SUPPORT, said, vulkan_program

from orchestrion.compiler.errors import CompileError

#: fills of bytes, of patterns that no fill of words makes, and of sizes that depend on a call
FILLS = """
func.func @main(%x: tensor<?xi8>) -> (tensor<5xi8>, tensor<7xi64>, tensor<?xi8>, tensor<3xi16>) {
  %a = stablehlo.constant dense<-7> : tensor<5xi8>
  %b = stablehlo.constant dense<1234567890123> : tensor<7xi64>
  %d = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xi8>) -> tensor<i32>
  %s = stablehlo.reshape %d : (tensor<i32>) -> tensor<1xi32>
  %three = stablehlo.constant dense<3> : tensor<i8>
  %c = stablehlo.dynamic_broadcast_in_dim %three, %s, dims = [] : (tensor<i8>, tensor<1xi32>) -> tensor<?xi8>
  %e = stablehlo.constant dense<515> : tensor<3xi16>
  return %a, %b, %c, %e : tensor<5xi8>, tensor<7xi64>, tensor<?xi8>, tensor<3xi16>
}
"""


#: the results on the device of the HAL, the first one unless `device` names another
on_vulkan = functools.partial(on_device, target="spirv", device="vulkan")


@pytest.fixture(scope="module")
def wanted() -> Callable[[str], list[Array]]:
    """The results of an example on the HAL's device."""
    return functools.cache(lambda name: on_vulkan(EXAMPLES / f"{name}.mlir", *inputs(name)))


@pytest.mark.sampled
@pytest.mark.parametrize("command", [("gcc", *STRICT), ("g++", *PLUS_PLUS)], ids=["c", "c++"])
@pytest.mark.parametrize("name", SHAPES)
def test_examples_give_the_bits_of_the_device(
    name: str, command: tuple[str, ...], wanted: Callable[[str], list[Array]], tmp_path: Path
) -> None:
    program = vulkan_program(EXAMPLES / f"{name}.mlir", tmp_path, name).build(*command, "-O1")
    same_bits(program(*inputs(name)), wanted(name))


@pytest.mark.parametrize("command", [("clang", *STRICT), ("clang++", *PLUS_PLUS)], ids=["clang", "clang++"])
@pytest.mark.parametrize("name", ["mlp", "spectral_norm"])
def test_other_compilers_have_nothing_to_say(name: str, command: tuple[str, ...], tmp_path: Path) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    vulkan_program(EXAMPLES / f"{name}.mlir", tmp_path, name).write()
    subprocess.run([*command, "-c", tmp_path / f"{name}.c", "-o", tmp_path / "program.o"], check=True)


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("pretended", ["discrete", "no modes", "1.1", "small"])
def test_other_devices_give_the_same(
    pretended: str, wanted: Callable[[str], list[Array]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Devices with memory of their own, without the mode that keeps NaN, of Vulkan 1.1, and with the least limits."""
    monkeypatch.setenv("PRETENDED", pretended)
    program = vulkan_program(EXAMPLES / "mlp.mlir", tmp_path, limits="least").build("gcc", *STRICT)
    same_bits(program(*inputs("mlp")), wanted("mlp"))


def test_the_machine_is_an_option(tmp_path: Path) -> None:
    program = vulkan_program(EXAMPLES / "matmul_static.mlir", tmp_path, machine="gpu").build("gcc", *STRICT)
    given = inputs("matmul_static")
    same_bits(program(*given), on_vulkan(EXAMPLES / "matmul_static.mlir", *given, machine="gpu"))
    other = vulkan_program(EXAMPLES / "matmul_static.mlir", tmp_path / "cpu", machine="cpu")
    assert other.files["model.c"] != program.files["model.c"]


def test_an_object_file_needs_no_library(tmp_path: Path) -> None:
    """Not even that of Vulkan: its functions come from the app."""
    program = vulkan_program(EXAMPLES / "spectral_norm.mlir", tmp_path, "norm")
    program.write()
    for level in ("-O0", "-O2"):
        object_file = tmp_path / "norm.o"
        subprocess.run(["gcc", *STRICT, level, "-c", tmp_path / "norm.c", "-o", object_file], check=True)
        found = subprocess.run(["nm", "-u", object_file], check=True, capture_output=True, text=True).stdout.split()
        assert set(found) - {"U"} <= ALLOWED
        named = subprocess.run(["nm", "-g", "--defined-only", object_file], check=True, capture_output=True, text=True)
        assert all(line.split()[-1].startswith("norm_") for line in named.stdout.splitlines())


def test_any_number_of_rows(tmp_path: Path) -> None:
    program = vulkan_program(DYNAMIC, tmp_path).build("gcc", *STRICT)
    random = np.random.default_rng(7)
    for rows in (1, 3, 700):
        x, y = random.normal(size=(rows, 4)).astype(np.float32), random.uniform(size=(4, 4)).astype(np.float32)
        same_bits(program(x, y), on_vulkan(DYNAMIC, x, y))


def test_a_loop_in_batches(tmp_path: Path) -> None:
    """Entries with a predicate, and a loop that submits several iterations at once."""
    text = (EXAMPLES / "spectral_norm.mlir").read_text().replace("4x4x", "256x256x").replace("<4x", "<256x")
    program = vulkan_program(text, tmp_path)
    assert "_predicated" in "".join(program.files.values())
    matrix = np.random.default_rng(7).normal(size=(256, 256)).astype(np.float32)
    same_bits(program.build("gcc", *STRICT)(matrix), on_vulkan(text, matrix))


@pytest.mark.parametrize("count", [1, 4, 1001])
def test_fills_of_any_pattern_and_length(count: int, tmp_path: Path) -> None:
    program = vulkan_program(FILLS, tmp_path).build("gcc", *STRICT)
    given = np.zeros(count, np.int8)
    same_bits(program(given), on_vulkan(FILLS, given))


def test_sanitizers_find_nothing(tmp_path: Path) -> None:
    flags = ("-O0", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    program = vulkan_program(EXAMPLES / "mlp.mlir", tmp_path).build("gcc", *STRICT, *flags)
    leaks = ("env", "ASAN_OPTIONS=detect_leaks=0")  # of drivers
    program(*inputs("mlp"), runner=leaks)
    dynamic = vulkan_program(DYNAMIC, tmp_path / "dynamic").build("gcc", *STRICT, *flags)
    dynamic(np.ones((3, 4), np.float32), np.ones((4, 4), np.float32), runner=leaks)


def test_weights_in_a_file(wanted: Callable[[str], list[Array]], tmp_path: Path) -> None:
    program = vulkan_program(EXAMPLES / "mlp.mlir", tmp_path, weights="file").build("gcc", *STRICT)
    assert set(program.files) == {"model.h", "model.c", "model.weights"}
    same_bits(program(*inputs("mlp")), wanted("mlp"))


TWO = """
int main(void)
{
  opened o;
  static mlp_context first;
  static simple_mul_context second;
  mlp_gpu gpu;
  simple_mul_gpu other;
  int status;
  open_device(&o);
  gpu = gpu_of(&o);
  memcpy(&other, &gpu, sizeof other);
  other.device_bytes = simple_mul_DEVICE_BYTES;
  other.host_bytes = simple_mul_HOST_BYTES;
  status = mlp_init(&first, &gpu, NULL) || simple_mul_init(&second, &other, NULL);
  mlp_fini(&first);
  simple_mul_fini(&second);
  return status != 0 ? 1 : close_device(&o);
}
"""


def test_two_programs_in_one(tmp_path: Path) -> None:
    vulkan_program(EXAMPLES / "simple_mul.mlir", tmp_path, "simple_mul").write()
    program = vulkan_program(EXAMPLES / "mlp.mlir", tmp_path, "mlp")
    program.write()
    (tmp_path / "main.c").write_text(program.opening() + '#include "simple_mul.h"\n' + TWO)
    files = [tmp_path / name for name in ("main.c", "mlp.c", "simple_mul.c")]
    flags = ("-Wno-unused-function", "-I", SUPPORT)
    subprocess.run(["gcc", *STRICT, *flags, *files, "-o", tmp_path / "program", *LINKED], check=True)
    program.binary = tmp_path / "program"
    said(program)


def test_variants_for_lacking_types_give_the_same(tmp_path: Path) -> None:
    text = """
func.func @main(%x: tensor<5xi64>, %y: tensor<5xi8>) -> (tensor<5xi64>, tensor<5xi8>) {
  %a = stablehlo.multiply %x, %x : tensor<5xi64>
  %b = stablehlo.multiply %y, %y : tensor<5xi8>
  return %a, %b : tensor<5xi64>, tensor<5xi8>
}
"""
    given = np.array([3, -(1 << 40), 5, 1 << 33, -1]), np.array([3, -100, 5, 77, -1], np.int8)
    for lacking in ("0", "2", "8", "14"):
        program = vulkan_program(text, tmp_path / lacking).build("gcc", *STRICT, f"-DLACKING={lacking}")
        same_bits(program(*given), [given[0] * given[0], given[1] * given[1]])


def test_a_device_without_most_types(tmp_path: Path) -> None:
    """SwiftShader has no 64-bit floats, and no integers but those of 32 bits in memory."""
    if "swiftshader" not in os.environ.get("VK_ADD_DRIVER_FILES", ""):
        pytest.skip("SwiftShader is not installed")
    text = """
func.func @main(%x: tensor<5xi64>, %y: tensor<9xi8>, %z: tensor<5xf32>)
    -> (tensor<5xi64>, tensor<9xi8>, tensor<5xf32>) {
  %a = stablehlo.multiply %x, %x : tensor<5xi64>
  %b = stablehlo.add %y, %y : tensor<9xi8>
  %c = stablehlo.exponential %z : tensor<5xf32>
  return %a, %b, %c : tensor<5xi64>, tensor<9xi8>, tensor<5xf32>
}
"""
    given = np.arange(5) << 33, np.arange(-4, 5).astype(np.int8), np.linspace(-3, 3, 5).astype(np.float32)
    program = vulkan_program(text, tmp_path).build("gcc", *STRICT)
    program.device = "SwiftShader"
    same_bits(program(*given), on_vulkan(text, *given, device="vulkan:1"))


def test_equal_programs_give_equal_files(tmp_path: Path) -> None:
    first, second = (vulkan_program(EXAMPLES / "mlp.mlir", tmp_path, "mlp").files for _ in range(2))
    assert first == second
    for name, text in first.items():
        assert isinstance(text, str) and f"{name}: " in text and "SPDX-License-Identifier: Apache-2.0" in text
        assert not re.search(r"/(home|tmp|work)/", text)


def test_the_least_limits_are_those_of_every_device(tmp_path: Path) -> None:
    network = """
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>, %d: tensor<4xf32>, %e: tensor<4xf32>)
    -> tensor<4xf32> {
  %p = stablehlo.multiply %a, %b : tensor<4xf32>
  %q = stablehlo.multiply %p, %c : tensor<4xf32>
  %r = stablehlo.multiply %q, %d : tensor<4xf32>
  %s = stablehlo.multiply %r, %e : tensor<4xf32>
  return %s : tensor<4xf32>
}
"""
    usual = vulkan_program(network, tmp_path / "usual").files["model.h"]
    program = vulkan_program(network, tmp_path / "least", limits="least").build("gcc", *STRICT)
    assert "maxPerStageDescriptorStorageBuffers >= 6" in str(usual)
    assert "Its limits are those that every device has" in str(program.files["model.h"])
    given = inputs("simple_mul") + inputs("simple_mul") + inputs("simple_mul")[:1]
    same_bits(program(*given), [given[0] * given[1] * given[2] * given[3] * given[4]])


def test_what_has_no_such_code_is_refused_by_name(tmp_path: Path) -> None:
    called = """
module @m {
  func.func private @other.f(tensor<4xf32>) -> tensor<4xf32>
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %y = call @other.f(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
"""
    with pytest.raises(CompileError, match="ll_seq.imported_call: style vulkan: has no C"):
        vulkan_program(called, tmp_path)


def test_the_example_classifies_rows(tmp_path: Path, command_folder: Path) -> None:
    vulkan_program(EXAMPLES / "simple_mul.mlir", tmp_path)  # skips without a compiler or headers
    given = {"BUILD": tmp_path, "VM_CODEGEN": command_folder / "vm-codegen", "VULKAN": LINKED[0]}
    assignments = [f"{name}={value}" for name, value in given.items()]
    subprocess.run(["make", "-s", "-C", EXAMPLES / "vulkan-c", *assignments], check=True, timeout=300)
    rows = "\n".join(" ".join(map(str, row)) for row in np.load(EXAMPLES / "mlp_input.npy"))
    done = subprocess.run([tmp_path / "classify"], input=rows, capture_output=True, text=True, check=True, timeout=60)
    best = np.load(EXAMPLES / "mlp_output.npy")
    assert done.stdout.splitlines() == [f"class {row.argmax()}, probability {row.max():.4f}" for row in best]
