"""The registry of library functions: registered functions, functions of packages, and errors for missing ones."""

import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from orchestrion.hal.errors import InvalidArgument, LibraryUnavailable
from orchestrion.hal.libraries import Function, register, registry
from orchestrion.hal.libraries.registry import BUILT_IN, GROUP, find, libraries
from orchestrion.schema.hints import install


def nothing(inputs: Any, outputs: Any, attributes: Any) -> None:
    """Does nothing."""


@pytest.fixture(autouse=True)
def _registry_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.setattr(registry, "_installed", {})


def test_what_is_registered_is_found() -> None:
    other = Function(nothing, doc="another")
    register("mine", {"plain": nothing})
    register("mine", {"other": other})
    assert find("mine.plain") == Function(nothing, doc="Does nothing.")
    assert find("mine.other") is other


def test_a_registration_goes_before_a_package() -> None:
    shipped = find("blas.gemm")
    register("blas", {"gemm": nothing, "extra": nothing})
    assert find("blas.gemm").run is nothing and shipped.run is not nothing
    assert find("blas.extra").run is nothing and find("blas.dot").run is not nothing
    assert set(next(iter(libraries())).functions) > {"gemm", "extra", "dot"}


def test_a_name_is_registered_once() -> None:
    register("mine", {"f": nothing})
    other = Function(nothing)
    with pytest.raises(InvalidArgument, match=r"mine\.f is registered already; replace=True takes the new one"):
        register("mine", {"g": nothing, "f": other})
    with pytest.raises(LibraryUnavailable, match="library mine has no function g"):
        find("mine.g")
    register("mine", {"f": other}, replace=True)
    assert find("mine.f") is other


@pytest.mark.parametrize(
    ("library", "functions", "message"),
    [
        ("a b", {"f": nothing}, "'a b.f' is not the name of a library function (LIBRARY.FUNCTION)"),
        ("a", {"f.g": nothing}, "'a.f.g' is not the name of a library function"),
        ("a", {"f": 3}, "a.f is int, expected a function"),
        ("a", [nothing], "the functions of library a must be a mapping, are list"),
    ],
)
def test_what_cannot_be_registered(library: str, functions: Any, message: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        register(library, functions)
    assert message in str(refused.value)


def test_what_is_not_there() -> None:
    with pytest.raises(LibraryUnavailable) as refused:
        find("none.f")
    assert str(refused.value) == (
        "the program calls library function none.f, and there is no library none: there are "
        f"{', '.join(BUILT_IN)}; make it known with orchestrion.hal.libraries.register, or install a package with an "
        "entry point none in the group orchestrion.libraries"
    )
    with pytest.raises(LibraryUnavailable) as refused:
        find("blas.gem")
    assert "library blas has no function gem: it has asum, " in str(refused.value)
    assert 'add one with orchestrion.hal.libraries.register("blas", {"gem": ...})' in str(refused.value)


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entry points as installed packages would add them: a valid one, one that cannot be imported, one of
    a wrong type.
    """
    module = ModuleType("another_package")
    module.FUNCTIONS = {"f": nothing}  # type: ignore[attr-defined]
    module.WRONG = {"f": 3}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "another_package", module)
    points = [
        importlib.metadata.EntryPoint("another", "another_package:FUNCTIONS", GROUP),
        importlib.metadata.EntryPoint("blas", "another_package:FUNCTIONS", GROUP),
        importlib.metadata.EntryPoint("broken", "no_such_module:FUNCTIONS", GROUP),
        importlib.metadata.EntryPoint("empty", "another_package:MISSING", GROUP),
        importlib.metadata.EntryPoint("wrong", "another_package:WRONG", GROUP),
    ]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points if group == GROUP else [])


@pytest.mark.usefixtures("packages")
def test_libraries_of_other_packages() -> None:
    assert find("another.f").run is nothing
    assert find("blas.gemm")  # ours keep their names
    with pytest.raises(LibraryUnavailable, match="library broken at no_such_module:FUNCTIONS cannot be loaded: Module"):
        find("broken.f")
    with pytest.raises(LibraryUnavailable, match="library empty at another_package:MISSING cannot be loaded: "):
        find("empty.f")
    with pytest.raises(LibraryUnavailable, match=r"library wrong .* cannot be loaded: .*: wrong\.f is int"):
        find("wrong.f")
    found = {status.name: status for status in libraries()}
    assert list(found) == sorted({"another", "broken", "empty", "wrong", *BUILT_IN})
    assert list(found["another"].functions) == ["f"] and not found["another"].reason
    assert not found["broken"].functions and "No module named" in found["broken"].reason


def test_nothing_is_imported_before_a_program_calls_a_function() -> None:
    code = (
        "import sys; from orchestrion import vm; from orchestrion.hal.registry import open_device; "
        "open_device('reference').close(); "
        "print([m for m in sys.modules if 'scipy' in m or 'hal.libraries' in m or m == 'importlib.metadata']); "
        "from orchestrion.hal.libraries import registry; registry.find('blas.gemm'); "
        "print([m for m in ('scipy', 'importlib.metadata') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n[]\n"


def run(name: str, inputs: list[Any], outputs: list[Any], **attributes: Any) -> list[np.ndarray[Any, Any]]:
    """Runs a function on arrays after the checks that a device makes. Outputs are (shape, type)."""
    function = find(name)
    arrays = [np.array(x, order="C") for x in inputs]
    made: list[np.ndarray[Any, Any]] = [np.full(shape, np.nan, dtype) for shape, dtype in outputs]
    specs = [[registry.Spec(array.dtype, array.shape) for array in group] for group in (arrays, made)]
    assert function.check is not None
    function.check(*specs, attributes)
    for array in arrays:
        array.flags.writeable = False
    function.run(arrays, made, attributes)
    return made


RANDOM = np.random.default_rng(4)
TYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])


def values(dtype: Any, *shape: int) -> Any:
    return RANDOM.normal(size=shape).astype(dtype)


def close(got: Any, want: Any) -> None:
    np.testing.assert_allclose(got, want, rtol=1e-4 if got.dtype == np.float32 else 1e-12, atol=1e-5)


@pytest.fixture
def scipy() -> Iterator[None]:
    pytest.importorskip("scipy")
    yield


@TYPES
@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize(("rows", "depth", "columns"), [(4, 3, 5), (1, 1, 1), (1, 7, 3), (6, 1, 2), (5, 4, 1)])
@pytest.mark.usefixtures("scipy")
def test_gemm(dtype: Any, trans_a: bool, trans_b: bool, rows: int, depth: int, columns: int) -> None:
    a, b, c = values(dtype, rows, depth), values(dtype, depth, columns), values(dtype, rows, columns)
    given = [a.T if trans_a else a, b.T if trans_b else b]
    flags = {"trans_a": trans_a, "trans_b": trans_b}
    out = [(c.shape, dtype)]
    close(run("blas.gemm", given, out, **flags)[0], a @ b)
    close(run("blas.gemm", [*given, c], out, alpha=2.0, beta=-1.5, **flags)[0], 2 * (a @ b) - 1.5 * c)
    close(run("blas.gemm", [*given, np.full_like(c, np.nan)], out, alpha=2, **flags)[0], 2 * (a @ b))


@TYPES
@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.usefixtures("scipy")
def test_gemv(dtype: Any, trans_a: bool) -> None:
    a, x, y = values(dtype, 4, 3), values(dtype, 3), values(dtype, 4)
    given = [a.T if trans_a else a, x]
    close(run("blas.gemv", given, [((4,), dtype)], trans_a=trans_a)[0], a @ x)
    found = run("blas.gemv", [*given, y], [((4,), dtype)], trans_a=trans_a, alpha=0.5, beta=3.0)[0]
    close(found, 0.5 * (a @ x) + 3 * y)


@TYPES
@pytest.mark.usefixtures("scipy")
def test_vectors(dtype: Any) -> None:
    x, y, z, a = values(dtype, 5), values(dtype, 5), values(dtype, 3), values(dtype, 5, 3)
    close(run("blas.dot", [x, y], [((), dtype)])[0], x @ y)
    close(run("blas.nrm2", [x], [((), dtype)])[0], np.sqrt(x @ x))
    close(run("blas.asum", [x], [((), dtype)])[0], np.abs(x).sum())
    close(run("blas.axpy", [x, y], [((5,), dtype)], alpha=-2.0)[0], y - 2 * x)
    close(run("blas.ger", [x, z], [((5, 3), dtype)], alpha=3.0)[0], 3 * np.outer(x, z))
    close(run("blas.ger", [x, z, a], [((5, 3), dtype)])[0], np.outer(x, z) + a)


@TYPES
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("unit_diagonal", [False, True])
@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
@pytest.mark.usefixtures("scipy")
def test_trsm(dtype: Any, left: bool, lower: bool, trans_a: bool, unit_diagonal: bool, batch: tuple[int, ...]) -> None:
    a = values(dtype, *batch, 4, 4) + 4 * np.eye(4, dtype=dtype)
    x = values(dtype, *batch, 4, 2) if left else values(dtype, *batch, 2, 4)
    triangle = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        triangle = triangle * (1 - np.eye(4)) + np.eye(4)
    used = np.swapaxes(triangle, -1, -2) if trans_a else triangle
    b = ((used @ x if left else x @ used) / 2).astype(dtype)
    flags = {"left": left, "lower": lower, "trans_a": trans_a, "unit_diagonal": unit_diagonal}
    close(run("blas.trsm", [a, b], [(b.shape, dtype)], alpha=2.0, **flags)[0], x)


F32, F64, I32 = np.float32, np.float64, np.int32


@pytest.mark.parametrize(
    ("name", "inputs", "outputs", "attributes", "message"),
    [
        ("gemm", [(4, 3)], [(4, 5)], {}, "1 operands, expected 2 to 3"),
        ("gemm", [(4, 3), (3, 5)], [(4, 5), (1,)], {}, "2 results, expected 1"),
        ("gemm", [(4, 3), (3,)], [(4, 5)], {}, "b has shape [3], expected rank 2"),
        ("gemm", [(4, 3), (4, 5)], [(4, 5)], {}, "3 columns of a, 4 rows of b"),
        ("gemm", [(4, 3), (3, 5)], [(5, 4)], {}, "the result has shape [5, 4], expected [4, 5]"),
        ("gemm", [(4, 3), (3, 5), (4, 4)], [(4, 5)], {}, "operand 2 has shape [4, 4], expected [4, 5]"),
        ("gemm", [(4, 3), (3, 5)], [(4, 5)], {"beta": 1.0}, "beta is 1.0, and there is no operand 2 to add"),
        (
            "gemm",
            [(4, 3), (3, 5)],
            [(4, 5)],
            {"gamma": 1.0},
            "no attribute is called gamma; attributes are alpha, beta",
        ),
        ("gemm", [(4, 3), (3, 5)], [(4, 5)], {"alpha": "2"}, "attribute alpha must be a float, is '2'"),
        ("gemm", [(4, 3), (3, 5)], [(4, 5)], {"trans_a": 1}, "attribute trans_a must be a bool, is 1"),
        ("gemm", [(4, 0), (0, 5)], [(4, 5)], {}, "0 elements in shape [4, 0], expected 1 to 2147483647"),
        ("gemm", [(2**16, 2**16), (2**16, 1)], [(2**16, 1)], {}, "4294967296 elements in shape [65536, 65536]"),
        ("gemv", [(4, 3), (4,)], [(4,)], {}, "x has shape [4], expected [3]"),
        ("ger", [(4,), (3,)], [(3, 4)], {}, "the result has shape [3, 4], expected [4, 3]"),
        ("axpy", [(4,), (3,)], [(4,)], {}, "y has shape [3], expected [4]"),
        ("dot", [(4,), (4,)], [(1,)], {}, "the result has shape [1], expected []"),
        ("dot", [(4,), (4,)], [()], {"alpha": 1.0}, "no attribute is called alpha; attributes are none"),
        ("nrm2", [(4, 4)], [()], {}, "x has shape [4, 4], expected rank 1"),
        ("trsm", [(4, 4), (3, 4)], [(3, 4)], {}, "a has shape [4, 4], expected [3, 3]"),
        ("trsm", [(4, 4), (4,)], [(4,)], {}, "b has shape [4], expected rank 2 at least"),
    ],
)
@pytest.mark.usefixtures("scipy")
def test_calls_of_blas_that_are_refused(name: str, inputs: Any, outputs: Any, attributes: Any, message: str) -> None:
    function = find(f"blas.{name}")
    specs = [[registry.Spec(np.dtype(F32), shape) for shape in group] for group in (inputs, outputs)]
    assert function.check is not None
    with pytest.raises(ValueError) as refused:
        function.check(*specs, attributes)
    assert message in str(refused.value)


@pytest.mark.parametrize("types", [(F32, F64), (I32, I32), (F64, F32)])
@pytest.mark.usefixtures("scipy")
def test_types_that_blas_has_not(types: Any) -> None:
    function = find("blas.dot")
    specs = [registry.Spec(np.dtype(kind), (4,)) for kind in types]
    assert function.check is not None
    with pytest.raises(ValueError, match="all must be float32, or all float64"):
        function.check(specs, [registry.Spec(np.dtype(types[0]), ())], {})


def test_every_shipped_function_says_what_it_computes() -> None:
    for status in libraries():
        if status.name in BUILT_IN:
            assert not status.reason and status.functions
            assert all(function.doc and function.check for function in status.functions.values())


def test_without_scipy_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    monkeypatch.setitem(sys.modules, "scipy.linalg.blas", None)
    check: Callable[..., None] | None = find("blas.dot").check
    assert check is not None
    with pytest.raises(LibraryUnavailable, match=f"needs SciPy .*{re.escape(install('libraries'))}"):
        check([], [], {})
