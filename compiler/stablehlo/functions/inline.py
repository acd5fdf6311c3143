"""inline: replaces every call by a copy of the callee, and erases private functions.

A call of a function of another module becomes a `util.imported_call`. Callees are processed first, so that each body is
copied in its final form. The location of an inlined op is its place in the callee and the call (`callsite`). The size
of the result is computed before anything is copied: a program with more than `MAX_OPERATIONS` operations and more than
`MAX_GROWTH` times its own size is refused. So is a program with calls nested deeper than `MAX_CALL_DEPTH`, because
locations nest equally deep. Raises CompileError.
"""

from __future__ import annotations

from typing import Final

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.locations import Location, call_site
from orchestrion.compiler.ir.util import ImportedCall
from orchestrion.compiler.stablehlo.ops.func import Call, Func

from .calls import CallGraph

#: The limit on operations after inlining is the larger of MAX_OPERATIONS and MAX_GROWTH times those before. The largest
#: network in the tests has about 3,000; each takes a millisecond or more to compile.
MAX_OPERATIONS: Final = 250_000
MAX_GROWTH: Final = 16
MAX_CALL_DEPTH: Final = 200


def run(module: Module) -> None:
    inline_calls(module)


def inline_calls(module: Module) -> None:
    """Inlines all calls, and erases private functions. Raises CompileError if the program grows too large."""
    graph = CallGraph(module)
    order, closing = graph.callees_first()
    assert not closing, "the legality check refuses recursion"
    _check_growth(graph, order)
    for func in order:
        for call, target in graph.calls[func]:
            if target.is_declaration:
                _import(call, target)
            else:
                _inline(call, target)
    for func in order:
        if not func.is_public:
            func.erase()


def _check_growth(graph: CallGraph, order: list[Func]) -> None:
    """Raises CompileError if inlining makes a program too large. `order`: the functions, callees first."""
    sizes = {func: sum(1 for _ in func.walk()) for func in order}
    most = max(MAX_OPERATIONS, MAX_GROWTH * sum(sizes.values()))
    depths: dict[Func, int] = {}
    total = 0
    for func in order:
        sizes[func] += sum(sizes[target] for _, target in graph.calls[func])
        depths[func] = max((1 + depths[target] for _, target in graph.calls[func]), default=0)
        total += sizes[func]
        if total > most:
            raise _refusal(func, f"makes the program larger than {most} operations with its calls inlined")
        if depths[func] > MAX_CALL_DEPTH:
            raise _refusal(func, f"makes calls nested deeper than {MAX_CALL_DEPTH}")


def _refusal(func: Func, message: str) -> CompileError:
    return CompileError([Diagnostic(message, func.loc, f"func.func @{func.sym_name.value}")])


def _import(call: Call, target: Func) -> None:
    """Replaces a call of a function of another module, so that the declaration is no longer needed."""
    outputs = [value.type for value in call.results]
    made = Builder.before(call).build(ImportedCall, callee=target.sym_name, arguments=call.operands, outputs=outputs)
    call.replace_by(made.results)


def _inline(call: Call, target: Func) -> None:
    block = call.parent
    assert block is not None
    mapping: dict[Value, Value] = dict(zip(target.entry.arguments, call.operands, strict=True))
    places: dict[Location, Location] = {}
    *body, last = target.entry.ops
    for op in body:
        copy = op.clone(mapping)
        for inner in copy.walk():
            if inner.loc not in places:
                places[inner.loc] = call_site(inner.loc, call.loc)
            inner.loc = places[inner.loc]
        block.insert_before(copy, call)
    call.replace_by([mapping[value] for value in last.operands])
