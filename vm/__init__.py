"""The runtime: `load` a module, call its functions. `from orchestrion import vm; vm.load("model.fb").main(x)`."""

from .array import DeviceArray
from .context import Limits
from .errors import VmError
from .program import Program, load

__all__ = ["DeviceArray", "Limits", "Program", "VmError", "load"]
