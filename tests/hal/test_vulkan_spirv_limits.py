"""Limits on counts that make a driver's compiler slow: a SPIR-V module at each limit passes, one above it
is refused.
"""

from collections.abc import Callable

import numpy as np
import pytest
from straight_line import straight_line

from orchestrion.hal.backend import Entry
from orchestrion.hal.registry import open_device
from orchestrion.hal.vulkan.spirv_limits import HEADER_WORDS, LIMITS, check_limits, count_words
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.spirv import MAGIC, OP_BY_NAME, VERSION


def op(name: str, *operands: int) -> list[int]:
    return [len(operands) + 1 << 16 | OP_BY_NAME[name].code, *operands]


HEADER = [MAGIC, VERSION, 0, 100, 0]
#: a function of three instructions up to its first block, whose label counts too
FUNCTION = [*op("OpFunction", 1, 2, 0, 3), *op("OpLabel", 4)]
END = op("OpFunctionEnd")
NOTHING = op("OpReturn")

#: count -> a module in which it is that large
MODULES: dict[str, Callable[[int], list[int]]] = {
    "module": lambda n: [*HEADER, *op("OpDecorate", *[0] * 9) * ((n - HEADER_WORDS) // 10), *NOTHING * ((n - 5) % 10)],
    "functions": lambda n: [*HEADER, *(FUNCTION + END) * n],
    "function": lambda n: [*HEADER, *FUNCTION, *(NOTHING * 999 + op("OpLabel", 5)) * (n // 1000 - 1), *NOTHING * 998],
    "blocks": lambda n: [*HEADER, *FUNCTION, *op("OpLabel", 5) * (n - 1)],
    "block": lambda n: [*HEADER, *FUNCTION, *NOTHING * (n - 1)],
    "phis": lambda n: [*HEADER, *FUNCTION, *op("OpPhi", 1, 2) * n],
    "stack": lambda n: [*HEADER, *FUNCTION, *op("OpIAdd", 1, 2, 3, 3) * (n - 1)],
}


def check(words: list[int]) -> None:
    check_limits(np.array(words, "<u4"))


@pytest.mark.parametrize("name", LIMITS)
def test_one_above_the_limit_is_refused(name: str) -> None:
    limit = LIMITS[name]
    assert count_words(MODULES[name](limit.most))[name][0] == limit.most
    check(MODULES[name](limit.most))
    above = limit.most + (1000 if name == "function" else 1)
    with pytest.raises(ModuleError, match=f"SPIR-V: {above} {limit.what}, the limit is {limit.most}"):
        check(MODULES[name](above))


def test_limits_are_far_above_what_was_seen() -> None:
    for name, row in LIMITS.items():
        least = 4 if name == "stack" else 8  # SwiftShader bears 32,768 slots
        assert least * row.seen <= row.most <= 40 * row.seen, row


def test_the_block_before_a_function_ends_with_it() -> None:
    words = [*HEADER, *FUNCTION, *NOTHING * 10, *END, *FUNCTION, *NOTHING * 3, *END]
    counts = {name: count for name, (count, _) in count_words(words).items()}
    assert counts == {
        "module": len(words), "functions": 2, "function": 13, "blocks": 1, "block": 12, "phis": 0, "stack": 1,
    }  # fmt: skip


@pytest.mark.parametrize("words", [[], HEADER, [*HEADER, 0], [*HEADER, 0xFFFF << 16], [*HEADER, 1 << 16 | 248]])
def test_what_is_malformed_is_left_to_the_checker(words: list[int]) -> None:
    check(words)


def test_a_large_module_is_refused_by_the_device(spirv_assembler: Callable[[str], bytes]) -> None:
    pytest.importorskip("vulkan")
    payload = spirv_assembler(straight_line(40))
    long = payload + np.tile(np.array(op("OpDecorate", 1, 0), "<u4"), LIMITS["module"].most // 3).tobytes()
    entries = (Entry("main", (("readwrite", 4),), 0, (1, 1, 1)),)
    with open_device("vulkan") as opened, pytest.raises(ModuleError, match=r"words in the module, the limit is 320000"):
        opened.create_executable("spirv", memoryview(long), entries)
