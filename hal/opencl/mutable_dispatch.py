"""Binds a command buffer to another table by one call: `cl_khr_command_buffer_mutable_dispatch`.

- An update applies to later submissions. The specification does not define its effect on a run in flight, so a command
  buffer is updated only after its last run is over, which its event reports.
- Only arguments that are addresses of shared memory are updated. Copies and fills cannot be changed. A `cl_mem`
  argument would have to be kept alive while it is bound.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from orchestrion.hal.backend import BackendBuffer, Binding

from .api import Api, P, Size, U
from .buffer import SharedBuffer
from .failures import check

#: the property of a command that lists its updatable fields, and the flag of its arguments
UPDATABLE_FIELDS, ARGUMENTS = 0x12B1, 0x8


class Argument(ctypes.Structure):
    """The struct cl_mutable_dispatch_arg_khr."""

    _fields_ = (("index", U), ("size", Size), ("value", P))


class Update(ctypes.Structure):
    """The struct cl_mutable_dispatch_config_khr: the changes of one dispatch."""

    _fields_ = (
        ("command", P),
        ("argument_count", U),
        ("address_count", U),
        ("info_count", U),
        ("dimensions", U),
        ("arguments", P),
        ("addresses", P),
        ("infos", P),
        ("global_offset", P),
        ("global_size", P),
        ("local_size", P),
    )


#: the layout of `Argument` for NumPy
_ARGUMENT = np.dtype([("index", np.uint32), ("size", np.uintp), ("value", np.uintp)], align=True)


def updatable() -> ctypes.Array[ctypes.c_uint64]:
    """The properties of a dispatch whose arguments can be updated."""
    return (ctypes.c_uint64 * 3)(UPDATABLE_FIELDS, ARGUMENTS, 0)


def all_shared(table: Sequence[BackendBuffer]) -> bool:
    """Whether an update can bind this table: all buffers are shared memory."""
    return all([isinstance(buffer, SharedBuffer) for buffer in table])


class Binder:
    """Binds the dispatches of one command buffer to a table.

    `dispatches`: the handle and the bindings of each dispatch that uses slots. The structures that the call reads live
    as long as this object; `bind` sets the addresses in them.
    """

    __slots__ = ("_addresses", "_call", "_memory", "_offsets", "_slots")

    def __init__(self, api: Api, commands: int, dispatches: Sequence[tuple[int, Sequence[Binding]]]) -> None:
        rows = [
            (number, index, binding)
            for number, (_, bindings) in enumerate(dispatches)
            for index, binding in enumerate(bindings)
            if isinstance(binding.source, int)
        ]
        arguments = (Argument * len(rows))()
        updates = (Update * len(dispatches))()
        for place, (number, index, _) in enumerate(rows):
            arguments[place].index = index
            if not updates[number].address_count:
                updates[number].addresses = ctypes.addressof(arguments[place])
            updates[number].address_count += 1
        for update, (handle, _) in zip(updates, dispatches, strict=True):
            update.command = handle
        count = len(dispatches)
        kinds = (U * count)()  # CL_STRUCTURE_TYPE_MUTABLE_DISPATCH_CONFIG_KHR is 0
        pointers = (P * count)(*[ctypes.addressof(update) for update in updates])
        self._memory = arguments, updates
        self._call = api.calls.clUpdateMutableCommandsKHR, (commands, count, kinds, pointers)
        self._addresses = np.frombuffer(memoryview(arguments).cast("B"), _ARGUMENT)["value"]
        self._slots = [binding.source for _, _, binding in rows if isinstance(binding.source, int)]
        self._offsets = np.array([binding.offset for _, _, binding in rows], np.uintp)

    def bind(self, table: Sequence[BackendBuffer]) -> None:
        """Make later runs use this table. No run is in flight."""
        addresses = np.array([buffer.memory_id for buffer in table], np.uintp)  # type: ignore[attr-defined]
        np.add(addresses[self._slots], self._offsets, out=self._addresses)
        update, arguments = self._call
        check(update(*arguments), "binding a command buffer to other buffers")
