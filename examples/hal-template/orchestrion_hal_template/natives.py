"""A native module: Python functions that a module's bytecode may call if whoever loads it names the native module."""

import math
from typing import Any

from orchestrion.vm.native import NativeModule, native


class TemplateModule(NativeModule):
    name = "template"

    @native("hypotenuse", "(f64, f64) -> f64", pure=True)
    def hypotenuse(self, call: Any, x: float, y: float) -> float:
        return math.hypot(x, y)
