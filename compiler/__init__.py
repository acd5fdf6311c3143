"""The compiler: StableHLO in, a module file out, through phases whose IR is text.

    from orchestrion import compiler
    blob = compiler.compile(jax.jit(f).lower(x), targets=["spirv"])   # or a path, text, bytes, an exported function
    compiler.compile_to_file("model.mlir", "model.fb")

What is wrong with a program comes as one `CompileError` with all of it; a fault of the compiler as `InternalError`.
"""

from .driver import Compilation, compile, compile_to_file
from .errors import CompileError, Diagnostic, InternalError, ParseError

__all__ = ["Compilation", "CompileError", "Diagnostic", "InternalError", "ParseError", "compile", "compile_to_file"]
