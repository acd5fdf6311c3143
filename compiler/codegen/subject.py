"""What a style renders: the IR of the phase `executables`, or the decoded module file. Each is made when a style asks
for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from orchestrion.compiler.driver import EMBEDDED, EMBEDDED_NAME
from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.ir.builtin import Module as Ir
from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.ir.verifier import check_input
from orchestrion.compiler.rules.engine import check as check_phase
from orchestrion.compiler.sequencer.hl_seq import Program, programs_of
from orchestrion.schema.module import Module


@dataclass(frozen=True, slots=True)
class Subject:
    """A program to render. `source`: its name for messages and provenance; `module` and `ir` raise CompileError if the
    input has none. `targets`: the profiles to render of a module that has programs for several; None for all.
    """

    source: str
    module: Callable[[], Module]
    ir: Callable[[], Ir]
    targets: tuple[str, ...] | None = None

    def program(self, profile: str, machine: str = "", level: str = "") -> Program:
        """The program for a profile, as IR of the phase `executables`. `level`: the profile that is taken where the
        program has one for it. `machine`: the kind of device, or `best` for the first program; by default it is the
        last one, which runs on any.

        Raises CompileError if there is none.
        """
        programs = programs_of(self.ir())
        found = [program for program in programs if program.profile == level]
        found = found or [program for program in programs if program.profile == profile]
        if not found:
            names = ", ".join(dict.fromkeys(program.profile for program in programs))
            raise CompileError(f"{self.source}: has no program for target {profile}, only for {names}")
        if machine in ("", "best"):
            return found[0 if machine else -1]
        machines = {program.machine_name: program for program in found}
        if machine not in machines:
            message = f"has no program for target {profile} and machine {machine}, only for {', '.join(machines)}"
            raise CompileError(f"{self.source}: {message}")
        return machines[machine]


def embedded_ir(module: Module, name: str) -> Ir:
    """The IR that `vm-compile --embed-ir` kept in a module file, verified.

    Raises CompileError if there is none or if it is wrong, ModuleError if the segment is damaged.
    """
    data = module.debug(EMBEDDED_NAME)
    if data is None:
        raise CompileError(f"{name}: has no IR: compile it with --embed-ir, or give the program as text")
    return verified_ir(data, name)


def verified_ir(data: bytes | memoryview, name: str) -> Ir:
    """The IR of the phase `executables` in a debug segment. Raises CompileError if it is wrong."""
    try:
        text = bytes(data).decode()
    except UnicodeDecodeError as error:
        raise CompileError(f"{name}: debug segment {EMBEDDED_NAME} is not text: {error}") from None
    ir = parse(text, name)
    check_input(ir)
    check_phase(ir, EMBEDDED)
    return ir
