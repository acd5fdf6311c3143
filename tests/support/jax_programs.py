"""The programs by which JAX tests its own lowering, one per op, variant and element type, and how results are compared.

JAX installs them as a private module. They are a test oracle that nobody here wrote: each is a function, a maker of
arguments and a name. Results are those of `jax.jit` on XLA's CPU. Where these are unique only up to signs, phases or
the order of equal numbers, the judge of the group checks what results have to fulfil, such as A v = w v.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import jax
import numpy as np
from jax._src.internal_test_util.test_harnesses import Harness, all_harnesses

Array = np.ndarray[Any, Any]

#: largest difference, relative to the largest finite magnitude of the result, by element type
TOLERANCES = {
    "float16": 4e-3, "bfloat16": 3e-2,
    "float32": 2e-5, "float64": 1e-12, "complex64": 2e-5, "complex128": 1e-12,
}  # fmt: skip


@dataclass(frozen=True)
class Program:
    """A function and the arguments that it is traced and called with."""

    name: str
    group: str
    function: Any
    arguments: Sequence[Any]
    #: those by which JAX made it
    parameters: Mapping[str, Any]
    #: the programs that this one consists of; empty if it is one of JAX's
    parts: Sequence["Program"] = ()

    def difference(self, got: Any, want: Any) -> str:
        """Says in what results are wrong, given those of XLA; empty if they are right."""
        if self.parts:
            leaves = iter(jax.tree.leaves(got))
            found = [
                part.difference([next(leaves) for _ in jax.tree.leaves(results)], results)
                for part, results in zip(self.parts, want, strict=True)
            ]
            return "; ".join(f"{part.name}: {said}" for part, said in zip(self.parts, found, strict=True) if said)
        ours, theirs = ([np.asarray(leaf) for leaf in jax.tree.leaves(tree)] for tree in (got, want))
        our_types, their_types = ([f"{one.dtype}{list(one.shape)}" for one in some] for some in (ours, theirs))
        if our_types != their_types:
            return f"results are {', '.join(our_types)}, not {', '.join(their_types)}"
        return _JUDGES.get(self.group, _differing)(ours, theirs, self)


def programs(every: int = 1) -> Iterator[Program]:
    """Yields the first and every `every`-th program of each group. The order is that of the names: JAX's own differs
    between processes, because it walks sets of types.
    """
    seen: Counter[str] = Counter()
    for harness in sorted(all_harnesses, key=lambda harness: harness.fullname):
        name, group = harness.fullname, harness.group_name
        if "sort_multiple" in name and "isstable_False" in name:
            continue
        if seen[group] % every == 0:
            yield Program(name, group, harness.dyn_fun, arguments(harness), harness.params)
        seen[group] += 1


def joined(parts: Sequence[Program]) -> Program:
    """One program that has the arguments of all parts, one after another, and a tuple of their results."""
    ends = list(accumulate((len(part.arguments) for part in parts), initial=0))

    def function(*arguments: Any) -> tuple[Any, ...]:
        return tuple(
            part.function(*arguments[first:last]) for part, (first, last) in zip(parts, pairwise(ends), strict=True)
        )

    given = [argument for part in parts for argument in part.arguments]
    return Program(" and ".join(part.name for part in parts), "joined", function, given, {}, parts)


def arguments(harness: Harness) -> Sequence[Any]:
    """The arguments, drawn from the same seed each time."""
    made: Sequence[Any] = harness.dyn_args_maker(np.random.RandomState(0))
    return made


#: says in what results are wrong, given those of XLA and the program; empty if they are right
Judge = Callable[[Sequence[Array], Sequence[Array], Program], str]


def _differing(ours: Sequence[Array], theirs: Sequence[Array], program: Program | None = None) -> str:
    for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        wrong = ~_close(one, other)
        if wrong.any():
            place = tuple(np.argwhere(wrong)[0])
            return f"result {number} differs in {wrong.sum()} of {wrong.size}: {one[place]}, not {other[place]}"
    return ""


def _svd(ours: Sequence[Array], theirs: Sequence[Array], program: Program) -> str:
    s, *vectors = ours
    said = _differing([s], theirs[:1])
    if said or not vectors:
        return said
    (u, vh), rank = vectors, s.shape[-1]
    product = u[..., :rank] * s[..., None, :] @ vh[..., :rank, :]
    return (
        _unequal("U S Vᴴ = A", product, program.arguments[0]) or _not_unitary("U", u) or _not_unitary("V", _adjoint(vh))
    )


def _eigh(ours: Sequence[Array], theirs: Sequence[Array], program: Program) -> str:
    v, w = ours
    product = program.arguments[0] @ v
    return _differing([w], theirs[1:]) or _unequal("A V = V W", v * w[..., None, :], product) or _not_unitary("V", v)


def _eig(ours: Sequence[Array], theirs: Sequence[Array], program: Program) -> str:
    """Eigenvalues may have any order. Vectors have length 1, and those from the left come first."""
    (w, *vectors), wanted, a = ours, theirs[0], program.arguments[0]
    distances, largest = np.abs(w[..., :, None] - wanted[..., None, :]), np.abs(wanted).max(initial=0)
    nearest = np.concatenate([distances.min(axis=axis, initial=np.inf) for axis in (-1, -2)], axis=-1)
    said = _unequal("W", largest + nearest, np.full_like(nearest, largest))
    for side, matrix, values in (("left", _adjoint(a), np.conj(w)), ("right", a, w)):
        if program.parameters[f"compute_{side}_eigenvectors"]:
            v = vectors.pop(0)
            lengths = np.linalg.norm(v, axis=-2)
            said = said or _unequal(f"A V = V W, {side}", v * values[..., None, :], matrix @ v)
            said = said or _unequal(f"|V| = 1, {side}", lengths, np.ones_like(lengths))
    return said


def _top_k(ours: Sequence[Array], theirs: Sequence[Array], program: Program) -> str:
    """Equal numbers may have any order."""
    found = np.take_along_axis(np.asarray(program.arguments[0]), ours[1], axis=-1)
    return _differing([ours[0], found], [theirs[0]] * 2)


def _clamp(ours: Sequence[Array], theirs: Sequence[Array], program: Program) -> str:
    """XLA compares the real parts of complex numbers only; the specification of StableHLO orders both parts."""
    low, x, high = map(np.asarray, program.arguments)
    return _differing(ours, [np.minimum(np.maximum(x, low), high)] if x.dtype.kind == "c" else theirs)


def _adjoint(a: Array) -> Array:
    return np.conj(np.swapaxes(a, -1, -2))


def _not_unitary(name: str, v: Array) -> str:
    """Says that columns are not orthonormal."""
    one = np.zeros((*v.shape[:-2], v.shape[-1], v.shape[-1]), v.dtype) + np.eye(v.shape[-1], dtype=v.dtype)
    return _unequal(f"{name}ᴴ {name} = 1", _adjoint(v) @ v, one)


def _unequal(equation: str, left: Array, right: Array) -> str:
    """Says that an equation does not hold, and by how much of the largest magnitude; empty if it does."""
    if _close(left.astype(right.dtype), right).all():
        return ""
    return f"not {equation}: off by {np.abs(left - right).max() / np.abs(right).max():.1e}"


def _close(one: Array, other: Array) -> Array:
    if other.dtype.kind in "biu":
        return np.asarray(one == other)
    tolerance = TOLERANCES[str(other.dtype)]
    wide = np.complex128 if other.dtype.kind == "c" else np.float64
    one, other = one.astype(wide), other.astype(wide)
    largest = np.abs(other, where=np.isfinite(other), out=np.zeros(other.shape)).max(initial=0.0)
    return np.asarray(np.isclose(one, other, rtol=tolerance, atol=tolerance * largest, equal_nan=True))


_JUDGES: dict[str, Judge] = {"eig": _eig, "eigh": _eigh, "svd": _svd, "approx_top_k": _top_k, "clamp": _clamp}
