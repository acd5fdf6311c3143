"""Renders `kernel` IR as OpenCL C 1.2 source text.

An entry is a kernel: a `__global` pointer per binding, in order, then a `uint` per parameter word. Bindings may overlap
if the sequencer allows it, hence no `restrict`. `c_text/body.py` renders the ops that C has, too.
"""

from collections.abc import Callable, Sequence

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.core import Block, Value
from orchestrion.compiler.kernel import dialect as k
from orchestrion.compiler.kernel.code.pack_lanes import takes_vectors
from orchestrion.compiler.kernel.signature import Signature
from orchestrion.compiler.targets.c_text.body import BodyText
from orchestrion.schema.dtypes import FLOAT

from .scalars import LANGUAGE

_GROUP = "get_group_id(0) + get_num_groups(0) * (get_group_id(1) + get_num_groups(1) * get_group_id(2))"
_LOCAL = "get_local_id(0) + get_local_size(0) * (get_local_id(1) + get_local_size(1) * get_local_id(2))"


#: suffix of the element types of kernels that run loops: in them, memory has values of several types in turn
ALIASING = "_aliasing"


class OpenCLBody(BodyText):
    """The statements of a block in OpenCL C."""

    language = LANGUAGE
    kernels = "OpenCL kernels"

    def workgroup_id(self, op: k.WorkgroupId) -> None:
        self._define(op.output, f"({self.type(op.output)})({_GROUP})")

    def local_id(self, op: k.LocalId) -> None:
        self._define(op.output, f"(uint)({_LOCAL})")

    def multiply_add(self, op: k.MultiplyAdd) -> None:
        x, y, z = (self.names[value] for value in op.operands)
        self._define(op.output, f"fma({x}, {y}, {z})")

    def load_vector(self, op: k.LoadVector) -> None:
        index, memory = self.names[op.index], self.names[op.binding]
        self._define(op.output, f"vload{k.length_of(op.output)}({index}, {memory})")

    def load_lanes(self, op: k.LoadLanes) -> None:
        lanes = k.length_of(op.output)
        self._define(op.output, f"vload{lanes}(0, {self.names[op.binding]} + {self.operand(op.index)})")

    def make_vector(self, op: k.Vector) -> None:
        names = list(dict.fromkeys(self.names[value] for value in op.values))
        lanes = names if len(names) == 1 else [self.names[value] for value in op.values]
        self._place(op.output, self.joined(op.output, lanes), compound=False)

    def lanes(self, op: k.Lanes) -> None:
        for lane, output in enumerate(op.outputs):
            self.names[output] = self.lane(op.vector, lane)

    def is_by_lanes(self, op: k.Scalar) -> bool:
        """All but arithmetic on floats."""
        dtypes = {k.dtype_of(value) for value in (*op.operands, op.output)}
        return k.length_of(op.output) > 1 and (len(dtypes) > 1 or k.dtype_of(op.output).kind != FLOAT)

    def lane(self, vector: Value, lane: int) -> str:
        return f"{self.operand(vector)}.s{lane:x}"

    def joined(self, vector: Value, lanes: Sequence[str]) -> str:
        return f"({self.type(vector)})({', '.join(lanes)})"

    def call(self, op: k.Call) -> None:
        if k.length_of(op.output) > 1 and not takes_vectors(op):
            message = f"no function on vectors computes {op.scalar.value} of {k.dtype_of(op.output)}"
            raise CompileError([Diagnostic(message, op.loc, op.name)])
        super().call(op)

    def store_vector(self, op: k.StoreVector) -> None:
        value, memory, index = (self.names[operand] for operand in op.operands)
        self.line(f"vstore{k.length_of(op.value)}({value}, {index}, {memory});")

    def shared(self, op: k.Shared) -> None:
        element = LANGUAGE.memory_type(k.dtype_of(op.output).name)
        self.line(f"__local {element} {self._new(op.output)}[{k.length_of(op.output)}];")

    def barrier(self, op: k.Barrier) -> None:
        self.line("barrier(CLK_LOCAL_MEM_FENCE);")


class KernelText(OpenCLBody):
    """The text of one entry."""

    def __init__(self, block: Block, signature: Signature, callee: Callable[[k.Call], str]) -> None:
        super().__init__(callee)
        self.signature = signature
        self.may_alias = any(isinstance(op, k.While) for op in block)
        self.names.update((binding, f"b{ordinal}") for ordinal, binding in enumerate(block.arguments))
        self.ops(block)

    def text(self) -> str:
        """The text of the kernel."""
        size = ", ".join(map(str, self.signature.workgroup_size))
        head = f"__kernel __attribute__((reqd_work_group_size({size})))\nvoid {self.signature.name}"
        return f"{head}({', '.join(self._arguments())})\n{{\n{super().text()}\n}}\n"

    def _arguments(self) -> list[str]:
        arguments, any_type = [], ALIASING if self.may_alias else ""
        for ordinal, binding in enumerate(self.signature.bindings):
            const = "" if binding.writable else "const "
            element = "uchar" if binding.dtype is None else LANGUAGE.memory_type(binding.dtype.name)
            arguments.append(f"__global {const}{element}{any_type}* b{ordinal}")
        return arguments + [f"uint p{ordinal}" for ordinal in range(self.signature.parameters)]
