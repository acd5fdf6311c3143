"""Times of commands, on the host's clock: what drivers share that can open a device with profiling.

`now` is the clock of all spans, in nanoseconds (`time.perf_counter_ns`). A driver on the host reads it around each
command. One whose device has a clock of its own maps spans by `HostClock`.
"""

from collections import deque
from collections.abc import Sequence
from time import perf_counter_ns as now

from .backend import Span

__all__ = ["HostClock", "Timing", "Timings", "now"]


class Timing:
    """One submission: `spans` of its commands once it is `over`."""

    __slots__ = ("over", "spans")

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.over = False

    def end(self, spans: Sequence[Span]) -> None:
        self.spans = list(spans)
        self.over = True


class Timings:
    """What `BackendQueue.take_timings` gives. One thread begins and takes, another may end."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: deque[Timing] = deque()

    def begin(self) -> Timing:
        """A further submission."""
        timing = Timing()
        self._rows.append(timing)
        return timing

    def take(self) -> list[list[Span]]:
        """Those that are over, and those before them: work runs in order, so one of these that has not ended failed."""
        over = [place for place, timing in enumerate(self._rows) if timing.over]
        return [self._rows.popleft().spans for _ in range(over[-1] + 1)] if over else []


class HostClock:
    """Maps a device's clock to the host's, by what must be: no work starts before it was submitted, none ends after it
    was seen to have ended.

    Each submission bounds the offset between the clocks. The bounds of all submissions hold together until the clocks
    have drifted apart, then the last one's do. The middle is taken: the error is half of what is left between them,
    so a driver places a few short submissions when it opens a device. Spans never overlap those placed before.
    """

    __slots__ = ("_high", "_last", "_low")

    def __init__(self) -> None:
        self._low = -(2**63)
        self._high = 2**63
        self._last = 0

    def place(self, spans: Sequence[Span], submitted: int, seen: int) -> list[Span]:
        """Spans of one submission, in order, in nanoseconds of the device, on the host's clock."""
        if not spans:
            return []
        low, high = submitted - spans[0][0], seen - spans[-1][1]
        if low <= self._high and self._low <= high:
            low, high = max(low, self._low), min(high, self._high)
        self._low, self._high = low, max(low, high)
        offset, last = (self._low + self._high) // 2, self._last
        self._last = min(max(spans[-1][1] + offset, last), seen)
        return [(min(max(start + offset, last), seen), min(max(end + offset, last), seen)) for start, end in spans]
