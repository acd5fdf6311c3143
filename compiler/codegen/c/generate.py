"""Renders the program for target `cpu` as C99."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrion.compiler.codegen.subject import Subject
from orchestrion.compiler.errors import CompileError, Diagnostic


def generate(subject: Subject, name: str, options: Mapping[str, str]) -> dict[str, str | bytes]:
    """The files of a program. Raises CompileError for each op that has no C."""
    program = subject.program("cpu")
    raise CompileError([Diagnostic("has no C", op.loc, op.name) for op in program.body.block])
