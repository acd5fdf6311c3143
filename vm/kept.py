"""What `call.cached` keeps: the results that functions gave for the arguments used last.

A function of sizes makes what a call at these sizes needs: memory, recordings. A context keeps that for the `MOST`
arguments used last of each function, so that memory stays bounded whatever sizes come. What is dropped lets go of its
references at once. An entry is charged to the context's memory; what it refers to charges itself.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from .memory import Memory
from .refs import NUMBER_BYTES, OBJECT_BYTES

if TYPE_CHECKING:
    from .call import Call

#: results kept of one function
MOST = 8

_Entries = OrderedDict[tuple[int, ...], tuple[Any, ...]]


class Uncached(Exception):
    """A translated function asked for results that are not kept: the interpreter makes them."""


class SetupFacts(NamedTuple):
    """How a setup is served, for who asks: see `Program.statistics`."""

    function: str
    #: sizes that its memory and recordings are made for; None where there are none
    capacity: tuple[int, ...] | None
    prepared: int  #: how often memory and recordings were made
    served: int  #: sets of sizes that they served
    missed: int  #: sets of sizes that took recordings of their own
    reason: str  #: why the last of these did


class Setups(Protocol):
    """Where results for new arguments may come from without a run of the function. See `indirect_setup.py`."""

    def serve(
        self, call: Call, function: int, arguments: tuple[int, ...], drop: Callable[[], None]
    ) -> tuple[Any, ...] | None:
        """The results, or None. Calls `drop` when results that were given before are of no use any more."""

    def facts(self) -> list[SetupFacts]:
        """A row for each function."""

    def release(self) -> bool:
        """Drop everything; whether there was anything."""


class Kept:
    """The results that one context keeps, by function and arguments."""

    __slots__ = ("_functions", "_latest", "_make_setups", "_memory", "setups")

    def __init__(self, memory: Memory, make_setups: Callable[[], Setups] | None = None) -> None:
        """`make_setups` makes `setups`, when they are first asked for; None: there are none."""
        self._memory = memory
        self._make_setups = make_setups
        self.setups: Setups | None = None  #: once they are asked for
        self._functions: dict[int, _Entries] = {}
        self._latest: dict[int, tuple[tuple[int, ...], tuple[Any, ...]]] = {}  #: the entry used last of each function

    def find(self, function: int, arguments: tuple[int, ...]) -> tuple[Any, ...] | None:
        """The results for these arguments, which are now those used last."""
        latest = self._latest.get(function)
        if latest is not None and latest[0] == arguments:
            return latest[1]
        entries = self._functions.get(function)
        found = None if entries is None else entries.get(arguments)
        if entries is not None and found is not None:
            entries.move_to_end(arguments)
            self._latest[function] = arguments, found
        return found

    def get(self, function: int, arguments: tuple[int, ...], call: Call) -> tuple[Any, ...]:
        """As `find` or `serve`; `Uncached` where neither gives any."""
        found = self.find(function, arguments) or self.serve(function, arguments, call)
        if found is None:
            raise Uncached
        return found

    def serve(self, function: int, arguments: tuple[int, ...], call: Call) -> tuple[Any, ...] | None:
        """Results for new arguments from what was made for others, kept from now on; None: the function has to run."""
        if self.setups is None:
            if self._make_setups is None:
                return None
            self.setups = self._make_setups()
        found = self.setups.serve(call, function, arguments, partial(self._drop, function))
        if found is not None:
            self.keep(function, arguments, found)
        return found

    def keep(self, function: int, arguments: tuple[int, ...], results: tuple[Any, ...]) -> None:
        """Keep results, in place of those that were used longest ago. `MemoryExceeded` when a limit forbids it."""
        self._memory.charge(_bytes(arguments, results))
        entries = self._functions.setdefault(function, OrderedDict())
        old = entries.pop(arguments, None)
        if old is not None:
            self._memory.refund(_bytes(arguments, old))
        entries[arguments] = results
        self._latest[function] = arguments, results
        if len(entries) > MOST:
            self._memory.refund(_bytes(*entries.popitem(last=False)))

    def clear(self) -> bool:
        """Drop everything; whether there was anything."""
        functions = list(self._functions)
        for function in functions:
            self._drop(function)
        prepared = self.setups is not None and self.setups.release()
        return bool(functions) or prepared

    def _drop(self, function: int) -> None:
        """Drop the results of one function."""
        self._latest.pop(function, None)
        for arguments, results in self._functions.pop(function, {}).items():
            self._memory.refund(_bytes(arguments, results))


def _bytes(arguments: tuple[int, ...], results: tuple[Any, ...]) -> int:
    return OBJECT_BYTES + NUMBER_BYTES * (len(arguments) + len(results))
