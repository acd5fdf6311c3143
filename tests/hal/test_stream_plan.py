"""Plans of streamed recordings: every command finds its constants in its window, and the memory limit holds."""

from hypothesis import given
from hypothesis import strategies as st

from orchestrion.hal.stream_plan import Arrangement, Excess, Ranges, Use, arrange, need, split

ALIGNMENT = 256
SIZES = {"a": 1000, "b": 5000, "c": 300, "d": 20000}


@st.composite
def use(draw: st.DrawFn) -> Use:
    memory = draw(st.sampled_from(sorted(SIZES)))
    start = draw(st.integers(0, SIZES[memory] - 1))
    return Use(memory, start, draw(st.integers(start + 1, SIZES[memory])))


COMMANDS = st.lists(st.lists(use(), max_size=4), min_size=1, max_size=12)


@given(COMMANDS, st.integers(0, 4))
def test_each_command_finds_its_ranges_in_its_window(commands: list[list[Use]], more: int) -> None:
    window = max(need(uses, ALIGNMENT) for uses in commands) + more * 1000
    segments = split(commands, window, ALIGNMENT)
    assert [segment.first for segment in segments] == [0, *(segment.last for segment in segments[:-1])]
    assert segments[-1].last == len(commands)
    for segment in segments:
        ends = [0]
        for part in segment.parts:
            assert (
                part.window_offset >= ends[-1] and part.window_offset % ALIGNMENT == 0 and part.start % ALIGNMENT == 0
            )
            ends.append(part.window_offset + part.end - part.start)
        assert ends[-1] <= window
        for memory, start, end in (one for uses in commands[segment.first : segment.last] for one in uses):
            assert sum(one.memory == memory and one.start <= start and end <= one.end for one in segment.parts) == 1


@given(COMMANDS)
def test_a_segment_ends_only_where_the_next_command_does_not_fit(commands: list[list[Use]]) -> None:
    window = max(need(uses, ALIGNMENT) for uses in commands)
    segments = split(commands, window, ALIGNMENT)
    for segment, following in zip(segments, segments[1:], strict=False):
        ranges = Ranges(ALIGNMENT)
        for uses in commands[segment.first : following.first + 1]:
            ranges = ranges.adding(uses)
        assert ranges.size > window


@given(st.lists(COMMANDS, min_size=1, max_size=3), st.integers(0, 60000))
def test_an_arrangement_stays_within_its_room(recordings: list[list[list[Use]]], room: int) -> None:
    sizes = {one.memory: SIZES[one.memory] for commands in recordings for uses in commands for one in uses}
    found = arrange(sizes, recordings, room, ALIGNMENT)
    most = max(need(uses, ALIGNMENT) for commands in recordings for uses in commands)
    if isinstance(found, Excess):
        assert found.bytes == most > room
        assert need(recordings[found.recording][found.command], ALIGNMENT) == most
        return
    taken = sum(sizes[memory] for memory in found.resident) + found.windows * found.window_bytes
    assert taken <= room
    if found.windows:
        assert found.window_bytes >= most
        assert sum(sizes.values()) > room
    else:
        assert found.resident == frozenset(sizes)


def test_what_is_bound_often_stays_then_what_is_small() -> None:
    sizes = {"often": 900_000, "large": 500_000, "small": 100_000}
    commands = [[Use(name, 0, 1000)] for name in ("often", "large", "small", "often")]
    found = arrange(sizes, [commands], 1_200_000, ALIGNMENT)
    assert isinstance(found, Arrangement)
    assert found.resident == {"often", "small"}
    assert found.windows == 2
