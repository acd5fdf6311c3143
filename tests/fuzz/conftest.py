"""The corpus of the mutation tests, made once."""

import pytest
from module_corpus import assembled, calling_libraries, compiled, linear_algebra, of_the_vm

from orchestrion.schema import writer


@pytest.fixture(scope="session")
def corpus() -> dict[str, writer.Module]:
    """name -> module. Each can be written, and runs."""
    pytest.importorskip("jax")
    pytest.importorskip("scipy")
    return dict([*assembled(), *of_the_vm(), *compiled(), *calling_libraries(), *linear_algebra()])
