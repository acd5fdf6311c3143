"""expand: replaces ops that are defined in terms of other ops by these, exactly. The table is `PATTERNS`.

Malformed ops are left for the legality check.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from orchestrion.compiler.ir.attributes import PARTS, ArrayAttr, StringAttr, SymbolRef
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation, UnregisteredOp
from orchestrion.compiler.ir.rewriter import Pattern, Rewriter, rewrite
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.options import Options
from orchestrion.compiler.parts import common_lapack_calls
from orchestrion.compiler.stablehlo.builders.tensors import Tensor, expansion
from orchestrion.compiler.stablehlo.complex.parts import conjugate
from orchestrion.compiler.stablehlo.functions.tuples import PATTERNS as TUPLE_PATTERNS
from orchestrion.compiler.stablehlo.linalg import jax_lapack, lapack_loops
from orchestrion.compiler.stablehlo.linalg import triangular as linear_algebra
from orchestrion.compiler.stablehlo.narrow.mixed_types import apply_algorithm, compute_in_f32, unify_types
from orchestrion.compiler.stablehlo.narrow.reduce_precision import expand_reduce_precision
from orchestrion.compiler.stablehlo.ops.base import is_complex, tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import HIGHEST, DotDimensions, DotGeneral
from orchestrion.compiler.stablehlo.ops.custom_call import canonicalize_call
from orchestrion.compiler.stablehlo.ops.elementwise import OPS
from orchestrion.compiler.stablehlo.ops.func import Call, Func
from orchestrion.compiler.stablehlo.ops.func import Return as FuncReturn
from orchestrion.compiler.stablehlo.ops.windowed import Convolution
from orchestrion.schema.dtypes import BY_NAME, FLOAT

from . import batch_norm, legacy_ops, one_device
from . import chlo_functions as expand_chlo
from .bit_widths import expand_bitcast
from .random_bits import expand_rng_bit_generator
from .rng import expand_rng
from .scatter_updates import expand_scatter
from .top_k import expand_approx_top_k, expand_dynamic_top_k, expand_top_k

#: Targets of `custom_call` that return their operand, some because there is only one device.
_IDENTITIES: Final = frozenset({"mhlo.copy", "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape"})


def run(module: Module, options: Options) -> None:
    expand_all(module, common_lapack_calls(options))


def expand_all(module: Module, lapack: str) -> None:
    """Applies all patterns, and those that replace calls of LAPACK by loops. `lapack`: a key of `parts.PARTS`."""
    patterns = dict(PATTERNS)
    patterns["stablehlo.custom_call"] += lapack_loops.PATTERNS[lapack]
    rewrite(module, patterns)


def _on_complex(op: Operation, rewriter: Rewriter) -> bool:
    if not any(map(is_complex, op.operands)):
        return False
    from orchestrion.compiler.stablehlo.complex.functions import expand_function  # few programs need the formulas

    return expand_function(op, rewriter)


def _ragged_dot(op: Operation, *operands: Tensor) -> Tensor | None:
    from .ragged_dot import expand_ragged_dot  # few programs have one

    return expand_ragged_dot(op, *operands)


def _scan(op: Operation, rewriter: Rewriter) -> bool:
    from .chlo_scan import expand_scan  # few programs have one

    return expand_scan(op, rewriter)


def _same(op: Operation, rewriter: Rewriter) -> bool:
    """Replaces the op by its operands."""
    if [value.type for value in op.operands] != [result.type for result in op.results]:
        return False
    if any(value.defining_op is op for value in op.operands):  # nothing is verified yet
        return False
    return rewriter.replace(op, op.operands)


def _identity(op: Operation, rewriter: Rewriter) -> bool:
    target = op.get_as("call_target_name", StringAttr)
    return target is not None and target.value in _IDENTITIES and _same(op, rewriter)


def _return(op: Operation, rewriter: Rewriter) -> bool:
    """JAX ends some functions with the terminator of regions."""
    if not isinstance(op.parent_op, Func) or op.results:
        return False
    rewriter.build(FuncReturn, values=op.operands)
    return rewriter.replace(op, [])


def _composite(op: Operation, rewriter: Rewriter) -> bool:
    """Replaces a composite by the function of CHLO that it names, which is more exact, else by its decomposition."""
    target, name = op.get_as("decomposition", SymbolRef), op.get_as("name", StringAttr)
    if target is None:
        return False
    types = [result.type for result in op.results]
    if name is not None and name.value in _UNARY and _is_function(op, name.value):
        kind = OPS.get(name.value, partial(UnregisteredOp, name.value))
        return rewriter.replace(op, rewriter.insert(kind(op.operands, types)).results)
    call = rewriter.build(Call, arguments=op.operands, callee=target, outputs=types)
    return rewriter.replace(op, call.results)


def _is_function(op: Operation, name: str) -> bool:
    """Whether the op is a function of floats, or of complex numbers if there is one."""
    types = [value.type for value in (*op.operands, *op.results)]
    if len(types) != 2 or types[0] != types[1] or len(op.operands) != 1:
        return False
    element = str(tensor_of(op.operands[0]).element)
    return (element in BY_NAME and BY_NAME[element].kind == FLOAT) or (element in PARTS and name != "chlo.erf")


def _dot(op: Operation, rewriter: Rewriter) -> bool:
    """`dot`: contracts the last axis of the left operand with the first axis of the right one."""
    left = op.operands[0].type if (len(op.operands), len(op.results)) == (2, 1) else None
    if not isinstance(left, TensorType) or left.rank not in (1, 2):
        return False
    numbers = DotDimensions((), (), (left.rank - 1,), (0,)).attribute()
    lhs, rhs = op.operands
    made = rewriter.build(DotGeneral, lhs=lhs, rhs=rhs, dot_dimension_numbers=numbers, out=op.results[0].type)
    return rewriter.replace(op, made.results)


def _plain(op: Operation, rewriter: Rewriter) -> bool:
    """Drops the requested precision: arithmetic is exact to the operands' type at every precision. A convolution keeps
    HIGHEST, which excludes sums of transformed operands.
    """
    precision = op.get_as("precision_config", ArrayAttr)
    if precision is None or (precision == HIGHEST and isinstance(op, Convolution)):
        return False
    del op.properties["precision_config"]
    return True


def _broadcast_next_after(op: Operation, *operands: Tensor) -> Tensor | None:
    values = legacy_ops.broadcast_operands(op, operands)
    return expand_chlo.next_after(op, *values) if values else None


#: Elementwise ops; some have forms on complex numbers too.
_FUNCTIONS: Final[dict[str, tuple[Pattern, ...]]] = {
    name: (*patterns, _on_complex) for name, patterns in expand_chlo.PATTERNS.items()
}

#: Functions of CHLO that JAX exports as composites.
_UNARY: Final = frozenset(f"chlo.{name}" for name in ("acos", "acosh", "asin", "asinh", "atanh", "cosh", "erf", "sinh"))

PATTERNS: Final[dict[str, tuple[Pattern, ...]]] = {
    **batch_norm.PATTERNS,
    **linear_algebra.PATTERNS,
    **legacy_ops.PATTERNS,
    **one_device.PATTERNS,
    **TUPLE_PATTERNS,
    **{name: (expansion(compute_in_f32, None), *patterns) for name, patterns in _FUNCTIONS.items()},
    "chlo.conj": (expansion(lambda op, x: conjugate(x), 1),),
    "chlo.broadcast_next_after": (expansion(_broadcast_next_after, 2),),
    "chlo.next_after": (expansion(expand_chlo.next_after, 2),),
    "chlo.ragged_dot": (expansion(_ragged_dot, 3),),
    "chlo.scan": (_scan,),
    "chlo.top_k": (expand_top_k,),
    "mhlo.copy": (_same,),
    "sdy.sharding_constraint": (_same,),
    "stablehlo.bitcast_convert": (expansion(expand_bitcast, 1),),
    "stablehlo.composite": (_composite,),
    "stablehlo.convolution": (_plain, expansion(unify_types, 2)),
    "stablehlo.return": (_return,),
    "stablehlo.custom_call": (
        _identity,
        expand_approx_top_k,
        expand_dynamic_top_k,
        expand_rng_bit_generator,
        canonicalize_call,
        jax_lapack.replace,
        lapack_loops.expand_unsupported_by_libraries,
    ),
    "stablehlo.dot": (_dot,),
    "stablehlo.dot_general": (_plain, expansion(apply_algorithm, 2), expansion(unify_types, 2)),
    "stablehlo.optimization_barrier": (_same,),
    "stablehlo.reduce_precision": (expansion(expand_reduce_precision, 1),),
    "stablehlo.rng": (expansion(expand_rng, 3),),
    "stablehlo.rng_bit_generator": (expand_rng_bit_generator,),
    "stablehlo.scatter": (expand_scatter,),
}
