"""The first program of each group by which JAX tests its own lowering, against XLA. `make jax-programs` runs all."""

from typing import Any

import pytest

jax = pytest.importorskip("jax")

from jax_programs import joined, programs  # noqa: E402

from orchestrion import compiler, vm  # noqa: E402

#: more than all groups have
ALL = 10_000
PROGRAMS = {program.name: program for program in programs(every=ALL)}


@pytest.mark.sampled(every=8)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_jax(name: str) -> None:
    program = PROGRAMS[name]
    with jax.enable_x64(True):
        jitted = jax.jit(program.function)
        try:
            want: Any = jitted(*program.arguments)
        except NotImplementedError:
            pytest.skip("JAX does not compile it for processors")
        blob = compiler.compile(jitted.lower(*program.arguments), targets=["reference"])
    with vm.load(blob, device="reference") as loaded:
        assert not program.difference(loaded.main(*program.arguments), want)


def test_programs_as_one_module_are_judged_one_by_one() -> None:
    some = [next(one for one in PROGRAMS.values() if one.group == group) for group in ("add", "random_split", "top_k")]
    together = joined(some)
    with jax.enable_x64(True):
        jitted = jax.jit(together.function)
        want: Any = jitted(*together.arguments)
        blob = compiler.compile(jitted.lower(*together.arguments), targets=["reference"])
    with vm.load(blob, device="reference") as loaded:
        got = loaded.main(*together.arguments)
    assert not together.difference(got, want)
    wrong = [got[0] + 1, *got[1:]]
    assert together.difference(wrong, want).startswith(f"{some[0].name}: result 0 differs")
