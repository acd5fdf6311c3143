"""The runtime: `load` a module, call its functions. `from orchestrion import vm; vm.load("model.fb").main(x)`."""

from typing import TYPE_CHECKING

from orchestrion.schema.child_process import freeze_support
from orchestrion.schema.errors import KeysError, ModuleError, Untrusted

from .array import DeviceArray
from .errors import (
    CallerError,
    CallerTypeError,
    CallerValueError,
    DeviceWarning,
    ParameterError,
    TrustWarning,
    VmError,
)
from .fence import Fence, Future
from .file_part import FilePart
from .limits import Limits
from .program import Program, load

if TYPE_CHECKING:
    from orchestrion.hal.residency import StreamingWarning
    from orchestrion.schema.trust.policy import TrustedKey, TrustPolicy

    from .predictor import Predictor

    __version__: str

__all__ = [
    "CallerError",
    "CallerTypeError",
    "CallerValueError",
    "DeviceArray",
    "DeviceWarning",
    "Fence",
    "FilePart",
    "Future",
    "KeysError",
    "Limits",
    "ModuleError",
    "ParameterError",
    "Predictor",
    "Program",
    "StreamingWarning",
    "TrustPolicy",
    "TrustWarning",
    "TrustedKey",
    "Untrusted",
    "VmError",
    "freeze_support",
    "load",
]


def __getattr__(name: str) -> object:
    """Import a name that few loads need when it is used."""
    if name == "__version__":
        from importlib.metadata import version

        return version("orchestrion")
    if name == "StreamingWarning":
        from orchestrion.hal import residency

        return residency.StreamingWarning
    if name == "Predictor":
        from .predictor import Predictor

        return Predictor
    if name not in ("TrustPolicy", "TrustedKey"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from orchestrion.schema.trust import policy as trust_policy

    return getattr(trust_policy, name)
