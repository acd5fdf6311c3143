"""Tensor bytecode: the reference device's programs. Its ops as rows, its layout, and programs as data.

A payload is little endian, without padding:

    payload      "OTBC" | u16 major | u16 minor | u32 entries | entry*
    entry        u16 bindings | u32 instructions | instruction*
    instruction  u16 code | the row's fields in order
    body         u32 instructions | instruction* | values          (values are numbered from 0 again, parameters first)

An instruction defines the next values, one per result. The row's rule derives their types from the operands and fields
(SSA: a value is defined before it is used). A load reads, and a store writes, the first bytes of a binding. A binding
is stored to at most once, and not loaded from afterwards. `doc` of a row states what it computes; `scalars.py` defines
elementwise ops. `tensor_encoding.py` writes and verifies; `tensor_disassembler.py` prints.

Version rule: readers accept their own major version and any minor version up to their own. Each row has the minor
version that added it. A payload, and its variant in the module, state the least version that has all of its rows. Codes
are never reused; the code of an elementwise op is 0x100 + its position in `SCALARS`, which is append-only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from . import tensor_shapes as shapes
from .dtypes import COMPUTED, DType
from .library_call import library_call
from .scalars import SCALARS, ScalarOp
from .tensor_shapes import E, ShapeError, TensorType, Types
from .versions import FORMAT_MINORS

MAGIC = b"OTBC"
FORMAT = "tensor-bytecode"
#: the formats whose payloads are tensor bytecode
FORMATS = (FORMAT, "library-calls")
MAJOR, MINOR = 1, FORMAT_MINORS[FORMAT]
SCALAR_BASE = 0x100
#: the number of scalar ops in version 1.0
FIRST_SCALARS = 55


class Rule(Protocol):
    """A shape rule, of numbers or of the compiler's symbolic sizes."""

    def __call__(self, operands: Types[E], /, *attributes: Any, **_: Any) -> Types[E]: ...


#: the kinds of fields; `value` and `values` are operands, all others attributes
FIELD_KINDS: dict[str, str] = {
    "value": "u32 ordinal of a value",
    "values": "u32 count, then as many u32 ordinals",
    "binding": "u16 ordinal of a binding",
    "axis": "u16",
    "ints": "u16 count, then as many i64",
    "dtype": "u16 code of an element type",
    "type": "u16 code of an element type, u16 rank, as many i64",
    "data": "u64 count, then as many bytes",
    "body": "a sub-program of elementwise ops and constants over rank-0 values",
    "types": "u16 count, then as many types",
    "function": "the name of a library function: u32 count, then as many bytes of UTF-8",
    "named": "named values, as `library_call.py` lays them out",
}


@dataclass(frozen=True, slots=True)
class TensorOp:
    """A row: code, name, fields as (name, kind), the rule for result types, and the meaning."""

    code: int
    name: str
    fields: tuple[tuple[str, str], ...]
    rule: Rule
    doc: str
    scalar: ScalarOp | None = None
    #: whether the result may share its operand's memory
    view: bool = False
    #: the minor version that added it
    since: int = 0

    @property
    def writes(self) -> bool:
        """Whether it writes a binding and has no result."""
        return self.name in ("store_output", "store_slice")

    @property
    def attributes(self) -> tuple[tuple[str, str], ...]:
        return tuple(field for field in self.fields if field[1] not in ("value", "values"))


class Instruction:
    """One instruction; `first` is the ordinal of its first result. Immutable by convention."""

    __slots__ = ("attributes", "first", "operands", "row", "types")

    def __init__(
        self, row: TensorOp, operands: tuple[int, ...], attributes: tuple[Any, ...], first: int, types: Types
    ) -> None:
        self.row = row
        self.operands = operands
        self.attributes = attributes
        self.first = first
        self.types = types


class Code:
    """A sequence of instructions that is always valid: `append` checks everything."""

    __slots__ = ("instructions", "parameters", "values")

    def __init__(self, parameters: Types = ()) -> None:
        self.parameters = tuple(parameters)
        self.values: list[TensorType] = list(parameters)
        self.instructions: list[Instruction] = []

    def append(self, row: TensorOp, operands: tuple[int, ...], attributes: tuple[Any, ...]) -> range:
        """Adds an instruction. Returns the ordinals of its results. Raises ShapeError."""
        values = self.values
        first = len(values)
        for operand in operands:
            if not 0 <= operand < first:
                raise ShapeError(f"value {operand} out of range ({first} defined)")
        types = row.rule([values[operand] for operand in operands], *attributes)
        self.instructions.append(Instruction(row, operands, attributes, first, types))
        values += types
        return range(first, len(values))

    def emit(self, name: str, operands: Sequence[int], *attributes: Any) -> range:
        """`append` by the row's name."""
        return self.append(BY_NAME[name], tuple(operands), attributes)


class Body(Code):
    """A sub-program of a reduce or scatter: elementwise ops and constants over rank-0 values, followed by
    its results.
    """

    __slots__ = ("results",)

    def __init__(self, parameters: Types) -> None:
        super().__init__(parameters)
        self.results: tuple[int, ...] = ()

    def append(self, row: TensorOp, operands: tuple[int, ...], attributes: tuple[Any, ...]) -> range:
        if row.scalar is None and row.name != "constant":
            raise ShapeError(f"{row.name} inside a body")
        if row.scalar is None and attributes[0].rank:
            raise ShapeError(f"constant of type {attributes[0]} inside a body")
        return super().append(row, operands, attributes)

    def finish(self, results: tuple[int, ...]) -> None:
        """Ends the body. The results have the types of the first half of the parameters."""
        for result in results:
            if not 0 <= result < len(self.values):
                raise ShapeError(f"value {result} out of range ({len(self.values)} defined)")
        types = [self.values[result] for result in results]
        wanted = list(self.parameters[: len(self.parameters) // 2])
        if types != wanted:
            raise ShapeError(f"body gives ({', '.join(map(str, types))}), expected ({', '.join(map(str, wanted))})")
        self.results = results


def body_parameters(operands: Types[E]) -> Types:
    """The parameters of the body of a reduce or scatter: one scalar per input, twice."""
    scalars = [TensorType(operand.dtype, ()) for operand in operands[: len(operands) // 2]]
    return (*scalars, *scalars)


class EntryCode(Code):
    """An entry: its code, and its number of bindings.

    `reads` and `writes` map bindings that are loaded from or stored to -> the bytes touched.
    """

    __slots__ = ("bindings", "reads", "writes")

    def __init__(self, bindings: int) -> None:
        super().__init__()
        self.bindings = bindings
        self.reads: dict[int, int] = {}
        self.writes: dict[int, int] = {}

    @property
    def accesses(self) -> tuple[tuple[str, int], ...]:
        """(access, bytes) per binding, as the module states them."""
        reads, writes = self.reads, self.writes
        return tuple(
            (
                "read" if binding not in writes else "readwrite" if binding in reads else "write",
                max(reads.get(binding, 0), writes.get(binding, 0)),
            )
            for binding in range(self.bindings)
        )

    def append(self, row: TensorOp, operands: tuple[int, ...], attributes: tuple[Any, ...]) -> range:
        results = super().append(row, operands, attributes)
        if row is LOAD:
            binding, loaded = attributes
            self._check(binding, "loaded from after its store")
            self.reads[binding] = max(self.reads.get(binding, 0), loaded.bytes)
        elif row is STORE:
            binding = attributes[0]
            self._check(binding, "stored to twice")
            self.writes[binding] = self.values[operands[0]].bytes
        elif row is STORE_SLICE:
            binding, whole = attributes
            self._check(binding, "stored to twice")
            touched = self.writes[binding] = TensorType(self.values[operands[0]].dtype, whole).bytes
            self.reads[binding] = max(self.reads.get(binding, 0), touched)
        return results

    def _check(self, binding: int, second: str) -> None:
        if binding >= self.bindings:
            raise ShapeError(f"binding {binding} out of range ({self.bindings} bindings)")
        if binding in self.writes:
            raise ShapeError(f"binding {binding} is {second}")


@dataclass(frozen=True, slots=True)
class Program:
    """A decoded and verified payload."""

    entries: tuple[EntryCode, ...]


def _row(code: int, name: str, fields: str, rule: Rule, doc: str, view: bool = False, since: int = 0) -> TensorOp:
    pairs = [field.partition(":") for field in fields.split()]
    return TensorOp(code, name, tuple((name, kind) for name, _, kind in pairs), rule, doc, None, view, since)


def _scalar_row(position: int, scalar: ScalarOp) -> TensorOp:
    fields = tuple((f"x{number}", "value") for number in range(scalar.arity))
    fields += (("dtype", "dtype"),) if scalar.result == "U" else ()
    since = int(position >= FIRST_SCALARS)
    return TensorOp(SCALAR_BASE + position, scalar.name, fields, _elementwise(scalar), scalar.doc, scalar, since=since)


def _elementwise(scalar: ScalarOp) -> Rule:
    """Operands of one shape and accepted types, and a result of that shape. Results are cached, because
    types are few.
    """
    known: dict[tuple[DType, ...], DType | None] = {}

    def find(types: tuple[DType, ...]) -> DType | None:
        operands = types[: scalar.arity]
        wanted = types[scalar.arity :] or COMPUTED
        return next((result for result in wanted if scalar.accepts(operands, result)), None)

    def rule(operands: Types[E], *attributes: DType) -> Types[E]:
        shape = operands[0].shape
        for operand in operands:
            if operand.shape != shape:
                raise ShapeError(f"operands {', '.join(map(str, operands))} differ in shape")
        types = (*[operand.dtype for operand in operands], *attributes)
        if types not in known:
            known[types] = find(types)
        dtype = known[types]
        if dtype is None:
            raise ShapeError(f"not defined for ({', '.join(map(str, types))})")
        return (TensorType(dtype, shape),)

    return rule


_STRUCTURAL: tuple[TensorOp, ...] = (
    _row(1, "load_input", "binding:binding type:type", shapes.given, "the first bytes of the binding, i1 as byte != 0"),
    _row(
        2, "store_output", "value:value binding:binding", shapes.nothing, "the value to the first bytes of the binding"
    ),
    _row(3, "constant", "type:type data:data", shapes.constant, "the elements in row-major order"),
    _row(4, "iota", "type:type axis:axis", shapes.iota, "each element's index along the axis, converted to the type"),
    _row(
        5,
        "broadcast_in_dim",
        "value:value shape:ints axes:ints",
        shapes.broadcast_in_dim,
        "operand axis i becomes axis axes[i], a 1 repeated; all other axes repeat the operand",
        view=True,
    ),
    _row(6, "reshape", "value:value shape:ints", shapes.reshape, "same elements in row-major order", view=True),
    _row(7, "transpose", "value:value axes:ints", shapes.transpose, "result axis i is operand axis axes[i]", view=True),
    _row(
        8,
        "slice",
        "value:value starts:ints limits:ints strides:ints",
        shapes.slice_,
        "operand[start:limit:stride] along each axis",
        view=True,
    ),
    _row(
        9,
        "pad",
        "value:value padding:value low:ints high:ints interior:ints",
        shapes.pad,
        "interior paddings between neighbours, then low before and high after; negative low and high remove",
    ),
    _row(10, "concatenate", "values:values axis:axis", shapes.concatenate, "the operands one after the other"),
    _row(11, "reverse", "value:value axes:ints", shapes.reverse, "the axes in opposite order", view=True),
    _row(
        12,
        "reduce",
        "values:values axes:ints body:body",
        shapes.reduce,
        "body(initial, tree): the tree combines the elements along the axes, in row-major order, by adjacent pairs, "
        "level by level, an odd last one passing up; no elements give initial; "
        "operands are inputs and as many initial values",
    ),
    _row(
        13,
        "dot_general",
        "left:value right:value left_batch:ints right_batch:ints left_contract:ints right_contract:ints dtype:dtype",
        shapes.dot_general,
        "sums of products over the contracting axes, in the wider of the operands' and the result's type; integers "
        "wrap, i1 is or of ands",
    ),
    _row(
        14,
        "dynamic_slice",
        "value:value starts:values sizes:ints",
        shapes.dynamic_slice,
        "operand[start:start + size] along each axis, start clamped to what leaves the slice inside",
        since=1,
    ),
    _row(
        15,
        "dynamic_update_slice",
        "value:value update:value starts:values",
        shapes.dynamic_update_slice,
        "the operand with operand[start:start + size] replaced by the update, start clamped as in dynamic_slice",
        since=1,
    ),
    _row(
        16,
        "store_slice",
        "update:value starts:values binding:binding whole:ints",
        shapes.store_slice,
        "the update into the tensor of shape `whole` that the binding holds, where dynamic_update_slice puts it; "
        "nothing else is written",
        since=1,
    ),
    _row(
        17,
        "gather",
        "value:value indices:value offset_dims:ints collapsed_slice_dims:ints operand_batching_dims:ints "
        "start_indices_batching_dims:ints start_index_map:ints index_vector_dim:axis slice_sizes:ints",
        shapes.gather,
        "slices of the operand, each from where an index vector says, clamped as in dynamic_slice; StableHLO's axes",
        since=1,
    ),
    _row(
        18,
        "windows",
        "value:value axes:ints sizes:ints strides:ints dilations:ints",
        shapes.windows,
        "windows along some axes: element j of window i along one is element i * stride + j * dilation; "
        "the js are axes of their own, behind the operand's",
        view=True,
        since=1,
    ),
    _row(
        19,
        "scatter",
        "values:values body:body",
        shapes.scatter,
        "in every group g, for n = 0, 1, ...: row indices[g, n] of the inputs becomes the body of it and of row n of "
        "the updates, where there is such a row; operands are inputs [groups, rows, row], indices [groups, updates], "
        "as many updates [groups, updates, row]",
        since=2,
    ),
    _row(
        20,
        "number",
        "type:type number:ints",
        shapes.number,
        "the one number everywhere, converted to the type",
        since=2,
    ),
    _row(
        64,
        "library_call",
        "values:values types:types function:function config:named",
        library_call,
        "what the function of that name, registered with the device, makes of the operands",
        since=1,
    ),
)

ROWS: tuple[TensorOp, ...] = (
    *_STRUCTURAL,
    # StableHLO has no fma, and NumPy needs microseconds per element for an exact one in f64.
    *(_scalar_row(position, scalar) for position, scalar in enumerate(SCALARS) if scalar.name != "fma"),
)
LOAD, STORE = _STRUCTURAL[:2]
BY_CODE: dict[int, TensorOp] = {row.code: row for row in ROWS}
BY_NAME: dict[str, TensorOp] = {row.name: row for row in ROWS}
STORE_SLICE, LIBRARY_CALL = BY_NAME["store_slice"], BY_NAME["library_call"]
