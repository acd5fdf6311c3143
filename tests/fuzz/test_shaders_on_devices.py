"""Accepted shaders on Vulkan devices: guards around every object stay as they are, results are the interpreter's.

`python tests/fuzz/shader_run.py --device=vulkan --count=5000` runs more.
"""

import os
from collections.abc import Iterator

import guarded_shaders
import numpy as np
import pytest
from guarded_shaders import FENCE, Bench, GuardedGrower, case, interpret

from orchestrion.hal.errors import DriverUnavailable
from orchestrion.hal.vulkan import spirv_rules
from orchestrion.schema.spirv import STORAGE_CLASSES

COUNT = int(os.environ.get("ORCHESTRION_DEVICE_SHADERS", "40"))


@pytest.fixture(scope="module")
def lavapipe() -> Iterator[Bench]:
    try:
        bench = Bench("vulkan")
    except DriverUnavailable as error:
        pytest.skip(str(error))
    yield bench
    bench.close()


@pytest.fixture
def second(swiftshader: str) -> Iterator[Bench]:
    bench = Bench(swiftshader)
    yield bench
    bench.close()


def check(bench: Bench) -> None:
    wrong = {seed: said for seed in range(COUNT) if (said := bench.check(case(seed, bench.features)))}
    assert not wrong
    assert bench.ran == COUNT and bench.compared > 50 * COUNT


def test_on_the_first_device(lavapipe: Bench) -> None:
    check(lavapipe)


def test_without_robust_buffer_access_2(second: Bench) -> None:
    check(second)


def test_with_the_least_limits(least_vulkan: str) -> None:
    bench = Bench(least_vulkan)
    assert bench.features == {"robust"}
    check(bench)
    bench.close()


def test_a_difference_is_seen(lavapipe: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each known byte of the interpreter that is changed is one that the device does not have."""
    given = next(made for seed in range(COUNT) if interpret(made := case(seed, lavapipe.features)).comparable)
    assert not lavapipe.check(given)
    right = interpret(given)
    at = int(np.flatnonzero(right.known[-1])[0])
    right.buffers[-1][at] ^= 1
    monkeypatch.setattr("guarded_shaders.interpret", lambda given: right)
    assert lavapipe.check(given).startswith(f"differs in binding {len(given.buffers) - 1}")


def test_a_changed_guard_is_seen(lavapipe: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes behind a binding, and words of a guard array."""
    given = case(0, lavapipe.features)
    image, places = lavapipe.run(given)
    behind = sum(places[0])
    offset = places[-1][0] + places[-1][1] - 4
    for at, message in ((behind, "guard bytes"), (offset, "guard arrays")):
        changed = image.copy()
        changed[at] = changed[at] ^ 1
        monkeypatch.setattr(lavapipe, "run", lambda given, changed=changed: (changed, places))
        assert lavapipe.check(given).startswith(message)
    assert image[behind] == FENCE


class Overrunning(GuardedGrower):
    """Stores behind the end of its first array, once the guards are filled."""

    def load_input(self, name: str) -> int:
        array = self.arrays[0]
        if not self.forms.count("overrun"):
            self.forms.append("overrun")
            length = self.words.constant("u32", array.length)
            self.store(self.chain("Workgroup", array.kind, array.variable, length), self.words.constant(array.kind, 1))
        return super().load_input(name)


def test_a_store_behind_an_array_reaches_a_guard(lavapipe: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a checker that accepts it; so guards stand where wrong stores go."""
    workgroup = STORAGE_CLASSES["Workgroup"]
    monkeypatch.setitem(spirv_rules._REACHES, workgroup, lambda scope, variable, indices: variable.content.element)
    monkeypatch.setattr(guarded_shaders, "GuardedGrower", Overrunning)
    monkeypatch.setattr(guarded_shaders, "interpret", lambda given: guarded_shaders.Outcome([], [], False))
    said = [lavapipe.check(case(seed, lavapipe.features)) for seed in range(6)]
    assert sum(line.startswith("guard arrays") for line in said) >= 3, said
