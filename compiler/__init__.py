"""The compiler: translates StableHLO to a module file, in phases whose IR can be printed as text.

    from orchestrion import compiler
    blob = compiler.compile(jax.jit(f).lower(x), targets=["spirv"])   # or a path, text, bytes, an exported function
    compiler.compile_to_file("model.mlir", "model.fb")

Everything that is wrong with a program is reported in one `CompileError`; a fault of the compiler is an
`InternalError`. Names are imported on first use: the child process that runs jaxlib's parser needs none of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .driver import Compilation, compile, compile_to_file
    from .errors import (
        ArgumentTypeError,
        ArgumentValueError,
        CompileError,
        Diagnostic,
        InternalError,
        ParseError,
        ScheduleWarning,
        TargetsError,
        TargetWarning,
    )
    from .placement import Report

__all__ = [
    "ArgumentTypeError", "ArgumentValueError", "Compilation", "CompileError", "Diagnostic", "InternalError",
    "ParseError", "Report", "ScheduleWarning", "TargetWarning", "TargetsError", "compile", "compile_to_file",
]  # fmt: skip

_HOMES = {"Compilation": "driver", "compile": "driver", "compile_to_file": "driver", "Report": "placement"}


def __getattr__(name: str) -> Any:
    if name in ("driver", "errors"):
        return import_module(f"{__name__}.{name}")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'errors')}"), name)
    globals()[name] = found
    return found
