"""Programs that call library functions: from JAX to a result, what a call costs, and what is said when it cannot be."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from phase_texts import check_phases_continue

from orchestrion import compiler, vm
from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.errors import CompileError
from orchestrion.hal.libraries import Function, Spec, register
from orchestrion.hal.registry import list_devices
from orchestrion.vm.errors import DeviceError, LibraryFailed, Trap, UnresolvedLibrary

#: the devices with library calls, which are also their targets; a test gets one after the other
DEVICES = ("reference", "cpu")
TARGETS: tuple[str, ...] = DEVICES[:1]
X = np.arange(12, dtype=np.float32).reshape(4, 3)
SEEN: list[Any] = []


@pytest.fixture(autouse=True, params=DEVICES)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param not in {status.name for status in list_devices() if status.devices}:
        pytest.skip(f"no device {request.param}")
    monkeypatch.setitem(globals(), "TARGETS", (request.param,))


def scale(inputs: Any, outputs: Any, attributes: Any) -> None:
    """Multiplies by a factor, and tells the mean."""
    SEEN.append((inputs, outputs, attributes))
    outputs[0][...] = inputs[0] * attributes["factor"]
    outputs[1][...] = inputs[0].mean()


def picky(inputs: list[Spec], outputs: list[Spec], attributes: Any) -> None:
    if inputs[0].dtype != np.float32 or inputs[0].shape != outputs[0].shape:
        raise ValueError(f"f32 of one shape wanted, not {inputs[0].dtype} of shape {inputs[0].shape}")


def broken(inputs: Any, outputs: Any, attributes: Any) -> None:
    raise RuntimeError("no, not today")


def leaving(inputs: Any, outputs: Any, attributes: Any) -> None:
    raise SystemExit(3)


def hungry(inputs: Any, outputs: Any, attributes: Any) -> None:
    raise MemoryError("too much")


def writing(inputs: Any, outputs: Any, attributes: Any) -> None:
    inputs[0][...] = 0


def returning(inputs: Any, outputs: Any, attributes: Any) -> Any:
    return inputs[0] + 1


def reshaping(inputs: Any, outputs: Any, attributes: Any) -> None:
    outputs[0][...] = np.zeros(7)


def rebinding(inputs: Any, outputs: Any, attributes: Any) -> None:
    outputs[0] = inputs[0].astype(np.float64)


def doubles(inputs: Any, outputs: Any, attributes: Any) -> None:
    """Writes f64 where f32 is: NumPy converts."""
    outputs[0][...] = inputs[0].astype(np.float64) * 2


register(
    "e2e",
    {
        "scale": Function(scale, picky),
        "identity": lambda inputs, outputs, attributes: np.copyto(outputs[0], inputs[0]),
        "count": lambda inputs, outputs, attributes: outputs[0].fill(inputs[0].sum()),
    }
    | {f.__name__: f for f in (broken, leaving, hungry, writing, returning, reshaping, rebinding, doubles)},
)


def call(name: str, config: str = "{}", type: str = "tensor<4x3xf32>") -> str:
    return f"""func.func @main(%x: {type}) -> {type} {{
      %0 = stablehlo.custom_call @{name}(%x) {{api_version = 4 : i32, backend_config = {config}}} : ({type}) -> {type}
      return %0 : {type}
    }}"""


def loaded(source: Any) -> Any:
    return vm.load(compiler.compile(source, targets=TARGETS), TARGETS[0])


def ffi(name: str, *results: Any, **attributes: Any) -> Any:
    """A function that calls a library function by JAX's foreign function interface."""
    jax = pytest.importorskip("jax")
    types = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in results]
    return lambda *x: jax.ffi.ffi_call(name, types if len(types) > 1 else types[0])(*x, **attributes)


def test_from_jax() -> None:
    """Lowered, and exported, which puts the attributes elsewhere; results of several types; ops around it."""
    jax = pytest.importorskip("jax")
    from jax import export

    scaled = ffi(
        "e2e.scale", ((4, 3), np.float32), ((), np.float32), factor=np.float32(2.5), exact=True, sizes=np.arange(1, 3)
    )

    def function(x: Any) -> Any:
        out, mean = scaled(x + 1)
        return out - mean, mean

    arguments = (jax.ShapeDtypeStruct(X.shape, X.dtype),)
    safe = [export.DisabledSafetyCheck.custom_call("e2e.scale")]
    exported = export.export(jax.jit(function), disabled_checks=safe)(*arguments)
    for source in (jax.jit(function).lower(*arguments), exported, exported.mlir_module_serialized):
        SEEN.clear()
        out, mean = loaded(source).main(X)
        np.testing.assert_allclose(mean, X.mean() + 1)
        np.testing.assert_allclose(out, 2.5 * (X + 1) - (X.mean() + 1))
        ((_, _, attributes),) = SEEN
        assert dict(attributes) == {"exact": True, "factor": 2.5, "sizes": (1, 2)}


def test_what_a_function_gets() -> None:
    """Read-only inputs and outputs to fill, contiguous and aligned, and attributes that do not change."""
    SEEN.clear()
    source = """func.func @main(%x: tensor<4x3xf32>) -> tensor<3x4xf32> {
      %0:2 = stablehlo.custom_call @e2e.scale(%x) {api_version = 4 : i32, backend_config = {factor = 2.0 : f64}}
        : (tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<f32>)
      %1 = stablehlo.transpose %0#0, dims = [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
      return %1 : tensor<3x4xf32>
    }"""
    np.testing.assert_array_equal(loaded(source).main(X), 2 * X.T)
    (((x,), outputs, attributes),) = SEEN
    assert (x.dtype, x.shape, x.flags.writeable) == (X.dtype, X.shape, False)
    assert [(out.shape, out.flags.writeable) for out in outputs] == [((4, 3), True), ((), True)]
    assert all(array.flags.c_contiguous and array.flags.aligned for array in (x, *outputs))
    with pytest.raises(TypeError):
        attributes["factor"] = 3.0


def test_a_splat_is_an_operand_like_others() -> None:
    source = """func.func @main() -> tensor<i32> {
      %one = stablehlo.constant dense<3> : tensor<5x2xi32>
      %0 = stablehlo.custom_call @e2e.count(%one) : (tensor<5x2xi32>) -> tensor<i32>
      return %0 : tensor<i32>
    }"""
    assert loaded(source).main() == 30


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64", "f32", "f64"])
def test_every_element_type(dtype: str) -> None:
    kind = {"i1": "?"}.get(dtype, dtype.replace("ui", "uint").replace("f", "float"))
    array = np.array([[0, 1, 1], [1, 0, 1]], dtype=kind if kind != dtype else dtype.replace("i", "int"))
    np.testing.assert_array_equal(loaded(call("e2e.identity", type=f"tensor<2x3x{dtype}>")).main(array), array)


def test_operands_without_elements() -> None:
    source = """func.func @main(%x: tensor<0x3xf32>) -> tensor<2xf32> {
      %0 = stablehlo.custom_call @e2e.count(%x) : (tensor<0x3xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }"""
    np.testing.assert_array_equal(loaded(source).main(np.zeros((0, 3), np.float32)), np.zeros(2, np.float32))


def test_equal_calls_are_one_and_unused_ones_none() -> None:
    """A library function has no effect beside its results."""
    source = """func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %0 = stablehlo.custom_call @e2e.identity(%x) : (tensor<4xf32>) -> tensor<4xf32>
      %1 = stablehlo.custom_call @e2e.identity(%x) : (tensor<4xf32>) -> tensor<4xf32>
      %2 = stablehlo.custom_call @none.missing(%x) : (tensor<4xf32>) -> tensor<4xf32>
      return %0, %1 : tensor<4xf32>, tensor<4xf32>
    }"""
    text = Compilation(targets=TARGETS).text(source, "stablehlo")
    assert text.count("custom_call") == 1
    loaded(source).main(np.ones(4, np.float32))


def test_one_dispatch_and_one_submission() -> None:
    program = loaded(call("e2e.identity"))
    out = np.empty_like(X)
    for _ in range(3):
        program.main(X, out=out)
    np.testing.assert_array_equal(out, X)
    last = program.statistics()["calls"][-1]
    counts = {key: last[key] for key in ("dispatches", "submissions", "waits", "allocations", "constant_bytes")}
    assert counts == {"dispatches": 1, "submissions": 1, "waits": 1, "allocations": 0, "constant_bytes": 0}
    assert last["executables_created"] == 0


def test_every_phase_continues_to_the_same_bytes(tmp_path: Path) -> None:
    jax = pytest.importorskip("jax")
    scaled = ffi("e2e.scale", ((4, 3), np.float32), ((), np.float32), factor=2.0, mode="x")
    source = jax.jit(lambda x: scaled(jax.numpy.sin(x))[0] * 2).lower(jax.ShapeDtypeStruct(X.shape, X.dtype))
    check_phases_continue(source, tmp_path, targets=TARGETS)


@pytest.mark.parametrize("target", ["opencl", "spirv"])
def test_targets_without_libraries_refuse(target: str) -> None:
    with pytest.raises(CompileError) as refused:
        compiler.compile(call("e2e.identity"), targets=("reference", target))
    assert str(refused.value) == (
        f"<text>:2:12: stablehlo.custom_call: calls library function e2e.identity, and target {target} has no library "
        "calls: compile with --target=reference,cpu, or write what the function computes in StableHLO"
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none.f", "the program calls library function none.f, and there is no library none: there are blas"),
        ("e2e.f", "library e2e has no function f: it has broken, count, "),
    ],
)
def test_functions_that_are_not_there(name: str, message: str) -> None:
    """Missed when the program is loaded, with the place of the call in the source."""
    with pytest.raises(UnresolvedLibrary) as refused:
        loaded(call(name))
    assert message in str(refused.value) and "(<text>:2:12)" in str(refused.value)


def test_a_call_that_the_function_refuses() -> None:
    with pytest.raises(Trap) as refused:
        loaded(call("e2e.scale", type="tensor<4xf64>"))
    assert str(refused.value).startswith(
        "library function e2e.scale(tensor<4xf64>) -> (tensor<4xf64>) refuses the call: f32 of one shape wanted, not "
        "float64 of shape (4,)"
    )


@pytest.mark.parametrize("submitted", [False, True])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("broken", "raised RuntimeError: no, not today"),
        ("leaving", "raised SystemExit: 3"),
        ("writing", "raised ValueError: assignment destination is read-only"),
        ("returning", "returned ndarray; results are written into its outputs"),
        ("reshaping", "raised ValueError: could not broadcast"),
        ("rebinding", "raised TypeError: 'tuple' object does not support item assignment"),
    ],
)
def test_functions_that_fail(name: str, message: str, submitted: bool) -> None:
    """The error says which function, and the program can be called again."""
    program = loaded(call(f"e2e.{name}"))
    for _ in range(2):
        with pytest.raises(LibraryFailed) as failed:
            program.main.submit(X).result() if submitted else program.main(X)
        assert f"library function e2e.{name}(tensor<4x3xf32>) -> (tensor<4x3xf32>) {message}" in str(failed.value)
        assert not isinstance(failed.value, DeviceError)
    causes = [type(error).__name__ for error in chain(failed.value)]
    assert name == "returning" or message.split()[1].rstrip(":") in causes


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and its causes."""
    while error is not None:
        yield error
        error = error.__cause__


def test_a_function_without_memory() -> None:
    with pytest.raises(vm.VmError, match="the system has no more memory: too much"):
        loaded(call("e2e.hungry")).main(X)


def test_what_is_written_in_another_type_is_converted() -> None:
    np.testing.assert_array_equal(loaded(call("e2e.doubles")).main(X), 2 * X)


def test_a_program_keeps_the_functions_that_it_was_loaded_with() -> None:
    register("replaced", {"f": lambda inputs, outputs, attributes: outputs[0].fill(1)}, replace=True)
    first = loaded(call("replaced.f"))
    register("replaced", {"f": lambda inputs, outputs, attributes: outputs[0].fill(2)}, replace=True)
    second = loaded(call("replaced.f"))
    assert [float(program.main(X)[0, 0]) for program in (first, second, first)] == [1, 2, 1]


def test_a_result_may_go_where_the_argument_is() -> None:
    program = loaded(call("e2e.doubles"))
    array = np.array(X)
    program.main(array, out=array)
    np.testing.assert_array_equal(array, 2 * X)


def test_calls_in_a_loop() -> None:
    """A loop with a call is one submission, and a call that fails ends it."""
    jax = pytest.importorskip("jax")
    doubled, failing = (ffi(f"e2e.{name}", ((4, 3), np.float32)) for name in ("doubles", "late"))
    turns: list[int] = []

    def late(inputs: Any, outputs: Any, attributes: Any) -> None:
        turns.append(1)
        if len(turns) == 3:
            raise RuntimeError("the third turn")
        outputs[0][...] = inputs[0]

    register("e2e", {"late": late}, replace=True)
    program = loaded(jax.jit(lambda x: jax.lax.fori_loop(0, 9, lambda _, y: doubled(y) - x, x)).lower(X))
    np.testing.assert_array_equal(program.main(X), X)
    assert program.statistics()["calls"][-1]["submissions"] == 1
    program = loaded(jax.jit(lambda x: jax.lax.while_loop(lambda y: y[0, 0] < 1, failing, x)).lower(X))
    with pytest.raises(LibraryFailed, match="the third turn"):
        program.main(X)
    assert len(turns) == 3


def test_sizes_that_a_call_decides() -> None:
    jax = pytest.importorskip("jax")
    from jax import export

    (n,) = export.symbolic_shape("n")
    safe = [export.DisabledSafetyCheck.custom_call("e2e.doubles")]

    def function(x: Any) -> Any:
        return jax.ffi.ffi_call("e2e.doubles", jax.ShapeDtypeStruct(x.shape, x.dtype))(x + 1) * 3

    exported = export.export(jax.jit(function), disabled_checks=safe)(jax.ShapeDtypeStruct((n, 3), np.float32))
    program = loaded(exported)
    for rows in (1, 4, 2):
        np.testing.assert_array_equal(program.main(X[:rows]), (X[:rows] + 1) * 6)


def test_a_function_may_run_a_program() -> None:
    inner = loaded(call("e2e.doubles"))
    register("e2e", {"program": lambda inputs, outputs, _: np.copyto(outputs[0], inner.main(inputs[0]))}, replace=True)
    np.testing.assert_array_equal(loaded(call("e2e.program")).main(X), 2 * X)
