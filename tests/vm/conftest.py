"""Assembles text, runs it without a device, and serves the native module `test`."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cpu_devices import best_level

from orchestrion.hal.device import Device
from orchestrion.hal.registry import open_device
from orchestrion.hal.semaphore import Fence, Semaphore
from orchestrion.schema import tensor_encoding
from orchestrion.schema.assembler import assemble
from orchestrion.schema.decoder import read_module
from orchestrion.schema.dtypes import BY_NAME as DTYPES
from orchestrion.schema.module import Module
from orchestrion.schema.tensor_bytecode import EntryCode
from orchestrion.schema.tensor_shapes import TensorType
from orchestrion.schema.writer import write
from orchestrion.vm.call import Call
from orchestrion.vm.context import Context
from orchestrion.vm.hal_module import HalModule
from orchestrion.vm.jit import translate
from orchestrion.vm.limits import Limits
from orchestrion.vm.linker import LinkedProgram, link
from orchestrion.vm.native import NativeModule, native, resolve
from orchestrion.vm.verifier import verify

PROGRAMS = Path(__file__).parent / "programs"


class Thing:
    """A reference type of a native module, whose objects are counted."""

    alive = 0

    def __init__(self) -> None:
        Thing.alive += 1

    def __del__(self) -> None:
        Thing.alive -= 1


class TestModule(NativeModule):
    """What assembled test programs import."""

    name = "test"
    types = {"test.thing": Thing}

    def __init__(self, device: Device) -> None:
        self.device = device
        self.fences: list[Semaphore] = []
        self.seen: list[Any] = []

    @native("add", "(i32, i64, f32, f64, any) -> (any, f64, f32, i64, i32)", nullable=(4,))
    def add(self, call: Call, a: int, b: int, c: float, d: float, e: object) -> tuple[Any, ...]:
        return e, d + 1, c + 1, b + 1, a + 1

    @native("sum", "(i32*) -> i32")
    def sum(self, call: Call, *values: int) -> int:
        return sum(values)

    @native("count", "(any, (i32, any)*) -> i32", nullable=(2,))
    def count(self, call: Call, first: object, *groups: Any) -> int:
        return len(groups) // 2

    @native("fence", "(i32) -> hal.fence")
    def fence(self, call: Call, later: int) -> Fence:
        """0: signalled already; 1: soon, by another thread; 2: when the test says so."""
        if not later:
            return Fence()
        semaphore = self.device.create_semaphore()
        if later == 1:
            threading.Timer(0.01, lambda: semaphore.signal(1)).start()
        else:
            self.fences.append(semaphore)
        return Fence([(semaphore, 1)])

    @native("thing", "() -> test.thing")
    def thing(self, call: Call) -> Thing:
        return Thing()

    @native("see", "(any) -> ()", nullable=(0,))
    def see(self, call: Call, value: object) -> None:
        self.seen.append((Thing.alive, value is None))

    @native("alive", "() -> i32")
    def alive(self, call: Call) -> int:
        return Thing.alive


class Assembled:
    """A program in text, linked."""

    def __init__(self, source: str, device: Device) -> None:
        self.data = write(assemble(source))
        self.module: Module = read_module(self.data)
        self.native = TestModule(device)
        hal = HalModule()
        verified = verify(self.module, 0)
        self.linked: LinkedProgram = link(self.module, 0, verified, (self.native, hal))
        self.native_functions = resolve(verified.imports, (self.native, hal))
        self.codes = {code.name: code for code in self.linked.codes}
        self.context = self.new_context()

    def new_context(self, **limits: Any) -> Context:
        return Context(self.linked, Limits(**limits))

    def call(self, name: str, *arguments: Any) -> Any:
        results = self.context.invoke(self.codes[name], arguments)
        return results[0] if len(results) == 1 else results

    def translate(self) -> set[str]:
        """Translate every function that can be, as happens to those that are called often; gives their names."""
        for code in self.linked.codes:
            code.translation = translate(code.decoded, code.parameters, code.zeros, self.native_functions)
        return {code.name for code in self.linked.codes if code.translation is not None}


@pytest.fixture(scope="session")
def device() -> Iterator[Device]:
    with open_device("reference") as opened:
        yield opened


@pytest.fixture(scope="session")
def assembled(device: Device) -> Callable[[str], Assembled]:
    """`assembled(source)`: the text of a module, ready to be called function by function."""
    return lambda source: Assembled(source, device)


@pytest.fixture(scope="session")
def thing() -> type[Thing]:
    return Thing


@pytest.fixture(scope="session")
def tensors() -> bytes:
    """The module of `modules/tensors.asm`: programs for `spirv`, which nobody can run, and for `reference`."""
    code = EntryCode(4)
    row = TensorType(DTYPES["f32"], (4,))
    x, y, c = (code.emit("load_input", (), binding, row) for binding in range(3))
    total = code.emit("add", (*code.emit("multiply", (*x, *y)), *c))
    code.emit("store_output", total, 3)
    source = (Path(__file__).parent / "modules" / "tensors.asm").read_text()
    return write(assemble(source.replace("{payload}", tensor_encoding.encode([code]).hex())))


@pytest.fixture(params=["reference", "cpu"])
def on_host_memory(request: pytest.FixtureRequest) -> Callable[[str], Any]:
    """Loads a text on each device that works on the host's memory."""
    if request.param == "cpu":
        pytest.importorskip("llvmlite")
        if not best_level():
            pytest.skip("the driver cpu has no device here")

    def load(text: str) -> Any:
        from orchestrion import compiler, vm  # few tests here need them

        module = compiler.compile(text, targets=[request.param], target_cpu=best_level())
        return vm.load(module, device=request.param, allow_native_code=True)

    return load
