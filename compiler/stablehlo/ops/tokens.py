"""Tokens: values without content, with which JAX orders callbacks into Python.

A token enters a program as an argument, passes through calls and control flow, and leaves as a result. Once no op with
an effect is left, all tokens can be removed. `drop_tokens` also removes them from signatures, so that callers do not
see them.
"""

from __future__ import annotations

from typing import Final

from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.types import is_token

from .base import rebuilt
from .func import Func, change_signature

#: Ops whose only purpose is to handle tokens.
ONLY_TOKENS: Final = frozenset({"stablehlo.after_all", "stablehlo.create_token", "stablehlo.optimization_barrier"})
#: Ops that pass tokens on.
PASS_ON_TOKENS: Final = ONLY_TOKENS | {
    "func.call", "func.return", "stablehlo.case", "stablehlo.if", "stablehlo.return", "stablehlo.while"
}  # fmt: skip


def has_token(op: Operation) -> bool:
    """Whether an operand or result is a token."""
    return any(is_token(value.type) for value in (*op.operands, *op.results))


def drop_tokens(module: Module) -> None:
    """Removes all tokens from the module. Ops that only handle tokens are erased."""
    ops = list(module.walk())
    for op in ops:
        if has_token(op):
            op.set_operands([value for value in op.operands if not is_token(value.type)])
    for op in ops:
        for block in op.inner_blocks():
            block.erase_arguments([argument.index for argument in block.arguments if is_token(argument.type)])
        if isinstance(op, Func):
            change_signature(op, lambda type: [] if is_token(type) else [type])
        elif any(is_token(result.type) for result in op.results):
            _rebuild(op)


def _rebuild(op: Operation) -> None:
    """Rebuilds the op without its token results; erases it if it has no others and only handles tokens."""
    kept = [result for result in op.results if not is_token(result.type)]
    if not kept and op.name in ONLY_TOKENS:
        op.erase()
        return
    made = Builder.before(op).insert(rebuilt(op, op.operands, [result.type for result in kept]))
    for old, new in zip(kept, made.results, strict=True):
        old.replace_by(new)
    op.erase()
