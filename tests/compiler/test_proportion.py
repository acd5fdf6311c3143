"""What the compiler does grows with the program and not with its square, counted in calls of Python functions.

Each program is compiled in two sizes. The larger is four times the smaller; nothing that is called often may be called
eight times as often.
"""

import sys
from collections import Counter
from collections.abc import Callable
from cProfile import Profile
from types import CodeType

import pytest

from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.flow import groups
from orchestrion.compiler.ir import locations
from orchestrion.compiler.ir.locations import FileLoc, FusedLoc, fused
from orchestrion.schema.writer import write

T = "tensor<4xf32>"
#: calls of one function that are few, whatever the program
FEW = 20_000


def module(body: str, arguments: str, results: str, others: str = "") -> str:
    return f"module {{ func.func public @main({arguments}) -> ({results}) {{\n{body} }}\n{others} }}\n"


def chained(count: int, op: Callable[[int, str], str]) -> str:
    """Ops of which each takes the one before; the first takes `%a`."""
    return "".join(f"%r{i} = {op(i, f'%r{i - 1}' if i else '%a')}\n" for i in range(count))


def private_functions(count: int) -> str:
    body = chained(count, lambda i, value: f"func.call @f{i}({value}) : ({T}) -> {T}")
    text = "func.func private @f{0}(%x: {1}) -> {1} {{ %y = stablehlo.add %x, %x : {1}\n return %y : {1} }}\n"
    return module(f"{body}return %r{count - 1} : {T}", f"%a: {T}", T, "".join(text.format(i, T) for i in range(count)))


def dependent_adds(count: int) -> str:
    body = chained(count, lambda _, value: f"stablehlo.add {value}, %a : {T}")
    return module(f"{body}return %r{count - 1} : {T}", f"%a: {T}", T)


def results(count: int) -> str:
    body = chained(count, lambda _, value: f"stablehlo.multiply {value}, %a : {T}")
    kinds = ", ".join([T] * count)
    return module(f"{body}return {', '.join(f'%r{i}' for i in range(count))} : {kinds}", f"%a: {T}", kinds)


def arguments_and_results(count: int) -> str:
    body = "".join(f"%r{i} = stablehlo.add %a{i}, %a{i} : {T}\n" for i in range(count))
    taken, kinds = ", ".join(f"%a{i}: {T}" for i in range(count)), ", ".join([T] * count)
    return module(f"{body}return {', '.join(f'%r{i}' for i in range(count))} : {kinds}", taken, kinds)


def readers_of_one_value(count: int) -> str:
    made = "%x = stablehlo.add %a, %a : " + T + "\n"
    body = "".join(
        f"%c{i} = stablehlo.constant dense<{i}.0> : {T}\n%r{i} = stablehlo.multiply %x, %c{i} : {T}\n"
        for i in range(count)
    )
    kinds = ", ".join([T] * count)
    return module(f"{made}{body}return {', '.join(f'%r{i}' for i in range(count))} : {kinds}", f"%a: {T}", kinds)


def equal_ops(count: int) -> str:
    body = "".join(
        f"%e{i} = stablehlo.exponential %a : {T}\n%r{i} = stablehlo.add %e{i}, {f'%r{i - 1}' if i else '%a'} : {T}\n"
        for i in range(count)
    )
    return module(f"{body}return %r{count - 1} : {T}", f"%a: {T}", T)


def dots(count: int) -> str:
    kind = "tensor<4x4xf32>"
    body = chained(count, lambda _, value: f"stablehlo.dot %a, {value} : ({kind}, {kind}) -> {kind}")
    return module(f"{body}return %r{count - 1} : {kind}", f"%a: {kind}", kind)


def case(count: int, branch: Callable[[int], str]) -> str:
    branches = ", ".join(f"{{ {branch(i)}\n stablehlo.return %y : {T} }}" for i in range(count))
    body = f'%r = "stablehlo.case"(%i) ({branches}) : (tensor<i32>) -> {T}\nreturn %r : {T}'
    return module(body, f"%a: {T}, %i: tensor<i32>", T)


def equal_branches(count: int) -> str:
    return case(count, lambda _: f"%y = stablehlo.add %a, %a : {T}")


def all_but_one_branch_alike(count: int) -> str:
    return case(count, lambda i: f"%y = stablehlo.constant dense<{int(i == count - 1)}.0> : {T}")


def carried_values(count: int) -> str:
    """A loop that carries values each of which advances by the next; half of them start alike."""
    kinds = ", ".join(["tensor<i32>"] * count)

    def taken(name: str) -> str:
        return ", ".join(f"%{name}{i}: tensor<i32>" for i in range(count))

    steps = "".join(f"%n{i} = stablehlo.add %b{i}, %b{max(i - 1, 0)} : tensor<i32>\n" for i in range(count))
    body = (
        f'%r:{count} = "stablehlo.while"({", ".join("%a" if i % 2 else "%l" for i in range(count))}) ({{\n'
        f"^bb0({taken('c')}): %p = stablehlo.compare LT, %c0, %l : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        f'"stablehlo.return"(%p) : (tensor<i1>) -> () }}, {{ ^bb0({taken("b")}): {steps}\n'
        f'"stablehlo.return"({", ".join(f"%n{i}" for i in range(count))}) : ({kinds}) -> () }})'
        f" : ({kinds}) -> ({kinds})\n"
        f"return %r#{count - 1} : tensor<i32>"
    )
    return module(body, "%a: tensor<i32>, %l: tensor<i32>", "tensor<i32>")


#: program, its smaller size, the last phase
GROWING = [
    (private_functions, 200, "bytecode"),
    (dependent_adds, 800, "bytecode"),
    (results, 400, "bytecode"),
    (arguments_and_results, 150, "bytecode"),
    (readers_of_one_value, 200, "bytecode"),
    (equal_ops, 400, "bytecode"),
    (dots, 150, "bytecode"),
    (equal_branches, 300, "bytecode"),
    (all_but_one_branch_alike, 300, "flow"),
    (carried_values, 200, "stablehlo"),
]


def calls_of(text: str, phase: str) -> Counter[str]:
    """Calls of functions of the compiler and of Python's own, by name."""
    before, profile = sys.getprofile(), Profile(builtins=False)
    profile.enable()
    try:
        job = Compilation(targets=("reference",))
        write(job.rows(text.encode())) if phase == "bytecode" else job.module(text.encode(), phase)
    finally:
        profile.disable()
        sys.setprofile(before)
    found = Counter[str]()
    for entry in profile.getstats():
        if isinstance(entry.code, CodeType):
            found[f"{entry.code.co_filename}:{entry.code.co_firstlineno} {entry.code.co_name}"] += entry.callcount
    return found


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize(("make", "size", "phase"), GROWING, ids=[row[0].__name__ for row in GROWING])
def test_no_function_is_called_out_of_proportion(
    make: Callable[[int], str], size: int, phase: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jaxlib")
    monkeypatch.setattr(groups, "MAX_SIBLING_GROUPS", 8)  # so that small programs reach it
    calls_of(make(8), phase)  # what is imported and cached
    few, many = calls_of(make(size), phase), calls_of(make(4 * size), phase)
    grown = {name: (few[name], count) for name, count in many.items() if count > 8 * few[name] + FEW}
    assert not grown


def test_a_location_is_fused_of_so_many_places() -> None:
    place = fused(*(FileLoc("x", i, 1) for i in range(10)))
    for i in range(10, 2 * locations.MAX_FUSED):
        place = fused(place, FileLoc("x", i, 1))
    assert isinstance(place, FusedLoc)
    assert place.locations == tuple(FileLoc("x", i, 1) for i in range(locations.MAX_FUSED))
