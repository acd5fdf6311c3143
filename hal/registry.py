"""Finds drivers and opens devices by name.

A driver is a class without arguments, named by an entry point of the group `orchestrion.hal`; other packages add theirs
the same way. The package's own four are also listed here, so that opening one of them does not pay for a scan of
everything that is installed (tests keep both lists equal).

A device is named `driver` or `driver:index`: `vulkan` is the first Vulkan device, `vulkan:1` the second.
"""

from dataclasses import dataclass
from importlib import import_module

from .backend import BackendDriver, DeviceInfo
from .device import Device
from .errors import DriverUnavailable, InvalidArgument, Unsupported
from .fork import after_fork
from .policy import Policy

GROUP = "orchestrion.hal"

BUILT_IN: dict[str, str] = {
    "null": "orchestrion.hal.null.driver:NullDriver",
    "reference": "orchestrion.hal.reference.driver:ReferenceDriver",
    "opencl": "orchestrion.hal.opencl.driver:OpenCLDriver",
    "vulkan": "orchestrion.hal.vulkan.driver:VulkanDriver",
}


@dataclass(frozen=True, slots=True)
class DriverStatus:
    """One driver: its devices, or why there are none."""

    name: str
    devices: tuple[DeviceInfo, ...]
    reason: str


def drivers() -> dict[str, str]:
    """Every driver's name and class, as `module:class`: the package's own, then those of other packages by name."""
    from importlib.metadata import entry_points  # 20 ms, and only listing and foreign names need it

    found = {point.name: point.value for point in entry_points(group=GROUP)}
    return BUILT_IN | {name: found[name] for name in sorted(found) if name not in BUILT_IN}


def load_driver(name: str) -> BackendDriver:
    """The driver of that name. `InvalidArgument` lists what exists.

    `DriverUnavailable` when one of another package cannot be imported; our own import what they need when used.
    """
    if name in BUILT_IN:
        return _make(BUILT_IN[name])
    known = drivers()
    if name not in known:
        raise InvalidArgument(f"no driver {name!r}: there are {', '.join(known)}")
    try:
        driver = _make(known[name])
    except (ImportError, AttributeError) as error:
        raise DriverUnavailable(f"driver {name} at {known[name]} cannot be loaded: {error}") from error
    if not isinstance(driver, BackendDriver):
        raise DriverUnavailable(f"driver {name} at {known[name]} is not a BackendDriver")
    return driver


def list_devices() -> tuple[DriverStatus, ...]:
    """What is there, driver by driver, or why it is not."""
    return tuple(_status(name) for name in drivers())


def open_device(
    name: str,
    memory_limit: int | None = None,
    policy: Policy | None = None,
    profiling: bool = False,
    streaming: bool = False,
) -> Device:
    """Open `driver` or `driver:index`. `memory_limit` in bytes; `policy` decides on native code.

    `profiling`: the device times what it runs (`hal.profiling`); `Unsupported` where it has no timestamps.
    `streaming`: programs may have more constants than device memory (`hal.streaming`).
    """
    driver, info = find_device(name)
    if profiling:
        _require_timestamps(info)
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
    """The driver of `driver` or `driver:index`, and what it says of the device."""
    driver_name, colon, number = name.partition(":")
    if colon and not number.isdecimal():
        raise InvalidArgument(f"device name {name!r}: the index after ':' is not a number")
    driver = load_driver(driver_name)
    index = int(number) if colon else 0
    infos = _devices(driver)
    if index >= len(infos):
        there = ", ".join(f"{info.id} ({info.name})" for info in infos) or "none"
        raise InvalidArgument(f"no device {name!r}: driver {driver_name} has {there}")
    return driver, infos[index]


def _require_timestamps(info: DeviceInfo) -> None:
    if not info.timestamps:
        raise Unsupported(f"device {info.id} ({info.name}) has no timestamps: it cannot be opened with profiling")


def _devices(driver: BackendDriver) -> list[DeviceInfo]:
    """What the driver finds. `DriverUnavailable`: its library runs in the process that this one was forked from."""
    if driver.name in _left_behind:
        raise DriverUnavailable(
            f"driver {driver.name} was in use in process {_left_behind[driver.name]}, of which this one is a fork, and "
            "its threads are not here: fork before it is used, or start processes with multiprocessing's 'spawn'"
        )
    if not driver.forks:
        _used.add(driver.name)
    return driver.devices()


#: drivers that do not outlive a fork: asked for devices here, and in the process this one was forked from
_used: set[str] = set()
_left_behind: dict[str, int] = {}


@after_fork
def _leave(parent: int) -> None:
    _left_behind.update(dict.fromkeys(_used, parent))
    _used.clear()


def _make(target: str) -> BackendDriver:
    module, _, attribute = target.partition(":")
    made: BackendDriver = getattr(import_module(module), attribute)()
    return made


def _status(name: str) -> DriverStatus:
    try:
        return DriverStatus(name, tuple(_devices(load_driver(name))), "")
    except DriverUnavailable as error:
        return DriverStatus(name, (), str(error))
