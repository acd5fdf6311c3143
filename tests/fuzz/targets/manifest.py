"""A manifest is refused with ModuleError, or is written as one text, and every device has an answer about it that does
not change when it is read again.
"""

import json
import random
import re
from functools import cache

import module_corpus
from fuzzing import check, tokens_mutated

from orchestrion.hal.null.driver import INFO
from orchestrion.hal.reference.driver import ReferenceDriver
from orchestrion.schema.decoder import read_module
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.shipping.manifest import read_manifest, write_manifest
from orchestrion.vm.check import Verdict, subject
from orchestrion.vm.check import check as answer
from orchestrion.vm.module_manifest import manifest_of

MAX_BYTES = 8192
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?[\w.+]+|[^\s\w]')
_POOL = [
    *"{ } [ ] , : null true 0 1 -1 9 1.5 1e9 NaN 18446744073709551615 18446744073709551616 1048576".split(),
    *'"1.0" "1.9" "2.0" "manifest" "requires" "x-a" "spirv" "reference" "tensor-bytecode" "" "\\ud800"'.split(),
    '"' + "0" * 64 + '"',
]


@cache
def _seeds() -> list[bytes]:
    found = [write_manifest(manifest_of(read_module(data))) for data in module_corpus.written()]
    return [data for data in found if len(data) <= MAX_BYTES]


def seeds():
    return list(_seeds())


def mutate(choose: random.Random, data: bytes) -> bytes:
    """Tokens of the text, or values of the tree."""
    if choose.random() < 0.5:
        return " ".join(tokens_mutated(choose, _TOKEN.findall(data.decode(errors="ignore")), _POOL)).encode()
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return choose.choice(_seeds())
    places = list(_places(tree))
    if places:
        inner, key = choose.choice(places)
        values = [0, 1, 2**64 - 1, 2**20, -1, True, None, "", "x", "spirv", [], {}, [0], {"a": 1}, inner[key]]
        inner[key] = choose.choice(values)
    return json.dumps(tree).encode()


def _places(tree):
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield tree, key
        yield from _places(value)


def one_input(data: bytes) -> None:
    try:
        found = read_manifest(data)
        again = read_manifest(write_manifest(found))
    except ModuleError:
        return
    check(again == found, "it is another manifest when it is written and read")
    for info in (INFO, *ReferenceDriver().devices()):
        try:
            one = answer(subject(found), info)
        except ModuleError:  # a signature of an import that is none
            continue
        check(one == answer(subject(again), info), "another answer")
        check(one.verdict in Verdict and (one.reasons or one.verdict == Verdict.RUNS), f"no reason: {one}")
