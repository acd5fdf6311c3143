"""Runs the conformance suite on the package's own drivers. A driver that is missing is skipped with its own reason."""

import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from orchestrion.hal.cts import catalogue, kernels
from orchestrion.hal.registry import BUILT_IN
from orchestrion.schema.profiles import PROFILES


@pytest.mark.sampled(always=("reference", "cpu"))
@pytest.mark.parametrize("device", BUILT_IN)
@pytest.mark.parametrize("case", catalogue.CASES)
def test_conformance(case: str, device: str) -> None:
    reason = catalogue.why_not(case, device)
    if reason is not None:
        pytest.skip(reason)
    catalogue.run(case, device)


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("case", catalogue.CASES)
def test_conformance_on_swiftshader(case: str, swiftshader: str) -> None:
    """A second Vulkan driver: bindings aligned to 256 bytes, no 64-bit types, no robust buffer access 2."""
    reason = catalogue.why_not(case, swiftshader)
    if reason is not None:
        pytest.skip(reason)
    catalogue.run(case, swiftshader)


def test_every_format_has_kernels() -> None:
    assert set(kernels.FORMATS) == {profile.format for profile in PROFILES.values()}


def test_spirv_is_what_its_text_says(tmp_path: Path) -> None:
    """The recipe in the text's header produces the committed words, and they are valid."""
    folder = files("orchestrion.hal.cts") / "payloads"
    for tool in ("spirv-as", "spirv-val"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed (Debian package spirv-tools)")
    text, words = tmp_path / "kernels.spvasm", tmp_path / "kernels.spv"
    text.write_bytes((folder / "kernels.spvasm").read_bytes())
    subprocess.run(["spirv-as", "--target-env", "spv1.3", text, "-o", words], check=True)
    subprocess.run(["spirv-val", "--target-env", "vulkan1.1", words], check=True)
    # the header's third word names the assembler and its version
    committed = (folder / "kernels.spv").read_bytes()
    assert words.read_bytes()[12:] == committed[12:] and words.read_bytes()[:8] == committed[:8]
