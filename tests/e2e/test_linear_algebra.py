"""The linear algebra of JAX on the reference device: its calls of LAPACK are calls of our library."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from phase_texts import check_phases_continue

from orchestrion import compiler, vm
from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.printer import operation_text
from orchestrion.compiler.sequencer.hl_seq import Program
from orchestrion.compiler.stablehlo.ops.custom_call import CustomCall
from orchestrion.hal.registry import list_devices

jax = pytest.importorskip("jax")
pytest.importorskip("scipy")
jnp = jax.numpy
lax = jax.lax

RANDOM = np.random.default_rng(7)
TYPES = {"f32": np.float32, "f64": np.float64}
SHAPES = [(4, 4), (3, 5, 5), (2, 2, 1, 1)]
TALL = [(4, 4), (6, 3), (2, 6, 3)]
WIDE = [*TALL, (3, 6)]


def solve(**flags: bool) -> Any:
    return lambda a: lax.linalg.triangular_solve(a, a[..., ::-1], **flags)


def signs(columns: Any) -> Any:
    """Vectors are known up to a sign."""
    return columns * jnp.sign(columns[..., :1, :])


def svd(a: Any) -> Any:
    u, s, vt = jnp.linalg.svd(a, full_matrices=False)
    return s, (u * s[..., None, :]) @ vt


def whole_svd(a: Any) -> Any:
    u, s, vt = jnp.linalg.svd(a, full_matrices=True)
    return s, u @ jnp.swapaxes(u, -1, -2), vt @ jnp.swapaxes(vt, -1, -2)


def singular_values_by_qr(a: Any) -> Any:
    return lax.linalg.svd(a, compute_uv=False, algorithm=lax.linalg.SvdAlgorithm.QR)


def eigh(a: Any) -> Any:
    values, vectors = jnp.linalg.eigh(a)
    return values, (vectors * values[..., None, :]) @ jnp.swapaxes(vectors, -1, -2)


#: name -> function, shapes
CASES: dict[str, tuple[Any, list[tuple[int, ...]]]] = {
    "cholesky": (lambda a: jnp.linalg.cholesky(a @ jnp.swapaxes(a, -1, -2) + jnp.eye(a.shape[-1])), SHAPES),
    "upper": (lambda a: jnp.linalg.cholesky(a @ jnp.swapaxes(a, -1, -2) + jnp.eye(a.shape[-1]), upper=True), SHAPES),
    "not definite": (jnp.linalg.cholesky, SHAPES[:2]),
    "qr": (jnp.linalg.qr, WIDE),
    "complete qr": (lambda a: jnp.linalg.qr(a, mode="complete"), WIDE),
    "eigh": (eigh, SHAPES),
    "eigvalsh": (jnp.linalg.eigvalsh, SHAPES),
    "svd": (svd, WIDE),
    "whole svd": (whole_svd, WIDE),
    "singular values": (lambda a: jnp.linalg.svd(a, compute_uv=False), WIDE),
    "pinv": (jnp.linalg.pinv, WIDE),
    "singular values by qr": (singular_values_by_qr, WIDE),
    "eig": (jnp.linalg.eig, SHAPES),
    "eigvals": (jnp.linalg.eigvals, SHAPES),
    "left eigenvectors": (lambda a: lax.linalg.eig(a, compute_left_eigenvectors=True), SHAPES[:1]),
    "pivoted qr": (lambda a: jax.scipy.linalg.qr(a, pivoting=True), [(4, 4), (6, 3)]),
    "hessenberg": (lambda a: jax.scipy.linalg.hessenberg(a, calc_q=True), SHAPES[:2]),
    "schur": (jax.scipy.linalg.schur, SHAPES[:1]),
    "schur form": (lambda a: lax.linalg.schur(a, compute_schur_vectors=False), SHAPES[:2]),
    "tridiagonal": (lambda a: lax.linalg.tridiagonal(a + jnp.swapaxes(a, -1, -2)), SHAPES[:2]),
    "tridiagonal solve": (lambda a: lax.linalg.tridiagonal_solve(a[0], a[1] + 5, a[2], a[:, :2]), SHAPES[:1]),
    **{
        f"solve {number}": (solve(left_side=left, lower=lower, transpose_a=trans, unit_diagonal=unit), SHAPES)
        for number, (left, lower, trans, unit) in enumerate(np.ndindex(2, 2, 2, 2))
    },
}


def matrix(name: str, dtype: str, shape: tuple[int, ...]) -> Any:
    a = RANDOM.normal(size=shape).astype(TYPES[dtype])
    return a + np.eye(*shape[-2:], dtype=a.dtype) * (-6 if name == "not definite" else 3)


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("dtype", TYPES)
def test_it_gives_what_jax_gives(dtype: str) -> None:
    """All cases are one program: to compile it is what takes time."""
    given = [[matrix(name, dtype, shape) for shape in shapes] for name, (_, shapes) in CASES.items()]

    def program(given: Any) -> Any:
        return [[case[0](a) for a in group] for case, group in zip(CASES.values(), given, strict=True)]

    with jax.enable_x64(dtype == "f64"):
        compiled = jax.jit(program)
        wanted = compiled(given)
        found = iter(
            vm.load(compiler.compile(compiled.lower(given), targets=("reference",))).main(*jax.tree.leaves(given))
        )
    tolerance = 1e-4 if dtype == "f32" else 1e-10
    for name, group in zip(CASES, wanted, strict=True):
        for want in jax.tree.leaves(group):
            got = next(found)
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_matrices_without_elements(dtype: Any) -> None:
    names = ["cholesky", "eigh", "inverse", "det", "solve", "eig", "schur"]
    functions = [
        jnp.linalg.cholesky,
        jnp.linalg.eigh,
        jnp.linalg.inv,
        jnp.linalg.det,
        lambda a: jnp.linalg.solve(a, a[..., :0]),
        jnp.linalg.eig,
        lambda a: jax.scipy.linalg.schur(a[0]),
    ]
    given = np.zeros((3, 0, 0), dtype)
    compiled = jax.jit(lambda a: [function(a) for function in functions])
    found = iter(jax.tree.leaves(vm.load(compiler.compile(compiled.lower(given), targets=("reference",))).main(given)))
    for name, want in zip(names, compiled(given), strict=True):
        for part in jax.tree.leaves(want):
            np.testing.assert_array_equal(next(found), part, strict=True, err_msg=name)


def test_complex_numbers() -> None:
    """Eigenvalues and Schur's form are calls, of parts; what a device computes in loops is in test_factors."""

    def program(a: Any, real: Any) -> Any:
        schur, vectors = jax.scipy.linalg.schur(a[0])
        functions = lax.linalg.eig(a, compute_left_eigenvectors=True), jnp.linalg.eigvals(a)
        return functions, schur, vectors, lax.linalg.schur(a, compute_schur_vectors=False), jax.scipy.linalg.sqrtm(real)

    parts = RANDOM.normal(size=(2, 2, 4, 4))
    given = (parts[0] + 1j * parts[1]).astype(np.complex64), (np.eye(4) * 3 + parts[0, 0] / 4).astype(np.float32)
    compiled = jax.jit(program)
    found = vm.load(compiler.compile(compiled.lower(*given), targets=("reference",))).main.flat(*given)
    for got, want in zip(found, jax.tree.leaves(compiled(*given)), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["eigvalsh", "singular values", "cholesky", "eigvals", "schur"])
def test_matrices_that_are_not_finite(name: str, value: float) -> None:
    """LAPACK need not come to an end with them; JAX gives NaN."""
    a = np.eye(4, dtype=np.float32)
    a[1, 1] = value
    function = CASES[name][0]
    program = vm.load(compiler.compile(jax.jit(function).lower(a), targets=("reference",)))
    assert np.isnan(jax.tree.leaves(program.main(a))[0]).any()


def test_what_has_no_row_is_refused_by_its_name() -> None:
    a = jax.ShapeDtypeStruct((4, 4), np.float32)
    with pytest.raises(compiler.CompileError, match="'lapack_sormlq_ffi' is not the name of a library function"):
        compiler.compile(jax.jit(jax.ffi.ffi_call("lapack_sormlq_ffi", a)).lower(a), targets=("reference",))


DEVICES = {"reference": "reference", "opencl": "opencl", "vulkan": "spirv"}
#: what the program of `mixed` calls where there are libraries
CALLED = {"lapack.potrf", "blas.trsm", "lapack.syevd", "lapack.getrf"}


def mixed(a: Any, b: Any) -> Any:
    square = a @ a.T + 4 * jnp.eye(4, dtype=a.dtype)
    lower = jnp.linalg.cholesky(square)
    solved = lax.linalg.triangular_solve(lower, b, left_side=True, lower=True)
    return lower, solved, jnp.linalg.eigvalsh(square), jnp.linalg.solve(a, b), jnp.linalg.det(square)


@pytest.fixture(scope="module")
def mixed_source() -> Any:
    return jax.jit(mixed).lower(*[jax.ShapeDtypeStruct(shape, np.float32) for shape in ((4, 4), (4, 2))])


def called(module: Module, profile: str) -> set[str]:
    """The library functions in the dispatches of a program."""
    (program,) = [op for op in module.block if isinstance(op, Program) and op.profile == profile]
    return {op.function for op in program.walk() if isinstance(op, CustomCall)}


def test_each_program_has_what_its_target_can(mixed_source: Any) -> None:
    """The reference device keeps LAPACK, others have loops, in one module."""
    module = Compilation(targets=tuple(DEVICES.values())).module(mixed_source, "hl_seq")
    assert {profile: called(module, profile) for profile in DEVICES.values()} == {
        "reference": CALLED,
        "opencl": set(),
        "spirv": set(),
    }


def test_a_program_beside_others_is_the_one_of_its_own(mixed_source: Any) -> None:
    """What a target gets does not depend on the other targets."""
    together = Compilation(targets=tuple(DEVICES.values())).module(mixed_source, "ll_seq")
    for profile in DEVICES.values():
        alone = Compilation(targets=(profile,)).module(mixed_source, "ll_seq")
        wanted = {op.profile: operation_text(op) for op in alone.block if isinstance(op, Program)}
        assert profile in wanted and len(wanted) == len(alone.block.ops)
        programs = [op for op in together.block if isinstance(op, Program)]
        assert {op.profile: operation_text(op) for op in programs if op.profile in wanted} == wanted


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("device", DEVICES)
def test_one_module_computes_on_every_device(device: str, mixed_source: Any) -> None:
    if device not in {status.name for status in list_devices() if status.devices}:
        pytest.skip(f"no device {device}")
    program = vm.load(compiler.compile(mixed_source, targets=tuple(DEVICES.values())), device)
    a, b = (RANDOM.normal(size=shape).astype(np.float32) for shape in ((4, 4), (4, 2)))
    a += 3 * np.eye(4, dtype=np.float32)
    for got, want in zip(program.main(a, b), mixed(a, b), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    program.close()


@pytest.mark.long
def test_every_phase_continues_to_the_same_bytes(mixed_source: Any, tmp_path: Path) -> None:
    """Also with parts for two kinds of target."""
    texts = check_phases_continue(mixed_source, tmp_path, targets=tuple(DEVICES.values()))
    parted = [phase for phase, text in texts.items() if 'sym_name = "with_libraries"' in text]
    assert parted == ["stablehlo", "flow"]


def test_a_target_takes_its_part_of_a_text_of_several(mixed_source: Any) -> None:
    text = Compilation(targets=tuple(DEVICES.values())).text(mixed_source, "flow")
    module = Compilation(targets=("opencl",), start="flow").module(text, "hl_seq")
    assert called(module, "opencl") == set() and len(module.block.ops) == 1


def test_parts_are_two_modules_and_nothing_else(mixed_source: Any) -> None:
    text = Compilation(targets=tuple(DEVICES.values())).text(mixed_source, "flow")
    wrong = text.replace('sym_name = "with_libraries"', 'sym_name = "other"')
    with pytest.raises(CompileError, match="holds modules @other, @without_libraries; parts are two or more of @with"):
        Compilation(targets=("opencl",), start="flow").module(wrong, "hl_seq")


def test_a_module_in_a_source_is_no_part() -> None:
    inner = '"func.func"() <{function_type = () -> (), sym_name = "main"}> ({"func.return"() : () -> ()}) : () -> ()'
    part = f'"builtin.module"() <{{sym_name = "with_libraries"}}> ({{{inner}}}) : () -> ()'
    source = f'"builtin.module"() ({{{part}}}) : () -> ()\n'
    with pytest.raises(CompileError, match="a module inside a module is not supported"):
        compiler.compile(source, targets=("reference",))


def factors(a: Any) -> Any:
    return svd(a) + eigh(a @ a.T) + (jnp.linalg.eigvalsh(a + a.T), jnp.linalg.svd(a, compute_uv=False))


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(("order", "lapack"), [(40, "default"), (40, "loops"), (8, "default")])
def test_large_matrices_on_the_processor(order: int, lapack: str) -> None:
    """Calls of LAPACK from an order on, unless loops are asked for; the other targets have loops in any case."""
    if "cpu" not in {status.name for status in list_devices() if status.devices}:
        pytest.skip("no device cpu")
    a = RANDOM.normal(size=(order, order)).astype(np.float32)
    source, targets = jax.jit(factors).lower(a), ("reference", "cpu", "opencl")
    module = Compilation(targets=targets, lapack=lapack).module(source, "hl_seq")
    calls = {"lapack.syevd", "lapack.gesdd"} if order == 40 and lapack == "default" else set()
    assert called(module, "cpu") == calls and called(module, "opencl") == set()
    assert bool(called(module, "reference")) is (lapack == "default")
    program = vm.load(compiler.compile(source, targets=targets, lapack=lapack), "cpu")
    for got, want in zip(program.main(a), factors(a), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3 * order)
    assert program.statistics()["calls"][-1]["submissions"] == 1
    with pytest.raises(CompileError, match="lapack is 'always', one of default, loops expected"):
        compiler.compile(source, lapack="always")


def test_matrices_that_are_not_finite_on_the_processor() -> None:
    a = np.full((32, 32), np.nan, np.float32)
    program = vm.load(compiler.compile(jax.jit(jnp.linalg.eigvalsh).lower(a), targets="cpu"), "cpu")
    assert np.isnan(program.main(a)).all()
