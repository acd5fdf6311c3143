"""Hints on what to install if an optional package is missing.

A hint names the required distributions of PyPI, never `orchestrion` itself: this package is not on PyPI, so anybody
could register its name there. `tests/docs/test_hints.py` compares the table with pyproject.toml and checks every hint
in code and documentation.
"""

from typing import Final

#: extra of pyproject.toml -> the distributions that it installs, as pip takes them
EXTRAS: Final[dict[str, tuple[str, ...]]] = {
    "stablehlo": ("jaxlib>=0.10,<0.11",),
    "cpu": ("llvmlite>=0.50",),
    "opencl": ("pyopencl>=2025.1",),
    "vulkan": ("vulkan>=1.3.275",),
    "libraries": ("scipy>=1.13",),
    "narrow": ("ml_dtypes>=0.5",),
    "model-signing": ("model-signing>=1.1", "pyopenssl>=24"),
    "sign": ("cryptography>=43",),
}

#: the distribution that traces functions; `jaxlib` alone only reads programs
JAX: Final = "jax>=0.10,<0.11"


def install(extra: str) -> str:
    """The command that installs the distributions of an extra, a key of `EXTRAS`."""
    return pip(*EXTRAS[extra])


def pip(*requirements: str) -> str:
    """The command that installs these distributions."""
    return f"python -m pip install {' '.join(map(_quoted, requirements))}"


def _quoted(requirement: str) -> str:
    """Quotes a requirement, because a shell interprets `<`, `>` and `[`."""
    return f"'{requirement}'" if set("<>[") & set(requirement) else requirement
