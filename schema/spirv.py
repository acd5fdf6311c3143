"""SPIR-V as this project uses it: the only opcodes, capabilities and enumerants that a module may hold.

The emitter (`orchestrion.compiler.targets.spirv`) writes with these rows and the checker
(`orchestrion.hal.vulkan.spirv_check`) refuses whatever has no row. Version 1.3, environment Vulkan 1.1.

The ABI: binding `i` of an entry is the StorageBuffer variable at set 0, binding `i`, a Block struct whose one member
is a runtime array of scalars. Parameters are one PushConstant Block struct of u32 members. An entry is a
`void()` function, named by its OpEntryPoint, with a LocalSize; there are no other functions.

What the checker asks beyond the specification, so that it can prove everything in one pass:
- Blocks stand in structured order: a header, then its arms in any order, or a loop's body and
  then its one continue block, then the merge block. A branch goes to the block that follows it, to the merge block of
  the innermost selection, to the merge or continue block of the innermost loop, or from a continue block back to its
  header. Cases do not fall through. A value made inside an arm, or in a loop after its header block, is used outside
  of it only through an OpPhi of the merge block (a continue block that only the body's end branches to sees the body).
- An index into anything but a runtime array is provably in range: a constant, an OpBitwiseAnd, OpUMod or UMin with
  a constant, a local invocation id, or a sum, product, quotient, right shift, select or widening of such.
- A binding that the entry calls "read" is never stored to. A struct is indexed by an OpConstant, an access chain starts
  at a variable. Constructs nest 64 deep at most; the variables of a function take 16 KiB at most.
- Every bool, int, float and vector type is declared once. Loads and stores carry no memory-access operand.
"""

from dataclasses import dataclass

MAGIC = 0x07230203
VERSION = 0x00010300
#: OpMemoryModel operands: Logical, GLSL450. OpEntryPoint execution model: GLCompute. Execution mode: LocalSize.
ADDRESSING_LOGICAL, MEMORY_GLSL450, MODEL_GLCOMPUTE, MODE_LOCAL_SIZE = 0, 1, 5, 17
SCOPE_DEVICE, SCOPE_WORKGROUP = 1, 2
#: Allowed memory semantics: relaxed, and acquire-release of storage buffers, of workgroup memory, of both.
SEMANTICS = (0x0, 0x48, 0x108, 0x148)
EXT_INST_SET = "GLSL.std.450"


@dataclass(frozen=True, slots=True)
class Op:
    """One instruction.

    `layout` names its operands: T result type, R result, v value, t type, c constant, l label, x any id,
    n literal word, s literal string; `*` after one repeats it, `(n l)*` repeats a pair.
    `section` is the part of a module it may stand in (the order of SECTIONS). `rule` names the checker's typing rule.
    """

    code: int
    name: str
    layout: str
    section: str
    rule: str


#: The parts of a module, in their order.
SECTIONS = ("capability", "extension", "import", "model", "entry", "mode", "debug", "annotation", "global", "function")

OPS: tuple[Op, ...] = (
    Op(17, "OpCapability", "n", "capability", "capability"),
    Op(10, "OpExtension", "s", "extension", "extension"),
    Op(11, "OpExtInstImport", "R s", "import", "ext_inst_import"),
    Op(14, "OpMemoryModel", "n n", "model", "memory_model"),
    Op(15, "OpEntryPoint", "n x s x*", "entry", "entry_point"),
    Op(16, "OpExecutionMode", "x n n*", "mode", "execution_mode"),
    Op(5, "OpName", "x s", "debug", "name"),
    Op(71, "OpDecorate", "x n n*", "annotation", "decorate"),
    Op(72, "OpMemberDecorate", "x n n n*", "annotation", "member_decorate"),
    # types
    Op(19, "OpTypeVoid", "R", "global", "type_void"),
    Op(20, "OpTypeBool", "R", "global", "type_bool"),
    Op(21, "OpTypeInt", "R n n", "global", "type_int"),
    Op(22, "OpTypeFloat", "R n", "global", "type_float"),
    Op(23, "OpTypeVector", "R t n", "global", "type_vector"),
    Op(28, "OpTypeArray", "R t c", "global", "type_array"),
    Op(29, "OpTypeRuntimeArray", "R t", "global", "type_runtime_array"),
    Op(30, "OpTypeStruct", "R t*", "global", "type_struct"),
    Op(32, "OpTypePointer", "R n t", "global", "type_pointer"),
    Op(33, "OpTypeFunction", "R t", "global", "type_function"),
    # constants
    Op(41, "OpConstantTrue", "T R", "global", "constant_bool"),
    Op(42, "OpConstantFalse", "T R", "global", "constant_bool"),
    Op(43, "OpConstant", "T R n*", "global", "constant"),
    Op(44, "OpConstantComposite", "T R c*", "global", "constant_composite"),
    Op(46, "OpConstantNull", "T R", "global", "constant_null"),
    # functions and memory; OpVariable stands among the globals or first in a function
    Op(54, "OpFunction", "T R n t", "function", "function"),
    Op(56, "OpFunctionEnd", "", "function", "function_end"),
    Op(59, "OpVariable", "T R n", "global", "variable"),
    Op(61, "OpLoad", "T R v", "function", "load"),
    Op(62, "OpStore", "v v", "function", "store"),
    Op(65, "OpAccessChain", "T R v v*", "function", "access_chain"),
    Op(68, "OpArrayLength", "T R v n", "function", "array_length"),
    # composites
    Op(80, "OpCompositeConstruct", "T R v*", "function", "composite_construct"),
    Op(81, "OpCompositeExtract", "T R v n", "function", "composite_extract"),
    # conversions
    Op(109, "OpConvertFToU", "T R v", "function", "float_to_uint"),
    Op(110, "OpConvertFToS", "T R v", "function", "float_to_int"),
    Op(111, "OpConvertSToF", "T R v", "function", "int_to_float"),
    Op(112, "OpConvertUToF", "T R v", "function", "int_to_float"),
    Op(113, "OpUConvert", "T R v", "function", "uint_resize"),
    Op(114, "OpSConvert", "T R v", "function", "int_resize"),
    Op(115, "OpFConvert", "T R v", "function", "float_resize"),
    Op(124, "OpBitcast", "T R v", "function", "bitcast"),
    # integer arithmetic: operands and result of one width; the U forms of one unsigned type
    Op(126, "OpSNegate", "T R v", "function", "int"),
    Op(128, "OpIAdd", "T R v v", "function", "int"),
    Op(130, "OpISub", "T R v v", "function", "int"),
    Op(132, "OpIMul", "T R v v", "function", "int"),
    Op(134, "OpUDiv", "T R v v", "function", "uint"),
    Op(135, "OpSDiv", "T R v v", "function", "int"),
    Op(137, "OpUMod", "T R v v", "function", "uint"),
    Op(138, "OpSRem", "T R v v", "function", "int"),
    Op(139, "OpSMod", "T R v v", "function", "int"),
    # float arithmetic: operands and result of one type
    Op(127, "OpFNegate", "T R v", "function", "float"),
    Op(129, "OpFAdd", "T R v v", "function", "float"),
    Op(131, "OpFSub", "T R v v", "function", "float"),
    Op(133, "OpFMul", "T R v v", "function", "float"),
    Op(136, "OpFDiv", "T R v v", "function", "float"),
    Op(140, "OpFRem", "T R v v", "function", "float"),
    Op(141, "OpFMod", "T R v v", "function", "float"),
    # bits; the count and the reversal take 32 bits only (Vulkan's rule)
    Op(194, "OpShiftRightLogical", "T R v v", "function", "shift"),
    Op(195, "OpShiftRightArithmetic", "T R v v", "function", "shift"),
    Op(196, "OpShiftLeftLogical", "T R v v", "function", "shift"),
    Op(197, "OpBitwiseOr", "T R v v", "function", "int"),
    Op(198, "OpBitwiseXor", "T R v v", "function", "int"),
    Op(199, "OpBitwiseAnd", "T R v v", "function", "int"),
    Op(200, "OpNot", "T R v", "function", "int"),
    Op(204, "OpBitReverse", "T R v", "function", "int32"),
    Op(205, "OpBitCount", "T R v", "function", "int32"),
    # booleans
    Op(154, "OpAny", "T R v", "function", "bool_reduce"),
    Op(155, "OpAll", "T R v", "function", "bool_reduce"),
    Op(164, "OpLogicalEqual", "T R v v", "function", "bool"),
    Op(165, "OpLogicalNotEqual", "T R v v", "function", "bool"),
    Op(166, "OpLogicalOr", "T R v v", "function", "bool"),
    Op(167, "OpLogicalAnd", "T R v v", "function", "bool"),
    Op(168, "OpLogicalNot", "T R v", "function", "bool"),
    Op(169, "OpSelect", "T R v v v", "function", "select"),
    # comparisons
    Op(156, "OpIsNan", "T R v", "function", "compare_float"),
    Op(157, "OpIsInf", "T R v", "function", "compare_float"),
    Op(170, "OpIEqual", "T R v v", "function", "compare_int"),
    Op(171, "OpINotEqual", "T R v v", "function", "compare_int"),
    Op(172, "OpUGreaterThan", "T R v v", "function", "compare_int"),
    Op(173, "OpSGreaterThan", "T R v v", "function", "compare_int"),
    Op(174, "OpUGreaterThanEqual", "T R v v", "function", "compare_int"),
    Op(175, "OpSGreaterThanEqual", "T R v v", "function", "compare_int"),
    Op(176, "OpULessThan", "T R v v", "function", "compare_int"),
    Op(177, "OpSLessThan", "T R v v", "function", "compare_int"),
    Op(178, "OpULessThanEqual", "T R v v", "function", "compare_int"),
    Op(179, "OpSLessThanEqual", "T R v v", "function", "compare_int"),
    Op(180, "OpFOrdEqual", "T R v v", "function", "compare_float"),
    Op(181, "OpFUnordEqual", "T R v v", "function", "compare_float"),
    Op(182, "OpFOrdNotEqual", "T R v v", "function", "compare_float"),
    Op(183, "OpFUnordNotEqual", "T R v v", "function", "compare_float"),
    Op(184, "OpFOrdLessThan", "T R v v", "function", "compare_float"),
    Op(185, "OpFUnordLessThan", "T R v v", "function", "compare_float"),
    Op(186, "OpFOrdGreaterThan", "T R v v", "function", "compare_float"),
    Op(187, "OpFUnordGreaterThan", "T R v v", "function", "compare_float"),
    Op(188, "OpFOrdLessThanEqual", "T R v v", "function", "compare_float"),
    Op(189, "OpFUnordLessThanEqual", "T R v v", "function", "compare_float"),
    Op(190, "OpFOrdGreaterThanEqual", "T R v v", "function", "compare_float"),
    Op(191, "OpFUnordGreaterThanEqual", "T R v v", "function", "compare_float"),
    # extended instructions: the set, one of EXT_INSTS, its operands
    Op(12, "OpExtInst", "T R x n v*", "function", "ext_inst"),
    # barriers and atomics: scopes and semantics are u32 constants; 32-bit integers in storage or workgroup memory
    Op(224, "OpControlBarrier", "c c c", "function", "control_barrier"),
    Op(225, "OpMemoryBarrier", "c c", "function", "memory_barrier"),
    Op(229, "OpAtomicExchange", "T R v c c v", "function", "atomic"),
    Op(230, "OpAtomicCompareExchange", "T R v c c c v v", "function", "atomic_compare"),
    Op(234, "OpAtomicIAdd", "T R v c c v", "function", "atomic"),
    Op(235, "OpAtomicISub", "T R v c c v", "function", "atomic"),
    Op(236, "OpAtomicSMin", "T R v c c v", "function", "atomic"),
    Op(237, "OpAtomicUMin", "T R v c c v", "function", "atomic"),
    Op(238, "OpAtomicSMax", "T R v c c v", "function", "atomic"),
    Op(239, "OpAtomicUMax", "T R v c c v", "function", "atomic"),
    Op(240, "OpAtomicAnd", "T R v c c v", "function", "atomic"),
    Op(241, "OpAtomicOr", "T R v c c v", "function", "atomic"),
    Op(242, "OpAtomicXor", "T R v c c v", "function", "atomic"),
    # control flow
    Op(245, "OpPhi", "T R (x l)*", "function", "phi"),
    Op(246, "OpLoopMerge", "l l n", "function", "loop_merge"),
    Op(247, "OpSelectionMerge", "l n", "function", "selection_merge"),
    Op(248, "OpLabel", "R", "function", "label"),
    Op(249, "OpBranch", "l", "function", "branch"),
    Op(250, "OpBranchConditional", "v l l", "function", "branch_conditional"),
    Op(251, "OpSwitch", "v l (n l)*", "function", "switch"),
    Op(253, "OpReturn", "", "function", "return"),
    Op(255, "OpUnreachable", "", "function", "unreachable"),
)


@dataclass(frozen=True, slots=True)
class ExtInst:
    """One instruction of GLSL.std.450: its operands and result have one type, of the class the rule names."""

    code: int
    name: str
    operands: int
    rule: str


EXT_INSTS: tuple[ExtInst, ...] = (
    ExtInst(2, "RoundEven", 1, "float"),
    ExtInst(3, "Trunc", 1, "float"),
    ExtInst(4, "FAbs", 1, "float"),
    ExtInst(5, "SAbs", 1, "int"),
    ExtInst(6, "FSign", 1, "float"),
    ExtInst(7, "SSign", 1, "int"),
    ExtInst(8, "Floor", 1, "float"),
    ExtInst(9, "Ceil", 1, "float"),
    ExtInst(31, "Sqrt", 1, "float"),
    ExtInst(37, "FMin", 2, "float"),
    ExtInst(38, "UMin", 2, "int"),
    ExtInst(39, "SMin", 2, "int"),
    ExtInst(40, "FMax", 2, "float"),
    ExtInst(41, "UMax", 2, "int"),
    ExtInst(42, "SMax", 2, "int"),
    ExtInst(50, "Fma", 3, "float"),
    ExtInst(73, "FindILsb", 1, "int32"),
    ExtInst(74, "FindSMsb", 1, "int32"),
    ExtInst(75, "FindUMsb", 1, "int32"),
    ExtInst(79, "NMin", 2, "float"),
    ExtInst(80, "NMax", 2, "float"),
)


@dataclass(frozen=True, slots=True)
class Capability:
    """A capability a module may declare, the device feature it needs ("" for none) and the extension it must name."""

    code: int
    name: str
    feature: str
    extension: str


CAPABILITIES: tuple[Capability, ...] = (
    Capability(1, "Shader", "", ""),
    Capability(10, "Float64", "float64", ""),
    Capability(11, "Int64", "int64", ""),
    Capability(22, "Int16", "int16", ""),
    Capability(39, "Int8", "int8", ""),
    Capability(4433, "StorageBuffer16BitAccess", "int16", ""),
    Capability(4448, "StorageBuffer8BitAccess", "int8", "SPV_KHR_8bit_storage"),
)

STORAGE_CLASSES: dict[str, int] = {"Input": 1, "Workgroup": 4, "Function": 7, "PushConstant": 9, "StorageBuffer": 12}

#: decoration -> (code, number of literals, what it decorates: a struct or array type, a struct's member, a variable, a
#: value). NoContraction belongs on every float operation, comparisons included.
DECORATIONS: dict[str, tuple[int, int, str]] = {
    "Block": (2, 0, "struct"),
    "ArrayStride": (6, 1, "array"),
    "BuiltIn": (11, 1, "variable"),
    "Restrict": (19, 0, "variable"),
    "Aliased": (20, 0, "variable"),
    "NonWritable": (24, 0, "variable"),
    "NonReadable": (25, 0, "variable"),
    "Binding": (33, 1, "variable"),
    "DescriptorSet": (34, 1, "variable"),
    "Offset": (35, 1, "member"),
    "NoContraction": (42, 0, "value"),
}

#: built-in input variables: a u32 vector of three, LocalInvocationIndex a u32.
BUILTINS: dict[str, int] = {
    "NumWorkgroups": 24,
    "WorkgroupId": 26,
    "LocalInvocationId": 27,
    "GlobalInvocationId": 28,
    "LocalInvocationIndex": 29,
}

OP_BY_CODE: dict[int, Op] = {row.code: row for row in OPS}
OP_BY_NAME: dict[str, Op] = {row.name: row for row in OPS}
EXT_BY_CODE: dict[int, ExtInst] = {row.code: row for row in EXT_INSTS}
EXT_BY_NAME: dict[str, ExtInst] = {row.name: row for row in EXT_INSTS}
CAPABILITY_BY_CODE: dict[int, Capability] = {row.code: row for row in CAPABILITIES}
CAPABILITY_BY_NAME: dict[str, Capability] = {row.name: row for row in CAPABILITIES}
