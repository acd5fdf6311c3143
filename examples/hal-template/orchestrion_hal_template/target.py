"""The compiler target of the profile `template`: translates kernel IR to instructions of `template-lanes`."""

import struct
from collections.abc import Sequence

from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.kernel import dialect as k
from orchestrion.compiler.kernel.machine import Machine, MachineKind
from orchestrion.compiler.kernel.signature import signature_of
from orchestrion.compiler.sequencer.ll_seq import Entry, Executable
from orchestrion.compiler.targets.kernel_target import KernelTarget
from orchestrion.compiler.targets.target import Payload
from orchestrion.schema.dtypes import BY_NAME, DType

from .bytecode import MAGIC, NAMES, VERSION
from .declarations import PROFILE

NUMBERS = {name: number for number, name in enumerate(NAMES)}
#: a kind of machine that the package adds: an invocation computes four columns of a dot
WIDE = MachineKind("NumPy with wide invocations", {PROFILE.name: Machine(simd=4, accumulators=4, cached=False)})


class TemplateTarget(KernelTarget):
    name = PROFILE.name
    api_version = (1, 0)
    machines = {"cpu": Machine(simd=1, accumulators=1, cached=False)}

    def serialize(self, executable: Operation) -> Payload:
        assert isinstance(executable, Executable)
        entries = [entry for entry in executable.body.block if isinstance(entry, Entry)]
        signatures = [signature_of(entry) for entry in entries]
        words = [VERSION, len(entries)]
        for entry, signature in zip(entries, signatures, strict=True):
            words += [signature.parameters, *signature.workgroup_size]
            words += _Writer(entry.body.block, signature.parameters).words()
        features = frozenset[str]().union(*[signature.features for signature in signatures])
        shared = max(signature.shared_bytes for signature in signatures)
        return Payload(MAGIC + struct.pack(f"<{len(words)}I", *words), features, shared)


class _Writer:
    """Writes the words of one entry."""

    def __init__(self, block: Block, parameters: int) -> None:
        self.block = block
        self.places: dict[Value, int] = {}  #: the register of a scalar, or the number of a binding or shared array
        self.types = [BY_NAME["ui32"]] * (2 + parameters)  #: workgroup, invocation, parameters; then the results
        self.arrays: list[tuple[DType, int]] = []
        self.code: list[int] = []

    def words(self) -> list[int]:
        self.places = {binding: number for number, binding in enumerate(self.block.arguments)}
        self.ops(self.block)
        self.emit("end")
        arrays = [word for dtype, length in self.arrays for word in (dtype.code, length)]
        return [len(self.types), *[dtype.code for dtype in self.types], len(self.arrays), *arrays, *self.code]

    def emit(self, op: str, *operands: int) -> None:
        self.code += [NUMBERS[op] | len(operands) << 16, *operands]

    def new(self, dtype: DType) -> int:
        self.types.append(dtype)
        return len(self.types) - 1

    def define(self, value: Value) -> int:
        self.places[value] = self.new(k.dtype_of(value))
        return self.places[value]

    def constant(self, bits: int, place: int) -> int:
        self.emit("constant", place, bits & 0xFFFFFFFF, bits >> 32)
        return place

    def ops(self, block: Block) -> None:
        for op in block:
            places = [self.places[value] for value in op.operands]
            match op:
                case k.Constant():
                    self.constant(op.bits, self.define(op.output))
                case k.Parameter():
                    self.places[op.output] = 2 + op.ordinal.value
                case k.WorkgroupId() | k.LocalId():
                    wide = str(op.output.type) == "ui64"
                    self.emit("convert" if wide else "move", self.define(op.output), isinstance(op, k.LocalId))
                case k.Load() | k.LoadShared():
                    memory, index = places
                    self.emit("load", self.define(op.output), index, memory)
                case k.Store() | k.StoreShared():
                    value, memory, index = places
                    self.emit("store", value, index, memory)
                case k.Shared():
                    self.shared(op)
                case k.For():
                    self.loop(op)
                case k.If():
                    self.branch(op)
                case k.Scalar():
                    self.scalar(op, places)
                case k.Barrier() | k.Yield() | k.Return():
                    pass  # lanes run in lockstep, and the caller ends the block
                case _:
                    raise CompileError(f"target {PROFILE.name} has no {op.name}")

    def shared(self, op: k.Shared) -> None:
        shape = k.shared_shape(op.output.type)
        assert shape is not None
        self.places[op.output] = len(self.block.arguments) + len(self.arrays)
        self.arrays.append((shape[1], shape[0]))

    def scalar(self, op: k.Scalar, places: Sequence[int]) -> None:
        """An op of `schema.scalars`. It computes a defined value for the operands that its `unchecked_` form leaves
        undefined.
        """
        name = op.primitive.name.removeprefix("unchecked_")
        if name == "trunc":
            self.truncate(op.output, places[0])
        else:
            self.emit(name, self.define(op.output), *places)

    def truncate(self, output: Value, x: int) -> None:
        """`x < 0 ? ceil(x) : floor(x)`, because `schema.scalars` has no `trunc`."""
        dtype = k.dtype_of(output)
        zero, up, down, negative = (self.new(kind) for kind in (dtype, dtype, dtype, BY_NAME["i1"]))
        self.emit("ceil", up, x)
        self.emit("floor", down, x)
        self.emit("compare_lt", negative, x, self.constant(0, zero))
        self.emit("select", self.define(output), negative, up, down)

    def loop(self, op: k.For) -> None:
        index, *carried = op.body.block.arguments
        for value, start, output in zip(carried, op.start, op.outputs, strict=True):
            self.emit("move", self.define(value), self.places[start])
            self.places[output] = self.places[value]
        bounds = [self.places[value] for value in (op.lower, op.upper, op.step)]
        self.emit("for", self.define(index), *bounds)
        self.arm(op.body.block, [self.places[value] for value in carried])
        self.emit("end")

    def branch(self, op: k.If) -> None:
        """Two loops: the first runs once if the condition is true, the second once if it is false."""
        word = BY_NAME["ui32"]
        zero, one = self.constant(0, self.new(word)), self.constant(1, self.new(word))
        times, others, index = self.new(word), self.new(word), self.new(word)
        self.emit("select", times, self.places[op.condition], one, zero)
        self.emit("select", others, self.places[op.condition], zero, one)
        targets = [self.define(value) for value in op.outputs]
        for block, count in ((op.yes.block, times), (op.no.block, others)):
            self.emit("for", index, zero, count, one)
            self.arm(block, targets)
            self.emit("end")

    def arm(self, block: Block, targets: Sequence[int]) -> None:
        """A block whose results are moved into these registers, all at the same time."""
        self.ops(block)
        assert isinstance(block.last, k.Yield)
        sources = [self.places[value] for value in block.last.values]
        for place, source in enumerate(sources):
            if source in targets and source != targets[place]:
                sources[place] = self.new(self.types[source])
                self.emit("move", sources[place], source)
        for target, source in zip(targets, sources, strict=True):
            if target != source:
                self.emit("move", target, source)


TARGET = TemplateTarget()
