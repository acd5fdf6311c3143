"""The call graph of a module."""

from __future__ import annotations

from orchestrion.compiler.ir.attributes import SymbolRef
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.dominance import closure
from orchestrion.compiler.stablehlo.ops.func import Call, Func


class CallGraph:
    """The functions of a module and the calls in each, in text order. Calls of undefined functions are omitted."""

    def __init__(self, module: Module) -> None:
        named = ((op.symbol, op) for op in module.block.of(Func))
        self.functions = {name: op for name, op in named if name is not None}
        self.calls: dict[Func, list[tuple[Call, Func]]] = {
            func: [
                (op, self.functions[callee.root])
                for op in func.walk(Call)
                if (callee := op.get_as("callee", SymbolRef)) is not None and callee.root in self.functions
            ]
            for func in self.functions.values()
        }

    def target(self, call: Operation) -> Func | None:
        """The function that a call names; None if the op is no call, or the function is undefined."""
        callee = call.get_as("callee", SymbolRef) if isinstance(call, Call) else None
        return None if callee is None else self.functions.get(callee.root)

    def reachable(self) -> set[Func]:
        """The public functions and all functions that they call, directly or indirectly."""
        public = [func for func in self.functions.values() if func.is_public]
        return closure(public, lambda func: [target for _, target in self.calls[func]])

    def callees_first(self) -> tuple[list[Func], list[Call]]:
        """All functions, each after those that it calls, and the calls that close a cycle."""
        order: list[Func] = []
        closing: list[Call] = []
        state: dict[Func, bool] = {}  # False: in progress, True: done
        for root in self.functions.values():
            if root in state:
                continue
            state[root] = False
            stack = [(root, iter(self.calls[root]))]
            while stack:
                func, rest = stack[-1]
                call, target = next(rest, (None, None))
                if call is None or target is None:
                    state[func] = True
                    order.append(func)
                    stack.pop()
                elif state.get(target) is False:
                    closing.append(call)
                elif target not in state:
                    state[target] = False
                    stack.append((target, iter(self.calls[target])))
        return order, closing
