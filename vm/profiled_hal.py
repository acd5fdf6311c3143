"""The native module `hal` of a program that was loaded with profiling.

Three functions differ from those of `HalModule`: before they record a command, they note the instruction that called
them and the workload. Results and errors are the same.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, NamedTuple

from orchestrion.hal import profiling
from orchestrion.hal.executable import Executable
from orchestrion.hal.workload import Grid

from .call import Call, CallContext
from .hal_module import HalModule
from .native import NativeFunction, NativeModule
from .recording import Recording


class Tag(NamedTuple):
    """The tag of a recorded command (`hal.profiling.Command.tag`): function and pc of the instruction that recorded it.

    A dispatch also has the workload, the ordinal of the executable and the entry. `executable` is None if the code is
    not from the module.
    """

    function: int
    pc: int
    workload: Grid | None = None
    executable: int | None = None
    entry: int = 0


class ProfiledHal(NativeModule):
    """The functions of `hal` for one program. `owner`: gives the owner of a context's submissions."""

    name: ClassVar[str] = "hal"
    placed: ClassVar[bool] = True

    def __init__(self, owner: Callable[[CallContext], object]) -> None:
        self._hal = HalModule()
        self._owner = owner

    def find(self, name: str) -> NativeFunction | None:
        function = self._hal.find(name)
        note = _NOTES.get(name)
        return function if function is None or note is None else _Placed(function, partial(note, self._owner))


class _Placed(NativeFunction):
    """A function that notes the instruction that calls it. `at` gives the function for an instruction."""

    __slots__ = ("_note",)

    def __init__(self, function: NativeFunction, note: Callable[..., None]) -> None:
        super().__init__(function.name, function.signature, function.function, function.nullable, alone=False)
        self._note = note

    def at(self, function: int, pc: int) -> NativeFunction:
        noted = partial(_noted, self.function, partial(self._note, function, pc))
        return NativeFunction(self.name, self.signature, noted, self.nullable, alone=False)


def _noted(function: Callable[..., Any], note: Callable[..., None], call: Call, *arguments: Any) -> Any:
    note(call, *arguments)
    return function(call, *arguments)


def _transfer(
    owner: Callable[[CallContext], object], function: int, pc: int, call: Call, recording: Recording, *rest: object
) -> None:
    recorder = profiling.recorder(recording.commands)
    recorder.owner = owner(call.context)
    recorder.tag = Tag(function, pc)


def _dispatch(
    owner: Callable[[CallContext], object],
    function: int,
    pc: int,
    call: Call,
    recording: Recording,
    executable: Executable,
    entry: int,
    x: int,
    y: int,
    z: int,
    *rest: object,
) -> None:
    recorder = profiling.recorder(recording.commands)
    recorder.owner = owner(call.context)
    chosen = call.program.code.chosen.items()
    ordinal = next((at for at, choice in chosen if choice.entries is executable.entries), None)
    recorder.tag = Tag(function, pc, (x, y, z), ordinal, entry)


_NOTES: dict[str, Callable[..., None]] = {
    "hal.recording.dispatch": _dispatch,
    "hal.recording.copy": _transfer,
    "hal.recording.fill": _transfer,
}
