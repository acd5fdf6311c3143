"""LLVM in child processes, because its assertions end the process: turns a text of LLVM IR into an object file.

`answer` runs in the child. `object_file` asks it. A child per level serves all compilations of this process, so that
the levels of an executable are compiled side by side.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from concurrent.futures import Future
from functools import cache
from threading import Thread
from typing import TYPE_CHECKING, Any

from orchestrion.compiler.errors import CompileError
from orchestrion.schema import hints
from orchestrion.schema.child_process import Child, ChildDied, ChildFailed, ChildLate, Message

if TYPE_CHECKING:
    from .levels import Level

#: seconds after which a text counts as one that LLVM never finishes
DEADLINE = 600.0
#: LLVM's level of optimisation of IR and of instruction selection
SPEED = 2


def answer(request: Message) -> Message:
    """In the child: the object file of a text."""
    import llvmlite.binding as llvm

    fields = request.fields
    machine = _machine(fields["triple"], fields["cpu"], fields["features"])
    module = llvm.parse_assembly(request.data.decode())
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=SPEED)
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_interleaving = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    if fields.get("text"):
        return Message({}, f"{module}\n{machine.emit_assembly(module)}".encode())
    return Message({}, machine.emit_object(module))


@cache
def _machine(triple: str, cpu: str, features: str) -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(triple)
    return target.create_target_machine(cpu=cpu, features=features, opt=SPEED, reloc="pic", codemodel="small")


def check_installed() -> None:
    """Raises CompileError if llvmlite is not installed."""
    if importlib.util.find_spec("llvmlite") is None:
        raise CompileError(f"target cpu needs the package llvmlite, which is not installed: {hints.install('cpu')}")


def object_file(text: str, level: Level, entries: str, text_only: bool = False) -> bytes:
    """The object file of a text of LLVM IR. `entries`: what the text holds, for messages.

    Raises CompileError if LLVM ends, does not end, or refuses the text.
    """
    check_installed()
    fields = {"triple": level.triple, "cpu": level.cpu, "features": level.features, "text": text_only}
    try:
        return _child(level).request(fields, text.encode(), deadline=DEADLINE).data
    except ChildDied as error:
        raise CompileError(f"LLVM failed on {entries} for {level.name}: the process {error.how}") from error
    except ChildLate as error:
        raise CompileError(f"LLVM did not finish {entries} for {level.name} in {DEADLINE:g} s") from error
    except ChildFailed as error:
        raise CompileError(f"LLVM refused {entries} for {level.name}: {error}") from error


def object_files(texts: Sequence[str], levels: Sequence[Level], entries: str) -> list[bytes]:
    """The object files of a text for each level. Raises CompileError as `object_file` does, for the first that fails.

    Threads that an interrupt leaves behind end with the answers of their children, and keep no process from its exit.
    """
    if len(texts) == 1:
        return [object_file(texts[0], levels[0], entries)]
    found: list[Future[bytes]] = []
    for text, level in zip(texts, levels, strict=True):
        found.append(Future())
        Thread(target=_fulfil, args=(found[-1], text, level, entries), daemon=True).start()
    return [future.result() for future in found]


def _fulfil(future: Future[bytes], text: str, level: Level, entries: str) -> None:
    try:
        future.set_result(object_file(text, level, entries))
    except BaseException as error:
        future.set_exception(error)


@cache
def _child(level: Level) -> Child:
    return Child(f"{__name__}:answer")
