"""Functions that programs call by name: `register` them, or install a package that has an entry point for them.

How to write one, and what a program may rely on, is in docs/library-calls.md.
"""

from .registry import Function, Spec, register

__all__ = ["Function", "Spec", "register"]
