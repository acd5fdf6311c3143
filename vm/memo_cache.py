"""The results of the instruction `call.cached`, kept for the arguments that were used last.

A function that is called with `call.cached` takes integers, such as the sizes of a call, and makes what calls of these
sizes need: memory and recordings. A context keeps the results for the last `MAX_ENTRIES` arguments of each function, so
memory stays bounded for any sequence of sizes. An evicted entry drops its references at once. Each entry is charged to
the memory of the context; the objects that it refers to charge themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from orchestrion.schema.lru_cache import LruCache

from .memory import Memory
from .refs import NUMBER_BYTES, OBJECT_BYTES

if TYPE_CHECKING:
    from .call import Call

#: results kept per function
MAX_ENTRIES = 8

_Arguments = tuple[int, ...]
_Results = tuple[Any, ...]


class Uncached(Exception):
    """A translated function asked for results that are not cached. The interpreter then runs it and computes them."""


class SetupStatistics(NamedTuple):
    """How a setup was served. A row of `sizes` in `Program.statistics`."""

    function: str
    #: sizes that its memory and recordings are made for; None if there are none
    capacity: tuple[int, ...] | None
    prepared: int  #: how often memory and recordings were made
    served: int  #: sets of sizes that they served
    missed: int  #: sets of sizes that needed recordings of their own
    reason: str  #: why the last of these did


class Setups(Protocol):
    """Gives results for new arguments without running the function. See `indirect_setup.py`."""

    def serve(self, call: Call, function: int, arguments: _Arguments, drop: Callable[[], None]) -> _Results | None:
        """The results, or None. Calls `drop` when the results that it gave before are no longer valid."""

    def statistics(self) -> list[SetupStatistics]:
        """A row for each function."""

    def release(self) -> bool:
        """Drop all memory and recordings. True if there were any."""


class MemoCache:
    """The cached results of one context, by function and arguments. For the thread that holds the context's lock."""

    __slots__ = ("_functions", "_latest", "_make_setups", "_memory", "setups")

    def __init__(self, memory: Memory, make_setups: Callable[[], Setups] | None = None) -> None:
        """`make_setups` makes `setups` at the first cache miss; None: there are no setups."""
        self._memory = memory
        self._make_setups = make_setups
        self.setups: Setups | None = None
        self._functions: dict[int, LruCache[_Arguments, _Results]] = {}
        self._latest: dict[int, tuple[_Arguments, _Results]] = {}  #: the entry of each function that was used last

    def find(self, function: int, arguments: _Arguments) -> _Results | None:
        """The cached results for these arguments, which become the last used; None if there are none."""
        latest = self._latest.get(function)
        if latest is not None and latest[0] == arguments:
            return latest[1]
        entries = self._functions.get(function)
        found = None if entries is None else entries.use(arguments)
        if found is not None:
            self._latest[function] = arguments, found
        return found

    def get(self, function: int, arguments: _Arguments, call: Call) -> _Results:
        """The results that `find` or else `serve` gives. Raises `Uncached` if both give None."""
        found = self.find(function, arguments) or self.serve(function, arguments, call)
        if found is None:
            raise Uncached
        return found

    def serve(self, function: int, arguments: _Arguments, call: Call) -> _Results | None:
        """Results from `setups`, cached from now on. None: the function has to run."""
        if self.setups is None:
            if self._make_setups is None:
                return None
            self.setups = self._make_setups()
        found = self.setups.serve(call, function, arguments, partial(self._drop, function))
        if found is not None:
            self.put(function, arguments, found)
        return found

    def put(self, function: int, arguments: _Arguments, results: _Results) -> None:
        """Cache results. Evicts the entry that was used longest ago. `MemoryExceeded` if a limit forbids it."""
        self._memory.charge(_bytes(arguments, results))
        entries = self._functions.setdefault(function, LruCache())
        replaced = entries.pop(arguments, None)
        if replaced is not None:
            self._memory.refund(_bytes(arguments, replaced))
        for entry in entries.put(arguments, results, MAX_ENTRIES):
            self._memory.refund(_bytes(*entry))
        self._latest[function] = arguments, results

    def clear(self) -> bool:
        """Drop all results and setups. True if there were any."""
        functions = list(self._functions)
        for function in functions:
            self._drop(function)
        released = self.setups is not None and self.setups.release()
        return bool(functions) or released

    def _drop(self, function: int) -> None:
        """Drop the results of one function."""
        self._latest.pop(function, None)
        entries = self._functions.pop(function, None)
        while entries:
            self._memory.refund(_bytes(*entries.popitem(last=False)))


def _bytes(arguments: _Arguments, results: _Results) -> int:
    """The bytes that an entry is charged for."""
    return OBJECT_BYTES + NUMBER_BYTES * (len(arguments) + len(results))
