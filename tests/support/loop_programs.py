"""Programs with loops on one device: compiled for its target alone, and closed together."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import pytest

from orchestrion import vm
from orchestrion.compiler import compile
from orchestrion.compiler.profiles import DEFAULT
from orchestrion.compiler.targets.target import target

#: device -> its target
TARGETS = {"opencl": "opencl", "vulkan": "spirv", "reference": "reference"}


class Programs:
    """Compiles and loads programs on a device. `close` closes all of them."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._loaded: list[vm.Program] = []

    def __call__(
        self, function: Any, *arguments: Any, machines: Sequence[str] = (DEFAULT,), **options: Any
    ) -> vm.Program:
        """A function of JAX. `options` are those of `vm.load`."""
        module = compile(jax.jit(function), *arguments, targets=[TARGETS[self.device]], machines=machines)
        return self.load(module, **options)

    def load(self, module: Any, **options: Any) -> vm.Program:
        self._loaded.append(vm.load(module, self.device, **options))
        return self._loaded[-1]

    def close(self) -> None:
        for program in self._loaded:
            program.close()


def change_machines(device: str, patch: pytest.MonkeyPatch, **fields: int) -> None:
    """Changes facts about all machines of a device's target, for later compilations."""
    made_for = target(TARGETS[device])
    patch.setattr(type(made_for), "machines", {name: replace(row, **fields) for name, row in made_for.machines.items()})


def submissions(program: vm.Program) -> int:
    """How often the last call of a program submitted work."""
    return int(program.statistics()["calls"][-1]["submissions"])
