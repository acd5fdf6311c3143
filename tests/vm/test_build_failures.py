"""A driver that fails to build code gets the next variant of an executable, then the next program of the module."""

import logging
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orchestrion import compiler, vm
from orchestrion.hal.device import Device
from orchestrion.hal.policy import Policy
from orchestrion.hal.registry import open_device
from orchestrion.schema.lru_cache import LruCache
from orchestrion.vm import build_failures, parallel_builds

UNKNOWN, INCOMPLETE, NO_MEMORY, LOST = -13, 5, -2, -4
X = np.arange(-4, 4, dtype=np.int64) * 3_000_000_000


def code_of(*parts: Any) -> bytes:
    with jax.enable_x64(True):
        return compiler.compile(*parts, targets="spirv")


@pytest.fixture(scope="module")
def module() -> bytes:
    """An executable of two variants: with 64-bit integers and without."""
    return code_of(lambda x: x * x + 1, X)


@pytest.fixture
def device(needs_vulkan: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    monkeypatch.setattr(build_failures, "_found", LruCache())
    with open_device("vulkan") as opened:
        if "int64" not in opened.info.features:
            pytest.skip("the device has no 64-bit integers")
        yield opened


class Driver:
    """The functions of the driver that build code. `fails` says of SPIR-V words whether they fail, with `code`."""

    def __init__(self, device: Device, function: str, code: int, fails: Callable[[list[int]], bool]) -> None:
        backend: Any = device.device_state.backend
        self.failed = self.built = 0
        self._code, self._fails, self._words = code, fails, list[int]()
        create, build = backend.vk.vkCreateShaderModule, backend.vk.vkCreateComputePipelines

        def shader(handle: Any, info: Any, *rest: Any) -> int:
            self._words = [info.pCode[index] for index in range(info.codeSize // 4)]
            return self._result(function == "vkCreateShaderModule", create, handle, info, *rest)

        backend.vk.vkCreateShaderModule = shader
        backend.vk.vkCreateComputePipelines = lambda *rest: self._result(
            function == "vkCreateComputePipelines", build, *rest
        )

    def _result(self, here: bool, real: Callable[..., int], *arguments: Any) -> int:
        if here and self._fails(self._words):
            self.failed += 1
            return self._code
        self.built += here
        return real(*arguments)


def has_int64(words: list[int]) -> bool:
    """Whether SPIR-V has the capability Int64."""
    return any(words[at] == 2 << 16 | 17 and words[at + 1] == 11 for at in range(5, len(words) - 1))


def most_bindings(words: list[int]) -> int:
    """The greatest number of a binding of set 0 or 1, and one."""
    return max(
        [words[at + 3] + 1 for at in range(5, len(words) - 3) if words[at] == 4 << 16 | 71 and words[at + 2] == 33],
        default=0,
    )


@pytest.mark.parametrize("function", ["vkCreateShaderModule", "vkCreateComputePipelines"])
@pytest.mark.parametrize("code", [UNKNOWN, INCOMPLETE])
@pytest.mark.parametrize("build", ["eager", "lazy"])
def test_the_next_variant(
    function: str, code: int, build: Any, module: bytes, device: Device, caplog: pytest.LogCaptureFixture
) -> None:
    """It is built, runs, and is remembered; the failure is logged once."""
    driver = Driver(device, function, code, has_int64)
    with caplog.at_level(logging.WARNING, "orchestrion.vm"):
        for _ in range(3):
            with vm.load(module, device, build=build) as program:
                assert np.array_equal(program.main(X), X * X + 1)
                variants = program.placement().executables[0].variants
            device.executables.clear()
    assert driver.failed == 1 and driver.built >= 2
    assert [row.chosen for row in variants] == [False, True] and "the driver returned VK_" in variants[0].reason
    records = [row.getMessage() for row in caplog.records if row.name == "orchestrion.vm"]
    assert len(records) == 1 and records[0].startswith("vulkan (") and "the driver returned VK_" in records[0]


def test_no_variant(module: bytes, device: Device) -> None:
    """The error lists each variant with the driver's message and what to do. Nothing is remembered."""
    driver = Driver(device, "vkCreateComputePipelines", UNKNOWN, lambda _: True)
    said = (
        r"the driver of device vulkan \(.*\) builds no variant of executable \w+: "
        r"variant 0 \(int64\): building entry \w+: the driver returned VK_ERROR_UNKNOWN; "
        r"variant 1 \(no features\): building entry \w+: the driver returned VK_ERROR_UNKNOWN; "
        r"update the driver, or name another device \(--device=NAME\)"
    )
    with pytest.raises(vm.errors.BuildFailed, match=said) as caught:
        vm.load(module, device)
    assert isinstance(caught.value, vm.errors.DeviceError) and driver.failed == 2
    driver._fails = has_int64
    with vm.load(module, device) as program:
        assert np.array_equal(program.main(X), X * X + 1)


def test_an_imported_module_that_is_not_built_ends_the_load(module: bytes, device: Device) -> None:
    """The importing module has no other program for it."""
    driver = Driver(device, "vkCreateComputePipelines", UNKNOWN, lambda _: True)
    with pytest.raises(vm.errors.BuildFailed, match="builds no variant of executable") as caught:
        vm.load(module, device, modules={"other": module})
    assert driver.failed == 2 and caught.value.program is None


def test_attempts_are_limited(module: bytes, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_builds, "MAX_ATTEMPTS", 1)
    driver = Driver(device, "vkCreateComputePipelines", UNKNOWN, has_int64)
    with pytest.raises(vm.errors.BuildFailed, match="builds no variant"):
        vm.load(module, device)
    assert driver.failed == 1


@pytest.mark.parametrize(("code", "error"), [(NO_MEMORY, vm.errors.DeviceOutOfMemory), (LOST, vm.errors.DeviceLost)])
def test_other_failures_are_not_of_the_code(code: int, error: type[Exception], module: bytes, device: Device) -> None:
    """No memory and a lost device are errors at once."""
    driver = Driver(device, "vkCreateComputePipelines", code, has_int64)
    with pytest.raises(error):
        vm.load(module, device)
    assert driver.failed and not driver.built


def adam(p: Any, m: Any, v: Any, g: Any) -> Any:
    """One dispatch of seven buffers of the caller."""
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v


ARRAYS = [np.linspace(0.5, 1.5, 4096, dtype=np.float32) + n for n in range(4)]


def test_the_next_program(device: Device, caplog: pytest.LogCaptureFixture) -> None:
    """A driver that builds no code of many buffers gets the program of few; it is remembered."""
    module = code_of(adam, *ARRAYS)
    driver = Driver(device, "vkCreateComputePipelines", UNKNOWN, lambda words: most_bindings(words) > 4)
    with caplog.at_level(logging.WARNING, "orchestrion.vm"):
        for _ in range(2):
            with vm.load(module, device) as program:
                assert program.module.strings[program.module.programs[program.ordinal].profile] == "spirv_least"
                results = [np.asarray(one) for one in program.main(*ARRAYS)]
                assert [name for name, why in program.skipped if "VK_ERROR_UNKNOWN" in why] == ["spirv"]
                chosen = program.placement()
            device.executables.clear()
    assert driver.failed == 1 and chosen.program == program.name and "VK_ERROR_UNKNOWN" in chosen.programs[0].reason
    assert len([row for row in caplog.records if row.name == "orchestrion.vm"]) == 1
    for found, wanted in zip(results, adam(*ARRAYS), strict=True):
        np.testing.assert_allclose(found, np.asarray(wanted), rtol=1e-5)


def test_no_program(device: Device) -> None:
    """The error lists the variants of each program."""
    module = code_of(adam, *ARRAYS)
    driver = Driver(device, "vkCreateComputePipelines", UNKNOWN, lambda _: True)
    with pytest.raises(vm.errors.BuildFailed) as caught:
        vm.load(module, device)
    message = str(caught.value)
    assert message.count("builds no variant of executable") == 2 and message.count("update the driver") == 1
    assert driver.failed == 2


def test_recordings_are_not_built_again(device: Device) -> None:
    """A lazy build that finds no variant is the error of the call."""
    driver = Driver(device, "vkCreateComputePipelines", UNKNOWN, lambda _: True)
    with vm.load(code_of(lambda x: x * x + 1, X), device, build="lazy") as program:
        with pytest.raises(vm.errors.BuildFailed, match="builds no variant of executable"):
            program.main(X)
        driver._fails = has_int64
        assert np.array_equal(program.main(X), X * X + 1)


def test_source_that_the_compiler_of_opencl_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the log of the compiler."""
    from orchestrion.hal.errors import DriverUnavailable
    from orchestrion.hal.opencl import executable

    module = compiler.compile(lambda x: x * x + 1, ARRAYS[0], targets="opencl")
    monkeypatch.setattr(executable, "OPTIONS", (*executable.OPTIONS, "-D__kernel=unknown_word"))
    try:
        opened = open_device("opencl", policy=Policy(True))
    except DriverUnavailable as error:
        pytest.skip(str(error))
    with opened, pytest.raises(vm.errors.BuildFailed, match=r"variant 0 \(.*\): opencl-c does not build on") as caught:
        vm.load(module, opened)
    assert "unknown_word" in caught.value.message and caught.value.message.endswith("(--device=NAME)")
