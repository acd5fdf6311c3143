"""The Vulkan driver's choice of memory for buffers, for the memory tables of real machines: a pure function of the
table.
"""

import pytest
from heap_tables import AMD_COHERENT, AMD_UNCACHED, LAZY, PROTECTED, TABLES, C, K, L, Table, V

from orchestrion.hal.backend import MemoryUse
from orchestrion.hal.vulkan.heaps import CHOICES, ORDINARY, Machine, MemoryChoice, choose, machine_of

CONSTANT, ARENA, INPUT, OUTPUT, STAGING = MemoryUse

#: table -> index of the memory type that each use gets, in the order of MemoryUse
FIRST: dict[str, tuple[int, int, int, int, int]] = {
    "NVIDIA, 246 MiB of BAR": (1, 1, 1, 1, 3),
    "NVIDIA, resizable BAR": (1, 1, 4, 1, 3),
    "AMD, 256 MiB of BAR": (0, 0, 0, 0, 3),
    "AMD, resizable BAR": (0, 0, 2, 0, 3),
    "AMD, RADV, all but 16 MiB visible": (0, 0, 2, 0, 3),
    "AMD, APU with a carve-out": (2, 2, 2, 2, 3),
    "Intel, integrated": (0, 0, 0, 1, 1),
    "Intel, integrated, unmapped memory too": (1, 1, 1, 2, 2),
    "Mali": (0, 0, 0, 1, 1),
    "Mali, cached memory is not coherent": (0, 0, 0, 0, 0),
    "Apple, MoltenVK": (1, 1, 1, 1, 1),
    "lavapipe": (0, 0, 0, 0, 0),
    "SwiftShader": (0, 0, 0, 0, 0),
}


def places(name: str) -> dict[MemoryUse, tuple[MemoryChoice, ...]]:
    return choose(TABLES[name].memory_types(), TABLES[name].device_type)


@pytest.fixture(params=TABLES)
def table(request: pytest.FixtureRequest) -> Table:
    return TABLES[request.param]


def test_every_machine_has_a_place_for_every_use() -> None:
    assert set(CHOICES) == set(Machine)
    assert all(set(row) == set(MemoryUse) for row in CHOICES.values())
    assert set(FIRST) == set(TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_first_choices(name: str) -> None:
    found = places(name)
    assert tuple(found[use][0].type.index for use in MemoryUse) == FIRST[name]


def test_the_kind_of_machine(table: Table) -> None:
    assert machine_of(table.memory_types(), table.device_type) is table.machine


def test_no_type_for_special_purposes(table: Table) -> None:
    rows = choose(table.memory_types(), table.device_type).values()
    flags = [place.type.flags for row in rows for place in row]
    assert flags and not any(flag & (LAZY | PROTECTED | AMD_COHERENT | AMD_UNCACHED) for flag in flags)
    assert not any(flag & ~ORDINARY for flag in flags)


def test_a_mapping_is_coherent(table: Table) -> None:
    rows = choose(table.memory_types(), table.device_type).values()
    assert all(place.type.flags & (V | C) == V | C for row in rows for place in row if place.mapped)


def test_staging_is_mapped_and_the_host_reads_it(table: Table) -> None:
    staging = choose(table.memory_types(), table.device_type)[STAGING]
    assert staging and all(place.mapped for place in staging) and staging[0].cached


@pytest.mark.parametrize("name", [name for name, row in TABLES.items() if row.machine is not Machine.UNIFIED])
def test_cards_keep_constants_and_arenas_in_their_own_memory(name: str) -> None:
    found = places(name)
    largest = max(size for size, local in TABLES[name].heaps if local)
    for use in (CONSTANT, ARENA, OUTPUT):
        fast = [place for place in found[use] if not place.slow]
        assert all(place.type.heap.local and not place.mapped for place in fast)
        assert any(place.type.heap.size == largest for place in fast)
        assert [place.slow for place in found[use]] == sorted(place.slow for place in found[use])
        assert all(not place.type.heap.local for place in found[use] if place.slow)
    assert not any(place.type.heap.local for place in found[STAGING][:1])


@pytest.mark.parametrize("name", [name for name, row in TABLES.items() if row.machine is Machine.UNIFIED])
def test_unified_memory_is_mapped_for_every_use(name: str) -> None:
    found = places(name)
    assert all(found[use][0].mapped and not found[use][0].slow for use in MemoryUse)


def test_inputs_are_written_directly_where_the_bar_is_large_only() -> None:
    for name, table in TABLES.items():
        first = places(name)[INPUT][0]
        assert first.mapped == (table.machine is not Machine.SMALL_BAR)
        if table.machine is Machine.LARGE_BAR:
            assert first.type.heap.local and not first.cached  # written, never read


def test_results_are_not_read_through_an_uncached_mapping() -> None:
    assert not places("Mali")[INPUT][0].cached and places("Mali")[OUTPUT][0].cached
    only = places("Mali, cached memory is not coherent")
    assert only[OUTPUT][0].type.flags == L | V | C and only[OUTPUT][0].cached  # there is nothing better to read


def test_an_apu_overflows_into_the_hosts_memory_without_a_warning() -> None:
    found = places("AMD, APU with a carve-out")[CONSTANT]
    assert [place.type.heap.index for place in found] == [2, 1, 1, 0] and not any(place.slow for place in found)


def test_the_bars_window_takes_what_does_not_fit_a_small_heap() -> None:
    found = places("AMD, RADV, all but 16 MiB visible")[CONSTANT]
    assert [(place.type.index, place.slow) for place in found] == [(0, False), (2, False), (1, True), (3, True)]
    assert not any(place.mapped for place in found)


def test_a_virtual_device_counts_by_its_heaps() -> None:
    shared = Table(Machine.UNIFIED, 3, ((4 << 30, True),), ((L | V | C | K, 0),))
    own = Table(Machine.SMALL_BAR, 3, ((4 << 30, True), (8 << 30, False)), ((L, 0), (V | C | K, 1)))
    for table in (shared, own):
        assert machine_of(table.memory_types(), table.device_type) is table.machine
