"""Programs compute the same on a Vulkan device with any quirk of a driver."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

from orchestrion import vm
from orchestrion.hal.quirks import QUIRKS_VARIABLE
from orchestrion.schema.quirks import QUIRKS

#: programs with booleans, 64-bit integers, workgroup memory and long fills
SAMPLE = ("booleans", "sort_int64", "reduce_booleans", "updates_in_loop", "mlp")


@pytest.mark.sampled
@pytest.mark.parametrize("quirk", [row.name for row in QUIRKS if row.api == "vulkan" and not row.refused] + ["off"])
@pytest.mark.parametrize("name", SAMPLE)
def test_a_program(
    quirk: str,
    name: str,
    needs_vulkan: None,
    monkeypatch: pytest.MonkeyPatch,
    cases: dict[str, Any],
    module_of: Callable[[Any], bytes],
    check: Callable[[Any, list[Any]], None],
) -> None:
    monkeypatch.setenv(QUIRKS_VARIABLE, quirk)
    case = cases[name]
    with vm.load(module_of(case), "vulkan") as program:
        check(case, [np.asarray(one) for one in jax.tree.leaves(program.main(*case.arguments()))])
