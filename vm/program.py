"""Opens a module, picks the program for a device, and makes it callable: `load` is the door of the runtime.

    program = load("model.fb", device="vulkan")
    y = program.main(x)

Loading verifies the module's root and the chosen program's functions, runs the program's initializers once and the
context's once for a default context; `create_context` makes further ones, with limits of their own, that share code,
executables and constants. A program may be used from any thread; calls of one context take turns.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from orchestrion.hal.building import BuildBudget
from orchestrion.hal.device import Device
from orchestrion.hal.fork import ForkedLock
from orchestrion.schema.module import Module

from .context import Context
from .errors import PUBLIC, CallerValueError, DeviceLost, LimitError, public
from .exports import Export
from .limits import Limits, plain_number
from .linker import LinkedProgram
from .load_limits import LoadLimits, defaults_of, find_limits, finite, tighten
from .load_progress import LoadProgress, Progress
from .load_times import LoadTimes
from .loader import Loader, ModuleCheck
from .memory import Memory
from .native import Functions, NativeModule, native_modules
from .opening import admission_under, first_program, folder, open_module, open_share
from .parallel_builds import building
from .program_arrays import ProgramArrays
from .program_context import LoadedProgram, ModuleSource, ProgramContext
from .request import BuildMode, Request
from .selection import skipped_programs
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
        """Create the default context: its calls have the limits of `base`, its initializers `found`. `defaults`: for
        the initializers of further contexts, None for a trusted module. `request`: what `reopen` loads.
        """
        self._request = request
        #: who signed the module, by the policy that it was loaded under; None without one
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
            self._load = self._loading(context, times)
        except BaseException as error:
            context.close()
            if isinstance(error, PUBLIC):
                raise public(error) from error
            raise

    @property
    def module(self) -> Module:
        """The decoded file."""
        return self._linked.module

    @property
    def digest(self) -> str:
        """SHA-256 of the module, as 64 hexadecimal digits; it covers code and constants, not parameters beside it."""
        return self._request.file.digest.hex()

    @property
    def ordinal(self) -> int:
        """Which of the module's programs it is."""
        return self._linked.ordinal

    @property
    def device(self) -> Device:
        """The program's share of its device."""
        if self._base.device is None:
            raise self._base.refusal()
        return self._base.device

    @property
    def name(self) -> str:
        """Of the program in the module that was chosen."""
        return self.module.strings[self._linked.row.name]

    @property
    def skipped(self) -> list[tuple[str, str]]:
        """The programs that stand before this one and are for this device, each with why it does not run: its segments
        were taken out of the file, or it is of a later version.
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
        """Another context: private globals and memory, limits of its own (`Limits`), run in parallel with others.

        Runs the program's context initializers within `load_limits`, as `load` does; `VmError` when one fails. Limits
        that the module declares hold here too.
        """
        calls, declared = Limits(fuel, deadline, memory, depth), self._declared
        found = find_limits(load_limits, calls, self._defaults, declared)
        try:
            context = self._context(tighten(finite(calls), declared.calls), found)
        except PUBLIC as error:
            raise public(error) from error
        return ProgramContext(context, self.exports, self._log_of(context))

    def statistics(self) -> dict[str, Any]:
        """What loading and the last calls cost, and the most memory held; see `statistics.py`.

        `sizes`, where recordings serve many sizes (`indirect_setup.py`): a row for each function that makes what calls
        of new sizes need, with the sizes that memory and recordings are made for, how often they were made, how many
        sets of sizes they served, how many took recordings of their own, and why.
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
        """Pickled, a program is its file or bytes, with the digest, its device and the options of `load`.

        It is loaded again where the pickle is read, without the policy and `allow_native_code` (`pickling.py`).
        """
        from .pickling import reduced

        return restored, reduced(self._request)

    def profile(self) -> Profile:
        """What ran up to now, launch by launch; see `profile.py`. `CallerError` unless loaded with `profiling=True`."""
        if self._profiler is None:
            raise CallerValueError("the program was not loaded with profiling=True")
        return self._profiler.profile(self.name)

    def placement(self) -> Placement:
        """Which program and variants were chosen for the device, what was passed over and why; see `placement.py`."""
        from .load_facts import LoadFacts
        from .placement import placed

        facts = LoadFacts()
        for context in (self._base, self.context):
            facts.builds |= context.facts.builds
            facts.derived |= context.facts.derived
        return placed(self.module, self.device.info, self.device.policy, facts, self.trust)

    def reopen(self, device: Device | None = None) -> Program:
        """Load the program again if its device was lost; else do nothing. Gives the program itself.

        The device is opened again by its name. Everything is as `load` was asked for: module, parameters, adapters,
        policy, limits, profiling. What a context held is lost: mutable globals start anew, device arrays and further
        contexts are refused with `DeviceLost`, and so are functions that were taken from the program before. Submitted
        calls that did not begin end with `DeviceLost`. Any thread may call this; one loads, the others wait for it.

        `device`: the same device, opened again by the caller; needed where `load` was given an open one. `CallerError`
        without it, for another device, and for a closed program. Otherwise raises what `load` raises: the program is
        then still lost, and `reopen` may be called again.
        """
        if isinstance(self.context.lock, ForkedLock):
            self.context.lock.refuse()
        request = self._request
        with request.lock:
            lost = self._loss()
            if lost is None:
                return self
            request.check_device(device)
            self._close_lost(lost)
            self.__dict__ = load_request(
                request, device, 2, LoadTimes()
            ).__dict__  # one step: other threads see the old or the new
        return self

    def _loss(self) -> DeviceLost | None:
        """Why the device is lost; None while it is not."""
        if self._base.lost is not None:
            return self._base.lost
        error = self.device.device_state.lost
        return None if error is None else DeviceLost(public(error).message)

    def _close_lost(self, lost: DeviceLost) -> None:
        """Release what the lost device holds; from now on everything that is asked of it is refused as lost."""
        context = self.context
        self._base.lost = context.lost = lost
        if context.call_queue is not None:
            context.call_queue.close(lost)
        self.close()

    def close(self) -> None:
        """Release everything the program holds. Contexts that were created are closed by whoever created them."""
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

    def _loading(self, context: Context, times: LoadTimes) -> dict[str, Any]:
        """Initializers ran. What remains is the warm-up, which is not there with `build="lazy"`."""
        cold = "build is lazy"
        if self._request.build == "eager":
            with times.stage("warm_up"):
                cold = warm_up_where_there_is_room(context, self.functions, times.progress)
        if times.progress is not None:
            times.progress.check()
        times.move(context.build_seconds, "initializers", "build")
        base, own = self.device.statistics, context.device.statistics if context.device else None
        count = len(self._linked.program_initializers) + len(self._linked.context_initializers)
        spent = {name: getattr(base, name) + getattr(own, name, 0) for name in _LOAD_COUNTERS}
        stages = dict(times.seconds)
        found = {"seconds": times.total, "stages": stages, "initializers": count, **spent}
        return found | ({"cold": cold} if cold else {})


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
    """Load a module, a path or its bytes, for a device: its name such as `vulkan` or `opencl:1`, or an open one.

    `offset` and `length`: the module is that part of the file, in bytes, such as an entry of a zip archive or an APK
    that is stored without compression. Up to the end of the file if `length` is None.

    Without `device` it is `reference`. `allow_native_code` lets code of a stranger run that a native compiler takes in
    (OpenCL C); an open device has its policy already. `natives` are further native modules, or names of those that
    installed packages declare (`vm/native.py`). `profiling`: every
    dispatch, copy and fill is timed, for `Program.profile`; an open device must have been opened so. `build_deadline`:
    the seconds in which the program's device code must be built. None is a default for modules that are not trusted,
    and no limit for others; `math.inf` is no limit (`hal/building.py`).

    `build`: `"eager"` builds all device code now and warms the program up (`Program.warm_up`), unless memory does not
    suffice: then `statistics()["load"]["cold"]` says why. `"lazy"` leaves both to the calls that need it.

    `fuel`, `deadline`, `memory` and `depth` limit the calls of the default context (`Limits`); None is no limit.
    `load_limits` are the limits of the initializers that run now. Where a field of it is None, the limit of calls
    holds; where that is None as well, a default, or no limit for trusted modules (compiled on this machine, or
    `allow_native_code`). `math.inf` is no limit. Limits that the module declares hold where they are tighter. All of
    this is in docs/limits.md.

    `device_memory`: bytes of device memory for the program, its contexts and what it imports; None: no limit. Constants
    that do not fit are streamed: copied to the device in each call, with a `StreamingWarning`. An open device must have
    been opened with `streaming=True`. See docs/limits.md.

    `parameters` are safetensors files, folders of them, or arrays by name, with the values of the module's parameters;
    None: the file that the compiler wrote, beside the module. `adapters` are low-rank adapters, added to them in order.
    `extra_parameters`: both may hold more than the module wants (docs/parameters.md).

    `modules` are those whose functions the module imports, by name: programs that are loaded on an open device, which
    is then the device of this one, too; or further modules, each of which is loaded as this one is, with the same
    policy and limits, may import from those before it, and is closed with the program (docs/module-imports.md).

    `digest`: the SHA-256 that the module must have, as 64 hexadecimal digits (`Program.digest`).

    `progress`: called with (stage, done, count) as the load goes on: with 0 and 0 when one of the stages begins that
    `statistics()["load"]["stages"]` lists, and during the stages `build` and `warm_up` with how many executables and
    kernels are done. Threads that build call it, too, one at a time. What it raises ends the load.

    `policy`: a keys file or what was read from one; it says whose signatures the module must have, and parameters and
    adapters. `signature`: a file of signatures, or its bytes, beside those in the module (docs/signatures.md). Without
    `policy` nobody looks at them.

    `OSError`: a file cannot be read. `ModuleError`: it is not sound. `LoadError`: module and device do not fit, or
    module and parameters (`ParameterError`). `HalError`: the device cannot be opened. Other `VmError`: an initializer
    failed. `Untrusted`: the policy refuses the module. `KeysError`: the keys file is malformed.
    """
    times = LoadTimes(None if progress is None else LoadProgress(progress))
    with times.stage("read"):
        admission = admission_under(policy, signature)
        file = open_module(module, offset, length, admission is not None, digest)
    request = Request(
        source=module,
        offset=offset,
        length=length,
        file=file,
        folder=folder(module),
        device=None if isinstance(device, Device) else device or ("" if first_program(modules) else "reference"),
        allow_native_code=allow_native_code,
        natives=_several(natives),
        calls=Limits(fuel, deadline, memory, depth),
        load_limits=load_limits,
        profiling=profiling,
        device_memory=plain_number("device_memory", device_memory),
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
    return load_request(request, device if isinstance(device, Device) else None, 2, times)


def _several(given: Any) -> tuple[Any, ...]:
    """One, or a sequence of them, where a text is one."""
    return tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else (given,)


def restored(module: str | bytes, device: str, options: dict[str, Any]) -> Program:
    """Load a pickled program again. Raises what `load` raises, `ModuleError` also if the file is another one by now."""
    return load(module, device, **options)


def load_request(request: Request, device: Device | None, frames: int, times: LoadTimes) -> Program:
    """`load`, and the same again for `Program.reopen`. `device`: open already; None opens the one of the request.
    `frames`: those between the one of `Admission.grant` and the user's.
    """
    calls, admission, profiling, file = request.calls, request.admission, request.profiling, request.file
    limits, builds = finite(calls), BuildBudget(request.build_deadline)
    further = native_modules(request.natives) if request.natives else ()
    told = None if times.progress is None else times.progress.callback
    with times.stage("device"):
        share, budget = open_share(
            device or request.device,
            request.allow_native_code,
            limits,
            profiling,
            builds,
            request.device_memory,
            request.modules,
        )
    request.device_id = share.info.id
    imported: Sequence[ImportedModule] = ()
    try:
        check: ModuleCheck | None = None if admission is None else admission.check
        if request.modules:
            from .imported_modules import check_before_verifying, load_modules

            imported = load_modules(request.modules, share.sibling(), partial(load, progress=told, **request.further))
            check = check_before_verifying(imported, check)
        with times.stage("verify"):
            linked, profiler = (
                _profiled(file, share, (*further, *imported), check)
                if profiling
                else (_LOADER.link(file, share.info, (*further, *imported), check), None)
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
    """What serves several sizes with the same recordings. Few programs need it."""
    from .indirect_setup import IndirectSetups

    return IndirectSetups(linked)


def _profiled(
    file: Container, device: Device, natives: Sequence[Functions], check: ModuleCheck | None
) -> tuple[LinkedProgram, Profiler]:
    """The program of a file, and who times it. What profiling takes is imported here."""
    from .profile import Profiler
    from .profiled_hal import ProfiledHal

    profiler = Profiler(device)
    linked = _LOADER.link_profiled(file, device.info, (ProfiledHal(profiler.owner), *natives), check)
    profiler.bind(linked)
    return linked, profiler


def _initialize(
    context: Context, codes: Sequence[Code], found: LoadLimits, kind: str, profiler: Profiler | None
) -> None:
    """Run a context's initializers within the limits of `found`."""
    started = perf_counter_ns()
    context.memory.restrict(found.limits.memory, found.limits.origin("memory"))
    try:
        context.initialize(codes, found.limits)
    except LimitError as error:
        found.explain(error)
        raise
    context.memory.restrict(context.limits.memory, context.limits.origin("memory"))
    if profiler is not None:
        profiler.initialized(context, kind, started)
