"""What a driver and its devices report, and opening, sharing and closing devices."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from orchestrion.hal.backend import BackendDriver, Limits
from orchestrion.hal.errors import InvalidArgument
from orchestrion.schema.profiles import find_feature

from . import kernels
from .case import Group
from .expect import raises
from .rig import Rig

case = Group("devices", __doc__)

#: the number of bindings and of parameter bytes that compiled programs may rely on
LEAST_BINDINGS, LEAST_PARAMETER_BYTES = 4, 64


def _driver(rig: Rig) -> BackendDriver:
    assert rig.driver is not None
    return rig.driver


@case
def named(rig: Rig) -> None:
    """A device has its driver's name, an index that finds it again, and texts for `--list-devices`."""
    info = rig.device.info
    assert info.driver == _driver(rig).name
    assert info.id == (info.driver if info.index == 0 else f"{info.driver}:{info.index}")
    assert _driver(rig).devices()[info.index].id == info.id
    for text in (info.name, info.vendor, info.version, *info.notes):
        assert isinstance(text, str) and text and "\n" not in text, repr(text)


@case
def listed_alike(rig: Rig) -> None:
    """Asked twice, a driver lists the same devices, numbered from 0."""
    first, second = _driver(rig).devices(), _driver(rig).devices()
    assert first == second
    assert [info.index for info in first] == [*range(len(first))]


@case
def known_formats_and_features(rig: Rig) -> None:
    """A device runs a format that the suite has kernels in, and its features have a meaning."""
    info = rig.device.info
    assert info.formats and len(set(info.formats)) == len(info.formats)
    assert any(map(kernels.find_kernels, info.formats)), f"no kernels of the suite in {', '.join(info.formats)}"
    unknown = sorted(name for name in info.features if find_feature(name) is None)
    assert not unknown, f"features that nobody declares: {', '.join(unknown)}"


@case
def sensible_limits(rig: Rig) -> None:
    """Limits are positive, alignments are powers of two, and programs get the bindings and parameters they rely on."""
    limits = rig.device.info.limits
    for field in fields(Limits):
        value = getattr(limits, field.name)
        for number in value if isinstance(value, tuple) else (value,):
            assert isinstance(number, int) and 0 <= number < 2**63, (field.name, number)
    assert min(limits.max_workgroup_count) >= 1
    assert limits.max_workgroup_size >= 64
    assert limits.max_bindings >= LEAST_BINDINGS
    assert limits.max_parameter_bytes >= LEAST_PARAMETER_BYTES
    assert limits.max_binding_length >= 1 << 16
    for alignment in (limits.min_binding_alignment, max(1, limits.host_import_alignment)):
        assert alignment & (alignment - 1) == 0, alignment
    assert limits.min_binding_alignment <= 512, "offsets into arenas and constants are multiples of 512"
    assert rig.device.info.memory_bytes > 0


@case
def opened_twice(rig: Rig) -> None:
    """Two openings of a device are apart: each has its own objects, and one closes without the other."""
    other = rig.reopened()
    mine, theirs = rig.buffer(rig.words(1, 2)), other.buffer(other.words(3, 4))
    with raises(InvalidArgument, match="buffer of device"):
        rig.run(rig.filling(0, 8, 0), theirs)
    other.run(other.filling(theirs, 4, 9))
    other.holds(theirs, other.words(0x09090909, 4))
    theirs.release()
    other.device.queue.wait_idle()
    assert other.device.close() == ()
    rig.holds(mine, rig.words(1, 2))
    rig.run(rig.filling(mine, 4, 7))
    rig.holds(mine, rig.words(0x07070707, 2))


@case
def opened_again_and_again(rig: Rig) -> None:
    """A device may be opened, used and closed many times."""
    for value in range(5):
        other = rig.reopened()
        buffer = other.zeros(64)
        other.run(other.filling(0, 64, value), buffer)
        other.holds(buffer, np.full(64, value, np.uint8))
        buffer.release()
        other.device.queue.wait_idle()
        assert other.device.close() == ()
        assert other.device.device_state.abandoned, "the driver's device is not closed"


@case
def closed_twice(rig: Rig) -> None:
    """A second `close` does nothing."""
    device = rig.device.share()
    device.close()
    assert device.close() == ()
    assert device.closed


@case
def share_of_a_share(rig: Rig) -> None:
    """Shares are closed in any order; the others go on."""
    outer = rig.device.share()
    inner = outer.share()
    outer.close()
    with raises(InvalidArgument, match="is closed"):
        outer.allocator.allocate(16)
    share = rig.on(inner)
    buffer = share.buffer(rig.words(5))
    share.holds(buffer, rig.words(5))
    buffer.release()
    inner.close()
    rig.holds(rig.buffer(rig.words(6)), rig.words(6))


@case
def buffers_of_another_share(rig: Rig) -> None:
    """A share's work may use buffers of another share of the same device."""
    with rig.device.share() as device:
        share = rig.on(device)
        theirs, mine = share.buffer(rig.words(1, 2, 3, 4)), rig.zeros(16)
        rig.run(rig.copying(16), theirs, mine)
        share.run(share.filling(0, 8, 0), mine)
        rig.holds(mine, rig.words(0, 0, 3, 4))
        theirs.release()


@case
def lists_have_reasons(rig: Rig) -> None:
    """Each case in the driver's lists of unsupported cases and expected failures has a reason, and stands in one."""
    lists = _driver(rig).conformance
    for name, reason in (*lists.unsupported.items(), *lists.expected_failures.items()):
        assert reason.strip(), name
    both = set(lists.unsupported) & set(lists.expected_failures)
    assert not both, f"unsupported and an expected failure at once: {sorted(both)}"
