"""The arguments of a `load`. A program keeps them, so `Program.reopen` can load it again after its device was lost.

The file stays mapped, and the values of parameters are found once. So a program does not depend on files that are
replaced or deleted later.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from .errors import CallerValueError

#: when device code is built: while the module is loaded, or when it is first needed
BuildMode = Literal["eager", "lazy"]

if TYPE_CHECKING:
    from orchestrion.hal.device import Device
    from orchestrion.schema.container import Container
    from orchestrion.schema.trust.policy import TrustPolicy

    from .admission import Admission
    from .limits import Limits
    from .linker import LinkedProgram, ParameterValues
    from .memory import Memory
    from .native import NativeModule
    from .parameters import File, Source
    from .program_context import LoadedProgram, ModuleSource


@dataclass(slots=True, kw_only=True)
class Request:
    """The arguments of `load`. `device`: a name; empty for the device of the programs among `modules`; None if the
    caller gave an open device.
    """

    #: the file that contains the module, or bytes
    source: ModuleSource
    offset: int
    length: int | None
    file: Container
    folder: Path | None
    device: str | None
    #: whether `device` was chosen by `default_device.py`
    is_default_device: bool
    allow_native_code: bool
    #: instances, or names that packages declare
    natives: Sequence[NativeModule | str]
    calls: Limits
    load_limits: Limits | None
    profiling: bool
    device_memory: int | None
    threads: int | None
    build_deadline: float | None
    parameters: Source | Sequence[Source] | None
    adapters: Sequence[File]
    extra_parameters: bool
    build: BuildMode
    policy: str | os.PathLike[str] | TrustPolicy | None
    admission: Admission | None
    #: modules that the module imports functions from
    modules: Mapping[str, LoadedProgram | ModuleSource]
    #: the id of the device on which the program was loaded
    device_id: str = ""
    #: held while the program is loaded again
    lock: threading.Lock = field(default_factory=threading.Lock)
    #: the values of parameters, and the bytes of host memory that they are charged for
    _bound: tuple[ParameterValues, int] | None = None

    @property
    def module_options(self) -> dict[str, Any]:
        """The arguments of `load` for the files among `modules`, which get the same policy and limits."""
        calls = self.calls
        return {
            "fuel": calls.fuel,
            "deadline": calls.deadline,
            "memory": calls.memory,
            "depth": calls.depth,
            "load_limits": self.load_limits,
            "build_deadline": self.build_deadline,
            "build": self.build,
            "profiling": self.profiling,
            "policy": self.policy,
        }

    def check_build(self) -> None:
        """`CallerError` unless `build` is a build mode."""
        if self.build not in get_args(BuildMode):
            raise CallerValueError(f"build={self.build!r}: expected one of {', '.join(map(repr, get_args(BuildMode)))}")

    def check_device(self, device: Device | None) -> None:
        """`CallerError` unless the program can be loaded again on this device; None opens the device by its name."""
        if device is None and self.device is None:
            raise CallerValueError(
                f"the program was loaded on a device that the caller opened; open {self.device_id} again and pass it: "
                "program.reopen(device)"
            )
        if device is not None and device.info.id != self.device_id:
            raise CallerValueError(
                f"the program was loaded on {self.device_id} and cannot be reopened on {device.info.id}"
            )

    def bind(self, linked: LinkedProgram, memory: Memory) -> ParameterValues:
        """The values of the program's parameters, charged to `memory`. Raises what `parameters.bind` raises."""
        if self._bound is not None:
            values, size = self._bound
            memory.charge(size)
            return values
        from .parameters import bind  # few modules have any

        before = memory.budget.live
        rules = None if self.admission is None else self.admission.policy
        values = bind(linked, self.folder, self.parameters, self.adapters, self.extra_parameters, memory, rules)
        self._bound = values, memory.budget.live - before
        return values
