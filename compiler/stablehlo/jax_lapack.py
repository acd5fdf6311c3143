"""The linear algebra of JAX: its calls of LAPACK become library calls, so that `jnp.linalg` needs no other source.

JAX exports `cholesky`, `qr`, `eigh`, `svd`, `lu` and `triangular_solve` for CPUs as calls of `lapack_<type><name>_ffi`,
with characters or booleans as attributes. A row of `ROWS` says which library function that is, what each attribute
becomes, and which results that function has. What has no row stays, and is refused by its name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from orchestrion.compiler.ir.attributes import BoolAttr, DictAttr, IntegerAttr, StringAttr
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.rewriter import Rewriter

from .custom_call import TYPED, CustomCall

_NAME: Final = re.compile(r"lapack_[sd](\w+)_ffi")


@dataclass(frozen=True, slots=True)
class Row:
    """A routine. `flags`: attribute -> ours and the value for each character. `results`: which ones are wanted, by the
    character of the attribute `mode`; all of them where there is no such attribute."""

    function: str
    flags: Mapping[str, tuple[str, Mapping[str, bool]]] = field(default_factory=dict)
    results: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


_LOWER: Final = ("lower", {"L": True, "U": False})
_TRUTH: Final = {"true": True, "false": False}

ROWS: Final[dict[str, Row]] = {
    "geqrf": Row("lapack.geqrf"),
    "gesdd": Row("lapack.gesdd", results={"A": (1, 2, 3, 4), "S": (1, 2, 3, 4), "N": (1, 4)}),
    "getrf": Row("lapack.getrf"),
    "orgqr": Row("lapack.orgqr"),
    "ormqr": Row("lapack.ormqr", {"left": ("left", _TRUTH), "transpose": ("trans", _TRUTH)}),
    "potrf": Row("lapack.potrf", {"uplo": _LOWER}),
    "syevd": Row("lapack.syevd", {"uplo": _LOWER}, {"V": (0, 1, 2), "N": (1, 2)}),
    "trsm": Row(
        "blas.trsm",
        {
            "side": ("left", {"L": True, "R": False}),
            "uplo": _LOWER,
            "trans_x": ("trans_a", {"N": False, "T": True, "C": True}),
            "diag": ("unit_diagonal", {"U": True, "N": False}),
        },
    ),
}


def replace(op: Operation, rewriter: Rewriter) -> bool:
    """A call of LAPACK in the form of `custom_call.canonical`; nothing where a character is unknown."""
    target = op.get_as("call_target_name", StringAttr)
    name = _NAME.fullmatch(target.value) if isinstance(op, CustomCall) and target is not None else None
    row = ROWS.get(name[1]) if name is not None else None
    config = op.properties.get("backend_config")
    if row is None or not isinstance(config, DictAttr):
        return False
    given = {key: _character(value) for key, value in config.items}
    known = {*row.flags, *(["mode"] if row.results else [])}
    if set(given) != known or any(given[key] not in row.flags[key][1] for key in row.flags):
        return False
    results = row.results.get(given["mode"]) if row.results else tuple(range(len(op.results)))
    if results is None or max(results, default=0) >= len(op.results):
        return False
    if any(result.uses for result in op.results if result.index not in results):
        return False
    flags = {ours: BoolAttr(values[given[key]]) for key, (ours, values) in row.flags.items()}
    made = rewriter.build(
        CustomCall,
        inputs=op.operands,
        call_target_name=row.function,
        backend_config=DictAttr.of(flags),
        api_version=TYPED,
        out=[op.results[index].type for index in results],
    )
    new = dict(zip(results, made.results, strict=True))
    rewriter.replace(op, [new.get(index, made.results[0]) for index in range(len(op.results))])  # others have no use
    return True


def _character(value: object) -> str:
    if isinstance(value, BoolAttr):
        return str(value.value).lower()
    return chr(value.value) if isinstance(value, IntegerAttr) and 0 < value.value < 128 else ""
