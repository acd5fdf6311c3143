"""The tables of OpenCL's and Vulkan's error codes: each existing code has a row, and the main codes have the right
error.
"""

import importlib

import pytest

from orchestrion.hal.errors import DeviceLost, DeviceOutOfMemory, HalError, InternalError
from orchestrion.schema.errors import ModuleError

#: VkResult -> why it has no row
NO_RESULT = {"VK_SUCCESS": "no failure", "VK_RESULT_MAX_ENUM": "no code, it only makes the enum 32 bits wide"}


def test_every_code_of_opencl_has_a_row() -> None:
    cl = pytest.importorskip("pyopencl")
    from orchestrion.hal.opencl.failures import BY_CODE, TABLE

    codes = {name: code for name, code in vars(cl.status_code).items() if isinstance(code, int) and code < 0}
    assert len(codes) > 60
    assert {name: BY_CODE[code].name for name, code in codes.items()} == {name: name for name in codes}
    assert set(BY_CODE) >= {*range(-19, 0), *range(-72, -29)}, "codes of cl.h that pyopencl does not know"
    assert len(BY_CODE) == len(TABLE) == len({row.name for row in TABLE}), "a code or a name stands twice"
    for row in TABLE:
        for kind in (row.error, row.waiting):
            assert kind is None or issubclass(kind, HalError | ModuleError)
        assert row.meaning and row.meaning == row.meaning.strip(". ")


@pytest.mark.parametrize(
    ("code", "enqueuing", "waiting"),
    [
        (-4, DeviceOutOfMemory, DeviceOutOfMemory),
        (-5, DeviceOutOfMemory, DeviceLost),
        (-6, DeviceOutOfMemory, DeviceOutOfMemory),
        (-11, ModuleError, ModuleError),
        (-36, DeviceLost, DeviceLost),
        (-50, InternalError, InternalError),
        (-9999, DeviceLost, DeviceLost),
        (-12345, InternalError, InternalError),
    ],
)
def test_a_code_of_opencl(code: int, enqueuing: type[Exception], waiting: type[Exception]) -> None:
    pytest.importorskip("pyopencl")
    from orchestrion.hal.opencl.failures import failure

    assert type(failure(code, "work")) is enqueuing
    assert type(failure(code, "work", waiting=True)) is waiting
    assert str(failure(code, "work")).startswith("work: ")


def test_every_code_of_vulkan_has_a_row() -> None:
    vk = pytest.importorskip("vulkan._vulkan", exc_type=(ImportError, OSError))
    from orchestrion.hal.vulkan.failures import TABLE

    names = set(vk.ffi.typeof("VkResult").elements.values())
    assert len(names) > 40
    assert set(TABLE) == names - set(NO_RESULT)
    assert all(meaning and issubclass(error, HalError) for meaning, error in TABLE.values())


def test_a_code_of_vulkan() -> None:
    failures = importlib.import_module("orchestrion.hal.vulkan.failures")
    assert type(failures.failure("VK_ERROR_DEVICE_LOST", "work")) is DeviceLost
    assert type(failures.failure("VK_ERROR_OUT_OF_DEVICE_MEMORY", "work")) is DeviceOutOfMemory
    assert type(failures.failure("VK_ERROR_UNKNOWN", "work")) is InternalError
    assert str(failures.failure("-77", "work")) == "work: Vulkan's code -77, which has no known meaning"
