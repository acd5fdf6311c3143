"""Finds drivers and opens devices by name.

A driver is a class that is created without arguments, named by an entry point of the group `orchestrion.hal`; other
packages add theirs the same way (`schema/plugins.py`). The package's own five drivers are also listed here, so that
opening one of them does not scan all installed packages (tests keep both lists equal).

Any exception that a driver raises while it is loaded, enumerated or opened becomes a `HalError` that names the driver
and its package, so that a broken driver hides no other.

A device is named `driver` or `driver:index`: `vulkan` is the first Vulkan device, `vulkan:1` the second.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module

from orchestrion.schema.errors import PluginError
from orchestrion.schema.profiles import find_feature

from .backend import API_VERSION, BackendDriver, DeviceInfo
from .device import Device
from .errors import DriverUnavailable, HalError, InvalidArgument, Unsupported
from .fork import after_fork
from .policy import Policy

GROUP = "orchestrion.hal"

BUILT_IN: dict[str, str] = {
    "null": "orchestrion.hal.null.driver:NullDriver",
    "reference": "orchestrion.hal.reference.driver:ReferenceDriver",
    "cpu": "orchestrion.hal.cpu.driver:CpuDriver",
    "opencl": "orchestrion.hal.opencl.driver:OpenCLDriver",
    "vulkan": "orchestrion.hal.vulkan.driver:VulkanDriver",
}


@dataclass(frozen=True, slots=True)
class DriverStatus:
    """One driver: its devices, or why it has none. `package`: name and version of its package; empty for our own."""

    name: str
    devices: tuple[DeviceInfo, ...]
    reason: str
    package: str = ""


def drivers() -> dict[str, str]:
    """Every driver's name and class, as `module:class`: the package's own first, then those of other
    packages by name.
    """
    from orchestrion.schema.plugins import declared

    return BUILT_IN | {name: row.point.value for name, row in declared(GROUP).items() if name not in BUILT_IN}


def load_driver(name: str) -> BackendDriver:
    """Returns the driver of that name.

    Our own drivers import what they need on use. Raises InvalidArgument, which lists the existing drivers, for an
    unknown name; DriverUnavailable if another package's driver cannot be loaded, or was written for an incompatible
    version of the driver interface.
    """
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        made: BackendDriver = getattr(import_module(module), attribute)()
        return made
    try:
        return _load_plugin(name)
    except PluginError as error:
        raise DriverUnavailable(str(error)) from error


def list_devices() -> tuple[DriverStatus, ...]:
    """Returns every driver with its devices, or with the reason why it has none."""
    return tuple(_status(name) for name in drivers())


def open_device(
    name: str,
    memory_limit: int | None = None,
    policy: Policy | None = None,
    profiling: bool = False,
    streaming: bool = False,
    threads: int | None = None,
) -> Device:
    """Open `driver` or `driver:index`. `memory_limit` is bytes; `policy` decides on native code.

    `profiling`: the device times what it runs (`hal.profiling`). `streaming`: programs may have more constants than
    device memory (`hal.streaming`). `threads`: the most threads of the host that run a dispatch; None is the driver's
    default. Raises Unsupported for `profiling` on a device without timestamps, and for `threads` if the device does not
    run on threads of the host.
    """
    driver, info = find_device(name)
    if threads is not None:
        driver.use_threads(threads)
    if profiling:
        _require_timestamps(info)
    with _contained(driver, "open"):
        backend = driver.open_profiled(info) if profiling else driver.open(info)
    layer = None
    if streaming:
        from .streaming import StreamingDevice

        backend = layer = StreamingDevice(backend, profiling)
    if profiling:
        from .profiling import ProfilingDevice

        backend = ProfilingDevice(backend)
    device = Device.of(backend, memory_limit, policy)
    device.device_state.streaming = layer
    return device


def find_device(name: str) -> tuple[BackendDriver, DeviceInfo]:
    """Returns the driver of `driver` or `driver:index`, and its description of the device."""
    driver_name, colon, number = name.partition(":")
    if colon and not number.isdecimal():
        raise InvalidArgument(f"device name {name!r}: the index after ':' is not a number")
    driver = load_driver(driver_name)
    index = int(number) if colon else 0
    infos = devices_of(driver)
    if index >= len(infos):
        there = ", ".join(f"{info.id} ({info.name})" for info in infos) or "none"
        raise InvalidArgument(f"no device {name!r}: driver {driver_name} has {there}")
    return driver, infos[index]


def devices_of(driver: BackendDriver) -> list[DeviceInfo]:
    """Returns the devices that a driver finds. Raises DriverUnavailable if the driver fails, its result is malformed,
    or its library runs in the process that this one was forked from.
    """
    if driver.name in _left_behind:
        raise DriverUnavailable(
            f"driver {driver.name} was in use in process {_left_behind[driver.name]}, of which this one is a fork, and "
            "its threads are not here: fork before it is used, or start processes with multiprocessing's 'spawn'"
        )
    if not driver.forks:
        _used.add(driver.name)
    with _contained(driver, "devices"):
        infos = driver.devices()
        _check_infos(driver, infos)
    return infos


def _require_timestamps(info: DeviceInfo) -> None:
    if not info.timestamps:
        raise Unsupported(f"device {info.id} ({info.name}) has no timestamps: it cannot be opened with profiling")


def _load_plugin(name: str) -> BackendDriver:
    from orchestrion.schema.plugins import check_version, contained, declared, load

    plugin = declared(GROUP).get(name)
    if plugin is None:
        raise InvalidArgument(f"no driver {name!r}: there are {', '.join(drivers())}")
    kind = load(plugin)
    if not isinstance(kind, type) or not issubclass(kind, BackendDriver):
        raise PluginError(f"{plugin}: {plugin.point.value} is not a subclass of BackendDriver")
    check_version(plugin, kind.api_version, API_VERSION, "driver interface")
    with contained(f"{plugin} cannot be created"):
        driver: BackendDriver = kind()
        if driver.name != name:
            raise PluginError(f"{plugin} calls itself {driver.name!r}: entry point and class must have one name")
    return driver


@contextmanager
def _contained(driver: BackendDriver, method: str) -> Iterator[None]:
    """A context manager: an exception of the driver that is no error of the interface becomes DriverUnavailable."""
    try:
        yield
    except (HalError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        from orchestrion.schema.plugins import one_line_message

        raise DriverUnavailable(
            f"{_origin(driver.name)} failed in {method}(): {type(error).__name__}: {one_line_message(error)}"
        ) from error


def _origin(name: str) -> str:
    """A driver's name, with its package."""
    if name in BUILT_IN:
        return f"driver {name}"
    from orchestrion.schema.plugins import declared

    plugin = declared(GROUP).get(name)
    return f"driver {name}" if plugin is None else str(plugin)


def _check_infos(driver: BackendDriver, infos: Sequence[DeviceInfo]) -> None:
    """Raises DriverUnavailable unless the device descriptions have the right type, name and indices, and declared
    features.
    """
    if driver.name in BUILT_IN:
        return
    if not isinstance(infos, list) or not all(isinstance(info, DeviceInfo) for info in infos):
        raise DriverUnavailable(f"{_origin(driver.name)}: devices() gave {infos!r:.200}, not a list of DeviceInfo")
    for index, info in enumerate(infos):
        if (info.driver, info.index) != (driver.name, index):
            raise DriverUnavailable(f"{_origin(driver.name)}: device {index} calls itself {info.driver}:{info.index}")
        for feature in sorted(info.features):
            if (why := _feature_problem(feature)) is not None:
                raise DriverUnavailable(f"{_origin(driver.name)}: device {info.id} states feature {feature}, {why}")


def _feature_problem(name: str) -> str | None:
    try:
        return "which no installed package declares" if find_feature(name) is None else None
    except PluginError as error:
        return f"which cannot be used: {error}"


#: drivers that do not work after a fork: used in this process, and used in the process this one was forked from
_used: set[str] = set()
_left_behind: dict[str, int] = {}


@after_fork
def _leave(parent: int) -> None:
    _left_behind.update(dict.fromkeys(_used, parent))
    _used.clear()


def _status(name: str) -> DriverStatus:
    from orchestrion.schema.plugins import declared

    plugin = None if name in BUILT_IN else declared(GROUP)[name]
    package = "" if plugin is None else " and ".join(plugin.packages)
    try:
        return DriverStatus(name, tuple(devices_of(load_driver(name))), "", package)
    except HalError as error:
        return DriverStatus(name, (), str(error), package)
