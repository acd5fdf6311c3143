"""Programs with symbolic sizes: their text continues from every phase, a static program knows nothing of symbols."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from phase_texts import check_phases_continue

from orchestrion import vm
from orchestrion.compiler import Compilation, compile
from orchestrion.compiler.errors import CompileError
from orchestrion.vm.errors import CallerError, VmError

jax = pytest.importorskip("jax")
from jax import export  # noqa: E402
from jax import numpy as jnp  # noqa: E402


def program(x: Any, y: Any) -> Any:
    """Folds over a symbolic axis, a size as a number, a slice with symbolic limits, and a loop."""
    means = (x - x.mean(axis=0)) @ x.T
    return jax.lax.fori_loop(0, 3, lambda _, z: jnp.tanh(z @ z), means)[1:], jnp.concatenate([x, y])


def text(first: str, second: str) -> bytes:
    scope = export.SymbolicScope(("b >= 2",))
    given = [jax.ShapeDtypeStruct(export.symbolic_shape(shape, scope=scope), jnp.float32) for shape in (first, second)]
    return export.export(jax.jit(program))(*given).mlir_module_serialized


@pytest.mark.long
def test_every_phase_continues_to_the_same_bytes(tmp_path: Path) -> None:
    source = text("b, 4", "c, 4")
    assert "b{2..}" in check_phases_continue(source, tmp_path)["flow"]


def test_numbers_leave_no_trace(tmp_path: Path) -> None:
    Compilation(dump=tmp_path).rows(text("3, 4", "2, 4"))
    assert not any("#util.dims" in path.read_text() for path in tmp_path.iterdir())


def test_sorts_and_sums_along_a_symbolic_axis() -> None:
    shape = jax.ShapeDtypeStruct(export.symbolic_shape("b, 3"), jnp.float32)
    exported = export.export(jax.jit(lambda x: (jnp.sort(x, axis=0), jnp.cumsum(x, axis=0))))(shape)
    main = vm.load(compile(exported.mlir_module_serialized, targets=["reference"]), "reference")["main"]
    for size in (1, 2, 9):
        x = np.random.default_rng(size).integers(-9, 9, (size, 3)).astype(np.float32)
        ordered, sums = main(x)
        np.testing.assert_array_equal(ordered, np.sort(x, axis=0))
        np.testing.assert_array_equal(sums, np.cumsum(x, axis=0))


def test_slices_that_do_not_fit_are_refused_at_the_call() -> None:
    """As many are taken as y has elements but one: none of a y of one, whatever is in x."""
    text = """
      func.func @main(%x: tensor<?xf32>, %y: tensor<?xi32>) -> tensor<?x2xf32> {
        %c = stablehlo.constant dense<1> : tensor<i32>
        %0 = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?xi32>) -> tensor<i32>
        %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
        %2 = stablehlo.constant dense<1> : tensor<1xi32>
        %at = stablehlo.real_dynamic_slice %y, %2, %1, %2
            : (tensor<?xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xi32>
        %z = "stablehlo.gather"(%x, %at) {
          dimension_numbers = #stablehlo.gather<offset_dims = [1], start_index_map = [0], index_vector_dim = 1>,
          slice_sizes = array<i64: 2>, indices_are_sorted = false
        } : (tensor<?xf32>, tensor<?xi32>) -> tensor<?x2xf32>
        return %z : tensor<?x2xf32>
      }
    """
    main = vm.load(compile(text, targets=["reference"]), "reference")["main"]
    x, at = np.arange(3, dtype=np.float32), np.array([7, 9, 0], np.int32)
    np.testing.assert_array_equal(main(x, at), [[1, 2], [0, 1]])
    assert main(x[:1], at[:1]).shape == (0, 2)
    with pytest.raises(CallerError, match=r"slices of 2 are taken of 1 along dimension 0 of tensor<\?xf32"):
        main(x[:1], at)


CALL = """
  func.func @main(%x: tensor<?x4xf32>, %n: tensor<2xi32>) -> tensor<?x4xf32> {
    %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<4> : tensor<1xi32>
    %3 = stablehlo.concatenate %1, %2, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %4 = stablehlo.custom_call @blas.gemm(%x, %x, %3) {
      api_version = 4 : i32, backend_config = {}, indices_of_shape_operands = dense<2> : tensor<1xi64>
    } : (tensor<?x4xf32>, tensor<?x4xf32>, tensor<2xi32>) -> tensor<?x4xf32>
    return %4 : tensor<?x4xf32>
  }
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "dense<2> : tensor<1xi64>",
            "dense<1> : tensor<1xi64>",
            r"must be the indices of its last operands, \[2\], is",
        ),
        ("dense<2> : tensor<1xi64>", '"2"', "must be the indices of its last operands"),
        ("dense<2> : tensor<1xi64>", "dense<[1, 2]> : tensor<2xi64>", "must be the indices of its last operands"),
        (", indices_of_shape_operands = dense<2> : tensor<1xi64>", "", "whose sizes are unknown"),
        ("(%x, %x, %3)", "(%x, %x, %n)", "its sizes depend on the values of tensors"),
        ("dense<4> : tensor<1xi32>", "dense<5> : tensor<1xi32>", r"which must be tensor<\?x5xf32"),
        ("dense<4> : tensor<1xi32>", "dense<-1> : tensor<1xi32>", r"a result of shape \[d0, -1\], with sizes below 0"),
    ],
)
def test_a_call_says_the_sizes_of_its_results(old: str, new: str, message: str) -> None:
    """Or is refused; the function itself is asked when it is called."""
    assert old in CALL
    with pytest.raises(CompileError, match=message):
        compile(CALL.replace(old, new), targets=["reference"])


def test_a_function_refuses_sizes_that_it_does_not_give() -> None:
    refused = CALL.replace("@blas.gemm", "@lapack.potrf")
    with pytest.raises(VmError, match="library function lapack.potrf.* refuses the call"):
        vm.load(compile(refused, targets=["reference"]), "reference").main(
            np.ones((3, 4), np.float32), np.ones(2, np.int32)
        )


def test_a_size_that_is_stated_as_unknown_is_found() -> None:
    text = """
      func.func @main(%x: tensor<4xf32>) -> tensor<?xf32> {
        %0 = stablehlo.abs %x : (tensor<4xf32>) -> tensor<?xf32>
        return %0 : tensor<?xf32>
      }
    """
    main = vm.load(compile(text, targets=["reference"]), "reference")["main"]
    np.testing.assert_array_equal(main(np.array([1, -2, 3, -4], np.float32)), [1, 2, 3, 4])


def test_bits_whose_order_a_size_decides_are_refused() -> None:
    """ThreeFry pairs words along the first axis of an even size."""
    shape = export.symbolic_shape("b, 4")
    key = jax.ShapeDtypeStruct((2,), np.uint64)
    with jax.enable_x64(True):
        draw = jax.jit(
            lambda x, key: jax.lax.rng_bit_generator(key, x.shape, np.uint32, jax.lax.RandomAlgorithm.RNG_THREE_FRY)
        )
        text = export.export(draw)(jax.ShapeDtypeStruct(shape, np.float32), key).mlir_module()
    with pytest.raises(CompileError, match="whether b is even, and its axis halved, depends on the sizes of a call"):
        compile(text)


def test_a_size_that_a_value_decides_is_refused() -> None:
    text = """
      func.func @main(%x: tensor<f32>, %n: tensor<1xi32>) -> tensor<?xf32> {
        %y = stablehlo.dynamic_broadcast_in_dim %x, %n, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
        return %y : tensor<?xf32>
      }
    """
    with pytest.raises(CompileError, match="its sizes depend on the values of tensors"):
        compile(text)
