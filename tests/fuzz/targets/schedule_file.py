"""Files of schedules are parsed or CompileError, with the name of the file; what was parsed is written and parsed to
the same, and any body takes its schedules or says why not.
"""

import random
import re
from functools import cache

from fuzzing import check, tokens_mutated

from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.kernel.body import Body
from orchestrion.compiler.kernel.lower import illegal
from orchestrion.compiler.kernel.schedule import STEPS, WAYS
from orchestrion.compiler.sequencer.hl_seq import programs_of
from orchestrion.compiler.targets.opencl.target import MACHINES
from orchestrion.compiler.targets.passes.choose_schedules import body_of, entries_of
from orchestrion.compiler.targets.schedule_file import DIGITS, HEADER, ScheduleFile, parse

MAX_BYTES = 2000
_NAME = "a-file"
_TOKEN = re.compile(r"\w+|\s|[^\w\s]")
_POOL = (
    "0 1 2 3 8 64 128 4294967296 99999999999 e b m n k lhs rhs grid sort , . .. ( ) [ ] # schedule opencl cpu".split()
    + [" ", "\n", HEADER, *STEPS, *dict.fromkeys(way for ways in WAYS.values() for way in ways)]
)
_DIGEST = "0123456789abcdef" * (DIGITS // 16)
_PROGRAM = """func.func @main(%x: tensor<6x20xf32>, %w: tensor<20x12xf32>) -> (tensor<6x12xf32>, tensor<6xf32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<6x20xf32>, tensor<20x12xf32>) -> tensor<6x12xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1]
    : (tensor<6x20xf32>, tensor<f32>) -> tensor<6xf32>
  func.return %0, %1 : tensor<6x12xf32>, tensor<6xf32>
}
"""


def seeds():
    lines = (
        "[tile(m, 2), tile(n, 4), bind(grid, invocation, 32), vectorize(n, 4), unroll(k, 2), guard(m, shift)]",
        "[tile(m, 2), tile(n, 2), bind(grid, workgroup), bind(m, local, 4), bind(n, local, 8), "
        "stage(lhs, shared, 8), stage(rhs, shared, 8), guard(n, clamp)]",
        "[bind(grid, workgroup), reduce(k, tree, 32)]",
        "[specialize(m, ..4), bind(grid, invocation, 64)] [assume(m, 5..), bind(grid, invocation, 64)]",
        "[library(sort, 64)]",
    )
    for number, line in enumerate(lines):
        yield f"{HEADER}\n# 1 us\nschedule opencl cpu {_DIGEST[:-1]}{number} {line}\n".encode()
    yield f"{HEADER}\n".encode()


def mutate(choose: random.Random, data: bytes) -> bytes:
    return "".join(tokens_mutated(choose, _TOKEN.findall(data.decode(errors="ignore")), _POOL)).encode()


@cache
def _bodies() -> list[Body]:
    module = Compilation(("opencl",)).module(_PROGRAM, "hl_seq")
    return [body_of(func, dispatch) for program in programs_of(module) for func, dispatch in entries_of(program)]


def one_input(data: bytes) -> None:
    try:
        file = parse(data, _NAME)
    except CompileError as error:
        check(str(error).startswith(f"{_NAME}:"), f"{error} does not say in which file")
        return
    written = ScheduleFile(_NAME, file.choices).text()
    again = parse(written.encode(), _NAME)
    check(sorted(again.choices, key=str) == sorted(file.choices, key=str), f"{written!r} is parsed to something else")
    for choice in file.choices:
        for body in _bodies():
            for machine in MACHINES.values():
                for message in illegal(body, list(choice.schedules), machine):
                    check(bool(message), "a refusal without a reason")
