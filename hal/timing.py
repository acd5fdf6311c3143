"""Times of commands on the host's clock, for drivers that can open a device with profiling.

`now` is the clock of all spans, in nanoseconds (`time.perf_counter_ns`). A driver on the host reads it around each
command. A driver whose device has its own clock maps spans with `HostClock`.
"""

from collections import deque
from collections.abc import Sequence
from time import perf_counter_ns as now

from .backend import Span

__all__ = ["HostClock", "Timing", "Timings", "now"]


class Timing:
    """The times of one submission: the `spans` of its commands, valid once it is `over`."""

    __slots__ = ("over", "spans")

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.over = False

    def end(self, spans: Sequence[Span]) -> None:
        self.spans = list(spans)
        self.over = True


class Timings:
    """Implements `BackendQueue.take_timings`. One thread begins and takes; another may end."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: deque[Timing] = deque()

    def begin(self) -> Timing:
        """Returns the `Timing` of a new submission."""
        timing = Timing()
        self._rows.append(timing)
        return timing

    def take(self) -> list[list[Span]]:
        """The spans of submissions that are over, and of those before them. Work runs in order, so an earlier one
        without an end has failed.
        """
        over = [place for place, timing in enumerate(self._rows) if timing.over]
        return [self._rows.popleft().spans for _ in range(over[-1] + 1)] if over else []


class HostClock:
    """Maps a device's clock to the host's clock, using two bounds: no work starts before it was submitted, and none
    ends after its end was seen.

    Each submission bounds the offset between the clocks. All bounds are combined until the clocks have drifted apart;
    then only the last one counts. The middle of the bounds is used, so the error is at most half of their distance. A
    driver therefore runs a few short submissions when it opens a device. Spans never overlap those mapped before.
    """

    __slots__ = ("_high", "_last", "_low")

    def __init__(self) -> None:
        self._low = -(2**63)
        self._high = 2**63
        self._last = 0

    def place(self, spans: Sequence[Span], submitted: int, seen: int) -> list[Span]:
        """Maps the spans of one submission, in order, from nanoseconds of the device to the host's clock."""
        if not spans:
            return []
        low, high = submitted - spans[0][0], seen - spans[-1][1]
        if low <= self._high and self._low <= high:
            low, high = max(low, self._low), min(high, self._high)
        self._low, self._high = low, max(low, high)
        offset, last = (self._low + self._high) // 2, self._last
        self._last = min(max(spans[-1][1] + offset, last), seen)
        return [(min(max(start + offset, last), seen), min(max(end + offset, last), seen)) for start, end in spans]
