"""Shaders that need much stack are refused above the limit, and run below it, on lavapipe and SwiftShader.

SwiftShader builds code whose frame would exceed 512 KiB without an error, and crashes when it is dispatched. So the
shaders run in processes of their own.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import deep_shaders
import numpy as np
import pytest

from orchestrion.hal.backend import Entry
from orchestrion.hal.registry import open_device
from orchestrion.hal.vulkan.spirv_limits import LIMITS
from orchestrion.hal.vulkan.spirv_stack import count_slots, is_shallow
from orchestrion.schema.errors import ModuleError

Assembler = Callable[[str], bytes]
LIMIT = LIMITS["stack"].most

#: shader -> steps that no other limit refuses. SwiftShader crashed on shifts and loops, and on as many vectors whose
#: indices were computed again behind the barrier; numbers ran.
ABOVE = {"vectors": 2_000, "shifts": 13_000, "numbers": 19_900, "loops": 190}
#: shader -> the most steps that are accepted
ACCEPTED = {"vectors": 761, "numbers": 7_994, "shifts": 2_284, "loops": 51}


def slots(payload: bytes) -> int:
    return count_slots(np.frombuffer(payload, "<u4").tolist())[0]


@pytest.fixture(params=["vulkan", "swiftshader"])
def device(request: pytest.FixtureRequest, needs_vulkan: None) -> str:
    return str(request.getfixturevalue("swiftshader")) if request.param == "swiftshader" else "vulkan"


@pytest.mark.parametrize("name", ABOVE)
def test_code_that_takes_too_much_stack_is_refused(name: str, device: str, spirv_assembler: Assembler) -> None:
    payload = spirv_assembler(deep_shaders.text(name, ABOVE[name]))
    entries = (Entry("main", (("readwrite", 4), ("readwrite", 16)), 0, (deep_shaders.INVOCATIONS, 1, 1)),)
    with open_device(device) as opened, pytest.raises(ModuleError, match=f"slots of stack in a function, .* {LIMIT}"):
        opened.create_executable("spirv", memoryview(payload), entries)


@pytest.mark.parametrize("name", ACCEPTED)
def test_the_steps_below_are_at_the_limit(name: str, spirv_assembler: Assembler) -> None:
    assert slots(spirv_assembler(deep_shaders.text(name, ACCEPTED[name]))) <= LIMIT
    assert slots(spirv_assembler(deep_shaders.text(name, ACCEPTED[name] + 1))) > LIMIT


#: shader, device, part of the steps. The rest of these would take long to build: SwiftShader 20 s for all vectors,
#: lavapipe minutes for all numbers and shifts. Where the part is 1 the shader is at the limit.
RUNS = (
    ("vectors", "vulkan", 1.0), ("vectors", "swiftshader", 0.3), ("numbers", "vulkan", 0.1),
    ("numbers", "swiftshader", 1.0), ("shifts", "vulkan", 0.1), ("shifts", "swiftshader", 1.0),
    ("loops", "vulkan", 1.0), ("loops", "swiftshader", 1.0),
)  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "device", "part"), RUNS, indirect=["device"])
def test_code_up_to_the_limit_runs(name: str, device: str, part: float, spirv_assembler: Assembler) -> None:
    steps = int(ACCEPTED[name] * part)
    payload = spirv_assembler(deep_shaders.text(name, steps))
    command = [sys.executable, str(Path(deep_shaders.__file__)), device]
    done = subprocess.run(command, input=payload, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    assert json.loads(done.stdout) == deep_shaders.expected(name, steps)


def test_wide_values_count_by_their_components(spirv_assembler: Assembler) -> None:
    """A vector of four 64-bit numbers counts as eight; its load and its store take two slots per number."""
    wide = deep_shaders.text("vectors", 1).replace(
        "%u32 = OpTypeInt 32 0\n", "%u32 = OpTypeInt 32 0\n%u64 = OpTypeInt 64 0\n"
    )
    once = wide.replace("%vector = OpTypeVector %u32 4", "%vector = OpTypeVector %u64 4")
    assert slots(spirv_assembler(once)) - slots(spirv_assembler(wide)) == 2 * 2 * 4


@pytest.mark.parametrize("name", deep_shaders.SHADERS)
def test_what_the_quick_look_passes_is_within_the_limit(name: str, spirv_assembler: Assembler) -> None:
    """The quick estimate is never below the count of the pass over the instructions."""
    payload = spirv_assembler(deep_shaders.text(name, 20))
    words = np.frombuffer(payload, "<u4")
    assert not is_shallow(words[words > 0xFFFF] & 0xFFFF, slots(payload) - 1)
