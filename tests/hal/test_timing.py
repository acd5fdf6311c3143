"""Times of commands: failed submissions, clocks that drift, tick counters that wrap, devices without timestamps."""

import dataclasses

import pytest

from orchestrion.hal import profiling
from orchestrion.hal.backend import BackendCommandBuffer, BackendDevice, BackendDriver, BackendQueue, DeviceInfo, Span
from orchestrion.hal.errors import Unsupported
from orchestrion.hal.null.driver import INFO, NullDriver
from orchestrion.hal.registry import open_device
from orchestrion.hal.timing import HostClock, Timings


def test_rows_come_in_the_order_of_submission() -> None:
    timings = Timings()
    first, second, third = (timings.begin() for _ in range(3))
    assert timings.take() == []
    second.end([(1, 2)])
    assert timings.take() == [[], [(1, 2)]], "work runs in order: the first has failed"
    third.end([])
    first.end([(0, 1)])
    assert timings.take() == [[]]
    assert timings.take() == []


def place(clock: HostClock, offset: int, spans: list[Span], before: int, after: int) -> list[Span]:
    """Spans in host time, from a device whose clock is `offset` behind and whose work was waited for at `after`."""
    on_device = [(start - offset, end - offset) for start, end in spans]
    return clock.place(on_device, spans[0][0] - before, spans[-1][1] + after)


def test_bounds_of_several_submissions_meet() -> None:
    clock = HostClock()
    place(clock, 10**9, [(1000, 1100)], 50, 0)
    assert place(clock, 10**9, [(2000, 2100), (2100, 2150)], 0, 400) == [(2000, 2100), (2100, 2150)]
    assert place(clock, 10**9, [(3000, 3100)], 400, 800) == [(3000, 3100)]


def test_the_last_bounds_hold_when_the_clocks_have_drifted_apart() -> None:
    clock = HostClock()
    place(clock, 500, [(1000, 1100)], 0, 0)
    assert place(clock, 900, [(2000, 2100)], 20, 20) == [(2000, 2100)]


def test_spans_stay_inside_and_in_order() -> None:
    """A device clock that is too fast, and submissions of which the second is placed before the first."""
    clock = HostClock()
    spans = clock.place([(0, 400), (400, 1000)], 5000, 5600)
    moments = [5000, *(moment for span in spans for moment in span), 5600]
    assert moments == sorted(moments)
    (again,) = clock.place([(600, 700)], 5000, 5600)
    assert spans[-1][1] <= again[0] <= again[1] <= 5600
    assert clock.place([], 0, 0) == []


def test_ticks_wrap_around() -> None:
    from orchestrion.hal.vulkan.profiling import nanoseconds

    assert nanoseconds([250, 255, 256 + 4, 512 + 7], 8, 1.0) == [250, 255, 260, 263]
    assert nanoseconds([10, 20], 64, 52.5) == [525, 1050]
    assert nanoseconds([2**60, 2**60 + 1], 64, 1.0) == [2**60, 2**60 + 1]


class Clockless(BackendDriver):
    name = "clockless"

    def devices(self) -> list[DeviceInfo]:
        return [dataclasses.replace(INFO, driver=self.name, timestamps=False)]

    def open(self, info: DeviceInfo) -> BackendDevice:
        return NullDriver().open(info)


def test_a_device_without_timestamps_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrion.hal.registry.load_driver", lambda name: Clockless())
    with pytest.raises(Unsupported, match=r"device clockless \(null device\) has no timestamps"):
        open_device("clockless", profiling=True)
    with pytest.raises(Unsupported, match="driver clockless times no commands"):
        Clockless().open_profiled(Clockless().devices()[0])


def test_only_profiled_devices_have_the_layer() -> None:
    with open_device("null") as plain, open_device("null", profiling=True) as profiled:
        assert not profiling.is_profiled(plain) and profiling.is_profiled(profiled)
        with profiled.share() as share:
            assert profiling.is_profiled(share)


#: what a profiled device does without: it has no `control_flow`, its blocking calls do not overlap, and first launches
#: compile in the call, where the profile shows them
CONTROL_FLOW = {"begin_loop", "begin_branch", "next_arm", "end"}
PREPARING = {"prepares", "prepare"}
OVERLAPPING = {"overlaps", "create_ticket", "launch", "launch_batch", "wait", "abandon"}


@pytest.mark.parametrize(
    ("layer", "interface", "own"),
    [
        (profiling.Recorder, BackendCommandBuffer, {"dispatch_indirect", "instance", *CONTROL_FLOW}),
        (profiling.ProfilingQueue, BackendQueue, {"take_timings", *PREPARING, *OVERLAPPING}),
        (profiling.ProfilingDevice, BackendDevice, {"indirect_dispatch"}),
    ],
)
def test_the_layer_hands_everything_on(layer: type, interface: type, own: set[str]) -> None:
    """Without this test, optional features of a driver could be lost unnoticed."""
    offered = {name for name in vars(interface) if not name.startswith("_")}
    below = layer.__mro__[: layer.__mro__.index(interface)]
    assert offered - own <= {name for cls in below for name in vars(cls)}


def test_profiled_devices_refuse_loops() -> None:
    """A recorded command has one span, but in a loop it would need one per iteration."""
    with open_device("reference", profiling=True) as device:
        with pytest.raises(Unsupported, match="device reference has no loops and branches in recordings"):
            device.create_command_buffer(1).begin_loop(0, 0)
