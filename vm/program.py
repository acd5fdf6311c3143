"""Loads modules: `load` opens a module, chooses the program for a device, and makes its functions callable.

    program = load("model.fb", device="vulkan")
    y = program.main(x)

A load verifies the module's root and the functions of the chosen program. It runs the program's initializers once, and
the initializers of the default context. `create_context` makes more contexts, with limits of their own; they share
code, executables and constants. Any thread may use a program. The calls of one context run one after the other.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from orchestrion.hal.building import BuildBudget
from orchestrion.hal.device import Device
from orchestrion.hal.fork import ForkedLock
from orchestrion.schema.module import Module

from .build_failures import MAX_ATTEMPTS, remember
from .context import Context
from .default_device import default_device
from .errors import (
    HAL_ERRORS,
    BuildFailed,
    CallerValueError,
    DeviceLost,
    DeviceWarning,
    LimitError,
    NoProgram,
    from_hal_error,
)
from .exports import Export
from .limits import Limits, plain_number
from .linker import LinkedProgram
from .load_limits import LoadLimits, defaults_of, find_limits, finite, tighten
from .load_progress import LoadProgress, Progress
from .load_times import LoadTimes
from .loader import Loader, ModuleCheck
from .memory import Memory
from .native import Functions, NativeModule, native_modules
from .opening import admission_under, check_options, first_program, folder_of, open_module, open_share
from .parallel_builds import building
from .program_arrays import ProgramArrays
from .program_context import LoadedProgram, ModuleSource, ProgramContext
from .request import BuildMode, Request
from .selection import UPDATE, skipped_programs
from .statistics import CallLog, Log
from .warm_up import warm_up_where_there_is_room

if TYPE_CHECKING:
    from orchestrion.schema.container import Container
    from orchestrion.schema.trust.policy import TrustPolicy
    from orchestrion.schema.trust.signers import Trust

    from .admission import AnySignature
    from .code import Code
    from .imported_modules import ImportedModule
    from .memo_cache import Setups
    from .parameters import File, Source
    from .placement import Placement
    from .profile import Profile, Profiler

_LOADER = Loader()
_LOAD_COUNTERS = ("executables_created", "command_buffers_recorded", "dispatches", "bytes_copied")


class Program(LoadedProgram, ProgramArrays):
    """A loaded program with its default context."""

    def __init__(
        self,
        linked: LinkedProgram,
        base: Context,
        found: LoadLimits,
        defaults: Limits | None,
        times: LoadTimes,
        request: Request,
        profiler: Profiler | None = None,
        trust: Trust | None = None,
    ) -> None:
        """Create the default context. `base`: the context of the program's initializers, with the limits of calls.
        `found`: the limits of the default context's initializers. `defaults`: the default limits for the
        initializers of further contexts, None for a trusted module. `request`: what `reopen` loads.
        """
        self._request = request
        #: the signers of the module that its trust policy accepts; None without a policy
        self.trust = trust
        self._linked = linked
        self._base = base
        self._defaults = defaults
        self._declared = linked.code.declared
        self._profiler = profiler
        self._log = CallLog()
        self.exports: tuple[Export, ...] = linked.exports
        with times.stage("initializers"):
            context = self._context(base.limits, found)
        super().__init__(context, self.exports, self._log_of(context))
        try:
            if self.device.streaming is not None:
                self.device.streaming.prepare(self.device, sum(export.slot_bytes for export in self.exports))
            self._load = self._load_statistics(context, times, found)
        except BaseException as error:
            context.close()
            if isinstance(error, HAL_ERRORS):
                raise from_hal_error(error) from error
            raise

    @property
    def module(self) -> Module:
        """The decoded module."""
        return self._linked.module

    @property
    def digest(self) -> str:
        """SHA-256 of the module, as 64 hexadecimal digits. It covers code and constants, but not parameters in other
        files.
        """
        return self._request.file.digest.hex()

    @property
    def ordinal(self) -> int:
        """The ordinal of the program in the module."""
        return self._linked.ordinal

    @property
    def device(self) -> Device:
        """The program's share of its device. `CallerError` or `DeviceLost` if the program is closed."""
        if self._base.device is None:
            raise self._base.refusal()
        return self._base.device

    @property
    def name(self) -> str:
        """The name of the program in the module."""
        return self.module.strings[self._linked.row.name]

    @property
    def skipped(self) -> list[tuple[str, str]]:
        """The names of earlier programs of the module for this device, each with the reason why it cannot run: its
        segments were taken out of the file, or it has a later version.
        """
        return skipped_programs(self.module, self.ordinal, self.device.info)

    def create_context(
        self,
        *,
        fuel: float | None = None,
        deadline: float | None = None,
        memory: float | None = None,
        depth: int = 1000,
        load_limits: Limits | None = None,
    ) -> ProgramContext:
        """Create another context, with private globals and memory. Contexts run in parallel.

        `fuel`, `deadline`, `memory` and `depth`: the limits of its calls (`Limits`). `load_limits`: the limits of its
        initializers, which run now, as in `load`. Limits that the module declares are used too. Raises `VmError` if an
        initializer fails.
        """
        calls, declared = Limits(fuel, deadline, memory, depth), self._declared
        found = find_limits(load_limits, calls, self._defaults, declared)
        try:
            context = self._context(tighten(finite(calls), declared.calls), found)
        except HAL_ERRORS as error:
            raise from_hal_error(error) from error
        return ProgramContext(context, self.exports, self._log_of(context))

    def statistics(self) -> dict[str, Any]:
        """The costs of the load and of the last calls, and the most memory that was held; see `statistics.py`.

        `sizes`, if recordings serve many sizes (`indirect_setup.py`): a row for each setup, with the sizes that its
        memory and recordings are made for, how often they were made, how many sets of sizes they served, how many
        needed recordings of their own, and why.
        """
        setups = self.context.memo_cache.setups
        sizes = [] if setups is None else [row._asdict() for row in setups.statistics()]
        return {
            "load": dict(self._load),
            "calls": self._log.rows(),
            **({"sizes": sizes} if sizes else {}),
            "memory": {
                "peak_device_bytes": self.device.allocator.peak_bytes,
                "peak_host_bytes": self._base.memory.peak_host_bytes,
            },
        }

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle: the file or bytes of the module, its digest, the device and the options of `load`.

        Reading the pickle loads the module again, without policy and `allow_native_code` (`pickling.py`).
        """
        from .pickling import pickle_arguments

        return restored, pickle_arguments(self._request)

    def profile(self) -> Profile:
        """The launches up to now; see `profile.py`. `CallerError` unless the program was loaded with
        `profiling=True`.
        """
        if self._profiler is None:
            raise CallerValueError("the program was not loaded with profiling=True")
        return self._profiler.profile(self.name)

    def placement(self) -> Placement:
        """The chosen program and variants, and the reasons why others were not chosen; see `placement.py`."""
        from .load_facts import LoadFacts
        from .placement import loaded_placement

        facts = LoadFacts()
        for context in (self._base, self.context):
            facts.builds |= context.facts.builds
            facts.derived |= context.facts.derived
        return loaded_placement(self.module, self.device.info, self.device.policy, facts, self.trust)

    def reopen(self, device: Device | None = None) -> Program:
        """Load the program again if its device was lost; otherwise do nothing. Returns the program itself.

        The device is opened again by its name, and the module is loaded with the arguments of the first `load`. The
        state of contexts is lost: mutable globals start anew. Device arrays, other contexts, and functions that were
        taken from the program before raise `DeviceLost`. Submitted calls that have not begun end with `DeviceLost`. Any
        thread may call this; one thread loads, and the others wait.

        `device`: the same device, opened again by the caller; needed if `load` was given an open device.

        Raises `CallerError` without a needed `device`, for another device, and for a closed program. Raises what `load`
        raises; then the program is still lost, and `reopen` may be called again.
        """
        if isinstance(self.context.lock, ForkedLock):
            self.context.lock.refuse()
        request = self._request
        with request.lock:
            lost = self._lost_error()
            if lost is None:
                return self
            request.check_device(device)
            self._close_lost(lost)
            self.__dict__ = load_request(
                request, device, 2, LoadTimes()
            ).__dict__  # one step: other threads see the old or the new
        return self

    def _lost_error(self) -> DeviceLost | None:
        """The error of the lost device; None if it is not lost."""
        if self._base.lost is not None:
            return self._base.lost
        error = self.device.device_state.lost
        return None if error is None else DeviceLost(from_hal_error(error).message)

    def _close_lost(self, lost: DeviceLost) -> None:
        """Release the program on the lost device. From now on its contexts raise `DeviceLost`."""
        context = self.context
        self._base.lost = context.lost = lost
        if context.call_queue is not None:
            context.call_queue.close(lost)
        self.close()

    def close(self) -> None:
        """Release everything that the program holds. Contexts of `create_context` are closed by the caller."""
        try:
            super().close()
        finally:
            self._base.close()
            for module in self._linked.imported:
                module.close()

    def _context(self, limits: Limits, found: LoadLimits) -> Context:
        base = self._base
        memory = Memory(limits.memory, base.memory)
        context = Context(self._linked, limits, memory, self.device.share(budget=memory.budget), base, _setups)
        _initialize(context, self._linked.context_initializers, found, "context", self._profiler)
        return context

    def _log_of(self, context: Context) -> Log:
        if self._profiler is None:
            return self._log
        from .profile import ProfiledLog

        return ProfiledLog(self._log, self._profiler, context)

    def _load_statistics(self, context: Context, times: LoadTimes, found: LoadLimits) -> dict[str, Any]:
        """Warm the program up, unless `build` is "lazy", and give the statistics of the load. `found` limits the
        memory of the warm-up, because a small file may declare large arguments.
        """
        cold = "build is lazy"
        if self._request.build == "eager":
            with times.stage("warm_up"), _limited_memory(context, found):
                cold = warm_up_where_there_is_room(context, self.functions, times.progress)
        if times.progress is not None:
            times.progress.check()
        times.move(context.build_seconds, "initializers", "build")
        base, own = self.device.statistics, context.device.statistics if context.device else None
        count = len(self._linked.program_initializers) + len(self._linked.context_initializers)
        spent = {name: getattr(base, name) + getattr(own, name, 0) for name in _LOAD_COUNTERS}
        stages = dict(times.seconds)
        rows = {"seconds": times.total, "stages": stages, "initializers": count, **spent}
        return rows | ({"cold": cold} if cold else {})


def load(
    module: ModuleSource,
    device: str | Device | None = None,
    *,
    allow_native_code: bool = False,
    natives: NativeModule | str | Sequence[NativeModule | str] = (),
    fuel: float | None = None,
    deadline: float | None = None,
    memory: float | None = None,
    depth: int = 1000,
    device_memory: int | None = None,
    threads: int | None = None,
    load_limits: Limits | None = None,
    profiling: bool = False,
    build_deadline: float | None = None,
    build: BuildMode = "eager",
    parameters: Source | Sequence[Source] | None = None,
    adapters: File | Sequence[File] = (),
    extra_parameters: bool = False,
    offset: int = 0,
    length: int | None = None,
    policy: str | os.PathLike[str] | TrustPolicy | None = None,
    signature: AnySignature | None = None,
    modules: Mapping[str, LoadedProgram | ModuleSource] | None = None,
    digest: str | None = None,
    progress: Progress | None = None,
) -> Program:
    """Load a module, from a path or from bytes, for a device.

    `device`: a name such as `vulkan` or `opencl:1`, or an open device. None: `cpu` if it runs the module, otherwise
    `reference`, with a `DeviceWarning` unless the module is for `reference` alone.

    `allow_native_code`: whether code that a native compiler reads (OpenCL C) may run although the module is not
    trusted. An open device has its policy already.

    `natives`: other native modules, or names of those that installed packages declare (`vm/native.py`).

    `fuel`, `deadline`, `memory`, `depth`: the limits of calls in the default context (`Limits`); None is no limit.

    `load_limits`: the limits of the initializers that run now. If a field is None, the limit of calls is used. If that
    is None too, a default is used, or no limit for trusted modules (compiled on this machine, or `allow_native_code`).
    `math.inf` is no limit. Limits that the module declares are used if they are tighter. See docs/limits.md.

    `device_memory`: bytes of device memory for the program, its contexts and its imported modules; None is no limit.
    Constants that do not fit are streamed: copied to the device in each call, with a `StreamingWarning`. An open device
    must have been opened with `streaming=True`. See docs/limits.md.

    `threads`: the most threads that run a dispatch on the device `cpu`; None is `ORCHESTRION_THREADS`, or the number of
    cores that the process may use. Not for an open device, and not for other devices.

    `profiling`: whether each dispatch, copy and fill is timed, for `Program.profile`. An open device must have been
    opened with profiling.

    `build_deadline`: the seconds for building the program's device code. None is a default for modules that are not
    trusted and no limit for others; `math.inf` is no limit (`hal/building.py`).

    `build`: `"eager"` builds all device code now and warms the program up (`Program.warm_up`). If memory does not
    suffice for the warm-up, `statistics()["load"]["cold"]` says why. `"lazy"` builds code in the calls that need it.

    `parameters`: safetensors files, folders of them, or arrays by name, with the values of the module's parameters;
    None: the file beside the module that the compiler wrote. `adapters`: low-rank adapters, added to the parameters in
    order. `extra_parameters`: whether both may have tensors that are not parameters of the module. See
    docs/parameters.md.

    `offset`, `length`: the part of the file that is the module, in bytes, such as an uncompressed entry of a zip
    archive or an APK. None is the rest of the file.

    `policy`: a keys file, or a policy read from one. It says whose signatures the module, parameters and adapters must
    have. `signature`: a file of signatures, or its bytes, in addition to those in the module; used only with a
    `policy`. See docs/signatures.md.

    `modules`: the modules from which this module imports functions, by name. A loaded program has to be on an open
    device, which is then also the device of this program. Any other module is loaded with the same policy and limits,
    may import from those before it, and is closed with this program. See docs/module-imports.md.

    `digest`: the SHA-256 that the module must have, as 64 hexadecimal digits (`Program.digest`).

    `progress`: called with (stage, done, count) during the load: with 0 and 0 at the start of each stage that
    `statistics()["load"]["stages"]` lists, and during the stages `build` and `warm_up` with the number of executables
    or kernels that are done and of all. Threads that build call it too, one at a time. An exception that it raises ends
    the load.

    Raises `OSError` if a file cannot be read, `ModuleError` if it is malformed, `LoadError` if the module does not fit
    the device or the parameters (`ParameterError`), `HalError` if the device cannot be opened, `Untrusted` if the
    policy refuses the module, `KeysError` if the keys file is malformed, and other `VmError`s if an initializer fails.
    """
    check_options(device, load_limits, modules, digest, progress)
    times = LoadTimes(None if progress is None else LoadProgress(progress))
    with times.stage("read"):
        admission = admission_under(policy, signature)
        file = open_module(module, offset, length, digest)
        name, decoded, warning = ("" if device is None else device), None, ""
        if not name and first_program(modules) is None:
            decoded = _LOADER.decode(file)
            name, warning = default_device(decoded, allow_native_code, admission)
    request = Request(
        source=module,
        offset=offset,
        length=length,
        file=file,
        folder=folder_of(module),
        device=None if isinstance(name, Device) else name,
        is_default_device=decoded is not None,
        allow_native_code=allow_native_code,
        natives=_several(natives),
        calls=Limits(fuel, deadline, memory, depth),
        load_limits=load_limits,
        profiling=profiling,
        device_memory=plain_number("device_memory", device_memory),
        threads=plain_number("threads", threads),
        build_deadline=plain_number("build_deadline", build_deadline),
        build=build,
        parameters=parameters,
        adapters=_several(adapters),
        extra_parameters=extra_parameters,
        policy=policy,
        admission=admission,
        modules=dict(modules or {}),
    )
    request.check_build()
    program = load_request(request, device if isinstance(device, Device) else None, 2, times, decoded)
    if warning:
        try:
            warnings.warn(warning, DeviceWarning, stacklevel=2)
        except DeviceWarning:
            program.close()
            raise
    return program


def _several(given: Any) -> tuple[Any, ...]:
    """A sequence as a tuple; anything else, also a text, as a tuple of one."""
    return tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else (given,)


def restored(module: str | bytes, device: str | None, options: dict[str, Any]) -> Program:
    """Load a pickled program again. Raises what `load` raises, and `ModuleError` if the file has changed."""
    return load(module, device, **options)


def load_request(
    request: Request, device: Device | None, frames: int, times: LoadTimes, decoded: Module | None = None
) -> Program:
    """Load what was requested. For `load` and `Program.reopen`. `device`: an open device; None opens that of the
    request. `frames`: the stack frames between that of `Admission.grant` and that of the user. `decoded`: the module of
    the file, if it was decoded already.

    If the driver builds no variant of an executable, the next program of the module is loaded, up to `MAX_ATTEMPTS`.
    Raises `BuildFailed` with the reasons of all programs if none is left.
    """
    failed, builds = dict[int, str](), BuildBudget(request.build_deadline)
    while True:
        try:
            program = _load_program(request, device, frames + 1, times, decoded, failed, builds)
        except BuildFailed as error:
            if error.program is None:  # of a module that this one imports from
                raise
            failed[error.program], last = error.message, error
            error.program = None
            if len(failed) == MAX_ATTEMPTS:
                raise
        except NoProgram:
            if not failed:
                raise
            last.message = "; ".join([message.removesuffix(UPDATE) for message in failed.values()]) + UPDATE
            raise last from None
        else:
            if failed:
                remember(program.module, program.device.info, {}, failed)
            return program


def _load_program(
    request: Request,
    device: Device | None,
    frames: int,
    times: LoadTimes,
    decoded: Module | None,
    failed: Mapping[int, str],
    builds: BuildBudget,
) -> Program:
    """As `load_request`, for the first program that runs and is not in `failed`: ordinals of programs that the driver
    does not build, and why. `builds`: the seconds for builds of all programs together.
    """
    calls, admission, profiling, file = request.calls, request.admission, request.profiling, request.file
    limits = finite(calls)
    further = native_modules(request.natives) if request.natives else ()
    progress = None if times.progress is None else times.progress.callback
    with times.stage("device"):
        share, budget = open_share(
            device or request.device,
            request.allow_native_code,
            limits,
            profiling,
            builds,
            request.device_memory,
            request.modules,
            request.threads,
        )
    request.device_id = share.info.id
    imported: Sequence[ImportedModule] = ()
    try:
        check: ModuleCheck | None = None if admission is None else admission.check
        if request.modules:
            from .imported_modules import check_before_verifying, load_modules

            imported = load_modules(
                request.modules, share.sibling(), partial(load, progress=progress, **request.module_options)
            )
            check = check_before_verifying(imported, check)
        with times.stage("verify"):
            linked, profiler = (
                _profiled(file, share, (*further, *imported), check, failed)
                if profiling
                else (_LOADER.link(file, share.info, (*further, *imported), check, decoded, failed), None)
            )
        linked.imported, linked.lazy = imported, request.build == "lazy"
        trust = None if admission is None else admission.grant(share, frames)
        declared = linked.code.declared
        builds.declared = declared.build_deadline
        if linked.code.parameters or request.parameters is not None or request.adapters:
            with times.stage("parameters"):
                linked.parameters = request.bind(linked, budget)
        defaults = defaults_of(linked.module, linked.ordinal, share, linked.parameters.by_segment)
        found = find_limits(request.load_limits, calls, defaults, declared)
        base = Context(linked, tighten(limits, declared.calls), budget, share, setups=_setups)
        with times.stage("initializers"), building(base, found.limits, times.progress):
            _initialize(base, linked.program_initializers, found, "program", profiler)
        try:
            return Program(linked, base, found, defaults, times, request, profiler, trust)
        except BaseException:
            base.close()
            raise
    except BaseException as error:
        share.__exit__(type(error), error, error.__traceback__)
        for one in imported:
            one.close()
        raise


def _setups(linked: LinkedProgram) -> Setups:
    """The setups whose recordings serve several sizes. Few programs import this."""
    from .indirect_setup import IndirectSetups

    return IndirectSetups(linked)


def _profiled(
    file: Container,
    device: Device,
    natives: Sequence[Functions],
    check: ModuleCheck | None,
    failed: Mapping[int, str],
) -> tuple[LinkedProgram, Profiler]:
    """The program of a file and its profiler. Imports the files for profiling."""
    from .profile import Profiler
    from .profiled_hal import ProfiledHal

    profiler = Profiler(device)
    linked = _LOADER.link_profiled(file, device.info, (ProfiledHal(profiler.owner), *natives), check, failed)
    profiler.bind(linked)
    return linked, profiler


def _initialize(
    context: Context, codes: Sequence[Code], found: LoadLimits, kind: str, profiler: Profiler | None
) -> None:
    """Run a context's initializers within the limits of `found`."""
    started = perf_counter_ns()
    try:
        with _limited_memory(context, found):
            context.initialize(codes, found.limits)
    except LimitError as error:
        found.explain(error)
        raise
    if profiler is not None:
        profiler.initialized(context, kind, started)


@contextmanager
def _limited_memory(context: Context, found: LoadLimits) -> Iterator[None]:
    """Apply the memory limit of `found` to a context during the body, in place of the limit of calls."""
    context.memory.restrict(found.limits.memory, found.limits.origin("memory"))
    try:
        yield
    finally:
        context.memory.restrict(context.limits.memory, context.limits.origin("memory"))
