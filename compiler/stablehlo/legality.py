"""check-legality: reports everything in a program that is unsupported or invalid, at once.

An op is refused by its name, a type or an attribute; the message says what is supported instead. The verifier's
messages about other ops are added, so that one compilation shows everything to be fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.attributes import DialectAttr, IntegerAttr, SymbolRef
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation, Region, UnregisteredOp
from orchestrion.compiler.ir.dims import bounds
from orchestrion.compiler.ir.symbols import SymbolTables
from orchestrion.compiler.ir.types import TOKEN, FunctionType, TensorType, Type, is_token
from orchestrion.compiler.ir.verifier import declaration_problems, problems
from orchestrion.compiler.options import Options
from orchestrion.compiler.stablehlo.functions.annotations import MESHES
from orchestrion.compiler.stablehlo.functions.callbacks import callbacks_diagnostic, is_callback
from orchestrion.compiler.stablehlo.functions.calls import CallGraph
from orchestrion.compiler.stablehlo.ops import chlo, contraction, dialect, imported, structural
from orchestrion.compiler.stablehlo.ops.base import is_complex, is_known, is_supported
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral, Reduce
from orchestrion.compiler.stablehlo.ops.custom_call import CustomCall
from orchestrion.compiler.stablehlo.ops.elementwise import BitcastConvert, Elementwise
from orchestrion.compiler.stablehlo.ops.func import Call, Func, Return
from orchestrion.compiler.stablehlo.ops.scatter import Scatter
from orchestrion.compiler.stablehlo.ops.sort import Sort
from orchestrion.compiler.stablehlo.ops.tokens import PASS_ON_TOKENS, has_token
from orchestrion.compiler.stablehlo.ops.windowed import ReduceWindow, SelectAndScatter
from orchestrion.schema.dtypes import BOOL, BY_NAME, COMPUTED
from orchestrion.schema.rules import MAX_RANK

_TYPES: Final = ", ".join(BY_NAME)

#: Name of an op, or a prefix that ends in `*` -> the reason in the message.
_FAMILIES: Final[dict[str, str]] = {
    "cf.*": "control flow other than stablehlo.if, case and while",
    "scf.*": "control flow other than stablehlo.if, case and while",
    "stablehlo.set_dimension_size": "dimensions with a bound, of which a part is used",
    "shape.*": "dynamic shapes",
    "stablehlo.uniform_*": "a quantized type that is not known",
    "stablehlo.all_*": "several devices",
    "stablehlo.collective_*": "several devices",
    "stablehlo.cross-replica-sum": "several devices",
    "stablehlo.reduce_scatter": "several devices",
    "stablehlo.send": "several devices: there is no receiver",
    "stablehlo.recv": "several devices: there is no sender",
    "stablehlo.infeed": "transfers while the program runs: use arguments",
    "stablehlo.outfeed": "transfers while the program runs: use results",
    "stablehlo.async_*": "asynchronous ops: only calls of the module are asynchronous",
    "stablehlo.after_all": "tokens, which order effects that no device here has",
    "stablehlo.create_token": "tokens, which order effects that no device here has",
    "stablehlo.tuple": "a tuple as operand of an op other than calls and control flow",
    "stablehlo.get_tuple_element": "an element of something that no tuple op made",
    "sdy.*": "several devices",
    "chlo.*": "an op of CHLO",
}

#: Attributes that the message about a refused op states.
_TELLING: Final = ("name", "custom_call_target")


def run(module: Module, options: Options) -> None:
    refused: dict[Operation, list[str]] = {}
    graph = CallGraph(module)
    callbacks = callbacks_diagnostic(module, options.callbacks == "drop")
    for op in module.walk():
        found = list(_refusals(op))
        if callbacks is not None:  # this diagnostic covers the callbacks and the tokens that order them
            found = [] if _is_of_callbacks(op) else [message for message in found if f" is {TOKEN}: " not in message]
        if found:
            refused[op] = found
    for call in graph.callees_first()[1]:
        refused.setdefault(call, []).append(f"calls {call.callee} in a circle: recursion is not supported")
    wrong: dict[Operation, list[str]] = {}
    for op, message in problems(module):
        if op not in refused and (callbacks is None or not _is_of_callbacks(op)):
            wrong.setdefault(op, []).append(message)
    if refused or wrong or callbacks is not None:
        said = [] if callbacks is None else [callbacks]
        raise CompileError([*_diagnostics(module, refused, wrong), *said])


def _diagnostics(
    module: Module, refused: dict[Operation, list[str]], wrong: dict[Operation, list[str]]
) -> Iterator[Diagnostic]:
    for op in module.walk():
        for message in (*refused.get(op, ()), *wrong.get(op, ())):
            yield Diagnostic(message, op.loc, op.name)
    if any(isinstance(op, UnregisteredOp) for op in refused):
        names = ", ".join(name.removeprefix("stablehlo.") for name in sorted(dialect.DIALECT.ops))
        of_chlo = ", ".join(name.removeprefix("chlo.") for name in sorted(chlo.DIALECT.ops))
        yield Diagnostic(f"supported ops of StableHLO are {names}; of chlo: {of_chlo}; of func: func, call, return")


def _is_of_callbacks(op: Operation) -> bool:
    """Whether the op is a callback, or passes on the tokens of some."""
    return is_callback(op) or op.name in PASS_ON_TOKENS and has_token(op)


def _refusals(op: Operation) -> Iterator[str]:
    if isinstance(op, Module):
        yield from _module(op)
        return
    if isinstance(op.parent_op, Module) and op.parent_op.parent is None and not isinstance(op, Func):
        if op.name not in MESHES:
            yield "is not supported outside of functions"
        return
    if isinstance(op, UnregisteredOp):
        yield _unknown(op)
        return
    rule = _RULES.get(type(op))
    if rule is not None and not any(declaration_problems(op)):
        yield from rule(op)
    elif isinstance(op, CustomCall) and (reason := op.refusal_reason()):
        yield reason  # the types, which are reported too, do not say what it calls
    for index, result in enumerate(op.results):
        for message in _type(result.type):
            yield f"result {index} is {result.type}: {message}"
    if isinstance(op, Elementwise):
        yield from _accuracy(op)
    elif any(map(is_complex, (*op.operands, *op.results))):
        yield from _complex(op)


def _module(module: Module) -> Iterator[str]:
    for key in ("mhlo.num_partitions", "mhlo.num_replicas"):
        count = module.get_as(key, IntegerAttr)
        if count is not None and count.value != 1:
            yield f"{key} is {count.value}: programs for several devices are not supported"
    if module.parent is not None:
        yield "a module inside a module is not supported"
    elif not any(isinstance(op, Func) and op.is_public for op in module.block):
        yield "has no public function"


def _unknown(op: Operation) -> str:
    prefix = op.name.partition(".")[0]
    family = _FAMILIES.get(op.name)
    if family is None:
        starts = (key for key in _FAMILIES if key.endswith("*") and op.name.startswith(key[:-1]))
        family = next((_FAMILIES[key] for key in starts), "" if prefix == "stablehlo" else f"dialect {prefix}")
    telling = ", ".join(f"{key} = {value}" for key in _TELLING if (value := op.get(key)) is not None)
    reason = "; ".join(part for part in (family, telling) if part)
    return f"is not supported{f' ({reason})' if reason else ''}"


def _type(type: Type) -> Iterator[str]:
    """Why a type is refused."""
    if is_known(type):
        assert isinstance(type, TensorType)
        if type.is_static and type.num_elements * BY_NAME[str(type.element)].itemsize >= 2**63:
            yield "the tensor does not fit an address space"
        if type.rank > MAX_RANK:
            yield f"rank {type.rank}, tensors have {MAX_RANK} axes at the most"
        return
    if not isinstance(type, TensorType):
        what = "; tokens, which order side effects, are not supported" if is_token(type) else ""
        yield f"values must be tensors{what}"
        return
    if str(type.element) not in BY_NAME:
        yield f"element type {type.element} is not supported; supported are {_TYPES}"
    if type.encoding:
        yield f"encoding {type.encoding} is not supported"


def _complex(op: Operation) -> Iterator[str]:
    """Refuses a non-elementwise op on complex numbers."""
    from orchestrion.compiler.stablehlo.complex.expand import OPS  # few programs have any

    if type(op) not in OPS and not isinstance(op, Call | Return | contraction.Return):
        yield "is not supported on complex numbers"


def _func(op: Func) -> Iterator[str]:
    signature = op.properties.get("function_type")
    if isinstance(signature, FunctionType):
        for index, type in enumerate(signature.inputs):
            for message in _type(type):
                yield f"argument {index} is {type}: {message}"
    if op.is_declaration:
        yield from imported.import_problems(op)
    elif len(op.body.blocks) != 1:
        yield f"has {len(op.body.blocks)} blocks: control flow other than stablehlo.if, case and while is not supported"


def _dot(op: DotGeneral) -> Iterator[str]:
    if op.algorithm is None:
        return
    known = "element types and tf32, accumulated in a type that holds them"
    yield f"algorithm {op.algorithm} is not supported; supported are {known}"


def _bitcast(op: BitcastConvert) -> Iterator[str]:
    source, target = op.operand_.type, op.out.type
    if not (is_known(source) and is_known(target)):
        return
    assert isinstance(source, TensorType) and isinstance(target, TensorType)
    a, b = BY_NAME[str(source.element)], BY_NAME[str(target.element)]
    if a.bits != b.bits or BOOL in (a.kind, b.kind) and a is not b:
        yield f"from {source} to {target} is not supported; the parts of the wider type need a last axis; no i1"


def _custom_call(op: CustomCall) -> Iterator[str]:
    for what, values in (("operand", op.operands), ("result", op.results)):
        for index, value in enumerate(values):
            if is_known(value.type) and not is_supported(value.type):
                names = ", ".join(map(str, COMPUTED))
                yield f"{what} {index} is {value.type}; library functions are over {names}"


def _reduce(op: Operation) -> Iterator[str]:
    """Refuses regions that hold more than elementwise ops and constants."""
    for what, field in _SCALAR_REGIONS[type(op)].items():
        yield from _scalar_ops(what, getattr(op, field))


def _sort(op: Sort) -> Iterator[str]:
    yield from _reduce(op)
    type = op.inputs[0].type if op.inputs else None
    if isinstance(type, TensorType) and is_supported(type) and any(bounds(size)[0] >= 2**31 for size in type.shape):
        yield f"sorts {type}; no dimension may have more than {2**31 - 1} elements"


def _scalar_ops(what: str, region: Region) -> Iterator[str]:
    for inner in _executed(region):
        known = isinstance(inner, Elementwise | structural.Constant | contraction.Return | Call | Return)
        if not known and not isinstance(inner, _SCALAR_NOOPS | UnregisteredOp):
            yield f"its {what} holds {inner.name}; supported are elementwise ops on scalars and constants"


def _executed(region: Region) -> Iterator[Operation]:
    """The ops of a region, and of the functions that it calls."""
    tables, seen, regions = SymbolTables(), set[Operation](), [region]
    while regions:
        for op in regions.pop().walk():
            yield op
            callee = op.get_as("callee", SymbolRef) if isinstance(op, Call) else None
            target = tables.lookup(op, callee) if callee is not None else None
            if isinstance(target, Func) and target not in seen:
                seen.add(target)
                regions += target.regions


def _accuracy(op: Elementwise) -> Iterator[str]:
    wanted = op.get_as("result_accuracy", DialectAttr)
    if wanted is not None and not any(f"mode = {mode}" in wanted.body for mode in ("DEFAULT", "HIGHEST")):
        yield f"result_accuracy {wanted} is not supported; supported are the modes DEFAULT and HIGHEST"


#: Ops without effect on scalars; canonicalization removes them from reducers.
_SCALAR_NOOPS: Final = structural.Reshape | structural.BroadcastInDim | structural.Transpose | structural.Slice

#: Op -> its regions that compute scalars: name in messages -> field.
_SCALAR_REGIONS: Final[dict[type[Operation], dict[str, str]]] = {
    Reduce: {"reducer": "body"},
    ReduceWindow: {"reducer": "body"},
    SelectAndScatter: {"select": "select", "scatter": "scatter"},
    Scatter: {"combiner": "update_computation"},
    Sort: {"comparator": "comparator"},
}

_RULES: Final[dict[type[Operation], Callable[[Any], Iterator[str]]]] = {
    Func: _func,
    CustomCall: _custom_call,
    DotGeneral: _dot,
    BitcastConvert: _bitcast,
    **dict.fromkeys(_SCALAR_REGIONS, _reduce),
    Sort: _sort,
}
