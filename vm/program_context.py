"""The functions of a program in one context, and the interface of a loaded program for modules that import from it."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from orchestrion.hal.fork import ForkedLock

from .context import Context
from .dynamic_function import DynamicFunction
from .errors import HAL_ERRORS, CallerTypeError, CallerValueError, from_hal_error
from .exports import Export
from .function import Function
from .load_progress import LoadProgress, Progress
from .scalars import ScalarFunction
from .statistics import Log
from .tree_function import AnyFunction, TreeFunction
from .warm_up import warm_up

if TYPE_CHECKING:
    from orchestrion.hal.device import Device

#: a file or its bytes
ModuleSource = str | os.PathLike[str] | bytes | bytearray | memoryview


class ProgramContext:
    """The functions of a program in one context: as attributes, by `["name"]`, and in `functions`."""

    def __init__(self, context: Context, exports: Sequence[Export], log: Log) -> None:
        self.context = context
        found: dict[str, AnyFunction] = {}
        for export, code in zip(exports, context.program.entries, strict=True):
            if export.arguments or export.results:
                kind = DynamicFunction if export.is_dynamic else Function
                flat = kind(export, code, context, log)
                found[export.name] = TreeFunction(flat) if export.trees else flat
            else:
                found[export.name] = ScalarFunction(export.name, code, context)
        self.functions: Mapping[str, AnyFunction] = MappingProxyType(found)
        for name, function in found.items():
            if name not in self.__dict__ and not hasattr(type(self), name):
                setattr(self, name, function)

    def __getitem__(self, name: str) -> AnyFunction:
        """The function of that name. `CallerError` lists the functions."""
        function = self.functions.get(name)
        if function is None:
            raise CallerValueError(f"no function {name!r}: the module exports {', '.join(self.functions) or 'none'}")
        return function

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "functions":
            raise AttributeError(name)
        there = ", ".join(self.functions) or "none"
        raise AttributeError(f"no function {name!r}: the module exports {there}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        device = self.context.device
        where = "closed" if self.context.closed or device is None else f"on {device.info.id}"
        return f"<{type(self).__name__} {where}: {', '.join(self.functions) or 'no functions'}>"

    def __reduce__(self) -> tuple[Any, ...]:
        raise CallerTypeError("a context does not pickle: pickle the program, and create a context where it is read")

    def warm_up(self, progress: Progress | None = None) -> None:
        """Do work of the first calls now: build all device code, and for exports of static shapes allocate memory for
        arguments and results and let the driver encode recordings. Nothing runs on the device.

        A program that is loaded without `build="lazy"` is warm already. `progress`: as for `load`, for the stages
        `build` and `warm_up`. Raises what a first call would raise.
        """
        try:
            warm_up(self.context, self.functions, None if progress is None else LoadProgress(progress))
        except HAL_ERRORS as error:
            raise from_hal_error(error) from error

    def cancel(self) -> None:
        """End the running call, if any, with `Cancelled`. From any thread."""
        self.context.cancel()

    def close(self) -> None:
        """Release everything that the context holds. Its functions refuse calls afterwards. Does nothing in a forked
        process.
        """
        if isinstance(self.context.lock, ForkedLock):
            return
        if self.context.call_queue is not None:
            self.context.call_queue.close()
        with self.context.lock:
            for function in self.functions.values():
                if not isinstance(function, ScalarFunction):
                    function.flat.release()
            self.context.close()
        for module in self.context.program.imported:
            module.leave(self.context)


class LoadedProgram(ProgramContext):
    """A loaded program, as modules that import from it see it. See `Program`."""

    exports: tuple[Export, ...]

    @property
    @abstractmethod
    def device(self) -> Device:
        """The program's share of its device."""

    @abstractmethod
    def create_context(
        self,
        *,
        fuel: float | None = None,
        deadline: float | None = None,
        memory: float | None = None,
        depth: int = 1000,
    ) -> ProgramContext:
        """Another context, with limits of its own."""
