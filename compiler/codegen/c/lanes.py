"""Renders a segment for some neighbouring invocations, the lanes, so that compilers of C use vectors.

Compilers vectorize innermost loops. Loops and branches that all lanes take alike therefore stand outside, and the ops
between them are *runs*: loops over the lanes. A value whose form is known (`targets/cpu/forms.py`) is computed once, by
its base; other values that a run hands on are arrays with an element per lane. Loops that sum up floats use vectors
instead (`sums.py`).
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import MutableMapping, Sequence

from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.kernel import dialect as k
from orchestrion.compiler.targets.cpu.forms import Forms
from orchestrion.compiler.targets.cpu.workgroup import is_used_outside

from .body import CBody
from .language import LANGUAGE, memory_name
from .sums import Sums, is_sum

#: the number of a lane in a run
LANE = "j"
#: most elements between those of neighbouring lanes, for which an access is a pointer and a multiple of the lane
MOST_STRIDE = 1 << 16


class Lanes:
    """The code of ops for the lanes of `forms`. `names` of the body have the bases of values of known form; `arrays`:
    value -> its element of a lane.
    """

    def __init__(self, body: CBody, forms: Forms, arrays: MutableMapping[Value, str]) -> None:
        self.body, self.forms, self.arrays = body, forms, arrays
        self.pending: list[Operation] = []
        #: stores at places apart, behind the pending ops. GCC vectorizes no loop with such a store
        self.scattered: list[Operation] = []

    def ops(self, ops: Sequence[Operation]) -> None:
        """Renders ops; the last run is pending."""
        for op in ops:
            self._op(op)

    def _op(self, op: Operation) -> None:
        match op:
            case k.For() if op.outputs and is_sum(op, self.forms):
                Sums(self).loop(op)
            case k.For() if self._is_alike(op.lower, op.upper, op.step):
                self._loop(op)
            case k.If() if self._is_alike(op.condition):
                self._branch(op)
            case k.Constant() | k.Yield():
                self.body.ops([op])
            case k.Load() | k.LoadShared() if self._is_alike(op.operands[1]):
                if self.scattered or any(k.writes(inner) for outer in self.pending for inner in outer.walk()):
                    self.end_run()
                self.body.ops([op])
            case k.Store() | k.StoreShared() if self.forms[op.operands[2]].stride is None:
                self.scattered.append(op)
            case k.Scalar() | k.Call() | k.MultiplyAdd() if self.forms[op.output].stride is not None:
                self.body.ops([op])
            case _:
                if self.scattered and not isinstance(op, k.Scalar | k.Call | k.MultiplyAdd):
                    self.end_run()
                self.pending.append(op)

    def _is_alike(self, *values: Value) -> bool:
        return all(self.forms[value].stride == 0 for value in values)

    # runs

    def end_run(self, assigned: Sequence[tuple[str, Value]] = ()) -> None:
        """Writes the pending ops as a loop over the lanes, which then assigns values to elements of arrays."""
        run, self.pending = self.pending, []
        scattered, self.scattered = self.scattered, []
        if run or assigned:
            self._write_run(run, assigned, f"LANES({LANE}, {self.forms.width})")
        if scattered:
            self._write_run(scattered, (), f"for (int {LANE} = 0; {LANE} < {self.forms.width}; ++{LANE})")

    def _write_run(self, run: Sequence[Operation], assigned: Sequence[tuple[str, Value]], head: str) -> None:
        body, inside = self.body, set(run)
        kept = [value for op in run for value in op.results if is_used_outside(value, inside)]
        places: dict[Value, str] = {value: self.array(value) for value in kept}
        pointers = [self._pointer(op) for op in run]
        names: MutableMapping[Value, str] = ChainMap({}, body.names)
        with body.braces(head), body.scope(names):
            operands = [value for op in run for inner in op.walk() for value in inner.operands]
            for value in dict.fromkeys([*operands, *(value for _, value in assigned)]):
                self._name(value)
            body.forms = self.forms
            for op, pointer in zip(run, pointers, strict=True):
                self._run_op(op, pointer)
            body.forms = None
            given = [names[value] for _, value in assigned]
            for number, (_, value) in enumerate(assigned if len(assigned) > 1 else ()):
                body.line(f"const {body.type(value)} y{number} = {given[number]};")
                given[number] = f"y{number}"
            for (place, _), text in zip(assigned, given, strict=True):
                body.line(f"{place} = {text};")
            for value, place in places.items():
                body.line(f"{place} = {names[value]};")
        self.arrays.update(places)

    def _name(self, value: Value) -> None:
        """Names a value from outside of a run in it."""
        names = self.body.names
        if value in self.arrays and value not in names:
            name = self.body.new_name()
            self.body.line(f"const {self.body.type(value)} {name} = {self.arrays[value]};")
            names[value] = name
        elif value in names and k.is_carried(value.type) and not isinstance(value.defining_op, k.Constant):
            stride = self._stride(value)
            if stride:
                type = LANGUAGE.types[k.dtype_of(value).name]
                wide = LANGUAGE.types[f"ui{max(k.dtype_of(value).bits, 32)}"]
                at = LANE if stride == 1 else f"{stride} * {LANE}"
                names[value] = f"({type})(({wide})({names[value]}) + ({wide})({at}))"

    def _stride(self, value: Value) -> int | None:
        """The stride of a value as a signed number."""
        stride, bits = self.forms[value].stride, k.dtype_of(value).bits
        return None if stride is None else (stride + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)

    def _pointer(self, op: Operation) -> tuple[str, str] | None:
        """For a load or a store at neighbouring places: a pointer to that of lane 0, and the place of a lane."""
        if not isinstance(op, k.Load | k.LoadShared | k.Store | k.StoreShared):
            return None
        memory, index = op.operands[-2:]
        stride = self._stride(index)
        if not stride or abs(stride) > MOST_STRIDE:
            return None
        name, writes = self.body.new_name(), k.writes(op)
        element = k.dtype_of(op.operands[0] if writes else op.results[0])
        type = f"{'' if writes else 'const '}{memory_name(element)} *"
        self.body.line(f"{type}const {name} = {self.body.names[memory]} + {self.body.operand(index)};")
        return name, LANE if stride == 1 else f"{stride} * {LANE}"

    def _run_op(self, op: Operation, pointer: tuple[str, str] | None) -> None:
        if pointer is None:
            self.body.ops([op])
            return
        names = self.body.names
        self.body.names = ChainMap(dict(zip(op.operands[-2:], pointer, strict=True)), names)
        self.body.ops([op])
        found = self.body.names
        self.body.names = names
        names.update((value, found[value]) for value in op.results)

    def array(self, value: Value) -> str:
        """Declares an array for a value of the lanes; returns its element."""
        name = self.body.new_name()
        self.body.line(f"{self.body.type(value)} {name}[{self.forms.width}];")
        return f"{name}[{LANE}]"

    # what all lanes do alike

    def _declare(self, values: Sequence[Value]) -> tuple[list[str], list[Value]]:
        """Declares variables for values of known form, arrays for others. Returns those names and these values."""
        variables, arrays = [], []
        for value in values:
            if self.forms[value].stride is None:
                self.arrays[value] = self.array(value)
                arrays.append(value)
            else:
                variables.append(self.body.variable(value))
        return variables, arrays

    def _hand_on(self, targets: Sequence[Value], values: Sequence[Value]) -> None:
        """Assigns all values at once to variables and arrays."""
        pairs = list(zip(targets, values, strict=True))
        self.end_run([(self.arrays[to], value) for to, value in pairs if self.forms[to].stride is None])
        known = [(self.body.names[to], value) for to, value in pairs if self.forms[to].stride is not None]
        self.body.assign([name for name, _ in known], [value for _, value in known])

    def _arm(self, block: Block, targets: Sequence[Value]) -> None:
        self.body.depth += 1
        self.ops(list(block))
        self._hand_on(targets, k.yielded(block))
        self.body.depth -= 1
        self.body.line("}")

    def _loop(self, op: k.For) -> None:
        carried = op.body.block.arguments[1:]
        self._declare(carried)
        self._hand_on(carried, op.start)
        for value, result in zip(carried, op.outputs, strict=True):
            holder: MutableMapping[Value, str] = self.arrays if value in self.arrays else self.body.names
            holder[result] = holder[value]
        self.body.line(f"{self.loop_head(op)} {{")
        self._arm(op.body.block, carried)

    def loop_head(self, op: k.For) -> str:
        """The head of a loop that all lanes run alike."""
        index = op.body.block.arguments[0]
        type, name = LANGUAGE.types[str(index.type)], self.body.new_name()
        lower, upper, step = (self.body.operand(value) for value in (op.lower, op.upper, op.step))
        self.body.names[index] = name
        return f"for ({type} {name} = {lower}; {name} < {upper}; {name} += {step})"

    def _branch(self, op: k.If) -> None:
        self._declare(op.outputs)
        self.end_run()
        self.body.line(f"if ({self.body.names[op.condition]}) {{")
        self._arm(op.yes.block, op.outputs)
        if op.no.block.first is not op.no.block.last or op.outputs:
            self.body.line("else {")
            self._arm(op.no.block, op.outputs)
