"""Limits that a module declares in its attributes hold where they are tighter, and errors say who declared them."""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrion import compiler, vm
from orchestrion.hal.device import Device
from orchestrion.hal.errors import DriverUnavailable
from orchestrion.hal.policy import Policy
from orchestrion.hal.registry import open_device
from orchestrion.schema import attributes
from orchestrion.schema.assembler import assemble
from orchestrion.schema.container import open_bytes
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.trust.store import TrustStore
from orchestrion.schema.writer import write
from orchestrion.vm import load_limits
from orchestrion.vm.errors import BuildDeadlineExceeded, DeadlineExceeded, FuelExhausted, LimitError, MemoryExceeded
from orchestrion.vm.limits import Limits
from orchestrion.vm.load_limits import Declared, find_limits, tighten

EXAMPLES = Path(__file__).parents[2] / "examples"
DEVICES = ("reference", "opencl", "vulkan", "null")
IMPORTS = """
import @hal.allocate (i64) -> hal.buffer
import @hal.fence.create () -> hal.fence
"""
SPIN = "^a: br ^a"
WAIT = "%r0 = call_import @hal.fence.create() await %r0 return ()"
HOST, ON_DEVICE = (
    f"%l0 = i64.const 200000 %r0 = {how} return ()" for how in ("buffer.alloc %l0", "call_import @hal.allocate(%l0)")
)
NOTHING = "return ()"


def module(call: str = NOTHING, init: str = NOTHING, kind: str = "program", **limits: object) -> bytes:
    """A module whose export and initializer have these bodies; `limits` are declared, `_` standing for `-`."""
    programs = [
        f'program @{profile} profile "{profile}" {{ func @call () -> () {{ {call} }} func @init () -> () {{ {init} }} '
        f"initializer {kind} @init entry @call }}"
        for profile in ("reference", "spirv", "opencl")
    ]
    used = [line for line in IMPORTS.splitlines() if line.partition("@")[2].partition(" ")[0] in call + init]
    declared = [f'attribute "limits.{name.replace("_", "-")}" = "{value}"' for name, value in limits.items()]
    return write(assemble("\n".join((*declared, *used, "export @call", *programs))))


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrustStore:
    """An empty one: nothing was compiled here."""
    monkeypatch.setenv("ORCHESTRION_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ORCHESTRION_CACHE", "off")
    return TrustStore()


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    try:
        opened = open_device(request.param, policy=Policy())
    except DriverUnavailable as error:
        pytest.skip(str(error))
    with opened:
        yield opened
        assert opened.allocator.live_bytes == 0


#: body, declared limit, error, words
OVER: dict[str, tuple[str, dict[str, object], type[LimitError], str]] = {
    "fuel": (SPIN, {"fuel": 5000}, FuelExhausted, r"fuel of 5000, which the module declares \(limits\.fuel\)"),
    "deadline": (
        SPIN,
        {"deadline": 0.05},
        DeadlineExceeded,
        r"longer than 0\.05 s, which the module declares \(limits\.deadline\)",
    ),
    "waiting": (WAIT, {"deadline": 0.05}, DeadlineExceeded, r", which the module declares \(limits\.deadline\)"),
    "host memory": (
        HOST,
        {"memory": 100_000},
        MemoryExceeded,
        r"limit of 100000 bytes \([0-9]+ in use\), which the module declares \(limits\.memory\)",
    ),
    "device memory": (
        ON_DEVICE,
        {"memory": 100_000},
        MemoryExceeded,
        r"limit of 100000 bytes \([0-9]+ in use\), which the module declares \(limits\.memory\)",
    ),
}


@pytest.mark.parametrize("name", OVER)
def test_a_call_over_a_declared_limit_ends(device: Device, name: str) -> None:
    """Also of a trusted module, and whatever more the caller allows; the context is usable afterwards."""
    body, declared, error, words = OVER[name]
    program = vm.load(module(body, **declared), device, fuel=math.inf, deadline=100, memory=1 << 30)
    for _ in range(2):
        with pytest.raises(error, match=words):
            program.call()
    context = program.create_context(fuel=10**9)
    with pytest.raises(error, match=words):
        context["call"]()
    context.close()
    program.close()


@pytest.mark.parametrize("kind", ["program", "context"])
@pytest.mark.parametrize("name", OVER)
def test_an_initializer_over_a_declared_limit_ends(device: Device, name: str, kind: str) -> None:
    """By the limit of initializers, or that of calls where only that is declared."""
    body, declared, error, words = OVER[name]
    with pytest.raises(error, match=words):
        vm.load(module(init=body, kind=kind, **declared), device, load_limits=Limits(fuel=math.inf))
    of_load: dict[str, Any] = {f"load_{limit}": value for limit, value in declared.items()}
    with pytest.raises(error, match=words.replace(r"\(limits\.", r"\(limits\.load-")):
        vm.load(module(init=body, kind=kind, **of_load), device, load_limits=Limits(memory=math.inf))


def test_what_is_declared_for_initializers_does_not_limit_calls(device: Device) -> None:
    body = "%i0 = i32.const 3 %i1 = i32.const 1 ^a: %i0 = i32.sub %i0, %i1 br_if %i0, ^a, ^b ^b: return ()"
    program = vm.load(module(body, load_fuel=4), device)
    program.call()
    assert program.context.limits == Limits()
    program.close()
    with pytest.raises(FuelExhausted, match=r"limits\.load-fuel"):
        vm.load(module(init=body, load_fuel=4), device)


def test_a_submitted_call_names_it_too() -> None:
    """The tensor of a submitted call is copied within the context's memory."""
    blob = compiler.compile(
        (EXAMPLES / "simple_mul.mlir").read_text(),
        targets=["reference"],
        attributes={"limits.memory": "400000", "limits.deadline": "60"},
    )
    program = vm.load(blob)
    x = np.ones(4, np.float32)
    np.testing.assert_array_equal(program.simple_mul.submit(x, x).result(), x)
    program.context.memory.restrict(8, program.context.limits.origin("memory"))
    with pytest.raises(MemoryExceeded, match=r"limit of 8 bytes, which the module declares \(limits\.memory\)"):
        program.simple_mul.submit(x, x)
    program.close()


def test_a_submitted_call_that_waits_names_the_deadline() -> None:
    text = (EXAMPLES / "simple_mul.mlir").read_text()
    program = vm.load(compiler.compile(text, targets=["reference"], attributes={"limits.deadline": "0.05"}))
    x = np.ones(4, np.float32)
    future = program.simple_mul.submit(x, x, wait=[vm.Fence()])
    with pytest.raises(DeadlineExceeded, match=r"0\.05 s after submit, which the module declares \(limits\.deadline\)"):
        future.result()
    program.close()


def test_a_trusted_module_keeps_its_word(store: TrustStore) -> None:
    data = module(init=SPIN, load_fuel=1000)
    store.add(open_bytes(data).digest)
    with pytest.raises(FuelExhausted, match=r"fuel of 1000, which the module declares \(limits\.load-fuel\)\n"):
        vm.load(data)


def test_a_profiled_program_keeps_its_word() -> None:
    with pytest.raises(FuelExhausted, match=r"limits\.load-fuel"):
        vm.load(module(init=SPIN, load_fuel=1000), profiling=True)
    program = vm.load(module(SPIN, fuel=1000), profiling=True)
    with pytest.raises(FuelExhausted, match=r"limits\.fuel"):
        program.call()
    program.close()


def test_the_caller_may_ask_for_less(device: Device) -> None:
    program = vm.load(module(SPIN, fuel=5000), device, fuel=100)
    with pytest.raises(FuelExhausted, match=r"fuel of 100\n"):
        program.call()
    program.close()


def test_a_module_does_not_raise_a_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_limits, "FUEL", 1000)
    with pytest.raises(FuelExhausted, match="fuel of 1000; 1000 is the default of initializers"):
        vm.load(module(init=SPIN, load_fuel=10**15))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("fuel", "-1", "limits.fuel is '-1', a whole number from 0"),
        ("fuel", "1e3", "limits.fuel is '1e3'"),
        ("memory", "9223372036854775808", "limits.memory is '9223372036854775808'"),
        ("memory", " 5", "limits.memory is ' 5'"),
        ("memory", "٥", "limits.memory is"),
        ("deadline", "0", "limits.deadline is '0', a number of seconds above 0"),
        ("deadline", "nan", "limits.deadline is 'nan'"),
        ("load_deadline", "1.", "limits.load-deadline is '1.'"),
        ("build_deadline", "inf", "limits.build-deadline is 'inf'"),
        ("fuel", "9" * 10_000, "limits.fuel is '9999"),
    ],
)
def test_a_malformed_limit_is_refused(name: str, value: str, words: str) -> None:
    """A limit that cannot be read cannot be enforced."""
    with pytest.raises(ModuleError, match=words) as caught:
        vm.load(module(**{name: value}))
    assert len(str(caught.value)) < 200


def test_a_limit_of_a_newer_version_is_passed_over() -> None:
    vm.load(module(wonders=7)).close()


def test_which_limit_holds() -> None:
    """Given, default and declared together: the tightest, and only what the module gave is called declared."""
    declared = Declared(
        Limits(fuel=5, memory=50, declared=frozenset({"limits.fuel", "limits.memory"})),
        Limits(fuel=5, memory=70, declared=frozenset({"limits.fuel", "limits.load-memory"})),
        None,
    )
    defaults = Limits(fuel=10, deadline=1.0, memory=60)
    found = find_limits(None, Limits(), defaults, declared)
    assert found == (Limits(fuel=5, deadline=1.0, memory=60), {"deadline", "memory"})
    assert found.limits.declared == {"limits.fuel"}
    found = find_limits(Limits(memory=math.inf), Limits(fuel=3), None, declared)
    assert found == (Limits(fuel=3, memory=70), set())
    assert found.limits.declared == {"limits.load-memory"}
    calls = tighten(Limits(fuel=5, depth=7), declared.calls)
    assert (calls, calls.declared) == (Limits(fuel=5, memory=50, depth=7), {"limits.memory"})
    assert tighten(calls, load_limits.NOTHING_DECLARED.calls) is calls


def test_every_limit_of_the_table_is_enforced() -> None:
    """A row of the table that nothing reads would be a promise that nobody keeps."""
    data = module(**{name.replace("-", "_"): 7 for name in attributes.LIMITS})
    program = vm.load(data)
    declared = load_limits.declared_by(program.module)
    read = declared.calls.declared | declared.load.declared
    assert read | {"limits.build-deadline"} == {attributes.LIMITS_PREFIX + name for name in attributes.LIMITS}
    assert (declared.calls, declared.load, declared.build_deadline) == (Limits(7, 7, 7), Limits(7, 7, 7), 7)
    program.close()


@pytest.fixture
def built(needs_vulkan: None) -> bytes:
    """A module with device code that declares 10 microseconds for building it."""
    text = (EXAMPLES / "simple_mul.mlir").read_text()
    return compiler.compile(text, targets=["spirv"], attributes={"limits.build-deadline": "0.00001"})


def test_a_declared_build_deadline_ends_the_helper(
    built: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCHESTRION_HOME", str(tmp_path / "elsewhere"))
    words = r"build deadline of 1e-05 s: .*; the module declares it \(limits\.build-deadline\)"
    for deadline in (None, 100.0):
        with pytest.raises(BuildDeadlineExceeded, match=words):
            vm.load(built, "vulkan", build_deadline=deadline)


def test_a_declared_build_deadline_holds_in_this_process(built: bytes) -> None:
    """Where no helper is asked for, the executable with which the seconds exceed it ends the load."""
    words = r"longer than the build deadline of 1e-05 s that the module declares \(limits\.build-deadline\)"
    with pytest.raises(BuildDeadlineExceeded, match=words):
        vm.load(built, "vulkan")
    with pytest.raises(BuildDeadlineExceeded, match=words):
        vm.load(built, "vulkan", build_deadline=math.inf)


def test_a_sufficient_build_deadline_changes_nothing(needs_vulkan: None) -> None:
    text = (EXAMPLES / "simple_mul.mlir").read_text()
    blob = compiler.compile(text, targets=["spirv"], attributes={"limits.build-deadline": "100"})
    x = np.ones(4, np.float32)
    program = vm.load(blob, "vulkan")
    np.testing.assert_array_equal(program.simple_mul(x, x), x)
    program.close()


def test_the_page_lists_every_limit_that_may_be_declared() -> None:
    page = (
        (Path(__file__).parents[2] / "docs" / "limits.md").read_text().partition("## Limits that a module declares")[2]
    )
    rows = re.findall(r"^\| `limits\.([a-z-]+)` \| `--limit-([a-z-]+)` \|", page, re.MULTILINE)
    assert [name for name, _ in rows] == [flag for _, flag in rows] == list(attributes.LIMITS)
