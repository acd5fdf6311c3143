"""The memory left in each heap for this process, as `VK_EXT_memory_budget` estimates it.

The estimate depends on other programs, so it is read again whenever a block is made, which is rare. Some drivers report
budgets of zero or above the heap's size; these count as the heap's size.
"""

from typing import Any

from .api import Api, Handle
from .heaps import Heap

#: bytes that this process may use in a heap, and bytes that it uses there now
Row = tuple[int, int]


def read_budgets(api: Api, physical: Handle) -> list[Row]:
    """Returns budget and usage of each heap, in bytes. The device must have `VK_EXT_memory_budget`."""
    budgets = api.new("VkPhysicalDeviceMemoryBudgetPropertiesEXT")
    memory = api.new("VkPhysicalDeviceMemoryProperties2", pNext=budgets)
    api.lib.vkGetPhysicalDeviceMemoryProperties2(physical, memory)
    properties: Any = memory.memoryProperties
    rows = []
    for index in range(properties.memoryHeapCount):
        size, budget = int(properties.memoryHeaps[index].size), int(budgets.heapBudget[index])
        rows.append((budget if 0 < budget <= size else size, int(budgets.heapUsage[index])))
    return rows


class Budget:
    """The bytes left in each heap of an open device. Without the extension the budget is the heap's size."""

    __slots__ = ("_api", "_known", "_physical", "_rows")

    def __init__(self, api: Api, physical: Handle, known: bool) -> None:
        self._api = api
        self._physical = physical
        self._known = known
        self._rows: list[Row] = []

    def refresh(self) -> None:
        if self._known:
            self._rows = read_budgets(self._api, self._physical)

    def has_room(self, heap: Heap, size: int) -> bool:
        """Whether `size` more bytes are within the budget, as of the last `refresh`."""
        if not self._rows:
            return size <= heap.size
        budget, used = self._rows[heap.index]
        return used + size <= budget

    def describe(self, heap: Heap) -> str:
        """The heap's usage and budget as a text for errors; empty without the extension."""
        if not self._rows:
            return ""
        budget, used = self._rows[heap.index]
        return f" (heap {heap.index}: {used} bytes in use of a budget of {budget})"
