"""Renders `kernel` IR as SPIR-V: one function per entry, structured control flow, and the ABI of `schema/spirv.py`.

Every float instruction, comparisons too, is decorated NoContraction, so that the device rounds as often as the program.
Bindings are decorated Aliased, since the sequencer may place a result over an operand. If memory has values of several
types in turn, as in kernels that run loops, they are also Volatile: NVIDIA's compiler exchanges accesses of different
types to one place. An i1 is a byte in a buffer and a bool everywhere else.

Float zeros are not written as constants. Mesa's gallivm (lavapipe) folds x * 0 to 0, x + 0 to x and x / 0 to anything,
and ignores NaN, infinities and signs. A zero is computed from a condition that is false but unknown to the compiler.
"""

from collections.abc import Callable, Sequence

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.core import Block, BlockArgument, Operation, Value
from orchestrion.compiler.kernel import dialect as k
from orchestrion.compiler.kernel.methods import methods_of
from orchestrion.compiler.kernel.signature import Signature
from orchestrion.schema.dtypes import BOOL, BY_NAME, FLOAT, DType
from orchestrion.schema.spirv import (
    BUILTINS,
    EXT_BY_NAME,
    MODE_LOCAL_SIZE,
    MODEL_GLCOMPUTE,
    RELAXED,
    SCOPE_DEVICE,
    SCOPE_WORKGROUP,
    WORKGROUP_MEMORY,
)

from .assembler import Assembler
from .scalars import instruction

WORD, BYTE = BY_NAME["ui32"], BY_NAME["ui8"]


class ModuleVariables:
    """Variables that the entries of a module share: buffers by binding, built-in inputs, the parameter block."""

    def __init__(self, assembler: Assembler, parameters: int) -> None:
        self.a = assembler
        self.parameters = parameters
        self._made: dict[object, int] = {}

    def buffer(self, ordinal: int, dtype: DType, writable: bool, lanes: int = 1, volatile: bool = False) -> int:
        """The storage buffer at a binding as a runtime array of the type, or of vectors of it."""
        content = self._array(dtype, lanes)
        key = (ordinal, content, writable, volatile)
        if key not in self._made:
            variable = self._made[key] = self.a.variable("StorageBuffer", content)
            self.a.decorate(variable, "DescriptorSet", 0)
            self.a.decorate(variable, "Binding", ordinal)
            self.a.decorate(variable, "Aliased")
            if volatile:
                self.a.decorate(variable, "Volatile")
            if not writable:
                self.a.decorate(variable, "NonWritable")
        return self._made[key]

    def _array(self, dtype: DType, lanes: int) -> int:
        """The struct around a runtime array."""
        self.a.in_buffers(dtype)
        array = self.a.once("OpTypeRuntimeArray", self.a.vector(dtype, lanes))
        if array not in self._made:
            struct = self._made[array] = self.a.once("OpTypeStruct", array)
            self.a.decorate(array, "ArrayStride", lanes * dtype.itemsize)
            self.a.decorate(struct, "Block")
            self.a.decorate_member(struct, 0, "Offset", 0)
        return self._made[array]

    def builtin(self, name: str, content: int) -> int:
        """A built-in input of that type."""
        if name not in self._made:
            variable = self._made[name] = self.a.variable("Input", content)
            self.a.decorate(variable, "BuiltIn", BUILTINS[name])
        return self._made[name]

    def parameter_block(self) -> int:
        if "parameters" not in self._made:
            struct = self.a.once("OpTypeStruct", *[self.a.scalar(WORD)] * self.parameters)
            self.a.decorate(struct, "Block")
            for member in range(self.parameters):
                self.a.decorate_member(struct, member, "Offset", 4 * member)
            self._made["parameters"] = self.a.variable("PushConstant", struct)
        return self._made["parameters"]


class FunctionWords:
    """Emits one entry."""

    def __init__(self, assembler: Assembler, variables: ModuleVariables, signature: Signature) -> None:
        self.a = assembler
        self.variables = variables
        self.signature = signature
        self.ids: dict[Value, int] = {}
        #: vector -> its lanes
        self.vectors: dict[Value, list[int]] = {}
        self.inputs: dict[int, None] = {}
        self.label = 0
        self.false = 0

    def emit(self, block: Block) -> None:
        void = self.a.once("OpTypeVoid")
        function_type = self.a.once("OpTypeFunction", void)
        function = self.a.new()
        self.a.add("OpFunction", void, function, 0, function_type)
        self._begin(self.a.new())
        if any(_makes_floats(op) for op in block.walk()):
            self.false = self._hidden_false()
        self._ops(block)
        self.a.add("OpReturn")
        self.a.add("OpFunctionEnd")
        self.a.add("OpEntryPoint", MODEL_GLCOMPUTE, function, self.signature.name, *self.inputs)
        self.a.add("OpExecutionMode", function, MODE_LOCAL_SIZE, *self.signature.workgroup_size)

    # instructions

    def _begin(self, label: int) -> None:
        self.a.add("OpLabel", label)
        self.label = label

    def _make(self, name: str, type_id: int, *operands: int) -> int:
        """An instruction with a result."""
        made = self.a.new()
        if name.startswith("Op"):
            self.a.add(name, type_id, made, *operands)
        else:
            self.a.add("OpExtInst", type_id, made, self.a.extended(), EXT_BY_NAME[name].code, *operands)
        return made

    def _word(self, value: int) -> int:
        return self.a.constant(WORD, value)

    def _ids(self, op: Operation) -> list[int]:
        return [self.ids[operand] for operand in op.operands]

    # zeros

    def _hidden_false(self) -> int:
        """Whether the x of the workgroup equals the number of workgroups: always false, but unknown to the compiler."""
        vector = self.a.once("OpTypeVector", self.a.scalar(WORD), 3)
        (x, *_), (nx, *_) = (self._components(name, vector, WORD) for name in ("WorkgroupId", "NumWorkgroups"))
        return self._make("OpIEqual", self.a.once("OpTypeBool"), x, nx)

    def _zero(self, dtype: DType) -> int:
        """A zero that is no constant."""
        one = {32: 0x3F800000, 64: 0x3FF0000000000000}[dtype.bits] if dtype.kind == FLOAT else 1
        return self._make(
            "OpSelect", self.a.scalar(dtype), self.false, self.a.constant(dtype, one), self.a.constant(dtype, 0)
        )

    # ops

    def _ops(self, block: Block) -> None:
        for op in block:
            if op.name not in _OPS or isinstance(op, k.For) and any(k.is_vector(value.type) for value in op.start):
                raise CompileError([Diagnostic("SPIR-V kernels have no such op", op.loc, op.name)])
            _OPS[op.name](self, op)

    def scalar_op(self, op: k.Scalar) -> None:
        if k.is_scalar(op.output.type):
            self.ids[op.output] = self._applied(op, self._ids(op))
            return
        lanes = zip(*(self.vectors[operand] for operand in op.operands), strict=True)
        self.vectors[op.output] = [self._applied(op, list(operands)) for operands in lanes]

    def _applied(self, op: k.Scalar, operands: list[int]) -> int:
        """The result of a scalar op on these operands."""
        subject, result = k.dtype_of(op.operands[-1]), k.dtype_of(op.output)
        name = instruction(op.primitive.name, subject, result)
        if name is None:
            return operands[0]
        if name in _TO_FLOAT and not isinstance(op.operands[0].defining_op, k.Load | k.Lanes):
            operands = [self._make("OpIAdd", self.a.scalar(subject), operands[0], self._zero(subject))]
        if name == "OpSConvert" and subject.bits == 32:
            return self._sign_extended(operands[0], subject, result)
        if name == "RoundEven" and subject.bits == 64:
            return self._rounded_to_even(operands[0], subject)
        if name == "OpSelect" and (arm := _shared_arm(op)):
            operands[arm] = self._hidden(operands[arm], result)
        floats = FLOAT in (subject.kind, result.kind) and name not in ("OpBitcast", "OpSelect")
        make = self._exact if floats else self._make
        return make(name, self.a.scalar(result), *operands)

    def _sign_extended(self, value: int, narrow: DType, wide: DType) -> int:
        """32 bits as 64, by way of an unsigned number. Mesa (22.3) moves a comparison with a constant in front of such
        an `OpSConvert` and computes it wrongly.
        """
        higher = self._make("OpBitwiseXor", self.a.scalar(narrow), value, self.a.constant(narrow, 1 << 31))
        extended = self._make("OpUConvert", self.a.scalar(wide), higher)
        return self._make("OpISub", self.a.scalar(wide), extended, self.a.constant(wide, 1 << 31))

    def _rounded_to_even(self, value: int, dtype: DType) -> int:
        """A 64-bit float, rounded by adding and subtracting 2^52, above which floats have no fraction. Mesa (22.3)
        rounds ties of `RoundEven` down on processors without AVX-512. Zeros, NaN and large values stay as they are.
        """
        number, truth = self.a.scalar(dtype), self.a.once("OpTypeBool")
        magic = self.a.constant(dtype, 0x4330000000000000)
        size = self._exact("FAbs", number, value)
        rounded = self._exact("OpFSub", number, self._exact("OpFAdd", number, size, magic), magic)
        below = self._exact("OpFOrdLessThan", truth, value, self._zero(dtype))
        signed = self._make("OpSelect", number, below, self._exact("OpFNegate", number, rounded), rounded)
        some = self._exact("OpFOrdGreaterThan", truth, size, self._zero(dtype))
        small = self._exact("OpFOrdLessThan", truth, size, magic)
        return self._make("OpSelect", number, self._make("OpLogicalAnd", truth, some, small), signed, value)

    def _hidden(self, value: int, dtype: DType) -> int:
        """A float that the driver does not recognise as the same value: its bits, with those of an unknown zero."""
        bits = BY_NAME[f"ui{dtype.bits}"]
        word, number = self.a.scalar(bits), self.a.scalar(dtype)
        same = self._make("OpBitwiseOr", word, self._make("OpBitcast", word, value), self._zero(bits))
        return self._make("OpBitcast", number, same)

    def _exact(self, name: str, result: int, *operands: int) -> int:
        made = self._make(name, result, *operands)
        self.a.decorate(made, "NoContraction")
        return made

    def multiply_add(self, op: k.MultiplyAdd) -> None:
        """A product and a sum that the device may contract."""
        number, (x, y, z) = self.a.scalar(k.dtype_of(op.output)), self._ids(op)
        self.ids[op.output] = self._make("OpFAdd", number, self._make("OpFMul", number, x, y), z)

    def constant(self, op: k.Constant) -> None:
        dtype = k.dtype_of(op.output)
        if not _is_float_zero(op):
            self.ids[op.output] = self.a.constant(dtype, op.bits)
            return
        zero = self._zero(dtype)
        self.ids[op.output] = self._make("OpFNegate", self.a.scalar(dtype), zero) if op.bits else zero

    def workgroup_id(self, op: k.WorkgroupId) -> None:
        """x + nx * (y + ny * z), in the index type."""
        dtype = k.dtype_of(op.output)
        index, vector = self.a.scalar(dtype), self.a.once("OpTypeVector", self.a.scalar(WORD), 3)
        x, y, z = self._components("WorkgroupId", vector, dtype)
        nx, ny, _ = self._components("NumWorkgroups", vector, dtype)
        plane = self._make("OpIAdd", index, y, self._make("OpIMul", index, ny, z))
        self.ids[op.output] = self._make("OpIAdd", index, x, self._make("OpIMul", index, nx, plane))

    def _components(self, name: str, vector: int, dtype: DType) -> list[int]:
        whole = self._input(name, vector)
        words = [self._make("OpCompositeExtract", self.a.scalar(WORD), whole, axis) for axis in range(3)]
        return words if dtype is WORD else [self._make("OpUConvert", self.a.scalar(dtype), word) for word in words]

    def _input(self, name: str, content: int) -> int:
        variable = self.variables.builtin(name, content)
        self.inputs[variable] = None
        return self._make("OpLoad", content, variable)

    def local_id(self, op: k.LocalId) -> None:
        self.ids[op.output] = self._input("LocalInvocationIndex", self.a.scalar(WORD))

    def parameter(self, op: k.Parameter) -> None:
        self.ids[op.output] = self._parameter(op.ordinal.value)

    def _parameter(self, ordinal: int) -> int:
        word = self.a.scalar(WORD)
        pointer = self.a.pointer("PushConstant", word)
        place = self._make("OpAccessChain", pointer, self.variables.parameter_block(), self._word(ordinal))
        return self._make("OpLoad", word, place)

    def _element(self, binding: Value, index: Value, dtype: DType, lanes: int = 1) -> tuple[int, int]:
        """The type of an element in a buffer, or of a vector, and a pointer to it. `index` counts such."""
        assert isinstance(binding, BlockArgument)
        memory, use = BYTE if dtype.kind == BOOL else dtype, self.signature.bindings[binding.index]
        buffer = self.variables.buffer(use.place, memory, use.writable, lanes, use.retyped)
        content = self.a.vector(memory, lanes)
        place = self._place(binding, index, lanes * memory.itemsize)
        pointer = self.a.pointer("StorageBuffer", content)
        return content, self._make("OpAccessChain", pointer, buffer, self._word(0), place)

    def _place(self, binding: Value, index: Value, item: int) -> int:
        """The index of an element or a vector of `item` bytes in the binding of the device: it is behind the offset of
        a shared one, which is a multiple of 512 bytes.
        """
        assert isinstance(binding, BlockArgument)
        word = self.signature.bindings[binding.index].offset
        if word is None:
            return self.ids[index]
        dtype = k.dtype_of(index)
        shifted = self._make(
            "OpShiftRightLogical", self.a.scalar(WORD), self._parameter(word), self._word(item.bit_length() - 1)
        )
        if dtype is not WORD:
            shifted = self._make("OpUConvert", self.a.scalar(dtype), shifted)
        return self._make("OpIAdd", self.a.scalar(dtype), self.ids[index], shifted)

    def load(self, op: k.Load) -> None:
        dtype = k.dtype_of(op.output)
        content, place = self._element(op.binding, op.index, dtype)
        loaded = self._make("OpLoad", content, place)
        if dtype.kind == BOOL:
            loaded = self._make("OpINotEqual", self.a.scalar(dtype), loaded, self.a.constant(BYTE, 0))
        self.ids[op.output] = loaded

    def load_vector(self, op: k.LoadVector) -> None:
        dtype = k.dtype_of(op.output)
        content, place = self._element(op.binding, op.index, dtype, k.VECTOR)
        loaded = self._make("OpLoad", content, place)
        self.vectors[op.output] = [
            self._make("OpCompositeExtract", self.a.scalar(dtype), loaded, lane) for lane in range(k.VECTOR)
        ]

    def make_vector(self, op: k.Vector) -> None:
        self.vectors[op.output] = self._ids(op)

    def lanes(self, op: k.Lanes) -> None:
        self.ids.update(zip(op.outputs, self.vectors[op.vector], strict=True))

    def store(self, op: k.Store) -> None:
        dtype, value = k.dtype_of(op.value), self.ids[op.value]
        content, place = self._element(op.binding, op.index, dtype)
        if dtype.kind == BOOL:
            value = self._make("OpSelect", content, value, self.a.constant(BYTE, 1), self.a.constant(BYTE, 0))
        self.a.add("OpStore", place, value)

    def store_vector(self, op: k.StoreVector) -> None:
        content, place = self._element(op.binding, op.index, k.dtype_of(op.value), k.VECTOR)
        four = self._make("OpCompositeConstruct", content, *self.vectors[op.value])
        self.a.add("OpStore", place, four)

    def store_bits(self, op: k.StoreBits) -> None:
        """Clears the bits of the mask, then sets those of the value. Only this invocation changes these bits."""
        content, place = self._element(op.binding, op.index, WORD)
        kept = self._make("OpNot", content, self.ids[op.mask])
        for name, operand in (("OpAtomicAnd", kept), ("OpAtomicOr", self.ids[op.value])):
            self._make(name, content, place, self._word(SCOPE_DEVICE), self._word(RELAXED), operand)

    def shared(self, op: k.Shared) -> None:
        element = self.a.scalar(k.dtype_of(op.output))
        array = self.a.once("OpTypeArray", element, self._word(k.length_of(op.output)))
        self.ids[op.output] = self.a.variable("Workgroup", array)

    def _shared_element(self, array: Value, index: Value, dtype: DType) -> int:
        pointer = self.a.pointer("Workgroup", self.a.scalar(dtype))
        return self._make("OpAccessChain", pointer, self.ids[array], self._clamped(array, index))

    def _clamped(self, array: Value, index: Value) -> int:
        """An index into shared memory, clamped as the checker demands (`UMin` with length - 1, in u32). A constant in
        range needs no clamp.
        """
        last = k.length_of(array) - 1
        known, word = k.bits_of(index), self.ids[index]
        if known is not None and known <= last:
            return self._word(known)
        if k.dtype_of(index) is not WORD:
            word = self._make("OpUConvert", self.a.scalar(WORD), word)
        return self._make("UMin", self.a.scalar(WORD), word, self._word(last))

    def load_shared(self, op: k.LoadShared) -> None:
        dtype = k.dtype_of(op.output)
        place = self._shared_element(op.shared, op.index, dtype)
        self.ids[op.output] = self._make("OpLoad", self.a.scalar(dtype), place)

    def store_shared(self, op: k.StoreShared) -> None:
        self.a.add("OpStore", self._shared_element(op.shared, op.index, k.dtype_of(op.value)), self.ids[op.value])

    def barrier(self, op: k.Barrier) -> None:
        scope = self._word(SCOPE_WORKGROUP)
        self.a.add("OpControlBarrier", scope, scope, self._word(WORKGROUP_MEMORY))

    # control flow

    def loop(self, op: k.For) -> None:
        arguments = op.body.block.arguments
        starts = [(self.a.scalar(k.dtype_of(start)), self.ids[start]) for start in (op.lower, *op.start)]

        def inside(phis: Sequence[int]) -> int:
            self.ids.update(zip(arguments, phis, strict=True))
            return self._make("OpULessThan", self.a.once("OpTypeBool"), phis[0], self.ids[op.upper])

        def following(phis: Sequence[int], values: Sequence[int]) -> list[int]:
            return [self._make("OpIAdd", starts[0][0], phis[0], self.ids[op.step]), *values]

        _, *results = self._iterate(op.body.block, starts, inside, following)
        self.ids.update(zip(op.outputs, results, strict=True))

    def repeat(self, op: k.While) -> None:
        """As a loop whose header tests the condition, and how many iterations there were."""
        truth, word = self.a.once("OpTypeBool"), self.a.scalar(WORD)

        def inside(phis: Sequence[int]) -> int:
            fewer = self._make("OpULessThan", truth, phis[1], self.ids[op.most])
            return self._make("OpLogicalAnd", truth, phis[0], fewer)

        def following(phis: Sequence[int], values: Sequence[int]) -> list[int]:
            return [*values, self._make("OpIAdd", word, phis[1], self._word(1))]

        self._iterate(op.body.block, [(truth, self.ids[op.start]), (word, self._word(0))], inside, following)

    def _iterate(
        self,
        body: Block,
        starts: Sequence[tuple[int, int]],
        inside: Callable[[Sequence[int]], int],
        following: Callable[[Sequence[int], Sequence[int]], Sequence[int]],
    ) -> list[int]:
        """header: phis, test -> body ... -> continue -> header; merge. Returns the phis. `starts`: their types and
        first values; `inside`: the test, from the phis; `following`: their next values, from them and what the body
        yields.
        """
        header, run, onward, merge = (self.a.new() for _ in range(4))
        before = self.label
        self.a.add("OpBranch", header)
        self._begin(header)
        phis = [self.a.new() for _ in starts]
        nodes = [self.a.add("OpPhi", start[0], phi, start[1], before) for phi, start in zip(phis, starts, strict=True)]
        test = inside(phis)
        self.a.add("OpLoopMerge", merge, onward, 0)
        self.a.add("OpBranchConditional", test, run, merge)
        self._begin(run)
        values = self._arm(body)
        self.a.add("OpBranch", onward)
        self._begin(onward)
        for node, value in zip(nodes, following(phis, values), strict=True):
            node.extend((value, onward))
        self.a.add("OpBranch", header)
        self._begin(merge)
        return phis

    def branch(self, op: k.If) -> None:
        """An arm without ops and values is omitted: the header branches to the merge block."""
        yes, merge = self.a.new(), self.a.new()
        plain = op.no.block.first is op.no.block.last and not op.outputs
        no = merge if plain else self.a.new()
        self.a.add("OpSelectionMerge", merge, 0)
        self.a.add("OpBranchConditional", self.ids[op.condition], yes, no)
        arms = []
        for label, arm in ((yes, op.yes), (no, op.no)):
            if label != merge:
                self._begin(label)
                arms.append((self._arm(arm.block), self.label))
                self.a.add("OpBranch", merge)
        self._begin(merge)
        for position, result in enumerate(op.outputs):
            pairs = [word for values, label in arms for word in (values[position], label)]
            self.ids[result] = self._make("OpPhi", self.a.scalar(k.dtype_of(result)), *pairs)

    def _arm(self, block: Block) -> list[int]:
        """The ops of a region. Returns the ids of the values that it yields."""
        self._ops(block)
        return [self.ids[value] for value in k.yielded(block)]

    def nothing(self, op: Operation) -> None:
        """The end of an entry or a region. The op that opened it closes it."""


def _is_float_zero(op: k.Constant) -> bool:
    dtype = k.dtype_of(op.output)
    return dtype.kind == FLOAT and op.bits % (1 << dtype.bits - 1) == 0


def _makes_floats(op: Operation) -> bool:
    """Whether an op is a float zero, may become one if the driver knows its operand, or is compared with one."""
    if isinstance(op, k.Constant):
        return _is_float_zero(op)
    if not isinstance(op, k.Scalar):
        return False
    subject, result = k.dtype_of(op.operands[-1]), k.dtype_of(op.output)
    name = instruction(op.primitive.name, subject, result)
    return name in _TO_FLOAT or name == "RoundEven" and subject.bits == 64 or bool(_shared_arm(op))


def _shared_arm(op: k.Scalar) -> int:
    """The number of the operand y if a select of floats chooses between y and bits made of y, such as x with the sign
    of y; else 0. Mesa (22.3) computes such a choice wrongly.
    """
    if op.name != "kernel.select" or k.dtype_of(op.output).kind != FLOAT:
        return 0
    _, yes, no = op.operands
    return 1 if _stem(yes) in _parts(no) else 2 if _stem(no) in _parts(yes) else 0


def _stem(value: Value) -> Value:
    """The value of which this one is the bits or the magnitude."""
    while isinstance(op := value.defining_op, k.Scalar) and op.name in ("kernel.bitcast", "kernel.abs"):
        value = op.operands[0]
    return value


def _parts(value: Value) -> set[Value]:
    """The values whose bits a float is put together from."""
    combined = _stem(value).defining_op
    if not isinstance(combined, k.Scalar) or combined.name not in ("kernel.or", "kernel.xor", "kernel.add"):
        return set()
    parts = [_stem(operand) for operand in combined.operands]
    masked = [op for part in parts if isinstance(op := part.defining_op, k.Scalar) and op.name == "kernel.and"]
    return {*parts, *(_stem(operand) for op in masked for operand in op.operands)}


_TO_FLOAT = frozenset({"OpConvertSToF", "OpConvertUToF"})

_OPS = methods_of(FunctionWords)
