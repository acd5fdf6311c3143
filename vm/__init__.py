"""The runtime: `load` a module, call its functions. `from orchestrion import vm; vm.load("model.fb").main(x)`."""

from orchestrion.schema.child_process import freeze_support

from .array import DeviceArray
from .context import Limits
from .errors import VmError
from .fence import Fence, Future
from .program import Program, load

__all__ = ["DeviceArray", "Fence", "Future", "Limits", "Program", "VmError", "freeze_support", "load"]
