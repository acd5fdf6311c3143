"""Setups on devices with indirect dispatch: memory and recordings that serve calls of many sizes.

A setup (docs/dynamic-shapes.md) is run for a *capacity*: sizes at least as large as those of the call. The memory and
recordings that it makes serve all calls that fit. Each set of sizes gets an instance of the recordings, which has the
workgroup counts and parameters of each dispatch. Nothing is recorded again.

- **Why the results are right.** The setup is also traced for the sizes of the call. The memory that it uses then is
  mapped onto the memory of the capacity: each range of a command is moved to the range that the same command has in the
  capacity. The call is served only if the map moves each byte to a place of its own, and bytes that two commands share
  by the same distance (`RangeMap`). Then the commands compute the same values. A call that does not fit is handled as
  on other devices: with a recording for its sizes, which is cached (`memo_cache.py`).
- **Which entries are recorded.** A dispatch may have a different entry for small sizes. The setup is traced for several
  sizes below the capacity, and all entries that it takes are recorded. The entries that a call does not take get no
  workgroups.
- **Capacities.** The capacity is the greatest sizes that the signature declares, if the memory for them is affordable.
  Otherwise it is the sizes of the call, and at least twice the previous capacity for a symbol that exceeds that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from orchestrion.hal.buffer import Buffer
from orchestrion.hal.command_buffer import Argument
from orchestrion.hal.errors import HalError, OutOfMemory

from .capacity import Capacity, affordable, setup_expressions
from .errors import LimitError, VmError
from .memo_cache import SetupStatistics
from .range_map import RangeMap
from .recording import BINDING_BYTES, COMMAND_BYTES, SLOT_BYTES, Recording
from .refs import OBJECT_BYTES
from .traced_setup import (
    Barrier,
    Command,
    Dispatch,
    Misfit,
    SetupTrace,
    Traced,
    Transfer,
    untraceable,
)

if TYPE_CHECKING:
    from .call import Call
    from .code import Code
    from .linker import LinkedProgram
    from .size_expressions import SizeExpression

#: calls that did not fit, after which a setup does not serve any more
_MAX_MISFITS: Final = 4
#: instructions that are run to find the entries that smaller sizes take
_PROBE_INSTRUCTIONS: Final = 200_000


class NewEntry(Misfit):
    """A dispatch takes an entry that was not recorded. The setup is recorded again with that entry."""


class _Record(NamedTuple):
    """A recording of the capacity."""

    owner: Recording
    traced: list[Command]
    slots: int
    #: for each dispatch of `traced`, in order: entry -> number of the indirect dispatch
    entries: list[dict[int, int]]
    indirect: int  #: the number of indirect dispatches


class _Prepared:
    """Memory and recordings for one capacity. `traced`: the trace of the setup for that capacity."""

    def __init__(
        self, call: Call, traced: Traced, buffers: Sequence[Buffer], entries: Sequence[Sequence[set[int]]]
    ) -> None:
        """`entries`: the entries to record for each dispatch of each recording, in order."""
        self.buffers = tuple(buffers)
        self._map = RangeMap([row[2] for row in traced.records], buffers, traced.results)
        self._records = [
            _record(call, slots, row, taken) for (_, slots, row), taken in zip(traced.records, entries, strict=True)
        ]

    def serve(self, traced: Traced) -> tuple[Any, ...]:
        """The results of the setup for the sizes of `traced`. `Misfit` if this capacity cannot serve them."""
        if len(traced.sizes) != len(self.buffers) or len(traced.records) != len(self._records):
            raise Misfit("the setup allocates or records more or less than for larger sizes")
        for size, buffer in zip(traced.sizes, self.buffers):  # noqa: B905  compared above
            if size > buffer.size:
                raise Misfit(f"the setup allocates {size} bytes, and {buffer.size} for larger sizes")
        arguments = [_arguments(record, row) for record, row in zip(self._records, traced.records)]  # noqa: B905
        self._map.check([row[2] for row in traced.records])
        for record, row, given in zip(self._records, traced.records, arguments):  # noqa: B905
            recording, slots, commands = row
            recording.charge(OBJECT_BYTES + SLOT_BYTES * slots)
            transfers = [command.lengths[0] for command in commands if isinstance(command, Transfer)]
            lengths = _slot_lengths(slots, commands)
            recording.commands = record.owner.commands.instance(given, transfers, lengths)
        return traced.results


def _record(call: Call, slots: int, traced: list[Command], taken: Sequence[set[int]]) -> _Record:
    """Record traced commands. Each dispatch is recorded with all entries of `taken`. Charges as the module
    `hal` does.
    """
    device = call.context.device
    assert device is not None
    call.spend_object()
    call.spend_bytes(SLOT_BYTES * slots)
    commands = device.create_command_buffer(slots, indirect=True)
    owner = Recording(commands, call.memory)
    owner.charge(OBJECT_BYTES + COMMAND_BYTES + SLOT_BYTES * slots)
    entries: list[dict[int, int]] = []
    group: list[Dispatch] = []  #: since the last barrier
    count = 0
    for command in traced:
        owner.charge(COMMAND_BYTES)
        if isinstance(command, Barrier):
            count = _dispatches(owner, group, entries, taken, count)
            commands.barrier()
        elif isinstance(command, Transfer):
            _transfer(call, owner, command)
        else:
            group.append(command)
    count = _dispatches(owner, group, entries, taken, count)
    commands.finish()
    return _Record(owner, traced, slots, entries, count)


def _dispatches(
    owner: Recording, group: list[Dispatch], entries: list[dict[int, int]], taken: Sequence[set[int]], count: int
) -> int:
    """Record a group of dispatches without barriers between them, each with all of its entries. Empties the group.

    Only one entry of each dispatch runs. There is still a barrier between two entries of a dispatch, since the
    validation of commands assumes that each of them runs. `count`: the number of indirect dispatches before; gives the
    number afterwards.
    """
    choices = [sorted(taken[len(entries) + place]) for place in range(len(group))]
    places: list[dict[int, int]] = [{} for _ in group]
    for number in range(max(map(len, choices), default=0)):
        if number:
            owner.commands.barrier()
        for command, choice, known in zip(group, choices, places, strict=True):
            if number >= len(choice):
                continue
            ranges = list(zip(_sources(command), command.offsets, command.lengths, strict=True))
            owner.charge(COMMAND_BYTES + BINDING_BYTES * len(ranges))
            owner.commands.dispatch_indirect(command.executable, choice[number], ranges)
            known[choice[number]] = count
            count += 1
    entries += places
    group.clear()
    return count


def _transfer(call: Call, owner: Recording, command: Transfer) -> None:
    sources = _sources(command)
    if len(sources) == 2:
        (source, target), (start, place) = sources, command.offsets
        owner.commands.copy(source, start, target, place, command.lengths[0])
        return
    taken = owner.commands.fill_bytes(command.offsets[0], command.lengths[0], command.pattern)
    call.spend_bytes(taken)
    owner.charge(taken)
    owner.commands.fill(sources[0], command.offsets[0], command.lengths[0], command.pattern)


def _sources(command: Dispatch | Transfer) -> list[Buffer | int]:
    """The buffer, or the number of the slot, of each range of a command."""
    return [slot if buffer is None else buffer for buffer, slot in zip(command.buffers, command.slots, strict=True)]


def _arguments(record: _Record, row: tuple[Recording, int, list[Command]]) -> list[Argument | None]:
    """The workload and parameters of each indirect dispatch; None for entries that are not taken. `Misfit` if the
    commands differ from those of the record.
    """
    _, slots, commands = row
    if slots != record.slots or len(commands) != len(record.traced):
        raise Misfit("a recording has other commands")
    given: list[Argument | None] = [None] * record.indirect
    entries = iter(record.entries)
    for command, known in zip(commands, record.traced):  # noqa: B905  compared above
        if type(command) is not type(known):
            raise Misfit("a recording has other commands")
        if isinstance(command, Barrier):
            continue
        assert not isinstance(known, Barrier)
        if command.buffers != known.buffers or command.slots != known.slots:
            raise Misfit("a command uses other buffers")
        if isinstance(command, Dispatch):
            assert isinstance(known, Dispatch)
            place = next(entries).get(command.entry)
            if command.executable is not known.executable:
                raise Misfit("a dispatch runs other code")
            if place is None:
                raise NewEntry(f"entry {command.entry} was not recorded")
            given[place] = command.workload, command.parameters
        elif command.pattern != known.pattern:  # type: ignore[union-attr]
            raise Misfit("a fill has another pattern")
    return given


def _slot_lengths(slots: int, commands: Sequence[Command]) -> list[int]:
    """The least number of bytes that the buffer in each slot needs."""
    lengths = [0] * slots
    for command in commands:
        if isinstance(command, Barrier):
            continue
        for buffer, slot, offset, length in zip(command.buffers, command.slots, command.offsets, command.lengths):  # noqa: B905
            if buffer is None:
                if not 0 <= slot < slots:
                    raise Misfit(f"slot {slot} of {slots}")
                if offset + length > lengths[slot]:
                    lengths[slot] = offset + length
    return lengths


class IndirectSetup:
    """A setup in a context."""

    def __init__(self, code: Code, capacity: Capacity) -> None:
        self._name = code.name
        self._trace = SetupTrace(code)
        self._capacity = capacity
        self._prepared: _Prepared | None = None
        self._sizes: tuple[int, ...] = ()  #: the capacity of `_prepared`
        self._entries: list[list[set[int]]] = []  #: the entries that any sizes took, per dispatch of each recording
        self._is_memory_low = False  #: memory ran out: allocate no more than a call needs
        self._counts = {"prepared": 0, "served": 0, "missed": 0}
        self._reason = ""

    @property
    def statistics(self) -> SetupStatistics:
        capacity = None if self._prepared is None else self._sizes
        return SetupStatistics(self._name, capacity, reason=self._reason, **self._counts)

    def serve(self, call: Call, sizes: tuple[int, ...], drop: Callable[[], None]) -> tuple[Any, ...] | None:
        """The results of the setup for these sizes. None if they need recordings of their own, or if the setup fails.

        `drop` drops the results that were given before. It is called when memory and recordings are made again.
        """
        if self._counts["missed"] >= _MAX_MISFITS:
            return None
        try:
            results = self._serve(call, sizes, drop)
        except LimitError:
            raise
        except VmError:  # the interpreter runs the setup next, and raises the error
            return None
        except (Misfit, HalError) as error:
            self._counts["missed"] += 1
            self._reason = str(error)
            return None
        self._counts["served"] += 1
        return results

    def release(self) -> bool:
        """Release memory and recordings, and allocate no more than calls need from now on. True if there were any."""
        found = self._prepared is not None
        self._prepared = None
        self._is_memory_low = self._is_memory_low or found
        return found

    def _serve(self, call: Call, sizes: tuple[int, ...], drop: Callable[[], None]) -> tuple[Any, ...]:
        prepared = self._prepared
        fits = prepared is not None and all([size <= most for size, most in zip(sizes, self._sizes)])  # noqa: B905
        if prepared is None or not fits:
            self._run(call, sizes, None)  # raises for sizes that the setup refuses, before anything is released
            prepared = self._prepare(call, sizes, drop)
        try:
            return prepared.serve(self._run(call, sizes, prepared.buffers))
        except NewEntry:
            return self._prepare(call, sizes, drop).serve(self._run(call, sizes, self._prepared_buffers()))

    def _prepared_buffers(self) -> tuple[Buffer, ...]:
        assert self._prepared is not None
        return self._prepared.buffers

    def _run(self, call: Call, sizes: tuple[int, ...], buffers: Sequence[Buffer] | None) -> Traced:
        call.spend(self._trace.length)
        return self._trace.run(call.context.globals, call.memory, sizes, buffers)

    def _prepare(self, call: Call, sizes: tuple[int, ...], drop: Callable[[], None]) -> _Prepared:
        """Make memory and recordings for a capacity that these sizes fit into. `Misfit` if there is none."""
        self._prepared = None
        drop()
        tried: set[tuple[int, ...]] = set()
        for declared, doubled in _GROWTHS[self._is_memory_low]:
            values = self._capacity.grown(sizes, declared, doubled)
            most = None if values is None else self._capacity.sizes(values)
            if values is None or most is None or most in tried or any(map(int.__gt__, sizes, most)):
                continue
            tried.add(most)
            try:
                prepared = self._make(call, sizes, most, values, declared)
            except (VmError, OutOfMemory, Misfit) as error:  # the program refuses a bound, or there is no memory
                self._reason = str(error)
                continue
            self._capacity.set(values)
            self._prepared, self._sizes = prepared, most
            self._counts["prepared"] += 1
            return prepared
        raise Misfit(self._reason or "the sizes do not follow from symbols")

    def _make(
        self, call: Call, sizes: tuple[int, ...], most: tuple[int, ...], values: dict[str, int], declared: bool
    ) -> _Prepared:
        device = call.context.device
        assert device is not None
        needed = self._run(call, most, None).sizes
        if declared and not affordable(device, sum(needed)):
            raise Misfit(f"{sum(needed)} bytes for the declared bounds are not affordable")
        room = device.allocator.room
        if most != sizes and room is not None and sum(needed) > room:  # no other memory is released for that
            raise Misfit(f"{sum(needed)} bytes for larger sizes, the limits leave {room}")
        buffers = []
        for size in needed:
            buffers.append(device.allocator.allocate(size))
            call.spend_object(size)
        traced = self._run(call, most, buffers)
        self._find_entries(call, traced, [sizes, *self._capacity.smaller_sizes(values)], buffers)
        return _Prepared(call, traced, buffers, self._entries)

    def _find_entries(
        self, call: Call, traced: Traced, tried: Sequence[tuple[int, ...]], buffers: Sequence[Buffer]
    ) -> None:
        """Add the entries that the capacity takes, and those that some of the sizes `tried` take."""
        own = _taken(traced)
        if [len(row) for row in self._entries] != [len(row) for row in own]:
            self._entries = [[set() for _ in row] for row in own]
        self._add(own)
        for number, sizes in enumerate(tried):
            if number and number * self._trace.length > _PROBE_INSTRUCTIONS:
                break
            try:
                self._add(_taken(self._run(call, sizes, buffers)))
            except (VmError, Misfit):
                continue

    def _add(self, taken: Sequence[Sequence[int]]) -> None:
        if [len(row) for row in taken] != [len(row) for row in self._entries]:
            return
        for known, row in zip(self._entries, taken, strict=True):
            for entries, entry in zip(known, row, strict=True):
                entries.add(entry)


def _taken(traced: Traced) -> list[list[int]]:
    """The entry of each dispatch of each recording."""
    return [[command.entry for command in row[2] if isinstance(command, Dispatch)] for row in traced.records]


#: whether memory ran out -> the arguments `declared` and `doubled` of `Capacity.grown`, in the order in which they are
#: tried
_GROWTHS: Final = {False: ((True, True), (False, True), (False, False)), True: ((False, False),)}


class IndirectSetups:
    """The setups of one context, on a device with indirect dispatch."""

    def __init__(self, program: LinkedProgram) -> None:
        self._program = program
        self._expressions: dict[int, list[SizeExpression | None]] | None = None
        self._setups: dict[int, IndirectSetup | str] = {}

    def serve(
        self, call: Call, function: int, sizes: tuple[int, ...], drop: Callable[[], None]
    ) -> tuple[Any, ...] | None:
        """As `IndirectSetup.serve`, for the function of that ordinal. None if it is not a setup."""
        setup = self._setups.get(function)
        if setup is None:
            setup = self._setups[function] = self._find(function, len(sizes))
        return None if isinstance(setup, str) else setup.serve(call, sizes, drop)

    def release(self) -> bool:
        """Release the memory and recordings of all setups. True if there were any."""
        return any([not isinstance(setup, str) and setup.release() for setup in self._setups.values()])

    def statistics(self) -> list[SetupStatistics]:
        """A row for each setup that was called."""
        found = []
        for function, setup in self._setups.items():
            if isinstance(setup, str):
                found.append(SetupStatistics(self._program.codes[function].name, None, 0, 0, 0, setup))
            else:
                found.append(setup.statistics)
        return found

    def _find(self, function: int, count: int) -> IndirectSetup | str:
        code = self._program.codes[function]
        reason = untraceable(code)
        if reason:
            return reason
        if self._expressions is None:
            self._expressions = setup_expressions(self._program)
        return IndirectSetup(code, Capacity(self._expressions.get(function, [None] * count)))
