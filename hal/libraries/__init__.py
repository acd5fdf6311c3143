"""Library functions that programs call by name: `register` them, or install a package with an entry point for them.

docs/library-calls.md says how to write one, and what a program may rely on.
"""

from .registry import Function, Spec, register

__all__ = ["Function", "Spec", "register"]
