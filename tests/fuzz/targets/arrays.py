"""The text of an input array is an array of that shape and type, printed and read again to the same, or InputError;
memory follows the length of the text, or the shape up to a limit.
"""

import random
import re

import numpy as np
from fuzzing import check, tokens_mutated

from orchestrion.schema.dtypes import BY_NAME
from orchestrion.tools.arrays import parse_array, type_text
from orchestrion.tools.cli import InputError

MAX_BYTES = 1024
_TOKEN = re.compile(r"\w+|[^\w]")
_POOL = [
    *BY_NAME,
    *"x = , [ ] 0 1 -1 1.5 nan inf 1e400 0x10 1+2i -3i true 4 99999999999 ? < > @ complex<f32> 2x2x".split(),
    " ",
]


def seeds():
    for text in (
        "4xf32=1,2,3,4",
        "2x2xi32=[[1 2][3 4]]",
        "f32=3",
        "8x8xf32=0",
        "2xcomplex<f32>=1+2i,-3i",
        "0xi32=",
        "3xi1=1,0,true",
    ):
        yield text.encode()
    for name in BY_NAME:
        yield f"2x{name}=1,0".encode()


def mutate(choose: random.Random, data: bytes) -> bytes:
    return "".join(tokens_mutated(choose, _TOKEN.findall(data.decode(errors="ignore")), _POOL)).encode()


def one_input(data: bytes) -> None:
    text = data.decode(errors="ignore")
    if text.startswith("@"):
        return
    try:
        found = parse_array(text)
    except InputError as error:
        check("\n" not in str(error), f"more than a line: {error}")
        return
    values = found.reshape(-1)[:64]
    name = type_text(found).rpartition("x")[2]
    if found.dtype.kind in "iufb" and BY_NAME[name].kind != "complex":
        digits = ",".join(str(value.item()).lower() for value in values)
        again = parse_array(f"{len(values)}x{name}={digits}" if len(values) else f"0x{name}=")
        check(np.array_equal(again, values, equal_nan=found.dtype.kind == "f"), f"{text!r} is printed as {digits}")
