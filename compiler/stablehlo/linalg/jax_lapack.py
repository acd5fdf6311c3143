"""JAX's linear algebra: iterations its calls of LAPACK into library calls, so that `jnp.linalg` needs no other source.

JAX exports `cholesky`, `qr`, `eigh`, `svd`, `lu` and `triangular_solve` for CPUs as calls of `lapack_<type><name>_ffi`,
with characters or booleans as attributes. An entry of `LAPACK_CALLS` states the library function, the meaning of each
attribute, and the results of that function. A call without an entry stays, and is refused by its name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from orchestrion.compiler.ir.attributes import BoolAttr, DictAttr, IntegerAttr, StringAttr
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import Attribute, TensorType
from orchestrion.compiler.stablehlo.builders.tensors import Tensor, build, splat
from orchestrion.compiler.stablehlo.complex.parts import conjugate, parts_of, tensor_of_parts
from orchestrion.compiler.stablehlo.ops.base import is_complex, is_known, part_type, tensor_of
from orchestrion.compiler.stablehlo.ops.custom_call import SHAPES, TYPED_FFI, CustomCall
from orchestrion.compiler.stablehlo.ops.structural import BroadcastInDim, Constant

_NAME: Final = re.compile(r"lapack_([sdcz])(\w+)_ffi")


@dataclass(frozen=True, slots=True)
class LapackCall:
    """How a call of LAPACK becomes a library call.

    `flags`: attribute -> our flag and its value for each character; a flag without a name must have that character, and
    is dropped. `numbers`: attribute -> our attribute. `results`: indices of the wanted results for each character of
    the attribute `mode`; key "" without such an attribute, empty if all are wanted. `zeros`: operands that must be
    zero, and are dropped. `vectors`: flag -> the result that exists only if the flag is true. `in_parts`: a complex
    value is two values of ours, its real and imaginary parts.
    """

    function: str
    flags: Mapping[str, tuple[str, Mapping[str, bool]]] = field(default_factory=dict)
    results: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    numbers: Mapping[str, str] = field(default_factory=dict)
    zeros: tuple[int, ...] = ()
    vectors: Mapping[str, int] = field(default_factory=dict)
    in_parts: bool = False


_LOWER: Final = ("lower", {"L": True, "U": False})
_SINGULAR: Final = {"A": (1, 2, 3, 4), "S": (1, 2, 3, 4), "N": (1, 4)}
_VECTORS: Final = {"V": True, "N": False}
_TRUTH: Final = {"true": True, "false": False}
_SIDES: Final = {"compute_left": ("left", _VECTORS), "compute_right": ("right", _VECTORS)}
_UNSORTED: Final = {"sort": ("", {"N": False})}

LAPACK_CALLS: Final[dict[str, LapackCall]] = {
    "gees": LapackCall("lapack.gees", _UNSORTED, {"V": (0, 1, 2, 3, 5), "N": (0, 2, 3, 5)}),
    "geev": LapackCall("lapack.geev", _SIDES, vectors={"compute_left": 2, "compute_right": 3}, in_parts=True),
    "gehrd": LapackCall("lapack.gehrd", numbers={"low": "low", "high": "high"}),
    "geqp3": LapackCall("lapack.geqp3", zeros=(1,)),
    "geqrf": LapackCall("lapack.geqrf"),
    "gesdd": LapackCall("lapack.gesdd", results=_SINGULAR),
    "gesvd": LapackCall("lapack.gesdd", results=_SINGULAR),
    "getrf": LapackCall("lapack.getrf"),
    "gtsv": LapackCall("lapack.gtsv", results={"": (3, 4)}),
    "orgqr": LapackCall("lapack.orgqr"),
    "ormqr": LapackCall("lapack.ormqr", {"left": ("left", _TRUTH), "transpose": ("trans", _TRUTH)}),
    "potrf": LapackCall("lapack.potrf", {"uplo": _LOWER}),
    "syevd": LapackCall("lapack.syevd", {"uplo": _LOWER}, {"V": (0, 1, 2), "N": (1, 2)}),
    "sytrd": LapackCall("lapack.sytrd", {"uplo": _LOWER}),
    "trsm": LapackCall(
        "blas.trsm",
        {
            "side": ("left", {"L": True, "R": False}),
            "uplo": _LOWER,
            "trans_x": ("trans_a", {"N": False, "T": True, "C": True}),
            "diag": ("unit_diagonal", {"U": True, "N": False}),
        },
    ),
}

#: Calls on complex numbers; most have the operands and results of those on real ones.
COMPLEX_LAPACK_CALLS: Final[dict[str, LapackCall]] = {
    **{name: LAPACK_CALLS[name] for name in ("gehrd", "geqrf", "gesdd", "gesvd", "getrf", "potrf", "trsm")},
    "gees": LapackCall("lapack.gees", _UNSORTED, {"V": (0, 1, 2, 4), "N": (0, 2, 4)}, in_parts=True),
    "geev": LapackCall("lapack.geev", _SIDES, vectors={"compute_left": 1, "compute_right": 2}, in_parts=True),
    "heevd": LAPACK_CALLS["syevd"],
    "hetrd": LAPACK_CALLS["sytrd"],
    "ungqr": LAPACK_CALLS["orgqr"],
    "unmqr": LAPACK_CALLS["ormqr"],
}


def replace(op: Operation, rewriter: Rewriter) -> bool:
    """Replaces a call of LAPACK by the form of `custom_call.canonical`; skips unknown characters."""
    target = op.get_as("call_target_name", StringAttr)
    name = _NAME.fullmatch(target.value) if isinstance(op, CustomCall) and target is not None else None
    table = LAPACK_CALLS if name is not None and name[1] in "sd" else COMPLEX_LAPACK_CALLS
    row = table.get(name[2]) if name is not None else None
    config = op.properties.get("backend_config")
    if row is None or not isinstance(config, DictAttr) or SHAPES in op.attributes:  # `refine-shapes` runs first
        return False
    if _is_empty(op):
        return rewriter.replace(op, [splat(rewriter, 0, tensor_of(result)).value for result in op.results])
    given = dict(config.items)
    results, attributes = _results(op, row, given), _attributes(row, given)
    if results is None or attributes is None or not all(_is_zero(op, index) for index in row.zeros):
        return False
    inputs = [Tensor(rewriter, value) for index, value in enumerate(op.operands) if index not in row.zeros]
    if _character(given.get("trans_x")) == "C":
        inputs[0] = conjugate(inputs[0])
    if row.in_parts:
        inputs = [part for x in inputs for part in parts_of(x)]
    ours = build(
        rewriter,
        CustomCall,
        inputs=inputs,
        call_target_name=row.function,
        backend_config=attributes,
        api_version=TYPED_FFI,
        out=[type for index in results for type in _types(op, row, index)],
    )
    first, new = ours[0].value, dict[int, Tensor]()
    for index in results:
        count = len(_types(op, row, index))
        new[index] = tensor_of_parts(tensor_of(op.results[index]), ours[:count])
        ours = ours[count:]
    # the other results are unused
    kept = [new[index].value if index in new else first for index in range(len(op.results))]
    return rewriter.replace(op, kept)


def _is_empty(op: Operation) -> bool:
    """Whether results have no elements, but for `info`, the last one, and counts like it, which are zero then."""
    matrix, *types = (tensor_of(value) for value in (op.operands[0], *op.results))
    filled = [type for type in types if 0 not in type.shape]
    return 0 in matrix.shape and all(type == types[-1] and str(type.element) == "i32" for type in filled)


def _types(op: Operation, row: LapackCall, index: int) -> list[TensorType]:
    """The types of our results for result `index`."""
    type = tensor_of(op.results[index])
    return [part_type(type)] * 2 if row.in_parts and is_complex(op.results[index]) else [type]


def _results(op: Operation, row: LapackCall, given: Mapping[str, Attribute]) -> tuple[int, ...] | None:
    """Indices of the results that the function has; None if other results are used."""
    mode = _character(given["mode"]) if "mode" in given else ""
    wanted = row.results.get(mode) if row.results else tuple(range(len(op.results)))
    if wanted is None or max(wanted, default=0) >= len(op.results):
        return None
    absent = {index for key, index in row.vectors.items() if _character(given.get(key)) == "N"}
    wanted = tuple(index for index in wanted if index not in absent)
    if not all(is_known(op.results[index].type) for index in wanted):
        return None
    if not all(is_complex(op.results[index]) for index in wanted if index in row.vectors.values()):
        return None
    return wanted if not any(result.uses for result in op.results if result.index not in wanted) else None


def _attributes(row: LapackCall, given: Mapping[str, Attribute]) -> DictAttr | None:
    """Our attributes; None if there are unknown attributes or values."""
    found: dict[str, Attribute] = {}
    if set(given) - {"mode"} != {*row.flags, *row.numbers} or ("mode" in given and not row.results):
        return None
    for key, (ours, values) in row.flags.items():
        value = values.get(_character(given[key]))
        if value is None:
            return None
        if ours:
            found[ours] = BoolAttr(value)
    for key, ours in row.numbers.items():
        if not isinstance(given[key], IntegerAttr):
            return None
        found[ours] = given[key]
    return DictAttr.of(found)


def _is_zero(op: Operation, index: int) -> bool:
    """Whether the operand exists and is a splat of zero."""
    if index >= len(op.operands):
        return False
    maker = op.operands[index].defining_op
    if isinstance(maker, BroadcastInDim):
        maker = maker.operand_.defining_op
    return isinstance(maker, Constant) and not any(bytes(maker.value.data))


def _character(value: object) -> str:
    if isinstance(value, BoolAttr):
        return str(value.value).lower()
    return chr(value.value) if isinstance(value, IntegerAttr) and 0 < value.value < 128 else ""
