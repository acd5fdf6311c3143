"""examples/hal-template as its users have it: its wheel is installed beside this package, which knows nothing of it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plugin_packages import plugin_folder

from orchestrion import compiler, vm
from orchestrion.compiler.driver import Compilation
from orchestrion.schema.errors import ModuleError

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "examples"
INPUTS = ("--input=4xf32=1,2,3,4", "--input=4xf32=10,20,30,40")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the wheel is installed."""
    folder = tmp_path_factory.mktemp("template")
    shutil.copytree(
        EXAMPLES / "hal-template", folder / "source", ignore=shutil.ignore_patterns("__pycache__", "*.egg*")
    )
    wheel = run(sys.executable, "-m", "build", "--wheel", "-o", folder, folder / "source", cwd=folder)
    assert wheel.returncode == 0, wheel.stdout + wheel.stderr
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder / "site"]
    done = run(*install, next(folder.glob("*.whl")), cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "site"


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, timeout=600,
        env={**os.environ, **environment},
    )  # fmt: skip


@dataclass
class User:
    """Somebody with a home, in whose Python these packages are installed."""

    home: Path
    site: Path
    _modules: dict[tuple[str, ...], Path] = field(default_factory=dict)

    def tool(self, name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return self.python("-m", f"orchestrion.tools.{name}", *arguments)

    def python(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        self.home.mkdir(exist_ok=True)
        return run(
            sys.executable, *arguments, cwd=self.home, PYTHONPATH=str(self.site), ORCHESTRION_HOME=str(self.home)
        )

    def compile(self, name: str, *flags: str) -> Path:
        """The module of an example, compiled once with the same flags."""
        if (name, *flags) not in self._modules:
            module = self.home / str(len(self._modules)) / f"{name}.fb"
            module.parent.mkdir(parents=True)
            done = self.tool("compile", "--target=template", EXAMPLES / f"{name}.mlir", "-o", module, *flags)
            assert done.returncode == 0, done.stderr
            self._modules[name, *flags] = module
        return self._modules[name, *flags]


@pytest.fixture(scope="module")
def user(site: Path, tmp_path_factory: pytest.TempPathFactory) -> User:
    return User(tmp_path_factory.mktemp("user") / "home", site)


@pytest.fixture
def altered(site: Path, tmp_path: Path) -> Callable[[str, str, str], User]:
    """`altered(file, old, new)`: a stranger to the user's modules, whose copy of the package has another text."""

    def alter(file: str, old: str, new: str) -> User:
        copy = tmp_path / "altered"
        shutil.copytree(site, copy)
        (path,) = copy.glob(file)
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
        return User(tmp_path / "stranger", copy)

    return alter


def test_it_is_listed(user: User) -> None:
    devices, plugins = user.tool("run", "--list-devices"), user.tool("run", "--list-plugins")
    assert "template: lanes in NumPy" in devices.stdout and "template.lockstep" in devices.stdout
    lines = plugins.stdout.splitlines()
    assert len(lines) == 8 and all(line.endswith("(orchestrion-hal-template 1.0.0)") for line in lines), plugins.stdout


def test_compiled_trusted_and_run(user: User) -> None:
    module = user.compile("simple_mul")
    done = user.tool("run", module, "--device=template", *INPUTS, "--expected-output=4xf32=10,40,90,160")
    assert done.returncode == 0 and "1 of 1 results are as expected" in done.stdout, done.stderr
    report = user.tool("run", module, "--device=template", "--report").stdout
    assert "trusted: compiled on this machine by this user" in report and "template-lanes" in report
    check = user.tool("run", module, "--check", "--device=template")
    assert check.stdout == "template: runs, program template\n"
    mlp = user.compile("mlp")
    files = f"--input=@{EXAMPLES / 'mlp_input.npy'}", f"--expected-output=@{EXAMPLES / 'mlp_output.npy'}"
    done = user.tool("run", mlp, "--device=template", *files)
    assert done.returncode == 0 and "1 of 1 results are as expected" in done.stdout, done.stderr


#: the generated program in a Python that never loads the VM
WITHOUT_VM = """
import sys
import numpy as np
import mlp
from orchestrion.hal.registry import open_device
with open_device("template") as device, mlp.Mlp.create(device) as program:
    x = mlp.upload(device, np.load(sys.argv[1]), mlp.F32)
    np.testing.assert_allclose(program.main(x).read(), np.load(sys.argv[2]), rtol=1e-5, atol=1e-6)
    del x
assert not [name for name in sys.modules if name.startswith(("orchestrion.vm", "orchestrion.compiler"))]
"""


def test_generated_code_runs_on_it(user: User) -> None:
    module = user.compile("mlp")
    done = user.tool("codegen", module, "--style=hal", "-o", user.home / "app")
    assert done.returncode == 0, done.stderr
    script = user.home / "app" / "run.py"
    script.write_text(WITHOUT_VM)
    done = user.python(script, EXAMPLES / "mlp_input.npy", EXAMPLES / "mlp_output.npy")
    assert done.returncode == 0 and "Warning" not in done.stderr, done.stderr


def test_compiling_for_its_machine(user: User) -> None:
    module = user.compile("mlp", "--machine=template-wide")
    files = f"--input=@{EXAMPLES / 'mlp_input.npy'}", f"--expected-output=@{EXAMPLES / 'mlp_output.npy'}"
    done = user.tool("run", module, "--device=template", *files)
    assert done.returncode == 0 and "1 of 1 results are as expected" in done.stdout, done.stderr


@pytest.mark.long
def test_conformance(user: User) -> None:
    suite = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", "orchestrion.hal.cts")
    done = user.python(*suite, "--hal-driver=template")
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout and "failed" not in done.stdout


# what others get


def test_verified_code_of_a_stranger_runs(user: User, site: Path, tmp_path: Path) -> None:
    """The format is declared to be confined, and the driver verifies it."""
    module = user.compile("simple_mul")
    done = User(tmp_path / "stranger", site).tool("run", module, "--device=template", *INPUTS)
    assert done.returncode == 0, done.stderr


#: `vm-run` fails, and then lists the devices, in one process: each takes a second to start
RUN_AND_LIST = """
import sys
from orchestrion.tools import run
assert run.main(sys.argv[1:]) == 1
assert run.main(["--list-devices"]) == 0
"""


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        (
            "*/driver.py",
            'verified_formats=frozenset({"template-lanes"})',
            "verified_formats=frozenset()",
            "template-lanes is native code on device template, whose driver does not say that it verifies the format, "
            "and module",
        ),
        (
            "*/declarations.py",
            'Format("template-lanes", confined=True',
            'Format("template-lanes", confined=False',
            "template-lanes is native code and module",
        ),
        (
            "*.dist-info/entry_points.txt",
            "template-lanes = orchestrion_hal_template.declarations:FORMAT",
            "other = orchestrion_hal_template.declarations:FORMAT",
            "target profile template is of format template-lanes, which no package declares",
        ),
        (
            "*.dist-info/entry_points.txt",
            "template = orchestrion_hal_template.declarations:PROFILE",
            "other = orchestrion_hal_template.declarations:PROFILE",
            "its profile template is unknown to this version",
        ),
        (
            "*/driver.py",
            'features=frozenset({"int8", "int16", "int64", "float64", "robust", "template.lockstep"})',
            "features=frozenset()",
            "template (wants template.lockstep, which the device lacks)",
        ),
        (
            "*/driver.py",
            "api_version = (1, 0)",
            "api_version = (1, 9)",
            "driver template of package orchestrion-hal-template 1.0.0 was written for version 1.9 of the driver "
            "interface, this is version 1.0: update orchestrion",
        ),
        (
            "*/driver.py",
            "import numpy as np",
            "import no_such_library",
            "driver template of package orchestrion-hal-template 1.0.0 cannot be loaded: ModuleNotFoundError",
        ),
        (
            "*/driver.py",
            "return [INFO]",
            "raise RuntimeError('no card in the slot')",
            "driver template of package orchestrion-hal-template 1.0.0 failed in devices(): RuntimeError: no card",
        ),
    ],
)
def test_refused_by_name(
    user: User, altered: Callable[[str, str, str], User], file: str, old: str, new: str, words: str
) -> None:
    module = user.compile("simple_mul")
    stranger = altered(file, old, new)
    done = stranger.python("-c", RUN_AND_LIST, module, "--device=template", *INPUTS)
    assert done.returncode == 0 and words in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert "reference: NumPy" in done.stdout


def test_without_the_package(user: User, tmp_path: Path) -> None:
    """The same module elsewhere: no program runs, and it says of which profile it is."""
    module = user.compile("simple_mul")
    (tmp_path / "empty").mkdir()
    done = User(tmp_path / "elsewhere", tmp_path / "empty").tool("run", module, "--device=reference", *INPUTS)
    assert done.returncode == 1 and "its profile template is unknown to this version" in done.stderr
    done = User(tmp_path / "elsewhere", tmp_path / "empty").tool("compile", "--target=template", "x.mlir", "-o", "y.fb")
    assert (
        done.returncode == 2
        and "no target is called template; targets are reference, spirv, spirv_least, opencl" in done.stderr
    )


# in this process


@pytest.fixture
def here(site: Path) -> Iterator[None]:
    with plugin_folder(site) as folder:
        names = [f"orchestrion_hal_template.{path.stem}" for path in site.glob("*/*.py")]
        folder.modules |= {"orchestrion_hal_template", *names}
        yield
    from orchestrion.compiler.targets.target import target

    target.cache_clear()


def softmax(x: Any) -> Any:
    import jax

    return jax.nn.softmax(x)


def products(x: Any) -> Any:
    return x @ x.T, (x[:, None] * x[None]).sum(-1)


def loops(x: Any) -> Any:
    import jax

    return jax.lax.while_loop(lambda v: v[0].sum() < 100, lambda v: (v[0] * 1.5 + 1, v[1] + 1), (abs(x), 0))


def integers(x: Any) -> Any:
    import jax.numpy as jnp

    n = jnp.trunc(x * 40).astype(jnp.int32)
    return n // 3, n % 5, n << 2, n.astype(jnp.int8), jnp.sort(n, axis=1), jnp.cumsum(n, axis=0), jnp.argmax(n, axis=1)


def functions(x: Any) -> Any:
    import jax
    import jax.numpy as jnp

    return jnp.tanh(x), jnp.exp(x), jax.scipy.special.gammaln(abs(x)), jnp.abs(jnp.fft.fft(x)), jnp.where(x > 0, x, 0)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("function", [softmax, products, loops, integers, functions])
def test_it_computes_what_jax_does(function: Callable[[Any], Any]) -> None:
    jax = pytest.importorskip("jax")
    x = np.random.default_rng(0).standard_normal((9, 40)).astype(np.float32)
    program = vm.load(compiler.compile(jax.jit(function).lower(x), targets=["template"]), device="template")
    found = program.main(x)
    for got, want in zip(found if isinstance(found, tuple) else (found,), jax.tree.leaves(function(x)), strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-4, atol=1e-4)
    program.close()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("phase", ["hl_seq", "ll_seq", "executables", "bytecode"])
def test_phases_continue_to_the_same_bytes(phase: str, tmp_path: Path) -> None:
    job = Compilation(targets=("template",))
    text = tmp_path / "phase.mlir"
    text.write_text(job.text(EXAMPLES / "mlp.mlir", phase))
    whole, continued = tmp_path / "whole.fb", tmp_path / "continued.fb"
    job.write(EXAMPLES / "mlp.mlir", whole)
    Compilation(targets=("template",), start=phase).write(text, continued)
    assert whole.read_bytes() == continued.read_bytes()


class Enough(Exception):
    """A loop ran long enough."""


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("seed", range(8))
def test_damaged_code_stays_inside_its_bindings(seed: int) -> None:
    """What the decoder lets through may compute anything, and reads and writes nothing but its bindings."""
    from orchestrion_hal_template.bytecode import decode  # type: ignore[import-not-found]
    from orchestrion_hal_template.conformance import kernel  # type: ignore[import-not-found]
    from orchestrion_hal_template.lanes import Lanes  # type: ignore[import-not-found]

    choose = np.random.default_rng(seed)
    whole = np.frombuffer(kernel(64, 7).payload, "<u4")
    entries, ran, refused = kernel(64, 7).entries, 0, 0
    for _ in range(150):
        words = whole.copy()
        for place in choose.integers(1, words.size, choose.integers(1, 4)):
            words[place] = choose.choice([choose.integers(0, 16), words[choose.integers(1, words.size)], 0xFFFFFFFF])
        try:
            codes = decode(memoryview(words.tobytes()), entries, 1024)
        except ModuleError:
            refused += 1
            continue
        ran += 1
        for code, entry in zip(codes, entries, strict=True):
            stay_inside(Lanes, code, entry)
    assert ran > 5 and refused > 50


def stay_inside(lanes: Any, code: Any, entry: Any) -> None:
    memory = np.full(1024, 0xA5, np.uint8)
    places = [slice(256 * number + 64, 256 * number + 128) for number in range(len(entry.bindings))]
    before, asked = memory.copy(), []

    def check() -> None:
        asked.append(1)
        if len(asked) > 50:
            raise Enough

    with np.errstate(all="ignore"):
        try:
            lanes(code, [memory[place] for place in places], np.array([64, 7], "<u4"), range(2), 64, check).run(
                code.rows
            )
        except Enough:
            pass
    for (access, _), place in zip(entry.bindings, places, strict=True):
        if access != "read":
            memory[place] = before[place]
    np.testing.assert_array_equal(memory, before)
