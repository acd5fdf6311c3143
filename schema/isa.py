"""The VM's instructions, one row each; encoder, decoder, verifier, assembler, interpreter, docs/isa.md derive from it.

Rules:
- An opcode is a 16-bit number that never changes meaning. A new instruction gets a new number in its family's range,
  and the minor version `since` which it exists (`versions.py`).
- A frame has one row of registers, bank after bank in the order of `BANKS`; a register operand is the 16-bit ordinal
  in that row. Parameters are the first registers of their banks. All other registers are zero or null at entry.
- A ref operand that is read may carry the move bit: the register is null after the instruction, unless it is a result.
- Ordinals of functions, globals and constants count within the program; those of imports within the module.
- A global that is not mutable is stored to by program initializers only, a mutable one by everything else.
- i32 and i64 are bits, wrapping; f32 and f64 are IEEE 754 binary32 and binary64, round to nearest even, every result
  of arithmetic rounded once. Numeric meaning is that of WebAssembly; a NaN that arithmetic makes is the positive
  canonical one (its deterministic profile). "trap" ends the call with a named error.
- The effect column states what an instruction does in addition to computing (`Effect`). Code that processes
  instructions uses the effect, never names, so a new row is handled correctly everywhere, or refused by a table.
- In the doc column `u(x)` is x read as unsigned, `s(x)` as signed, `N` the width of the bank in bits.
"""

from dataclasses import dataclass
from enum import StrEnum

BANKS = ("i32", "i64", "f32", "f64", "ref")
MOVE_BIT = 0x8000
#: Registers of one function, all banks together.
MAX_REGISTERS = 0x8000

#: operand kind -> bytes in the code; None: a count, then that many elements
KINDS: dict[str, int | None] = {
    "i32": 2,  # a register of that bank
    "i64": 2,
    "f32": 2,
    "f64": 2,
    "ref": 2,
    "imm_i32": 4,  # an immediate value, little endian
    "imm_i64": 8,
    "imm_f32": 4,  # the bits
    "imm_f64": 8,
    "function": 4,  # an ordinal
    "import": 4,
    "global": 4,
    "constant": 4,
    "target": 4,  # byte offset of an instruction in the same function
    "targets": None,  # u32 count, u32 each
    "registers": None,  # u16 count, u16 each, of any bank
    "text": None,  # u16 count of bytes, UTF-8, padded with a zero to an even count
}


class Effect(StrEnum):
    """What an instruction does in addition to computing, and where control continues: see `EFFECTS`."""

    CONSTANT = "constant"
    NULL = "null"
    COPY = "copy"
    PURE = "pure"
    TRAP = "trap"
    LINKED = "linked"
    LOAD = "load"
    STORE = "store"
    READ = "read"
    WRITE = "write"
    NATIVE = "native"
    BRANCH = "branch"
    CALL = "call"
    CACHED = "cached"
    SUSPEND = "suspend"
    RETURN = "return"
    FAIL = "fail"


#: effect -> its meaning
EFFECTS: dict[Effect, str] = {
    Effect.CONSTANT: "writes a number that the instruction itself holds",
    Effect.NULL: "writes null, which drops the old reference",
    Effect.COPY: "writes its only operand, bit by bit",
    Effect.PURE: "its results depend on its operands alone, and it never traps",
    Effect.TRAP: "as pure, but it may trap",
    Effect.LINKED: "writes a number that is known once the program is linked",
    Effect.LOAD: "reads a global",
    Effect.STORE: "writes a global",
    Effect.READ: "reads a list or a buffer, or creates a view of one; may trap",
    Effect.WRITE: "changes or creates a list or a buffer; may trap",
    Effect.NATIVE: "calls an imported function",
    Effect.BRANCH: "continues at one of its targets",
    Effect.CALL: "enters a function of the program",
    Effect.CACHED: "as call, unless the context has the results of an earlier call",
    Effect.SUSPEND: "may suspend the call",
    Effect.RETURN: "ends the function",
    Effect.FAIL: "ends the call",
}
#: after these, control never continues at the next instruction
_TERMINATORS = frozenset((Effect.BRANCH, Effect.RETURN, Effect.FAIL))
#: after these, control may continue elsewhere than at the next instruction of the same frame
_ENDS = _TERMINATORS | {Effect.CALL, Effect.CACHED, Effect.SUSPEND}


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand: its name in the doc, its kind, whether it is a result, and the values it may hold."""

    name: str
    kind: str
    result: bool = False
    #: for a ref, its type ("any": every type); for `registers`, "integers" if all are i32 or i64; otherwise empty
    type: str = ""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One row. Operands are in the order of their encoding: fixed widths first, then the variable-length ones."""

    opcode: int
    name: str
    operands: tuple[Operand, ...]
    doc: str
    family: str
    effect: Effect
    since: int = 0  #: the minor version that added it

    @property
    def terminator(self) -> bool:
        """Whether control never continues at the next instruction."""
        return self.effect in _TERMINATORS

    @property
    def ends_block(self) -> bool:
        """Whether control may continue elsewhere than at the next instruction of the same frame."""
        return self.effect in _ENDS


_REF_TYPES = frozenset(("any", "buffer", "hal.fence", "list<i32>", "list<i64>", "list<f32>", "list<f64>", "list<any>"))


def _operand(text: str, result: bool) -> Operand:
    name, kind = text.split(":")
    if kind in _REF_TYPES:
        return Operand(name, "ref", result, kind)
    if kind == "integers":
        return Operand(name, "registers", result, kind)
    if kind not in KINDS or kind == "ref":
        raise ValueError(f"operand {text!r}: unknown kind")
    return Operand(name, kind, result)


def _row(family: str, opcode: int, name: str, spec: str, effect: str, doc: str, since: int) -> Instruction:
    reads, _, writes = spec.partition("->")
    operands = [_operand(text, False) for text in reads.split()] + [_operand(text, True) for text in writes.split()]
    operands.sort(key=lambda operand: KINDS[operand.kind] is None)
    return Instruction(opcode, name, tuple(operands), doc, family, Effect(effect), since)


# (offset in the family's range, name, operands, effect, meaning), and the minor version that added it if it is not 0
_Rows = tuple[tuple[int, str, str, str, str] | tuple[int, str, str, str, str, int], ...]

_CONTROL: _Rows = (
    (0x01, "br", "to:target", "branch", "continue at to"),
    (0x02, "br_if", "a:i32 then:target else:target", "branch", "continue at then if a != 0, else at else"),
    (
        0x03,
        "br_table",
        "a:i32 else:target table:targets",
        "branch",
        "continue at table[u(a)] if u(a) < count, else at else",
    ),
    (0x04, "call", "callee:function args:registers -> results:registers", "call", "results = callee(args)"),
    (
        0x05,
        "call_import",
        "callee:import args:registers -> results:registers",
        "native",
        "results = callee(args); trap if the optional import is absent",
    ),
    (0x06, "return", "values:registers", "return", "end the call, its results are values"),
    (0x07, "fail", "message:text", "fail", "trap with the message"),
    (0x08, "check", "a:i32 message:text", "trap", "trap with the message if a == 0"),
    (
        0x09,
        "await",
        "a:hal.fence",
        "suspend",
        "suspend the call until fence a is signalled; trap if a is null or its work failed",
    ),
    (0x0A, "import.present", "callee:import -> d:i32", "linked", "d = 1 if the optional import is there, else 0"),
    (
        0x0B,
        "call.cached",
        "callee:function args:integers -> results:registers",
        "cached",
        "as call, of a function whose args are i32 or i64, none of them a result; a context keeps the results for the "
        "8 args used last of each callee, and gives those again without a call",
    ),
    (
        0x0C,
        "require",
        "a:i32 values:integers message:text",
        "trap",
        "if a == 0, end the call as the caller's mistake, with the message, where {n} stands for the integer values[n]",
    ),
)

# X stands for each of i32 i64 f32 f64
_VALUE: _Rows = (
    (0x00, "X.const", "value:imm_X -> d:X", "constant", "d = value"),
    (0x01, "X.zero", "-> d:X", "constant", "d = 0 (+0.0)"),
    (0x02, "X.copy", "a:X -> d:X", "copy", "d = a, bit by bit"),
    (0x03, "X.select", "c:i32 a:X b:X -> d:X", "pure", "d = a if c != 0, else b, bit by bit"),
)

_REF: _Rows = (
    (0x00, "ref.null", "-> d:any", "null", "d = null"),
    (0x01, "ref.copy", "a:any -> d:any", "copy", "d = a"),
    (0x02, "ref.select", "c:i32 a:any b:any -> d:any", "pure", "d = a if c != 0, else b"),
    (0x03, "ref.is_null", "a:any -> d:i32", "pure", "d = 1 if a is null, else 0"),
    (0x04, "ref.eq", "a:any b:any -> d:i32", "pure", "d = 1 if a and b are the same object or both null, else 0"),
)

# X stands for each of i32 i64
_INTEGER: _Rows = (
    (0x00, "X.add", "a:X b:X -> d:X", "pure", "d = a + b mod 2^N"),
    (0x01, "X.sub", "a:X b:X -> d:X", "pure", "d = a - b mod 2^N"),
    (0x02, "X.mul", "a:X b:X -> d:X", "pure", "d = a * b mod 2^N"),
    (0x03, "X.div_s", "a:X b:X -> d:X", "trap", "d = trunc(s(a) / s(b)); trap if b == 0, or a == -2^(N-1) and b == -1"),
    (0x04, "X.div_u", "a:X b:X -> d:X", "trap", "d = floor(u(a) / u(b)); trap if b == 0"),
    (0x05, "X.rem_s", "a:X b:X -> d:X", "trap", "d = s(a) - s(b) * trunc(s(a) / s(b)), the sign of a; trap if b == 0"),
    (0x06, "X.rem_u", "a:X b:X -> d:X", "trap", "d = u(a) mod u(b); trap if b == 0"),
    (0x07, "X.and", "a:X b:X -> d:X", "pure", "d = a & b"),
    (0x08, "X.or", "a:X b:X -> d:X", "pure", "d = a | b"),
    (0x09, "X.xor", "a:X b:X -> d:X", "pure", "d = a ^ b"),
    (0x0A, "X.shl", "a:X b:X -> d:X", "pure", "d = a << (u(b) mod N) mod 2^N"),
    (0x0B, "X.shr_s", "a:X b:X -> d:X", "pure", "d = s(a) >> (u(b) mod N), copies of the sign come in"),
    (0x0C, "X.shr_u", "a:X b:X -> d:X", "pure", "d = u(a) >> (u(b) mod N), zeros come in"),
    (0x0D, "X.rotl", "a:X b:X -> d:X", "pure", "d = a rotated left by u(b) mod N"),
    (0x0E, "X.rotr", "a:X b:X -> d:X", "pure", "d = a rotated right by u(b) mod N"),
    (0x0F, "X.clz", "a:X -> d:X", "pure", "d = leading zero bits of a, N for 0"),
    (0x10, "X.ctz", "a:X -> d:X", "pure", "d = trailing zero bits of a, N for 0"),
    (0x11, "X.popcnt", "a:X -> d:X", "pure", "d = bits of a that are 1"),
    (0x12, "X.eqz", "a:X -> d:i32", "pure", "d = 1 if a == 0, else 0"),
    (0x13, "X.eq", "a:X b:X -> d:i32", "pure", "d = 1 if a == b, else 0"),
    (0x14, "X.ne", "a:X b:X -> d:i32", "pure", "d = 1 if a != b, else 0"),
    (0x15, "X.lt_s", "a:X b:X -> d:i32", "pure", "d = 1 if s(a) < s(b), else 0"),
    (0x16, "X.lt_u", "a:X b:X -> d:i32", "pure", "d = 1 if u(a) < u(b), else 0"),
    (0x17, "X.gt_s", "a:X b:X -> d:i32", "pure", "d = 1 if s(a) > s(b), else 0"),
    (0x18, "X.gt_u", "a:X b:X -> d:i32", "pure", "d = 1 if u(a) > u(b), else 0"),
    (0x19, "X.le_s", "a:X b:X -> d:i32", "pure", "d = 1 if s(a) <= s(b), else 0"),
    (0x1A, "X.le_u", "a:X b:X -> d:i32", "pure", "d = 1 if u(a) <= u(b), else 0"),
    (0x1B, "X.ge_s", "a:X b:X -> d:i32", "pure", "d = 1 if s(a) >= s(b), else 0"),
    (0x1C, "X.ge_u", "a:X b:X -> d:i32", "pure", "d = 1 if u(a) >= u(b), else 0"),
    (0x1D, "X.extend8_s", "a:X -> d:X", "pure", "d = the low 8 bits of a, sign extended"),
    (0x1E, "X.extend16_s", "a:X -> d:X", "pure", "d = the low 16 bits of a, sign extended"),
)

_INTEGER64: _Rows = (
    (0x1F, "i64.extend32_s", "a:i64 -> d:i64", "pure", "d = the low 32 bits of a, sign extended"),
    (
        0x20,
        "i64.add_checked",
        "a:i64 b:i64 -> d:i64",
        "trap",
        "d = s(a) + s(b); trap if that is not in -2^63 .. 2^63-1",
    ),
    (
        0x21,
        "i64.sub_checked",
        "a:i64 b:i64 -> d:i64",
        "trap",
        "d = s(a) - s(b); trap if that is not in -2^63 .. 2^63-1",
    ),
    (
        0x22,
        "i64.mul_checked",
        "a:i64 b:i64 -> d:i64",
        "trap",
        "d = s(a) * s(b); trap if that is not in -2^63 .. 2^63-1",
    ),
)

# X stands for each of f32 f64
_FLOAT: _Rows = (
    (0x00, "X.add", "a:X b:X -> d:X", "pure", "d = a + b"),
    (0x01, "X.sub", "a:X b:X -> d:X", "pure", "d = a - b"),
    (0x02, "X.mul", "a:X b:X -> d:X", "pure", "d = a * b"),
    (0x03, "X.div", "a:X b:X -> d:X", "pure", "d = a / b; a / 0 is an infinity, 0 / 0 is NaN"),
    (0x04, "X.min", "a:X b:X -> d:X", "pure", "d = the lesser; NaN if either is; -0 < +0"),
    (0x05, "X.max", "a:X b:X -> d:X", "pure", "d = the greater; NaN if either is; -0 < +0"),
    (0x06, "X.copysign", "a:X b:X -> d:X", "pure", "d = a with the sign bit of b, also for NaN"),
    (0x07, "X.abs", "a:X -> d:X", "pure", "d = a with the sign bit 0, also for NaN"),
    (0x08, "X.neg", "a:X -> d:X", "pure", "d = a with the sign bit flipped, also for NaN"),
    (0x09, "X.ceil", "a:X -> d:X", "pure", "d = the least integer >= a, the sign of a"),
    (0x0A, "X.floor", "a:X -> d:X", "pure", "d = the greatest integer <= a, the sign of a"),
    (0x0B, "X.trunc", "a:X -> d:X", "pure", "d = a rounded towards 0, the sign of a"),
    (0x0C, "X.nearest", "a:X -> d:X", "pure", "d = the nearest integer, ties to even, the sign of a"),
    (0x0D, "X.sqrt", "a:X -> d:X", "pure", "d = square root of a; NaN if a < 0; -0 for -0"),
    (0x0E, "X.eq", "a:X b:X -> d:i32", "pure", "d = 1 if a == b, else 0 (0 if either is NaN)"),
    (0x0F, "X.ne", "a:X b:X -> d:i32", "pure", "d = 1 if a != b, else 0 (1 if either is NaN)"),
    (0x10, "X.lt", "a:X b:X -> d:i32", "pure", "d = 1 if a < b, else 0 (0 if either is NaN)"),
    (0x11, "X.gt", "a:X b:X -> d:i32", "pure", "d = 1 if a > b, else 0 (0 if either is NaN)"),
    (0x12, "X.le", "a:X b:X -> d:i32", "pure", "d = 1 if a <= b, else 0 (0 if either is NaN)"),
    (0x13, "X.ge", "a:X b:X -> d:i32", "pure", "d = 1 if a >= b, else 0 (0 if either is NaN)"),
)

_CONVERSION: _Rows = (
    (0x00, "i32.wrap_i64", "a:i64 -> d:i32", "pure", "d = a mod 2^32"),
    (0x01, "i64.extend_i32_s", "a:i32 -> d:i64", "pure", "d = s(a)"),
    (0x02, "i64.extend_i32_u", "a:i32 -> d:i64", "pure", "d = u(a)"),
    (0x03, "i32.trunc_f32_s", "a:f32 -> d:i32", "trap", "d = trunc(a); trap if NaN or not in -2^31 .. 2^31-1"),
    (0x04, "i32.trunc_f32_u", "a:f32 -> d:i32", "trap", "d = trunc(a); trap if NaN or not in 0 .. 2^32-1"),
    (0x05, "i32.trunc_f64_s", "a:f64 -> d:i32", "trap", "d = trunc(a); trap if NaN or not in -2^31 .. 2^31-1"),
    (0x06, "i32.trunc_f64_u", "a:f64 -> d:i32", "trap", "d = trunc(a); trap if NaN or not in 0 .. 2^32-1"),
    (0x07, "i64.trunc_f32_s", "a:f32 -> d:i64", "trap", "d = trunc(a); trap if NaN or not in -2^63 .. 2^63-1"),
    (0x08, "i64.trunc_f32_u", "a:f32 -> d:i64", "trap", "d = trunc(a); trap if NaN or not in 0 .. 2^64-1"),
    (0x09, "i64.trunc_f64_s", "a:f64 -> d:i64", "trap", "d = trunc(a); trap if NaN or not in -2^63 .. 2^63-1"),
    (0x0A, "i64.trunc_f64_u", "a:f64 -> d:i64", "trap", "d = trunc(a); trap if NaN or not in 0 .. 2^64-1"),
    (0x0B, "i32.trunc_sat_f32_s", "a:f32 -> d:i32", "pure", "d = trunc(a) clamped to -2^31 .. 2^31-1; 0 for NaN"),
    (0x0C, "i32.trunc_sat_f32_u", "a:f32 -> d:i32", "pure", "d = trunc(a) clamped to 0 .. 2^32-1; 0 for NaN"),
    (0x0D, "i32.trunc_sat_f64_s", "a:f64 -> d:i32", "pure", "d = trunc(a) clamped to -2^31 .. 2^31-1; 0 for NaN"),
    (0x0E, "i32.trunc_sat_f64_u", "a:f64 -> d:i32", "pure", "d = trunc(a) clamped to 0 .. 2^32-1; 0 for NaN"),
    (0x0F, "i64.trunc_sat_f32_s", "a:f32 -> d:i64", "pure", "d = trunc(a) clamped to -2^63 .. 2^63-1; 0 for NaN"),
    (0x10, "i64.trunc_sat_f32_u", "a:f32 -> d:i64", "pure", "d = trunc(a) clamped to 0 .. 2^64-1; 0 for NaN"),
    (0x11, "i64.trunc_sat_f64_s", "a:f64 -> d:i64", "pure", "d = trunc(a) clamped to -2^63 .. 2^63-1; 0 for NaN"),
    (0x12, "i64.trunc_sat_f64_u", "a:f64 -> d:i64", "pure", "d = trunc(a) clamped to 0 .. 2^64-1; 0 for NaN"),
    (0x13, "f32.convert_i32_s", "a:i32 -> d:f32", "pure", "d = s(a), rounded once"),
    (0x14, "f32.convert_i32_u", "a:i32 -> d:f32", "pure", "d = u(a), rounded once"),
    (0x15, "f32.convert_i64_s", "a:i64 -> d:f32", "pure", "d = s(a), rounded once"),
    (0x16, "f32.convert_i64_u", "a:i64 -> d:f32", "pure", "d = u(a), rounded once"),
    (0x17, "f64.convert_i32_s", "a:i32 -> d:f64", "pure", "d = s(a)"),
    (0x18, "f64.convert_i32_u", "a:i32 -> d:f64", "pure", "d = u(a)"),
    (0x19, "f64.convert_i64_s", "a:i64 -> d:f64", "pure", "d = s(a), rounded once"),
    (0x1A, "f64.convert_i64_u", "a:i64 -> d:f64", "pure", "d = u(a), rounded once"),
    (0x1B, "f32.demote_f64", "a:f64 -> d:f32", "pure", "d = a, rounded once"),
    (0x1C, "f64.promote_f32", "a:f32 -> d:f64", "pure", "d = a"),
    (0x1D, "i32.reinterpret_f32", "a:f32 -> d:i32", "pure", "d = the bits of a"),
    (0x1E, "i64.reinterpret_f64", "a:f64 -> d:i64", "pure", "d = the bits of a"),
    (0x1F, "f32.reinterpret_i32", "a:i32 -> d:f32", "pure", "d = the bits of a"),
    (0x20, "f64.reinterpret_i64", "a:i64 -> d:f64", "pure", "d = the bits of a"),
)

# X stands for each bank, T for its type (any for ref)
_GLOBAL: _Rows = (
    (0x00, "global.load.X", "from:global -> d:T", "load", "d = from"),
    (0x01, "global.store.X", "a:T to:global", "store", "to = a"),
)

# X stands for each bank, T for the type of its elements (any for ref)
_LIST: _Rows = (
    (
        0x00,
        "list.X.new",
        "size:i64 -> d:list<T>",
        "write",
        "d = a new list of size zeros or nulls; trap if s(size) < 0",
    ),
    (0x01, "list.X.size", "a:list<T> -> d:i64", "read", "d = number of elements of a"),
    (
        0x02,
        "list.X.resize",
        "a:list<T> size:i64",
        "write",
        "cut a to size or append zeros or nulls; trap if s(size) < 0",
    ),
    (0x03, "list.X.get", "a:list<T> index:i64 -> d:T", "read", "d = a[index]; trap if not 0 <= s(index) < size"),
    (0x04, "list.X.set", "a:list<T> index:i64 value:T", "write", "a[index] = value; trap if not 0 <= s(index) < size"),
)

# Lengths and offsets are bytes, read as signed. A range that is not inside its buffer traps before any byte changes.
_BUFFER: _Rows = (
    (
        0x00,
        "buffer.alloc",
        "size:i64 -> d:buffer",
        "write",
        "d = a new host buffer of size zero bytes; trap if size < 0",
    ),
    (
        0x01,
        "buffer.constant",
        "from:constant offset:i64 length:i64 -> d:buffer",
        "read",
        "d = a read-only view of a range of a constant of the program, not copied",
    ),
    (
        0x02,
        "buffer.slice",
        "a:buffer offset:i64 length:i64 -> d:buffer",
        "read",
        "d = a view of a range of a, the same memory; read-only if a is",
    ),
    (0x03, "buffer.size", "a:buffer -> d:i64", "read", "d = size of a"),
    (0x04, "buffer.load8_s", "a:buffer offset:i64 -> d:i32", "read", "d = the byte, sign extended"),
    (0x05, "buffer.load8_u", "a:buffer offset:i64 -> d:i32", "read", "d = the byte, zero extended"),
    (0x06, "buffer.load16_s", "a:buffer offset:i64 -> d:i32", "read", "d = 2 bytes, little endian, sign extended"),
    (0x07, "buffer.load16_u", "a:buffer offset:i64 -> d:i32", "read", "d = 2 bytes, little endian, zero extended"),
    (0x08, "buffer.load.i32", "a:buffer offset:i64 -> d:i32", "read", "d = 4 bytes, little endian"),
    (0x09, "buffer.load.i64", "a:buffer offset:i64 -> d:i64", "read", "d = 8 bytes, little endian"),
    (0x0A, "buffer.load.f32", "a:buffer offset:i64 -> d:f32", "read", "d = 4 bytes, little endian, bit by bit"),
    (0x0B, "buffer.load.f64", "a:buffer offset:i64 -> d:f64", "read", "d = 8 bytes, little endian, bit by bit"),
    (
        0x0C,
        "buffer.store8",
        "a:buffer offset:i64 value:i32",
        "write",
        "the byte = value mod 2^8; trap if a is read-only",
    ),
    (
        0x0D,
        "buffer.store16",
        "a:buffer offset:i64 value:i32",
        "write",
        "2 bytes = value mod 2^16; trap if a is read-only",
    ),
    (0x0E, "buffer.store.i32", "a:buffer offset:i64 value:i32", "write", "4 bytes = value; trap if a is read-only"),
    (0x0F, "buffer.store.i64", "a:buffer offset:i64 value:i64", "write", "8 bytes = value; trap if a is read-only"),
    (
        0x10,
        "buffer.store.f32",
        "a:buffer offset:i64 value:f32",
        "write",
        "4 bytes = the bits of value; trap if a is read-only",
    ),
    (
        0x11,
        "buffer.store.f64",
        "a:buffer offset:i64 value:f64",
        "write",
        "8 bytes = the bits of value; trap if a is read-only",
    ),
    (
        0x12,
        "buffer.fill8",
        "a:buffer offset:i64 length:i64 value:i32",
        "write",
        "every byte of the range = value mod 2^8; trap if a is read-only",
    ),
    (
        0x13,
        "buffer.fill16",
        "a:buffer offset:i64 length:i64 value:i32",
        "write",
        "every 2 bytes = value mod 2^16; trap if a is read-only or length mod 2 != 0",
    ),
    (
        0x14,
        "buffer.fill32",
        "a:buffer offset:i64 length:i64 value:i32",
        "write",
        "every 4 bytes = value; trap if a is read-only or length mod 4 != 0",
    ),
    (
        0x15,
        "buffer.fill64",
        "a:buffer offset:i64 length:i64 value:i64",
        "write",
        "every 8 bytes = value; trap if a is read-only or length mod 8 != 0",
    ),
    (
        0x16,
        "buffer.copy",
        "a:buffer a_offset:i64 b:buffer b_offset:i64 length:i64",
        "write",
        "b[b_offset ..] = a[a_offset ..] as it was before; the ranges may overlap; trap if b is read-only",
    ),
    (
        0x17,
        "buffer.compare",
        "a:buffer a_offset:i64 b:buffer b_offset:i64 length:i64 -> d:i32",
        "read",
        "d = -1, 0 or 1: the ranges as unsigned bytes in lexicographic order",
    ),
)


def _rows(family: str, base: int, rows: _Rows, bank: str = "") -> tuple[Instruction, ...]:
    element = "any" if bank == "ref" else bank

    def fill(text: str) -> str:
        return text.replace("X", bank).replace("T", element) if bank else text

    return tuple(
        _row(family, base + offset, fill(name), fill(spec), effect, doc, since[0] if since else 0)
        for offset, name, spec, effect, doc, *since in rows
    )


#: family -> first opcode of each of its ranges, in the order of the docs
FAMILIES: dict[str, str] = {
    "control": "branches, calls, failure, suspension",
    "value": "constants, copies, selection",
    "ref": "references",
    "integer": "integer arithmetic, bits, comparison",
    "float": "floating-point arithmetic, comparison",
    "conversion": "conversions between number types",
    "globals": "globals of a program",
    "lists": "lists of one element type",
    "buffers": "host byte buffers",
}

INSTRUCTIONS: tuple[Instruction, ...] = (
    *_rows("control", 0x0000, _CONTROL),
    *_rows("value", 0x0100, _VALUE, "i32"),
    *_rows("value", 0x0110, _VALUE, "i64"),
    *_rows("value", 0x0120, _VALUE, "f32"),
    *_rows("value", 0x0130, _VALUE, "f64"),
    *_rows("ref", 0x0140, _REF),
    *_rows("integer", 0x0200, _INTEGER, "i32"),
    *_rows("integer", 0x0280, _INTEGER, "i64"),
    *_rows("integer", 0x0280, _INTEGER64),
    *_rows("float", 0x0300, _FLOAT, "f32"),
    *_rows("float", 0x0380, _FLOAT, "f64"),
    *_rows("conversion", 0x0400, _CONVERSION),
    *(row for at, bank in enumerate(BANKS) for row in _rows("globals", 0x0500 + 0x10 * at, _GLOBAL, bank)),
    *(row for at, bank in enumerate(BANKS) for row in _rows("lists", 0x0600 + 0x10 * at, _LIST, bank)),
    *_rows("buffers", 0x0700, _BUFFER),
)

BY_OPCODE: dict[int, Instruction] = {row.opcode: row for row in INSTRUCTIONS}
BY_NAME: dict[str, Instruction] = {row.name: row for row in INSTRUCTIONS}
