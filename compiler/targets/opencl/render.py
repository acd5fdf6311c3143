"""Renders `kernel` IR as OpenCL C 1.2 source text.

An entry is a kernel: a `__global` pointer per binding, in order, then a `uint` per parameter word. A value is a
variable `v<n>`, or an expression at its only use (`BodyText._place`). Constants are written where they are used. The
results of a loop are its carried variables; the results of a branch are variables that are declared in front of it.
Bindings may overlap if the sequencer allows it, hence no `restrict`. `kernel.call` calls a function of `functions.py`.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.kernel import dialect as k
from orchestrion.compiler.kernel.signature import Signature
from orchestrion.compiler.targets.kernel_target import methods_of
from orchestrion.schema.dtypes import BOOL, FLOAT, SIGNED, UNSIGNED, DType

from .scalars import CALLED, MEMORY_TYPES, TYPES, expression, literal

INDENT = "  "
_GROUP = "get_group_id(0) + get_num_groups(0) * (get_group_id(1) + get_num_groups(1) * get_group_id(2))"
_LOCAL = "get_local_id(0) + get_local_size(0) * (get_local_id(1) + get_local_size(1) * get_local_id(2))"


#: most characters of an expression that is written at the use of its value
LONGEST = 60
_NAME = re.compile(r"[a-z]\w*", re.ASCII)


class BodyText:
    """The statements of a block. `arguments`: names of the arguments of the block; `callee`: returns the name of the
    function of a call.
    """

    def __init__(self, block: Block, arguments: Sequence[str], callee: Callable[[k.Call], str]) -> None:
        self.lines: list[str] = []
        #: value -> text: a name, a literal, or an expression
        self.names: dict[Value, str] = dict(zip(block.arguments, arguments, strict=True))
        #: values whose text needs parentheses as an operand
        self.compound: set[Value] = set()
        self.callee = callee
        self.depth = 1
        self.count = 0
        self._ops(block)

    def text(self) -> str:
        """The text of the statements."""
        return "\n".join(self.lines)

    # text

    def _operand(self, value: Value) -> str:
        """The text of a value inside an expression."""
        return f"({self.names[value]})" if value in self.compound else self.names[value]

    def _line(self, text: str) -> None:
        self.lines.append(INDENT * self.depth + text)

    def _new(self, value: Value) -> str:
        """A new name for a value."""
        self.names[value] = name = f"v{self.count}"
        self.count += 1
        return name

    def _define(self, value: Value, text: str) -> None:
        self._line(f"const {_type(value)} {self._new(value)} = {text};")

    def _place(self, value: Value, text: str, compound: bool = True) -> None:
        """Writes a pure value: a short expression at its only use, else a variable."""
        if len(text) > LONGEST or not _stands_alone(value):
            self._define(value, text)
            return
        self.names[value] = text
        if compound:
            self.compound.add(value)

    def _assign(self, targets: Sequence[str], values: Sequence[Value]) -> None:
        """Assigns all values at once. A value that reads another target is saved first."""
        sources = [self.names[value] for value in values]
        for position, source in enumerate(sources):
            if set(_NAME.findall(source)) & set(targets) - {targets[position]}:
                sources[position] = f"t{self.count}"
                self.count += 1
                self._line(f"const {_type(values[position])} {sources[position]} = {source};")
        for target, source in zip(targets, sources, strict=True):
            if target != source:
                self._line(f"{target} = {source};")

    # ops

    def _ops(self, block: Block) -> None:
        for op in block:
            if op.name not in _OPS:
                raise CompileError([Diagnostic("OpenCL kernels have no such op", op.loc, op.name)])
            _OPS[op.name](self, op)

    def scalar_op(self, op: k.Scalar) -> None:
        names = [self._operand(operand) for operand in op.operands]
        types = [k.dtype_of(operand) for operand in op.operands]
        if _is_by_lanes(op):
            self._define(op.output, f"({_type(op.output)})({', '.join(_by_lanes(op, names, types))})")
            return
        text = expression(op.primitive.name, names, types, k.dtype_of(op.output))
        if _is_product(op):
            self._define(op.output, text)
        else:
            self._place(op.output, text, op.primitive.name not in CALLED)

    def call(self, op: k.Call) -> None:
        names = [self.names[value] for value in op.values if not isinstance(value.defining_op, k.Constant)]
        self._place(op.output, f"{self.callee(op)}({', '.join(names)})", compound=False)

    def constant(self, op: k.Constant) -> None:
        self.names[op.output] = literal(op.bits, k.dtype_of(op.output))

    def workgroup_id(self, op: k.WorkgroupId) -> None:
        self._define(op.output, f"({TYPES[str(op.output.type)]})({_GROUP})")

    def local_id(self, op: k.LocalId) -> None:
        self._define(op.output, f"(uint)({_LOCAL})")

    def parameter(self, op: k.Parameter) -> None:
        self.names[op.output] = f"p{op.ordinal.value}"

    def load(self, op: k.Load | k.LoadShared) -> None:
        memory, index = op.operands
        byte = " != 0" if k.dtype_of(op.output).kind == BOOL else ""
        self._define(op.output, f"{self.names[memory]}[{self.names[index]}]{byte}")

    load_shared = load

    def load_vector(self, op: k.LoadVector) -> None:
        index, memory = self.names[op.index], self.names[op.binding]
        self._define(op.output, f"vload{k.length_of(op.output)}({index}, {memory})")

    def load_lanes(self, op: k.LoadLanes) -> None:
        lanes = k.length_of(op.output)
        self._define(op.output, f"vload{lanes}(0, {self.names[op.binding]} + {self._operand(op.index)})")

    def make_vector(self, op: k.Vector) -> None:
        names = list(dict.fromkeys(self.names[value] for value in op.values))
        lanes = names if len(names) == 1 else [self.names[value] for value in op.values]
        self._place(op.output, f"({_type(op.output)})({', '.join(lanes)})", compound=False)

    def lanes(self, op: k.Lanes) -> None:
        for lane, output in enumerate(op.outputs):
            self.names[output] = f"{self.names[op.vector]}.s{lane:x}"

    def store(self, op: k.Store | k.StoreShared) -> None:
        value, memory, index = (self.names[operand] for operand in op.operands)
        self._line(f"{memory}[{index}] = {value};")

    store_shared = store

    def store_vector(self, op: k.StoreVector) -> None:
        value, memory, index = (self.names[operand] for operand in op.operands)
        self._line(f"vstore{k.length_of(op.value)}({value}, {index}, {memory});")

    def shared(self, op: k.Shared) -> None:
        element = MEMORY_TYPES[k.dtype_of(op.output).name]
        self._line(f"__local {element} {self._new(op.output)}[{k.length_of(op.output)}];")

    def barrier(self, op: k.Barrier) -> None:
        self._line("barrier(CLK_LOCAL_MEM_FENCE);")

    def loop(self, op: k.For) -> None:
        index, *carried = op.body.block.arguments
        targets = []
        for value, start, result in zip(carried, op.start, op.outputs, strict=True):
            targets.append(self._new(value))
            self.names[result] = self.names[value]
            self._line(f"{_type(value)} {self.names[value]} = {self.names[start]};")
        i = self._new(index)
        lower, upper, step = (self.names[value] for value in (op.lower, op.upper, op.step))
        self._line(f"for ({TYPES[str(index.type)]} {i} = {lower}; {i} < {upper}; {i} += {step}) {{")
        self._arm(op.body.block, targets)
        self._line("}")

    def branch(self, op: k.If) -> None:
        for result in op.outputs:
            self._line(f"{TYPES[str(result.type)]} {self._new(result)};")
        targets = [self.names[result] for result in op.outputs]
        self._line(f"if ({self.names[op.condition]}) {{")
        self._arm(op.yes.block, targets)
        if op.no.block.first is not op.no.block.last or targets:
            self._line("} else {")
            self._arm(op.no.block, targets)
        self._line("}")

    def _arm(self, block: Block, targets: Sequence[str]) -> None:
        self.depth += 1
        self._ops(block)
        assert isinstance(block.last, k.Yield)
        self._assign(targets, block.last.values)
        self.depth -= 1

    def nothing(self, op: Operation) -> None:
        """The end of an entry or a region. The op that opened it closes it."""


class KernelText(BodyText):
    """The text of one entry."""

    def __init__(self, block: Block, signature: Signature, callee: Callable[[k.Call], str]) -> None:
        self.signature = signature
        super().__init__(block, [f"b{ordinal}" for ordinal in range(len(block.arguments))], callee)

    def text(self) -> str:
        """The text of the kernel."""
        size = ", ".join(map(str, self.signature.workgroup_size))
        head = f"__kernel __attribute__((reqd_work_group_size({size})))\nvoid {self.signature.name}"
        return f"{head}({', '.join(self._arguments())})\n{{\n{super().text()}\n}}\n"

    def _arguments(self) -> list[str]:
        arguments = []
        for ordinal, binding in enumerate(self.signature.bindings):
            const = "" if binding.writable else "const "
            element = "uchar" if binding.dtype is None else MEMORY_TYPES[binding.dtype.name]
            arguments.append(f"__global {const}{element}* b{ordinal}")
        return arguments + [f"uint p{ordinal}" for ordinal in range(self.signature.parameters)]


def _stands_alone(value: Value) -> bool:
    """Whether a value is used once, in its own block, and once in the text of its user.

    Narrow integers always become variables, because C computes them as `int`. So do the operands of `?:`: Clang would
    make branches of longer expressions, and the loop over work items would not be vectorized.
    """
    dtype = k.dtype_of(value)
    if len(value.uses) != 1 or (dtype.kind in (SIGNED, UNSIGNED) and dtype.bits < 32):
        return False
    ((user, position),) = value.uses
    if isinstance(user, k.Lanes) or (isinstance(user, k.For) and value not in user.start):
        return False
    if isinstance(user, k.Scalar) and (_is_by_lanes(user) or user.primitive.name == "select" and position > 0):
        return False
    return user.parent is value.parent_block


def _is_product(op: k.Scalar) -> bool:
    """Whether a compiler that contracts within expressions would merge the rounding of this op with that of a sum."""
    return op.primitive.name == "multiply" and k.dtype_of(op.output).kind == FLOAT


def _type(value: Value) -> str:
    """The type of a scalar or vector value. OpenCL C has no vectors of bool."""
    lanes, name = k.length_of(value), k.dtype_of(value).name
    return TYPES[name] if lanes == 1 else f"{MEMORY_TYPES[name]}{lanes}"


def _is_by_lanes(op: k.Scalar) -> bool:
    """Whether an op on vectors is written lane by lane: all but arithmetic on floats."""
    dtypes = {k.dtype_of(value) for value in (*op.operands, op.output)}
    return k.length_of(op.output) > 1 and (len(dtypes) > 1 or k.dtype_of(op.output).kind != FLOAT)


def _by_lanes(op: k.Scalar, names: Sequence[str], types: Sequence[DType]) -> Iterator[str]:
    """The texts of the lanes of an op on vectors of these names."""
    for lane in range(k.length_of(op.output)):
        yield expression(op.primitive.name, [f"{name}.s{lane:x}" for name in names], types, k.dtype_of(op.output))


_OPS = methods_of(BodyText)
