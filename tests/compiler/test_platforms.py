"""Programs for several platforms, and for one that is not ours: one set of code stays, or the way on is said."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrion import compiler, vm
from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.errors import CompileError

jax = pytest.importorskip("jax")
jnp = jax.numpy
X = np.arange(4, dtype=np.float32)


def of_platform(x: Any) -> Any:
    """10 and 1 more on cpu, 2000 and 20 on tpu; one of them in a function that is called twice."""

    @jax.jit
    def inner(x: Any) -> Any:
        return jax.lax.platform_dependent(x, cpu=lambda x: x + 1, tpu=lambda x: x + 20)

    outer = jax.lax.platform_dependent(x, cpu=lambda x: x + 10, tpu=lambda x: x + 2000)
    return {"both": inner(inner(outer)), "outer": outer}


def exported(*platforms: str) -> Any:
    return jax.export.export(jax.jit(of_platform), platforms=platforms)(X)


def run(source: Any) -> Any:
    with vm.load(compiler.compile(source, targets="reference"), device="reference") as program:
        assert next(iter(program.main.__signature__.parameters)) == "x"
        return program.main(X)


@pytest.mark.parametrize("platforms", [("cpu", "tpu"), ("tpu", "cpu")])
def test_the_code_for_cpu_stays(platforms: tuple[str, ...], tmp_path: Path) -> None:
    """The number of the platform is no argument, whether the export is an object, bytes or a file."""
    source = exported(*platforms)
    path = tmp_path / "program.bin"
    path.write_bytes(bytes(source.serialize()))
    for given in (source, path):
        result = run(given)
        np.testing.assert_array_equal(result["both"], X + 12)
        np.testing.assert_array_equal(result["outer"], X + 10)


def test_nothing_is_chosen_when_a_module_runs() -> None:
    text = Compilation(targets=("reference",)).text(exported("tpu", "cpu"), "input")
    assert "stablehlo.case" not in text


def test_without_cpu_the_first_platform_stays() -> None:
    def function(x: Any) -> Any:
        return jax.lax.platform_dependent(x, tpu=lambda x: x + 20, default=lambda x: x + 3)

    np.testing.assert_array_equal(run(jax.export.export(jax.jit(function), platforms=("tpu", "cuda"))(X)), X + 20)


def test_text_does_not_say_its_platforms() -> None:
    """The code for the first stays."""
    first, _ = run(exported("cpu", "tpu").mlir_module())
    np.testing.assert_array_equal(first, X + 12)


def test_code_that_one_platform_calls_is_not_refused() -> None:
    source = jax.export.export(jax.jit(jnp.linalg.cholesky), platforms=("cuda", "cpu"))(np.eye(3, dtype=np.float32))
    with vm.load(compiler.compile(source), device="reference") as program:
        np.testing.assert_array_equal(program.main(4 * np.eye(3, dtype=np.float32)), 2 * np.eye(3))


def test_an_export_for_cuda_says_what_to_do() -> None:
    source = jax.export.export(jax.jit(jnp.linalg.cholesky), platforms=("cuda",))(np.eye(3, dtype=np.float32))
    with pytest.raises(CompileError) as refused:
        compiler.compile(source)
    way = "export the program for cpu: jax.export.export(f, platforms=['cpu'])"
    assert f"cusolver_potrf_ffi is code for CUDA; {way}" in str(refused.value)


@pytest.mark.parametrize(
    ("target", "platform"),
    [
        ("cu_threefry2x32_ffi", "CUDA"),
        ("__cublas$gemm", "CUDA"),
        ("__cudnn$convForward", "CUDA"),
        ("hipsolver_potrf_ffi", "ROCm"),
        ("triton_kernel_call", "GPUs"),
        ("mosaic_gpu_v2", "GPUs"),
        ("__gpu$xla.gpu.triton", "GPUs"),
        ("tpu_custom_call", "TPUs"),
    ],
)
def test_calls_of_other_platforms(target: str, platform: str) -> None:
    text = f"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %0 = stablehlo.custom_call @"{target}"(%x) : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }}"""
    with pytest.raises(CompileError, match=f" is code for {platform}; export the program for cpu: "):
        compiler.compile(text)


def test_a_function_is_lowered_for_cpu_whatever_jax_runs_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """`jax.jit(f).lower` alone lowers for the default backend of the process."""
    seen = []
    lower = jax.stages.Traced.lower

    def watched(self: Any, **options: Any) -> Any:
        seen.append(options.get("lowering_platforms"))
        return lower(self, **options)

    monkeypatch.setattr(jax.stages.Traced, "lower", watched)
    compiler.compile(of_platform, X, targets="reference")
    assert ("cpu",) in seen


def test_a_traced_function_is_a_source() -> None:
    """With its trees, and without example arguments."""
    traced = jax.jit(lambda x, *, scale: {"y": x * scale}).trace(X, scale=np.float32(2))
    with vm.load(compiler.compile(traced, targets="reference"), device="reference") as program:
        np.testing.assert_array_equal(program.main(X, scale=np.float32(3))["y"], X * 3)
    with pytest.raises(CompileError, match="example arguments are given with a source of type Traced"):
        compiler.compile(traced, X)


def test_a_case_that_is_wrong_is_left_for_the_check() -> None:
    text = """"builtin.module"() ({
      "func.func"() <{arg_attrs = [{jax.global_constant = "_platform_index"}], 
        function_type = (tensor<i32>) -> tensor<i32>, sym_name = "main"}> ({
      ^bb0(%0: tensor<i32>):
        %1 = "stablehlo.case"(%0) ({
          "stablehlo.return"() : () -> ()
        }) : (tensor<i32>) -> tensor<i32>
        "func.return"(%1) : (tensor<i32>) -> ()
      }) : () -> ()
    }) : () -> ()"""
    with pytest.raises(CompileError, match="stablehlo.case: branch 0 must return"):
        compiler.compile(text)


def test_looking_for_platforms_imports_nothing_heavy() -> None:
    assert "orchestrion.compiler.frontend.platforms" in sys.modules


def test_an_assertion_that_no_call_can_keep_is_refused_in_its_own_words() -> None:
    text = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %c = stablehlo.constant dense<false> : tensor<i1>
      %n = stablehlo.constant dense<4> : tensor<i32>
      stablehlo.custom_call @shape_assertion(%c, %n) {error_message = "size {0} is no good", has_side_effect = true}
        : (tensor<i1>, tensor<i32>) -> ()
      return %x : tensor<4xf32>
    }"""
    with pytest.raises(CompileError, match="asserts what no call can satisfy: size 4 is no good"):
        compiler.compile(text)
