"""LLVM in a child process: turns a text of LLVM IR into an object file.

It imports nothing else of the compiler, as each compilation starts children.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cache
from tempfile import TemporaryFile
from typing import Any

from orchestrion.schema.child_process import Message

#: LLVM's level of optimisation of IR and of instruction selection
SPEED = 2
#: its report of the frame of a function that has the attribute for it (`llvm_child.py`)
_FRAME = re.compile(r"stack frame size \((\d+)\) exceeds limit \(\d+\) in function '(\w+)'")


def answer(request: Message) -> Message:
    """The object file of a text."""
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
    data, printed = _with_errors(lambda: machine.emit_object(module))
    return Message({name: int(size) for size, name in _FRAME.findall(printed)}, data)


def _with_errors(emit: Callable[[], bytes]) -> tuple[bytes, str]:
    """What a function returns, and what it writes to the standard error output, which a child does not need."""
    before = os.dup(2)
    with TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            data = emit()
        finally:
            os.dup2(before, 2)
            os.close(before)
        file.seek(0)
        return data, file.read().decode()


@cache
def _machine(triple: str, cpu: str, features: str) -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(triple)
    return target.create_target_machine(cpu=cpu, features=features, opt=SPEED, reloc="pic", codemodel="small")
