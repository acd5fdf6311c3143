"""Loading and calling: NumPy in and out, device arrays, destinations, contexts, statistics, whose fault an error is."""

import array
import ast
import gc
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrion import vm
from orchestrion.hal.errors import HalError
from orchestrion.hal.registry import open_device
from orchestrion.schema.assembler import assemble
from orchestrion.schema.decoder import read_module
from orchestrion.schema.dtypes import BY_NUMPY
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.writer import write
from orchestrion.vm.errors import CallerError, CallerTypeError, FuelExhausted, MemoryExceeded, NoProgram, Trap
from orchestrion.vm.selection import choose_program
from orchestrion.vm.tensors import as_array

X = np.array([1, 2, 3, 4], np.float32)
Y = np.array([5, -1, 0.5, 2], np.float32)
Z = X * Y + np.array([1, 2, 3, 4], np.float32)


@pytest.fixture
def program(tensors: bytes) -> Iterator[vm.Program]:
    with_program = vm.load(tensors)
    yield with_program
    with_program.close()


def test_arrays_in_and_out(program: vm.Program) -> None:
    first = program.main(X, Y)
    second = program.main(Y, Y)
    np.testing.assert_array_equal(first, Z)
    np.testing.assert_array_equal(second, Y * Y + np.array([1, 2, 3, 4], np.float32))
    assert first.dtype == np.float32
    assert first.flags.owndata


def test_from_a_file(tensors: bytes, tmp_path: Path) -> None:
    path = tmp_path / "module.fb"
    path.write_bytes(tensors)
    np.testing.assert_array_equal(vm.load(path).main(X, Y), Z)
    np.testing.assert_array_equal(vm.load(str(path), "reference")["main"](X, Y), Z)


def test_functions_by_name(program: vm.Program) -> None:
    assert list(program.functions) == [
        "main", "two", "own_view", "wrong_view", "no_view", "later", "count", "grab", "damage",
    ]  # fmt: skip
    assert program["main"] is program.main is program.functions["main"]
    assert repr(program.main) == "<Function main(x: f32[4], y: f32[4]) -> (f32[4])>"
    assert repr(program["damage"]) == "<ScalarFunction damage(i32, i64, f32, f64) -> (i32, i64, f32, f64)>"
    assert program.exports[0].doc == "x * y + c"
    assert program.name == "reference"
    with pytest.raises(AttributeError, match="no function 'mian': the module exports main, two"):
        program.mian  # noqa: B018
    with pytest.raises(CallerError, match="no function 'mian': the module exports main, two"):
        program["mian"]


class Interface:
    """Speaks `__array_interface__` and nothing else."""

    def __init__(self, held: np.ndarray) -> None:
        self.held = held
        self.__array_interface__ = held.__array_interface__


class Dlpack:
    """Speaks DLPack and nothing else."""

    def __init__(self, held: np.ndarray) -> None:
        self.held = held

    def __dlpack__(self, **options: Any) -> Any:
        return self.held.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.held.__dlpack_device__()


ACCEPTED: dict[str, Callable[[], Any]] = {
    "list": lambda: [1, 2.0, 3, 4],
    "tuple": lambda: (1, 2, 3, 4),
    "NumPy scalars": lambda: [np.float32(1), np.float32(2), np.float32(3), np.float32(4)],
    "strides": lambda: np.repeat(X, 2)[::2],
    "reversed": lambda: X[::-1].copy()[::-1],
    "read-only": lambda: np.frombuffer(X.tobytes(), np.float32),
    "interface": lambda: Interface(X),
    "dlpack": lambda: Dlpack(X.copy()),
    "buffer protocol": lambda: array.array("f", X),
    "subclass": lambda: X.view(np.matrix).A1.view(np.recarray),
}


@pytest.mark.parametrize("kind", ACCEPTED)
def test_accepted_arguments(program: vm.Program, kind: str) -> None:
    np.testing.assert_array_equal(program.main(ACCEPTED[kind](), Y), Z)


REJECTED: list[tuple[tuple[Any, ...], str]] = [
    ((X,), "'main' takes 2 arguments, got 1"),
    ((X, Y, Y), "'main' takes 2 arguments, got 3"),
    ((X, Y.astype(np.float64)), "argument 1 of 'main': expected f32[4], got f64[4]"),
    ((X.astype(">f4"), Y), "argument 0 of 'main': expected f32[4], got >f4[4]"),
    ((X.astype(np.complex64), Y), "argument 0 of 'main': expected f32[4], got complex<f32>[4]"),
    ((X.reshape(2, 2), Y), "argument 0 of 'main': expected f32[4], got f32[2,2]"),
    ((X[:3], Y), "argument 0 of 'main': expected f32[4], got f32[3]"),
    ((np.float32(1), Y), "argument 0 of 'main': expected f32[4], got f32[]"),
    (([1, 2, 3], Y), "argument 0 of 'main': expected f32[4], got nested lists of shape (3,)"),
    (([1, 2, [3], 4], Y), "argument 0 of 'main': expected f32[4], got list"),
    (([1, 2, 3, "4"], Y), "argument 0 of 'main': expected f32[4], got str '4'"),
    (([1, 2, 3, True], Y), "argument 0 of 'main': expected f32[4], got bool True"),
    (
        ([1, 2, 3, 2**24 + 1], Y),
        "argument 0 of 'main': expected f32[4], got 16777217, which f32 cannot hold",
    ),
    (([1, 2, 3, np.complex64(4)], Y), "argument 0 of 'main': expected f32[4], got complex (4+0j)"),
    (([1, 2, 3, np.timedelta64(4, "ns")], Y), "argument 0 of 'main': expected f32[4], got timedelta64"),
    (
        (None, Y),
        "argument 0 of 'main': expected f32[4], got None",
    ),
    ((1.0, Y), "argument 0 of 'main': expected f32[4], got float"),
]


@pytest.mark.parametrize("case", range(len(REJECTED)))
def test_rejected_arguments(program: vm.Program, case: int) -> None:
    arguments, message = REJECTED[case]
    with pytest.raises(CallerError) as caught:
        program.main(*arguments)
    assert str(caught.value).startswith(message)
    assert program.statistics()["calls"] == []
    np.testing.assert_array_equal(program.main(X, Y), Z)


def test_numbers_take_the_type_wanted() -> None:
    rows = {name: BY_NUMPY[np.dtype(name)] for name in ("f4", "f8", "i1", "u8", "?")}
    assert as_array(7, rows["i1"], (), "x") == np.int8(7)
    assert as_array(2**64 - 1, rows["u8"], (), "x") == np.uint64(2**64 - 1)
    assert as_array(0.1, rows["f4"], (), "x") == np.float32(0.1)
    assert np.isinf(as_array(1e60, rows["f4"], (), "x"))
    assert as_array(True, rows["?"], (), "x") == np.bool_(True)
    assert as_array([[1, 2], [3, 4]], rows["f8"], (2, 2), "x").tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert as_array([], rows["f8"], (0,), "x").shape == (0,)
    for value, name in (
        (128, "i1"),
        (-1, "u8"),
        (2**53 + 1, "f8"),
        (2**2000, "f8"),
        (1.0, "i1"),
        (1, "?"),
        (True, "i1"),
    ):
        for given in (value, np.asarray(value)[()]):
            with pytest.raises(CallerError, match="^x: expected "):
                as_array(given, rows[name], (), "x")


def test_numpy_scalars_are_numbers() -> None:
    rows = {name: BY_NUMPY[np.dtype(name)] for name in ("f4", "f8", "i1", "?", "c8")}
    assert as_array(np.int64(7), rows["i1"], (), "x") == np.int8(7)
    assert as_array(np.float64(0.1), rows["f4"], (), "x").dtype == np.float32
    assert as_array(np.float32(0.5), rows["f8"], (), "x") == 0.5
    assert as_array(np.bool_(True), rows["?"], (), "x") == np.bool_(True)
    assert as_array([np.int8(1), np.complex128(2)], rows["c8"], (2,), "x").tolist() == [1, 2]
    with pytest.raises(CallerTypeError, match=r"x: expected f32\[\], got f64\[\]"):  # an array has a type of its own
        as_array(np.asarray(0.1), rows["f4"], (), "x")


def test_errors_of_callers_are_errors_of_python(program: vm.Program, tensors: bytes) -> None:
    wrong_types: list[Any] = [(), (X,), (X, Y.astype(np.float64)), (X, None), (X, "y")]
    for arguments in wrong_types:
        with pytest.raises(TypeError) as caught:
            program.main(*arguments)
        assert isinstance(caught.value, vm.CallerError) and not isinstance(caught.value, ValueError)
    for shape in ((3,), (2, 2)):
        with pytest.raises(ValueError) as refused:
            program.main(X, np.zeros(shape, np.float32))
        assert isinstance(refused.value, vm.CallerError) and not isinstance(refused.value, TypeError)
    with pytest.raises(ValueError, match="no function 'nothing'"):
        program["nothing"]
    with pytest.raises(ValueError, match="no driver 'nothing'"):
        vm.load(tensors, device="nothing")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"device": 3}, "device=3: a name such as 'vulkan' or an open device expected"),
        ({"load_limits": 3}, "load_limits=3: vm.Limits expected"),
        ({"modules": 3}, "modules=3: a dict of modules by name expected"),
        ({"digest": 3}, "digest=3: a text of 64 hexadecimal digits expected"),
        ({"progress": 3}, "progress=3: a function expected"),
        ({"natives": 3}, "natives=3: a NativeModule or the name of one expected"),
    ],
)
def test_options_of_load_of_the_wrong_type(tensors: bytes, options: dict[str, Any], expected: str) -> None:
    with pytest.raises(CallerTypeError) as caught:
        vm.load(tensors, **options)
    assert str(caught.value) == expected


def test_each_error_of_a_caller_is_of_a_kind() -> None:
    """`CallerError` itself is never raised: each place says whether a type or a value is wrong."""
    root = Path(vm.__file__).parent
    raised = [
        f"{path.name}:{node.lineno}"
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "CallerError"
    ]
    assert raised == []


def test_rank_zero_and_no_elements(program: vm.Program) -> None:
    nothing, one = program.two(np.float32(1.5), np.empty((0, 3), np.int8))
    assert nothing.shape == (0, 3) and nothing.dtype == np.int8
    assert one.shape == () and one == np.float32(1.5)
    assert program.two(2, np.empty((0, 3), np.int8))[1] == 2.0


def test_out(program: vm.Program) -> None:
    out = np.zeros(4, np.float32)
    assert program.main(X, Y, out=out) is out
    np.testing.assert_array_equal(out, Z)
    wide = np.zeros(8, np.float32)
    program.main(X, Y, out=wide[::2])
    np.testing.assert_array_equal(wide[::2], Z)
    aliased = X.copy()
    program.main(aliased, Y, out=aliased)
    np.testing.assert_array_equal(aliased, Z)
    empty, one = np.empty((0, 3), np.int8), np.empty((), np.float32)
    found = program.two(np.float32(3), empty, out=(None, one))
    assert found[1] is one and one == 3.0 and found[0].shape == (0, 3)


REJECTED_OUT: list[tuple[Any, str]] = [
    (np.zeros(3, np.float32), "out 0 of 'main': expected f32[4], got f32[3]"),
    (np.zeros(4, np.float64), "out 0 of 'main': expected f32[4], got f64[4]"),
    (np.frombuffer(bytes(16), np.float32), "out 0 of 'main': the array is read-only"),
    ([1, 2, 3, 4], "'main' gives 1 results, out has 4"),
    ("text", "out 0 of 'main': expected an array of f32[4], got str"),
]


@pytest.mark.parametrize("case", range(len(REJECTED_OUT)))
def test_rejected_out(program: vm.Program, case: int) -> None:
    out, message = REJECTED_OUT[case]
    with pytest.raises(CallerError) as caught:
        program.main(X, Y, out=out)
    assert str(caught.value) == message
    assert program.statistics()["calls"] == []


def test_device_arrays(program: vm.Program) -> None:
    x, out = program.put(X), program.empty((4,), np.float32)
    assert repr(x) == "DeviceArray(f32[4] on reference)"
    assert x.shape == (4,) and x.dtype == np.float32 and x.nbytes == 16
    assert repr(program.empty((np.int64(2), 3), np.float32)) == "DeviceArray(f32[2,3] on reference)"
    assert program.empty(np.int32(5), np.float32).shape == (5,) and program.empty((), np.float32).shape == ()
    for shape, why in (
        ((2.5,), "a whole number or several"),
        ("ab", "a whole number"),
        ((2, -1), "negative dimension"),
    ):
        with pytest.raises(CallerError, match=why):
            program.empty(shape, np.float32)  # type: ignore[arg-type]
    with pytest.raises(CallerTypeError, match="'f32' not understood"):
        program.empty((4,), "f32")
    assert program.main(x, Y, out=out) is out
    np.testing.assert_array_equal(out.to_numpy(), Z)
    np.testing.assert_array_equal(np.asarray(out), Z)
    np.testing.assert_array_equal(program.main(out, x), Z * X + np.array([1, 2, 3, 4], np.float32))
    call = program.statistics()["calls"][0]
    assert call["host_to_device_bytes"] == 16 and call["device_to_host_bytes"] == 0
    assert np.shares_memory(np.asarray(out, copy=False), np.from_dlpack(out))
    assert not np.shares_memory(np.asarray(out), np.from_dlpack(out))
    ml_dtypes = pytest.importorskip("ml_dtypes")
    with pytest.raises(BufferError, match="DLPack through NumPy has no bfloat16: np.asarray"):
        program.empty((4,), ml_dtypes.bfloat16).__dlpack__()
    with pytest.raises(CallerError, match="out 0 of 'main' shares its memory with argument 0"):
        program.main(x, Y, out=x)
    with pytest.raises(CallerError, match=r"expected f32\[4\], got f64\[2\] on a device"):
        program.main(program.empty((2,), np.float64), Y)
    with pytest.raises(CallerError, match="datetime64.* is not an element type; there are i1, i8"):
        program.put(np.zeros(3, "datetime64[s]"))


def test_device_array_of_another_device(program: vm.Program, tensors: bytes) -> None:
    other = vm.load(tensors)
    with pytest.raises(CallerError, match="the array is of another load"):
        program.main(other.put(X), Y)


def test_device_array_outlives_its_program(tensors: bytes) -> None:
    array = vm.load(tensors).put(X)
    gc.collect()
    np.testing.assert_array_equal(array.to_numpy(), X)


def test_program_chooses_what_it_returns(program: vm.Program) -> None:
    np.testing.assert_array_equal(program.own_view(X), X)
    np.testing.assert_array_equal(program.own_view(Y), Y)
    out = np.zeros(4, np.float32)
    np.testing.assert_array_equal(program.own_view(X, out=out), X)
    np.testing.assert_array_equal(out, X)
    device_out = program.empty((4,), np.float32)
    program.own_view(X, out=device_out)
    np.testing.assert_array_equal(device_out.to_numpy(), X)
    with pytest.raises(Trap, match=r"result 0 of 'wrong_view': expected f32\[2\], got f32\[4\]"):
        program.wrong_view(X)
    with pytest.raises(Trap, match=r"result 0 of 'no_view': expected f32\[4\], got null"):
        program.no_view(X)


def test_asynchronous_work(program: vm.Program) -> None:
    for _ in range(5):
        np.testing.assert_array_equal(program.later(X), X)
        np.testing.assert_array_equal(program.later(Y), Y)


def test_functions_of_the_vm_alone(program: vm.Program) -> None:
    assert [program.count(), program.count()] == [1, 2]
    assert program.damage(2**32 - 1, -1, 0.1, 0.1) == (-1, -1, float(np.float32(0.1)), 0.1)
    for arguments, message in (
        ((1, 2, 3.0), "'damage' takes 4 arguments, got 3"),
        ((2**32, 0, 0.0, 0.0), "argument 0 of 'damage': expected i32, got 4294967296"),
        ((True, 0, 0.0, 0.0), "argument 0 of 'damage': expected i32, got True"),
        ((0, 0, "1", 0.0), "argument 2 of 'damage': expected f32, got '1'"),
        ((0, 0, 1 << 2000, 0.0), "argument 2 of 'damage': expected f32, got an integer of 2001 bits"),
        ((0, 0, 0.0, -(1 << 1024)), "argument 3 of 'damage': expected f64, got an integer of 1025 bits"),
    ):
        with pytest.raises(CallerError) as caught:
            program.damage(*arguments)
        assert str(caught.value) == message


def test_contexts(program: vm.Program) -> None:
    first, second = program.create_context(), program.create_context(fuel=1000)
    assert (first.count(), first.count(), second.count(), program.count()) == (1, 2, 1, 1)
    np.testing.assert_array_equal(second.main(X, Y), Z)
    first.close()
    with pytest.raises(CallerError, match="the program of 'main' is closed"):
        first.main(X, Y)
    with pytest.raises(CallerError, match="the program of 'count' is closed"):
        first.count()
    np.testing.assert_array_equal(second.main(X, Y), Z)
    second.close()


def test_contexts_run_in_parallel(program: vm.Program) -> None:
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        context = program.create_context()
        rng = np.random.default_rng(seed)
        try:
            for _ in range(50):
                x, y = rng.random(4, np.float32), rng.random(4, np.float32)
                np.testing.assert_array_equal(context.main(x, y), x * y + X)
        except BaseException as error:
            failures.append(error)
        context.close()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_device_memory_counts(tensors: bytes) -> None:
    program = vm.load(tensors, memory=100_000)
    program.grab(80_000)
    with pytest.raises(MemoryExceeded, match=r"allocation of 99\d\d\d bytes exceeds the limit of 100000 bytes"):
        program.grab(99_900)
    with pytest.raises(Trap, match="allocation of -1 bytes"):
        program.grab(-1)
    program.grab(80_000)
    with pytest.raises(MemoryExceeded, match=r"\n  at record pc 0x"):
        program.create_context(memory=10)


def test_fuel_holds_for_initializers() -> None:
    text = """program @p profile "reference" { func @f () -> () { ^a: br ^a } initializer program @f }"""
    with pytest.raises(FuelExhausted, match="at f pc 0x0"):
        vm.load(write(assemble(text)), fuel=100)


def test_statistics(program: vm.Program) -> None:
    load = program.statistics()["load"]
    assert load.pop("seconds") > sum(load.pop("stages").values()) > 0
    assert load == {
        "initializers": 2,
        "executables_created": 1,
        "command_buffers_recorded": 2,
        "dispatches": 0,
        "bytes_copied": 0,
    }
    for _ in range(2):
        program.main(X, Y)
    program.main(X, Y, out=np.zeros(4, np.float32))
    first, second, third = program.statistics()["calls"]
    assert first["allocations"] == 0  # the load made the slots
    assert {key: second[key] for key in second if key != "seconds"} == {
        "function": "main",
        "submissions": 1,
        "dispatches": 1,
        "waits": 1,
        "allocations": 0,
        "host_to_device_bytes": 32,
        "device_to_host_bytes": 16,
        "constant_bytes": 0,
        "executables_created": 0,
    }
    assert third["allocations"] == 0 and third["device_to_host_bytes"] == 16
    memory = program.statistics()["memory"]
    assert 32 + 48 <= memory["peak_device_bytes"] < 1000
    assert 0 < memory["peak_host_bytes"] < 20_000


def test_a_call_counts_what_is_its_own(program: vm.Program) -> None:
    """Neither what other functions did in between nor what a call that failed did."""
    for _ in range(3):
        program.main(X, Y)
        program.two(np.float32(1), np.zeros((0, 3), np.int8))
        with pytest.raises(CallerError):
            program.main(X, Y[:2])
    rows = program.statistics()["calls"]
    assert {(row["function"], row["submissions"], row["host_to_device_bytes"]) for row in rows} == {
        ("main", 1, 32),
        ("two", rows[1]["submissions"], rows[1]["host_to_device_bytes"]),
    }


def test_history_is_bounded(program: vm.Program) -> None:
    for _ in range(1100):
        program.main(X, Y)
    assert len(program.statistics()["calls"]) == 1000


def test_close(tensors: bytes, recwarn: pytest.WarningsRecorder) -> None:
    program = vm.load(tensors, device="reference")
    program.main(X, Y)
    program.close()
    with pytest.raises(CallerError, match="the program of 'main' is closed"):
        program.main(X, Y)
    with pytest.raises(CallerError, match="the program is closed"):
        program.put(X)
    program.close()
    assert not recwarn.list


def test_everything_goes_without_close(tensors: bytes, recwarn: pytest.WarningsRecorder) -> None:
    """Reference counts let go of the device; nothing is reported as leaked."""
    gc.disable()
    try:
        program = vm.load(tensors, device="reference")
        program.main(X, Y)
        function = program.main
        state = program.device.device_state
        del program
        np.testing.assert_array_equal(function(X, Y), Z)
        assert state.open_shares == 2
        del function
        assert state.open_shares == 0
        end = time.monotonic() + 20
        while not state.abandoned and time.monotonic() < end:
            time.sleep(0.005)
        assert state.abandoned and not state.owned
    finally:
        gc.enable()
    assert not recwarn.list


def test_open_device(tensors: bytes) -> None:
    with open_device("reference") as device:
        first, second = vm.load(tensors, device), vm.load(tensors, device)
        np.testing.assert_array_equal(first.main(second.put(X), Y), Z)
        assert device.statistics.submissions == 0
        with pytest.raises(CallerError, match="has its policy already"):
            vm.load(tensors, device, allow_native_code=True)
        first.close()
        second.close()
        assert device.leaks == ()


def test_no_program_for_a_device(tensors: bytes) -> None:
    with open_device("reference") as device:
        info = replace(device.info, formats=("something",), name="Odd")
    with pytest.raises(NoProgram) as caught:
        choose_program(read_module(tensors), info)
    assert str(caught.value) == (
        "no program of the module runs on device reference (Odd): spirv (wants spirv, the device runs something); "
        "reference (wants tensor-bytecode, the device runs something)"
    )


def test_unknown_device(tensors: bytes) -> None:
    with pytest.raises(HalError, match="no driver 'quantum'"):
        vm.load(tensors, "quantum")


def test_unreadable_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        vm.load(tmp_path / "missing.fb")
    (tmp_path / "short.fb").write_bytes(b"abc")
    with pytest.raises(ModuleError, match="not a module"):
        vm.load(tmp_path / "short.fb")


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (
            b"// what jax.jit(f).lower(x).as_text() gives\nmodule @jit_f {\n}\n",
            "the text of a program, which vm-compile",
        ),
        (b"#loc = loc(unknown)\nfunc.func @main() {\n  return\n}\n", "the text of a program, which vm-compile"),
        (b"ML\xefR\x0dMLIR21.0.0git\0", "MLIR bytecode, which vm-compile"),
        (b"PK\x03\x04" + bytes(20), "a zip archive; vm-pack unbundle takes the module out of a bundle"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "a pointer of Git LFS"),
    ],
)
def test_other_files_are_named(data: bytes, what: str) -> None:
    with pytest.raises(ModuleError) as refused:
        vm.load(data)
    assert str(refused.value).startswith(f"not a module: this is {what}")


def test_what_is_no_path() -> None:
    with pytest.raises(CallerError, match="compiler.compile makes one of a text"):
        vm.load("module @jit_f {\n}\n")
    with pytest.raises(TypeError, match="by its path or as bytes, not as FilePart"):
        vm.load(vm.FilePart("app.zip", 0, 10))  # type: ignore[arg-type]
