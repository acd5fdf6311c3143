"""The text of trees is one tree per parameter and result over exactly the flat arrays, or ModuleError. It is written
and read again to the same. What a call builds from arrays gives these arrays when it is taken apart.

The first two bytes are the numbers of flat arguments and results.
"""

import json
import random
import re

import numpy as np
from fuzzing import check, tokens_mutated

from orchestrion.schema.errors import ModuleError
from orchestrion.schema.trees import ACCESSORS, Items, Keyed, Leaf, Nothing, Record, Static, Trees, decode, encode
from orchestrion.vm.trees import builder, flatten, flattener

MAX_BYTES = 2048
_TOKEN = re.compile(r'"[^"]*"|\w+|[^\w]')
_POOL = [
    *(f'"{name}"' for name in ("dict", "list", "tuple", "record", "fields", "static", "parameters", "x", *ACCESSORS)),
    *'[ ] { } , : 0 1 2 3 -1 1.5 1e400 null true false "" [] {} [["x",0]] {"static":true} {"list":[]}'.split(),
]


def seeds():
    rows = (Leaf(0), Leaf(1))
    nodes = (
        Keyed(("b", 3), rows),
        Items(True, rows),
        Items(False, (Items(True, rows), Nothing(), Static())),
        Record("Adam", ("m", "v"), ("attribute", "item"), rows),
        Record("Own", ("0", "1"), ("place", "place"), rows),
    )
    for node in nodes:
        trees = Trees((("p", node), ("x", Leaf(2))), 1, Items(True, rows))
        yield bytes([3, 2]) + encode(trees).encode()
    yield b"\0\0" + b'{"parameters":[],"keywords":0,"result":' + b'{"list":[' * 80 + b"]}" * 80 + b"}"


def mutate(choose: random.Random, data: bytes) -> bytes:
    text = data[2:].decode(errors="ignore")
    counts = bytes([choose.randrange(5) for _ in range(2)]) if choose.random() < 0.2 else data[:2]
    return counts + "".join(tokens_mutated(choose, _TOKEN.findall(text), _POOL)).encode()


def one_input(data: bytes) -> None:
    if len(data) < 2:
        return
    arguments, results, text = data[0], data[1], data[2:].decode(errors="ignore")
    try:
        trees = decode(text, arguments, results)
    except ModuleError as error:
        check(len(str(error)) < 1000, "a long message")
        return
    check(decode(encode(trees), arguments, results) == trees, "another tree when it is read again")
    json.loads(encode(trees))
    arrays = [np.full((), place) for place in range(max(arguments, results))]
    for nodes, count in (([node for _, node in trees.parameters], arguments), ([trees.result], results)):
        values = [builder(node)(arrays) for node in nodes]
        taken: list[np.ndarray] = []
        for node, value in zip(nodes, values, strict=True):
            flatten(node, value, "x", taken)
        check([int(one) for one in taken] == list(range(count)), "other arrays than it was built from")
        quick = flattener(nodes)(values)
        check(quick is None or [int(one) for one in quick] == list(range(count)), "the quick way gives other arrays")
