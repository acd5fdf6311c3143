"""The SPIR-V subset of this project: the opcodes, capabilities and enumerants that a module may contain.

The emitter (`orchestrion.compiler.targets.spirv`) uses these rows, and the checker
(`orchestrion.hal.vulkan.spirv_check`) refuses everything without a row. Version 1.3, environment Vulkan 1.1. The rows
are exactly what the emitter writes. Each row, and each enumerant in ENUMERANTS_SINCE, has the minor version of the
subset that added it (`versions.py`). Relaxing a rule also needs a new minor version, which the emitter states as the
variant's `format_minor`.

The ABI: binding `i` of an entry is the StorageBuffer variable at set 0, binding `i`, a Block struct whose one member
is a runtime array of scalars or of vectors of four. Parameters are one PushConstant Block struct of u32 members. An
entry is a `void()` function, named by its OpEntryPoint, with a LocalSize; there are no other functions.

The checker requires more than the specification, so that one pass proves that no access leaves its object:
- An access chain has one of three forms: member 0 and an index (u32 or u64) of a storage buffer; one constant member of
  the parameters; one index of a workgroup array. That index is an OpConstant below the array's length, or the result
  of `UMin` of u32 with an OpConstant below the array's length: the clamp is the last operation before the access.
  Indices into storage buffers are bounded by robust buffer access 2, or by a clamp that the loader inserts.
- Integers are declared unsigned. Arithmetic is on scalars. Every bool, int, float, vector and function type is declared
  once. The length of an array is a u32. Workgroup memory that no entry uses counts for each entry.
- Blocks are in structured order: a header, then its arms, or a loop's body and then its continue block, then the merge
  block. An arm ends with a branch to the merge block, a body with one to the continue block, a continue block with one
  to the header, which alone leaves the loop. Headers and continue blocks of loops only compute values. OpReturn is in
  the last block. Control masks are 0.
- OpPhi is in a loop's header (values from before the loop and from the continue block) or after two arms (in their
  order). A value defined inside an arm or a body is used outside of it only through such an OpPhi.
- The conditions of all constructs around a barrier are the same for the whole workgroup: computed by arithmetic from
  constants, parameters, workgroup ids and numbers of workgroups, in loops and arms with such conditions.
- A binding with access "read" is never stored to. Atomic instructions take a u32 of a storage buffer. Constructs nest
  at most 64 deep. Loads and stores have no memory-access operand.
"""

from dataclasses import dataclass

MAGIC = 0x07230203
VERSION = 0x00010300
#: OpMemoryModel operands: Logical, GLSL450. OpEntryPoint execution model: GLCompute. Execution mode: LocalSize.
ADDRESSING_LOGICAL, MEMORY_GLSL450, MODEL_GLCOMPUTE, MODE_LOCAL_SIZE = 0, 1, 5, 17
#: OpControlBarrier: both scopes, and the semantics: acquire and release of workgroup memory.
SCOPE_WORKGROUP, WORKGROUP_MEMORY = 2, 0x108
#: OpAtomicAnd, OpAtomicOr: the scope, and the semantics: other memory is not ordered.
SCOPE_DEVICE, RELAXED = 1, 0
EXT_INST_SET = "GLSL.std.450"


@dataclass(frozen=True, slots=True)
class Op:
    """One instruction.

    `layout` names its operands: T result type, R result, v value, t type, c constant, l label, x any id, n literal
    word, s literal string; `*` after one repeats it, `(n l)*` repeats a pair. `section` is the part of a module that
    may contain it (the order of SECTIONS). `rule` names the checker's typing rule.
    """

    code: int
    name: str
    layout: str
    section: str
    rule: str
    since: int = 0


#: the parts of a module, in order
SECTIONS = ("capability", "extension", "import", "model", "entry", "mode", "annotation", "global", "function")

OPS: tuple[Op, ...] = (
    Op(17, "OpCapability", "n", "capability", "capability"),
    Op(10, "OpExtension", "s", "extension", "extension"),
    Op(11, "OpExtInstImport", "R s", "import", "ext_inst_import"),
    Op(14, "OpMemoryModel", "n n", "model", "memory_model"),
    Op(15, "OpEntryPoint", "n x s x*", "entry", "entry_point"),
    Op(16, "OpExecutionMode", "x n n*", "mode", "execution_mode"),
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
    # functions and memory
    Op(54, "OpFunction", "T R n t", "function", "function"),
    Op(56, "OpFunctionEnd", "", "function", "function_end"),
    Op(59, "OpVariable", "T R n", "global", "variable"),
    Op(61, "OpLoad", "T R v", "function", "load"),
    Op(62, "OpStore", "v v", "function", "store"),
    Op(65, "OpAccessChain", "T R v v*", "function", "access_chain"),
    # a u32 of a storage buffer is combined with a value; scope Device, no semantics
    Op(240, "OpAtomicAnd", "T R v c c v", "function", "atomic", since=1),
    Op(241, "OpAtomicOr", "T R v c c v", "function", "atomic", since=1),
    # composites
    Op(80, "OpCompositeConstruct", "T R v*", "function", "composite_construct"),
    Op(81, "OpCompositeExtract", "T R v n", "function", "composite_extract"),
    # conversions
    Op(109, "OpConvertFToU", "T R v", "function", "float_to_int"),
    Op(110, "OpConvertFToS", "T R v", "function", "float_to_int"),
    Op(111, "OpConvertSToF", "T R v", "function", "int_to_float"),
    Op(112, "OpConvertUToF", "T R v", "function", "int_to_float"),
    Op(113, "OpUConvert", "T R v", "function", "int_resize"),
    Op(114, "OpSConvert", "T R v", "function", "int_resize"),
    Op(115, "OpFConvert", "T R v", "function", "float_resize"),
    Op(124, "OpBitcast", "T R v", "function", "bitcast"),
    # integer arithmetic: operands and result of one type; the S forms read it as signed
    Op(126, "OpSNegate", "T R v", "function", "int"),
    Op(128, "OpIAdd", "T R v v", "function", "int"),
    Op(130, "OpISub", "T R v v", "function", "int"),
    Op(132, "OpIMul", "T R v v", "function", "int"),
    Op(134, "OpUDiv", "T R v v", "function", "int"),
    Op(135, "OpSDiv", "T R v v", "function", "int"),
    Op(137, "OpUMod", "T R v v", "function", "int"),
    # float arithmetic: operands and result of one type
    Op(127, "OpFNegate", "T R v", "function", "float"),
    Op(129, "OpFAdd", "T R v v", "function", "float"),
    Op(131, "OpFSub", "T R v v", "function", "float"),
    Op(133, "OpFMul", "T R v v", "function", "float"),
    Op(136, "OpFDiv", "T R v v", "function", "float"),
    # bits
    Op(194, "OpShiftRightLogical", "T R v v", "function", "shift"),
    Op(195, "OpShiftRightArithmetic", "T R v v", "function", "shift"),
    Op(196, "OpShiftLeftLogical", "T R v v", "function", "shift"),
    Op(197, "OpBitwiseOr", "T R v v", "function", "int"),
    Op(198, "OpBitwiseXor", "T R v v", "function", "int"),
    Op(199, "OpBitwiseAnd", "T R v v", "function", "int"),
    Op(200, "OpNot", "T R v", "function", "int"),
    # booleans
    Op(165, "OpLogicalNotEqual", "T R v v", "function", "bool"),
    Op(166, "OpLogicalOr", "T R v v", "function", "bool"),
    Op(167, "OpLogicalAnd", "T R v v", "function", "bool"),
    Op(168, "OpLogicalNot", "T R v", "function", "bool"),
    Op(169, "OpSelect", "T R v v v", "function", "select"),
    # comparisons
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
    Op(183, "OpFUnordNotEqual", "T R v v", "function", "compare_float"),
    Op(184, "OpFOrdLessThan", "T R v v", "function", "compare_float"),
    Op(186, "OpFOrdGreaterThan", "T R v v", "function", "compare_float"),
    Op(188, "OpFOrdLessThanEqual", "T R v v", "function", "compare_float"),
    Op(190, "OpFOrdGreaterThanEqual", "T R v v", "function", "compare_float"),
    # extended instructions: the set, one of EXT_INSTS, its operands
    Op(12, "OpExtInst", "T R x n v*", "function", "ext_inst"),
    # the barrier: scopes and semantics are u32 constants
    Op(224, "OpControlBarrier", "c c c", "function", "control_barrier"),
    # control flow
    Op(245, "OpPhi", "T R x l x l", "function", "phi"),
    Op(246, "OpLoopMerge", "l l n", "function", "loop_merge"),
    Op(247, "OpSelectionMerge", "l n", "function", "selection_merge"),
    Op(248, "OpLabel", "R", "function", "label"),
    Op(249, "OpBranch", "l", "function", "branch"),
    Op(250, "OpBranchConditional", "v l l", "function", "branch_conditional"),
    Op(253, "OpReturn", "", "function", "return"),
)


@dataclass(frozen=True, slots=True)
class ExtInst:
    """One instruction of GLSL.std.450. Its operands and result have one type, of the class that the rule names."""

    code: int
    name: str
    operands: int
    rule: str
    since: int = 0


EXT_INSTS: tuple[ExtInst, ...] = (
    ExtInst(2, "RoundEven", 1, "float"),
    ExtInst(3, "Trunc", 1, "float"),
    ExtInst(4, "FAbs", 1, "float"),
    ExtInst(8, "Floor", 1, "float"),
    ExtInst(9, "Ceil", 1, "float"),
    ExtInst(31, "Sqrt", 1, "float"),
    ExtInst(38, "UMin", 2, "clamp"),
)


@dataclass(frozen=True, slots=True)
class Capability:
    """A capability that a module may declare, the device feature that it needs ("" for none), and the extension to
    name.
    """

    code: int
    name: str
    feature: str
    extension: str
    since: int = 0


CAPABILITIES: tuple[Capability, ...] = (
    Capability(1, "Shader", "", ""),
    Capability(10, "Float64", "float64", ""),
    Capability(11, "Int64", "int64", ""),
    Capability(22, "Int16", "int16", ""),
    Capability(39, "Int8", "int8", ""),
    Capability(4433, "StorageBuffer16BitAccess", "int16", ""),
    Capability(4448, "StorageBuffer8BitAccess", "int8", "SPV_KHR_8bit_storage"),
)

STORAGE_CLASSES: dict[str, int] = {"Input": 1, "Workgroup": 4, "PushConstant": 9, "StorageBuffer": 12}

#: decoration -> (code, number of literals, what it decorates: a struct or array type, a struct's member, a variable, a
#: value). NoContraction belongs on every float operation, comparisons included.
DECORATIONS: dict[str, tuple[int, int, str]] = {
    "Block": (2, 0, "struct"),
    "ArrayStride": (6, 1, "array"),
    "BuiltIn": (11, 1, "variable"),
    "Aliased": (20, 0, "variable"),
    "Volatile": (21, 0, "variable"),
    "NonWritable": (24, 0, "variable"),
    "Binding": (33, 1, "variable"),
    "DescriptorSet": (34, 1, "variable"),
    "Offset": (35, 1, "member"),
    "NoContraction": (42, 0, "value"),
}

#: built-in input variables: a u32 vector of three, LocalInvocationIndex a u32.
BUILTINS: dict[str, int] = {
    "NumWorkgroups": 24,
    "WorkgroupId": 26,
    "LocalInvocationIndex": 29,
}

#: enumerant (decoration, built-in variable, storage class) -> the minor version that added it, if that is not 0
ENUMERANTS_SINCE: dict[str, int] = {"Volatile": 2}

OP_BY_CODE: dict[int, Op] = {row.code: row for row in OPS}
OP_BY_NAME: dict[str, Op] = {row.name: row for row in OPS}
EXT_BY_CODE: dict[int, ExtInst] = {row.code: row for row in EXT_INSTS}
EXT_BY_NAME: dict[str, ExtInst] = {row.name: row for row in EXT_INSTS}
CAPABILITY_BY_CODE: dict[int, Capability] = {row.code: row for row in CAPABILITIES}
CAPABILITY_BY_NAME: dict[str, Capability] = {row.name: row for row in CAPABILITIES}
