"""Renders `kernel` IR as OpenCL C 1.2 source text.

An entry is a kernel: a `__global` pointer per binding, in order, then a `uint` per parameter word. Bindings may overlap
if the sequencer allows it, hence no `restrict`. `c_text/body.py` renders the ops that C has, too.
"""

from collections.abc import Callable

from orchestrion.compiler.ir.core import Block
from orchestrion.compiler.kernel import dialect as k
from orchestrion.compiler.kernel.signature import Signature
from orchestrion.compiler.targets.c_text.body import BodyText

from .scalars import LANGUAGE

_GROUP = "get_group_id(0) + get_num_groups(0) * (get_group_id(1) + get_num_groups(1) * get_group_id(2))"
_LOCAL = "get_local_id(0) + get_local_size(0) * (get_local_id(1) + get_local_size(1) * get_local_id(2))"


class OpenCLBody(BodyText):
    """The statements of a block in OpenCL C."""

    language = LANGUAGE

    def workgroup_id(self, op: k.WorkgroupId) -> None:
        self._define(op.output, f"({self.type(op.output)})({_GROUP})")

    def local_id(self, op: k.LocalId) -> None:
        self._define(op.output, f"(uint)({_LOCAL})")

    def load_vector(self, op: k.LoadVector) -> None:
        name = f"t{self.count}"
        self.count += 1
        index, memory = self.names[op.index], self.names[op.binding]
        self._line(f"const {self.type(op.outputs[0])}{k.VECTOR} {name} = vload{k.VECTOR}({index}, {memory});")
        for lane, output in enumerate(op.outputs):
            self._define(output, f"{name}.s{lane}")

    def load_lanes(self, op: k.LoadLanes) -> None:
        shape = k.vector_shape(op.output.type)
        assert shape is not None
        self._define(op.output, f"vload{shape[0]}(0, {self.names[op.binding]} + {self._operand(op.index)})")

    def vector(self, op: k.Vector) -> None:
        names = list(dict.fromkeys(self.names[value] for value in op.values))
        lanes = names if len(names) == 1 else [self.names[value] for value in op.values]
        self._place(op.output, f"({self.type(op.output)})({', '.join(lanes)})", compound=False)

    def lanes(self, op: k.Lanes) -> None:
        for lane, output in enumerate(op.outputs):
            self.names[output] = f"{self.names[op.vector]}.s{lane:x}"

    def add_vectors(self, op: k.AddVectors) -> None:
        self._place(op.output, f"{self._operand(op.x)} + {self._operand(op.y)}")

    def multiply_vectors(self, op: k.MultiplyVectors) -> None:
        self._define(op.output, f"{self._operand(op.x)} * {self._operand(op.y)}")

    def store_vector(self, op: k.StoreVector) -> None:
        values = ", ".join(self.names[value] for value in op.values)
        four = f"({self.type(op.values[0])}{k.VECTOR})({values})"
        self._line(f"vstore{k.VECTOR}({four}, {self.names[op.index]}, {self.names[op.binding]});")

    def shared(self, op: k.Shared) -> None:
        shape = k.shared_shape(op.output.type)
        assert shape is not None
        self._line(f"__local {LANGUAGE.memory_type(shape[1].name)} {self._new(op.output)}[{shape[0]}];")

    def barrier(self, op: k.Barrier) -> None:
        self._line("barrier(CLK_LOCAL_MEM_FENCE);")


class KernelText(OpenCLBody):
    """The text of one entry."""

    def __init__(self, block: Block, signature: Signature, callee: Callable[[k.Call], str]) -> None:
        super().__init__(callee)
        self.signature = signature
        self.names.update((binding, f"b{ordinal}") for ordinal, binding in enumerate(block.arguments))
        self.ops(block)

    def text(self) -> str:
        """The text of the kernel."""
        size = ", ".join(map(str, self.signature.workgroup_size))
        head = f"__kernel __attribute__((reqd_work_group_size({size})))\nvoid {self.signature.name}"
        return f"{head}({', '.join(self._arguments())})\n{{\n{super().text()}\n}}\n"

    def _arguments(self) -> list[str]:
        arguments = []
        for ordinal, binding in enumerate(self.signature.bindings):
            const = "" if binding.writable else "const "
            element = "uchar" if binding.dtype is None else LANGUAGE.memory_type(binding.dtype.name)
            arguments.append(f"__global {const}{element}* b{ordinal}")
        return arguments + [f"uint p{ordinal}" for ordinal in range(self.signature.parameters)]
