"""Modules of every format version load, and their functions give what outside oracles gave. README.md has the rule."""

import json
import os
from collections.abc import Callable
from hashlib import sha256
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrion import compiler, vm
from orchestrion.hal.registry import list_devices
from orchestrion.schema.assembler import assemble
from orchestrion.schema.decoder import open_module
from orchestrion.schema.profiles import PROFILES
from orchestrion.schema.versions import MAJOR, MINOR
from orchestrion.schema.writer import write

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
MODULES = ("simple_mul", "mlp", "control")

#: the version whose set may still be written anew; None when there is none
UNRELEASED: tuple[int, int] | None = (1, 0)
#: file -> SHA-256, of released versions
RELEASED: dict[str, str] = {}

Call = dict[str, Any]


def array(x: np.ndarray[Any, Any]) -> Call:
    return {"dtype": str(x.dtype), "shape": list(x.shape), "values": x.ravel().tolist()}


def value(x: Any) -> Any:
    """The array that `array` wrote down, or the number."""
    return np.array(x["values"], x["dtype"]).reshape(x["shape"]) if isinstance(x, dict) else x


def call(function: str, arguments: list[Any], *results: Any) -> Call:
    return {"function": function, "arguments": arguments, "results": list(results)}


def simple_mul() -> tuple[bytes, list[Call]]:
    x, y = np.array([1, 2, -3, 0.1], np.float32), np.array([10, 0.5, 7, np.inf], np.float32)
    module = compiler.compile(EXAMPLES / "simple_mul.generic.mlir")
    return module, [call("simple_mul", [array(x), array(y)], array(x * y))]


def mlp() -> tuple[bytes, list[Call]]:
    x, y = np.load(EXAMPLES / "mlp_input.npy"), np.load(EXAMPLES / "mlp_output.npy")
    return compiler.compile(EXAMPLES / "mlp.mlir"), [call("main", [array(x)], array(y))]


def control() -> tuple[bytes, list[Call]]:
    text = (HERE / "control.asm").read_text()
    program = text[text.index("program @") :]
    for name in PROFILES:
        if name != "reference":
            text += program.replace('@reference profile "reference"', f'@{name} profile "{name}"')
    calls = [
        call("primes_below", [1000], sum(all(n % d for d in range(2, n)) for n in range(2, 1000))),
        call("fibonacci", [16], 987),
        call("greatest_common_divisor", [252, 105], gcd(252, 105)),
        *(call("days_in_month", [month], days) for month, days in ((0, 31), (1, 28), (3, 30), (11, 31))),
        call("mean_square", [101], float(np.mean(np.arange(101.0) ** 2)), None),
        call("checksum", [], checksum(bytes([1, 2, 3, 4, 5, 6, 7, 255]))),
        call("count", [], 43),
        call("count", [], 45),
    ]
    return write(assemble(text)), calls


def checksum(data: bytes) -> int:
    found = 0
    for byte in data:
        found = (found << 7 | found >> 57) % 2**64 ^ byte
    return found - 2**64 if found >> 63 else found


GENERATE: dict[str, Callable[[], tuple[bytes, list[Call]]]] = {"simple_mul": simple_mul, "mlp": mlp, "control": control}


@pytest.fixture(scope="module", autouse=True)
def _bless() -> None:
    if os.environ.get("BLESS") and UNRELEASED is not None:
        assert (MAJOR, MINOR) == UNRELEASED, "the format has moved on: is its last version released?"
        for name in MODULES:
            module, calls = GENERATE[name]()
            (HERE / f"v{MAJOR}.{MINOR}-{name}.fb").write_bytes(module)
            lines = ",\n".join(json.dumps(row) for row in calls)
            (HERE / f"v{MAJOR}.{MINOR}-{name}.json").write_text(f"[\n{lines}\n]\n")


@pytest.fixture(scope="module")
def devices() -> dict[str, str]:
    """Why a driver has no device here, empty where it has one."""
    return {status.name: "" if status.devices else status.reason for status in list_devices()}


@pytest.mark.parametrize("device", [profile.driver for profile in PROFILES.values()])
@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("minor", range(MINOR + 1))
def test_it_runs(minor: int, name: str, device: str, devices: dict[str, str]) -> None:
    if devices[device]:
        pytest.skip(f"{device}: {devices[device]}")
    path = HERE / f"v{MAJOR}.{minor}-{name}.fb"
    header = open_module(path).header
    assert (header.major, header.minor) == (MAJOR, minor)
    program = vm.load(path, device=device, allow_native_code=True)
    for row in json.loads(path.with_suffix(".json").read_text()):
        results = program[row["function"]](*map(value, row["arguments"]))
        compare(results if isinstance(results, tuple) else (results,), [value(x) for x in row["results"]])
    program.close()


def compare(got: tuple[Any, ...], want: list[Any]) -> None:
    assert len(got) == len(want)
    for one, other in zip(got, want, strict=True):
        if not isinstance(other, np.ndarray):
            assert one == other
            continue
        assert one.dtype == other.dtype and one.shape == other.shape
        scale = np.max(np.abs(other), where=np.isfinite(other), initial=0.0)
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6 * scale)


def test_released_modules_are_as_they_were() -> None:
    for name, digest in RELEASED.items():
        assert sha256((HERE / name).read_bytes()).hexdigest() == digest, name
    unlisted = {path.name for path in HERE.glob("v*.fb")} - set(RELEASED)
    own = set() if UNRELEASED is None else {f"v{UNRELEASED[0]}.{UNRELEASED[1]}-{name}.fb" for name in MODULES}
    assert unlisted == own, "the digests of a released set stand in RELEASED"
