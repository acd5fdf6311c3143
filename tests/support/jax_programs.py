"""The programs by which JAX tests its own lowering, one per op, variant and element type, and how results are compared.

JAX installs them as a private module. They are a test oracle that nobody here wrote: each is a function, a maker of
arguments and a name. Results are those of `jax.jit` on XLA's CPU.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax._src.internal_test_util.test_harnesses import Harness, all_harnesses

Array = np.ndarray[Any, Any]

#: groups whose results are unique only up to the sign or the phase of vectors
_AMBIGUOUS = frozenset({"eig", "eigh", "svd"})
#: largest difference, relative to the largest finite magnitude of the result, by element type
TOLERANCES = {
    "float16": 4e-3, "bfloat16": 3e-2,
    "float32": 2e-5, "float64": 1e-12, "complex64": 2e-5, "complex128": 1e-12,
}  # fmt: skip


def programs(every: int = 1) -> Iterator[tuple[str, Any, Sequence[Any]]]:
    """Yields name, function and arguments of the first and every `every`-th program of each group whose results are
    unique. The order is that of the names: JAX's own differs between processes, because it walks sets of types.
    """
    seen: Counter[str] = Counter()
    for harness in sorted(all_harnesses, key=lambda harness: harness.fullname):
        name, group = harness.fullname, harness.group_name
        if group in _AMBIGUOUS or ("sort_multiple" in name and "isstable_False" in name):
            continue
        if seen[group] % every == 0:
            yield name, harness.dyn_fun, arguments(harness)
        seen[group] += 1


def arguments(harness: Harness) -> Sequence[Any]:
    """The arguments, drawn from the same seed each time."""
    made: Sequence[Any] = harness.dyn_args_maker(np.random.RandomState(0))
    return made


def difference(got: Any, want: Any) -> str:
    """Says in what one tree of results differs from another; empty if it does not."""
    ours, theirs = ([np.asarray(leaf) for leaf in jax.tree.leaves(tree)] for tree in (got, want))
    if len(ours) != len(theirs):
        return f"{len(ours)} results, not {len(theirs)}"
    for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            return f"result {number} is {one.dtype}{list(one.shape)}, not {other.dtype}{list(other.shape)}"
        wrong = ~_close(one, other)
        if wrong.any():
            place = tuple(np.argwhere(wrong)[0])
            return f"result {number} differs in {wrong.sum()} of {wrong.size}: {one[place]}, not {other[place]}"
    return ""


def _close(one: Array, other: Array) -> Array:
    if other.dtype.kind in "biu":
        return np.asarray(one == other)
    tolerance = TOLERANCES[str(other.dtype)]
    wide = np.complex128 if other.dtype.kind == "c" else np.float64
    one, other = one.astype(wide), other.astype(wide)
    largest = np.abs(other, where=np.isfinite(other), out=np.zeros(other.shape)).max(initial=0.0)
    return np.asarray(np.isclose(one, other, rtol=tolerance, atol=tolerance * largest, equal_nan=True))
