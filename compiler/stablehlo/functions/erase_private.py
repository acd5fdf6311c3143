"""erase-private: erases private functions that no public function calls, directly or indirectly."""

from __future__ import annotations

from orchestrion.compiler.ir.builtin import Module

from .calls import CallGraph


def run(module: Module) -> None:
    graph = CallGraph(module)
    used = graph.reachable()
    for func in graph.functions.values():
        if func not in used:
            func.erase()
