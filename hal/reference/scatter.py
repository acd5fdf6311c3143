"""`scatter` in NumPy: sequential where rows repeat, vectorised where they do not.

Updates of one row are applied in their order. A body that is one ufunc uses `ufunc.at`. A body that returns the update
uses an assignment, in which the last update wins. Any other body is applied in rounds: the first update of every row,
then the second update of those rows that have one, and so on.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from orchestrion.schema.tensor_bytecode import Body
from orchestrion.schema.tensor_shapes import Types

from .kernels import Kernel, Poll, body_function

Array = npt.NDArray[Any]


def scatter(poll: Poll, operands: Types, results: Types, body: Body) -> Kernel:
    count, (groups, rows, row) = len(results), results[0].shape
    given_rows = operands[count].elements
    combine = body_function(body, poll)
    at_once = _at_once(body, count)

    def run(*arrays: Array) -> None:
        inputs, indices, updates, outs = (
            arrays[:count], arrays[count], arrays[count + 1 : 2 * count + 1], arrays[2 * count + 1 :]
        )  # fmt: skip
        for x, out in zip(inputs, outs, strict=True):
            if not np.may_share_memory(x, out):  # otherwise x is updated in place
                out[...] = x
        if not given_rows:  # there may be very many groups without updates
            return
        chosen = np.flatnonzero((indices >= 0) & (indices < rows))
        places = (indices + np.arange(groups)[:, None] * rows).reshape(-1)[chosen]
        flat = [out.reshape(groups * rows, row) for out in outs]
        given = [update.reshape(given_rows, row)[chosen] for update in updates]
        if at_once is not None:
            at_once(flat[0], places, given[0])
            return
        for some in _rounds(places):
            where = places[some]
            made = combine(*[out[where] for out in flat], *[update[some] for update in given])
            for out, value in zip(flat, made, strict=True):
                out[where] = value
            poll()

    return run


def _at_once(body: Body, count: int) -> Kernel | None:
    """Returns a function that applies all updates in their order, if NumPy has one."""
    if count != 1:
        return None
    if body.results == (1,):
        return _assign
    scalars = [one for one in body.instructions if one.row.scalar is not None]
    if len(scalars) != 1 or scalars[0].operands != (0, 1) or body.results != (scalars[0].first,):
        return None
    scalar = scalars[0].row.scalar
    assert scalar is not None
    meaning = scalar.meaning(body.parameters[0].dtype.kind)
    return meaning.at if isinstance(meaning, np.ufunc) else None


def _assign(out: Array, places: Array, update: Array) -> None:
    out[places] = update


def _rounds(places: Array) -> Iterator[Array]:
    """Yields groups of updates without two for the same row. Updates of one row keep their order."""
    order = np.argsort(places, kind="stable")
    row = places[order]
    starts = np.flatnonzero(np.concatenate(([True], row[1:] != row[:-1]))) if row.size else np.zeros(0, np.int64)
    turn = np.arange(row.size) - np.repeat(starts, np.diff(np.append(starts, row.size)))
    by_turn = np.argsort(turn, kind="stable")
    ends: Sequence[int] = np.cumsum(np.bincount(turn)).tolist() if row.size else []
    for start, end in zip([0, *ends], ends, strict=False):
        yield order[by_turn[start:end]]
