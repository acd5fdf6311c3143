"""The requirements of a lowered entry on its caller and its device, collected from its `kernel` IR in one walk."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.core import Block, Operation
from orchestrion.compiler.kernel.code.builder import Function, body_of
from orchestrion.compiler.sequencer.level_code import code_of
from orchestrion.compiler.sequencer.ll_seq import Entry, access_of
from orchestrion.schema.dtypes import BOOL, BY_NAME, FLOAT, DType

from . import dialect as k
from .machine import shared_bytes


@dataclass(frozen=True, slots=True)
class BindingUse:
    """A binding: whether the entry may write it, and its element type, None if the code does not access it.

    `place`: the device's binding that it lies in. `offset`: the parameter word with the byte offset there, or None.
    `retyped`: whether the entry keeps values of other types in the same memory.
    """

    writable: bool
    dtype: DType | None
    place: int = 0
    offset: int | None = None
    retyped: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """`features` are names of `schema.profiles.FEATURES`; `parameters` counts 32-bit words."""

    name: str
    bindings: tuple[BindingUse, ...]
    parameters: int
    workgroup_size: tuple[int, int, int]
    shared_bytes: int
    features: frozenset[str]


def signature_of(entry: Entry) -> Signature:
    """The signature of an entry whose body is `kernel` IR.

    Raises CompileError if it is not, or if the body is invalid.
    """
    size = entry.workgroup_size
    if size is None or len(size) != 3 or min(size.ints) < 1:
        raise _wrong(entry, f"has the workgroup size {size}: it was not lowered")
    block = code_of(entry)
    ops = [op for top in block for op in top.walk()]
    _check_body(entry, block, ops)
    elements = _element_types(block, ops)
    retyped = () if entry.retyped is None else entry.retyped.ints
    bindings = [
        BindingUse(access_of(item) != "read", elements.get(ordinal), *place, ordinal in retyped)
        for ordinal, (item, place) in enumerate(zip(entry.bindings, entry.places(), strict=True))
    ]
    shared = [op.output for op in ops if isinstance(op, k.Shared)]
    words = [op.ordinal.value + 1 for op in ops if isinstance(op, k.Parameter)]
    x, y, z = size.ints
    return Signature(
        entry.symbol or "",
        tuple(bindings),
        max([*words, entry.parameter_words]),
        (x, y, z),
        sum(k.length_of(array) * shared_bytes(k.dtype_of(array)) for array in shared),
        frozenset(filter(None, map(_feature, _dtypes(ops, elements)))),
    )


def _check_body(entry: Entry, block: Block, ops: Sequence[Operation]) -> None:
    """Checks that the body is kernel IR, so that a target can render every op of it."""
    if not isinstance(block.last, k.Return):
        raise _wrong(entry, "needs a body of one block that ends with kernel.return")
    for op in ops:
        if op.name not in k.DIALECT.ops or (isinstance(op, k.Return) and op is not block.last):
            raise _wrong(op, "has no place in the body of a kernel")
    if len(entry.bindings) != len(block.arguments):
        raise _wrong(entry, f"has {len(entry.bindings)} bindings and {len(block.arguments)} arguments")


def _element_types(block: Block, ops: Sequence[Operation]) -> dict[int, DType]:
    """Binding -> the type of the elements that are loaded from it or stored to it. There must be only one."""
    elements: dict[int, DType] = {}
    ordinals = {argument: ordinal for ordinal, argument in enumerate(block.arguments)}
    for op in ops:
        if isinstance(op, k.Load | k.LoadLanes | k.LoadBytes | k.Store | k.StoreBits | k.StoreVector):
            value = op.results[0] if op.results else op.operands[0]
            dtype = BY_NAME[op.element.value] if isinstance(op, k.LoadBytes) else k.dtype_of(value)
            ordinal = ordinals[op.binding]  # type: ignore[index]
            if elements.setdefault(ordinal, dtype) is not dtype:
                raise _wrong(op, f"takes binding {ordinal} as {dtype}, other ops as {elements[ordinal]}")
    return elements


def _dtypes(ops: Sequence[Operation], elements: dict[int, DType]) -> Iterator[DType]:
    """The types that may need a feature: those of computed and shared values, and those in memory, where an i1 is a
    byte.
    """
    for dtype in elements.values():
        yield BY_NAME["ui8"] if dtype.kind == BOOL else dtype
    made = {value.type: value for op in ops for value in op.results}
    yield from (k.dtype_of(value) for type, value in made.items() if k.is_carried(type))
    for op in ops:
        if isinstance(op, k.Call):
            yield from body_of(Function.of(op)).dtypes


def _feature(dtype: DType) -> str | None:
    if dtype.kind == FLOAT:
        return "float64" if dtype.bits == 64 else None
    return f"int{dtype.bits}" if dtype.bits in (8, 16, 64) else None


def _wrong(op: Operation, message: str) -> CompileError:
    return CompileError([Diagnostic(message, op.loc, op.name)])
