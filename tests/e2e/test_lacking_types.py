"""Devices that lack 8-, 16- or 64-bit integers compute the same numbers, with words in their place."""

from collections.abc import Callable
from typing import Any

ModuleOf = Callable[[Any], bytes]
Check = Callable[[Any, list[Any]], None]
LoadOn = Callable[[bytes, str], Any]


def test_all(case: Any, swiftshader: str, module_of: ModuleOf, load_on: LoadOn, check: Check) -> None:
    results = load_on(module_of(case), swiftshader).main(*case.arguments())
    check(case, list(results) if isinstance(results, tuple | list) else [results])
