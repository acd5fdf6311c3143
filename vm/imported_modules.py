"""Functions that a module imports from other modules, which are loaded programs in the place of native modules.

    encoder = vm.load("encoder.fb", device="vulkan")
    program = vm.load("decoder.fb", modules={"encoder": encoder})

- Each module has the policy and limits that it was loaded with. The deadline and the cancellation of a call also end
  its calls of other modules.
- A call lends buffers to the function: arguments, which it can only read, and results. The handles end with the call.
  Compiled code gives each argument and result memory of its own, so the function cannot see other memory.
- Each context of the caller uses a context of its own of the imported module, so callers share no state there. The
  first one uses the default context.
- A submitted call runs the function in another thread and is suspended until it ends.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING

from orchestrion.hal.buffer import BufferView
from orchestrion.hal.fork import new_lock
from orchestrion.hal.waiting import start_thread
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.imported import NATIVE_MODULES, PREFIX, FunctionType, TensorType, parse_function_type
from orchestrion.schema.signature import parse_signature

from .call import Call
from .call_fence import CallFence
from .errors import CallerValueError, DeviceError, UnresolvedImport, shorten
from .exports import Value
from .interpreter import to_vm_error
from .native import NativeFunction
from .tensors import fits

if TYPE_CHECKING:
    from orchestrion.hal.device import Device
    from orchestrion.schema.module import Module

    from .call import CallContext
    from .code import Code
    from .context import Context
    from .exports import Export
    from .loader import ModuleCheck
    from .program_context import LoadedProgram, ModuleSource, ProgramContext


class NestedCall(Call):
    """A call of an imported function. It has the limits of its context, and the deadline and cancellation of
    the caller.
    """

    __slots__ = ("_caller",)

    def __init__(self, context: Context, caller: Call) -> None:
        self._caller = caller
        super().__init__(context)

    def begin(self) -> None:
        super().begin()
        limit = self._caller.deadline
        if limit is not None:
            self.deadline = limit if self.deadline is None else min(limit, self.deadline)

    def check(self) -> None:
        self._caller.check()
        super().check()


class ImportedModule:
    """A loaded program whose functions another program calls. `owned`: whether it is closed with that program."""

    __slots__ = ("_contexts", "_default_is_free", "_lock", "name", "owned", "program")

    def __init__(self, name: str, program: LoadedProgram, owned: bool) -> None:
        self.name = name
        self.owned = owned
        self.program = program
        self._contexts: weakref.WeakKeyDictionary[CallContext, ProgramContext] = weakref.WeakKeyDictionary()
        self._default_is_free = True  #: whether no caller has the default context
        self._lock = new_lock()

    def find(self, name: str) -> NativeFunction | None:
        """The function of that full name; None if there is none. It takes views for its arguments, then for its
        results.
        """
        found = self._export(name)
        if found is None:
            return None
        place, export = found
        count = len(export.arguments) + len(export.results)
        signature = parse_signature(f"({', '.join(['hal.view'] * count)}) -> ()")
        call = partial(self._call, place, export)
        return NativeFunction(name, signature, call, frozenset(), partial(self._begin, call))

    def refusal(self, name: str, wanted: FunctionType) -> str:
        """The reason why an import of that full name and type cannot be resolved; empty if it can."""
        found = self._export(name)
        if found is None:
            there = ", ".join(export.name for export in self.program.exports) or "none"
            return f"module {self.name} exports {shorten(there)}"
        export = found[1]
        if not _fit(wanted.arguments, export.arguments) or not _fit(wanted.results, export.results):
            return f"module {self.name} has {shorten(str(export))}"
        return ""

    def leave(self, caller: Context) -> None:
        """Close the context that serves `caller`, a context that is closed."""
        with self._lock:
            context = self._contexts.pop(caller, None)
        if context is not None and context is not self.program:
            context.close()

    def close(self) -> None:
        """Close all contexts, and the program if it is owned: the program that imports it is closed."""
        with self._lock:
            contexts = [context for context in self._contexts.values() if context is not self.program]
            self._contexts.clear()
        for context in contexts:
            context.close()
        if self.owned:
            self.program.close()

    def _export(self, name: str) -> tuple[int, Export] | None:
        _, _, function = name.partition(".")
        for place, export in enumerate(self.program.exports):
            if export.name == function:
                return place, export
        return None

    def _context(self, caller: CallContext) -> ProgramContext:
        with self._lock:
            context = self._contexts.get(caller)
            if context is None:
                context = self.program if self._default_is_free else self._new_context()
                self._default_is_free = False
                self._contexts[caller] = context
            return context

    def _new_context(self) -> ProgramContext:
        limits = self.program.context.limits
        return self.program.create_context(
            fuel=limits.fuel, deadline=limits.deadline, memory=limits.memory, depth=limits.depth
        )

    def _call(self, place: int, export: Export, call: Call, *views: BufferView) -> None:
        context = self._context(call.context).context
        if context.device is None:
            raise CallerValueError(f"module {self.name} is closed, its function {export.name} cannot be called")
        count = len(export.arguments)
        with _lent(context.device, views, count) as lent, context.lock:
            results = context.run(NestedCall(context, call), self._code(place), lent)
        if any(given is not view for given, view in zip(results, lent[count:], strict=True)):
            raise DeviceError(
                f"function {export.name} of module {self.name} returned other views than its destinations"
            )

    def _code(self, place: int) -> Code:
        return self.program.context.program.entries[place]

    def _begin(self, function: Callable[..., None], call: Call, *views: BufferView) -> CallFence:
        """Run the function in another thread. The fence is reached when it ends."""
        fence = CallFence()

        def run() -> None:
            try:
                function(call, *views)
            except Exception as error:
                fence.end(to_vm_error(error, call))
            else:
                fence.end(None)

        start_thread(run, f"orchestrion-import-{self.name}")
        return fence


@contextmanager
def _lent(device: Device, views: Sequence[BufferView], arguments: int) -> Iterator[list[BufferView]]:
    """Views of the same memory for another program's share of the device, valid during the body. Arguments are
    read-only.
    """
    lent = [view.buffer.lend(device, place >= arguments) for place, view in enumerate(views)]
    try:
        yield [
            BufferView(buffer, view.dtype, view.shape, view.offset) for buffer, view in zip(lent, views, strict=True)
        ]
    finally:
        for buffer, view in zip(lent, views, strict=True):
            buffer.give_back(view.buffer)


def _fit(wanted: Sequence[TensorType], there: Sequence[Value]) -> bool:
    return len(wanted) == len(there) and all(
        [a.dtype is b.dtype and fits(a.shape, b.shape) for a, b in zip(wanted, there, strict=True)]
    )


def imported_types(module: Module) -> dict[str, FunctionType]:
    """The types of the functions that a module imports from other modules, by name. `ModuleError` for a
    malformed type.
    """
    found = {}
    for row in module.imports:
        name = module.strings[row.name]
        if name.partition(".")[0] in NATIVE_MODULES:
            continue
        text = module.attribute(PREFIX + name)
        if isinstance(text, str):
            found[name] = parse_function_type(text)
        elif text is not None:
            raise ModuleError(f"attribute {PREFIX}{shorten(name)} is no text")
    return found


def check_types(module: Module, modules: Mapping[str, ImportedModule]) -> None:
    """`UnresolvedImport` if an imported function is missing in the given modules or has another type. It lists all."""
    problems = []
    for name, wanted in imported_types(module).items():
        owner = name.partition(".")[0]
        there = modules.get(owner)
        if there is None:
            reason = f"no module {shorten(owner)} was given (modules=, --module={shorten(owner)}=FILE)"
        else:
            reason = there.refusal(name, wanted)
        if reason:
            problems.append(f"{shorten(name)}: {shorten(str(wanted))}: {reason}")
    if problems:
        raise UnresolvedImport(f"imported functions are missing: {'; '.join(problems[:100])}")


def check_before_verifying(modules: Sequence[ImportedModule], check: ModuleCheck | None) -> ModuleCheck:
    """The check of a module before its code is verified: `check`, then the types of its imported functions."""
    by_name = {module.name: module for module in modules}

    def both(module: Module) -> None:
        if check is not None:
            check(module)
        check_types(module, by_name)

    return both


def load_modules(
    modules: Mapping[str, LoadedProgram | ModuleSource], device: Device, load: Callable[..., LoadedProgram]
) -> list[ImportedModule]:
    """Load the modules that a program on `device` imports from, in their order. Closes `device`.

    `load`: the function `load`, called with a module, `device` and `modules`. `CallerError` for a program on another
    open device, and for the name of a native module.
    """
    found: list[ImportedModule] = []
    with device:
        try:
            for name, source in modules.items():
                if name in NATIVE_MODULES:
                    raise CallerValueError(f"a module cannot have the name {name!r}, which is a module of the runtime")
                if isinstance(source, str | PathLike | bytes | bytearray | memoryview):
                    earlier = {one.name: one.program for one in found}
                    found.append(ImportedModule(name, load(source, device=device, modules=earlier), True))
                    continue
                if source.device.device_state is not device.device_state:
                    raise CallerValueError(
                        f"module {name} is loaded on another open device: give that device, or leave device= out"
                    )
                found.append(ImportedModule(name, source, False))
        except BaseException:
            for one in found:
                one.close()
            raise
    return found
