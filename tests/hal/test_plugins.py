"""Plugins of other packages: versions of the driver interface, declarations, packages that are broken or hostile."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from plugin_packages import PluginFolder, plugin_folder

from orchestrion import vm
from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.kernel.body import Body
from orchestrion.hal import backend
from orchestrion.hal.cts import catalogue
from orchestrion.hal.errors import DriverUnavailable
from orchestrion.hal.null.driver import INFO
from orchestrion.hal.policy import Policy
from orchestrion.hal.registry import GROUP, list_devices, load_driver, open_device
from orchestrion.schema import plugins
from orchestrion.schema.assembler import assemble
from orchestrion.schema.errors import PluginError
from orchestrion.schema.profiles import find_feature, find_format, find_profile, is_confined
from orchestrion.schema.writer import write
from orchestrion.tools import plugins as listing
from orchestrion.tools.run import main as vm_run
from orchestrion.vm.errors import CallerError

OLD_DRIVER = Path(__file__).parent.parent / "support" / "driver_api_1_0.py"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[PluginFolder]:
    with plugin_folder(tmp_path / "site") as found:
        yield found


@pytest.fixture
def old_driver(folder: PluginFolder) -> str:
    """The name of a driver of version 1.0 that is installed."""
    folder.install("old", {GROUP: {"api-1-0": "old_driver:Driver"}}, old_driver=OLD_DRIVER.read_text())
    return "api-1-0"


# versions of the driver interface


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("case", catalogue.CASES)
def test_a_driver_of_version_1_0_passes(old_driver: str, case: str) -> None:
    """It states no version and implements only the methods that are abstract in version 1.0."""
    reason = catalogue.why_not(case, old_driver)
    if reason is not None:
        assert reason.startswith("the device lacks ")
        pytest.skip(reason)
    catalogue.run(case, old_driver)


def test_later_versions_run_earlier_drivers(old_driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrion.hal.registry.API_VERSION", (1, 7))
    with open_device(old_driver) as device:
        assert device.info.id == old_driver


DRIVER = """
from orchestrion.hal.null.driver import INFO, NullDriver
from dataclasses import replace

class Driver(NullDriver):
    name = "{name}"
    {body}
    def devices(self):
        {devices}

    def open(self, info):
        {open}
"""
GOOD = "return [replace(INFO, driver=self.name)]"


def text(name: str, body: str = "", devices: str = GOOD, open: str = "return super().open(info)") -> str:
    return DRIVER.format(name=name, body=body, devices=devices, open=open)


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("(1, 1)", "was written for version 1.1 of the driver interface, this is version 1.0: update orchestrion"),
        ("(2, 0)", "was written for version 2.0 of the driver interface, this is version 1.0: update orchestrion"),
        ("(0, 9)", "was written for version 0.9 of the driver interface, this is version 1.0: update the package"),
        ("'1.0'", "states the api_version '1.0', not a pair of numbers"),
        ("(1,)", r"states the api_version \(1,\), not a pair of numbers"),
    ],
)
def test_drivers_of_other_versions_are_refused(folder: PluginFolder, version: str, words: str) -> None:
    folder.install("acme-hal", {GROUP: {"acme": "acme:Driver"}}, "3.1", acme=text("acme", f"api_version = {version}"))
    with pytest.raises(DriverUnavailable, match=f"driver acme of package acme-hal 3.1 {words}"):
        open_device("acme")


def test_the_version_of_our_own_drivers_is_this_one() -> None:
    assert backend.BackendDriver.api_version == (1, 0) <= backend.API_VERSION


# exceptions of plugins

BOOM = "raise ValueError('boom')"
BASE = "class Odd(BaseException): pass\n        raise Odd('odd')"
BROKEN = {
    "raising-import": (BOOM, "cannot be loaded: ValueError: boom"),
    "syntax": ("def", "cannot be loaded: SyntaxError"),
    "base-exception": ("class Odd(BaseException): pass\nraise Odd('odd')", "cannot be loaded: Odd: odd"),
    "no-attribute": ("", "cannot be loaded: AttributeError"),
    "constructor": (text("constructor", f"def __init__(self): {BOOM}"), "cannot be created: ValueError: boom"),
    "devices": (text("devices", devices=BOOM), r"failed in devices\(\): ValueError: boom"),
    "odd-devices": (text("odd-devices", devices=BASE), r"failed in devices\(\): Odd: odd"),
    "unspeakable": (
        text("unspeakable", devices="class E(Exception):\n            def __str__(self): 1 / 0\n        raise E()"),
        r"failed in devices\(\): E: its message cannot be read",
    ),
    "no-list": (text("no-list", devices="return 5"), r"devices\(\) gave 5, not a list of DeviceInfo"),
    "other-name": (text("another"), "calls itself 'another': entry point and class must have one name"),
    "other-index": (
        text("other-index", devices="return [replace(INFO, driver=self.name, index=3)]"),
        "device 0 calls itself other-index:3",
    ),
    "taken-feature": (
        text("taken-feature", devices="return [replace(INFO, driver=self.name, features=frozenset({'wmma'}))]"),
        "states feature wmma, which no installed package declares",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_driver_is_named_and_hides_no_other(
    folder: PluginFolder, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source, words = BROKEN[name]
    folder.install("bad-package", {GROUP: {name: "bad:Driver"}}, "0.3", bad=source)
    folder.install("good-package", {GROUP: {"good": "good:Driver"}}, good=text("good"))
    with pytest.raises(DriverUnavailable, match=f"driver {name} of package bad-package 0.3.* {words}"):
        open_device(name)
    status = {row.name: row for row in list_devices()}
    assert not status[name].devices and status[name].package == "bad-package 0.3"
    assert status["good"].devices and status["null"].devices and status["reference"].devices
    assert vm_run(["--list-devices"]) == 0
    shown = capsys.readouterr().out
    assert f"{name}: not available: driver {name} of package bad-package 0.3" in shown and "good: null device" in shown


def test_open_that_raises_is_named(folder: PluginFolder) -> None:
    folder.install("bad-package", {GROUP: {"bad": "bad:Driver"}}, bad=text("bad", open=BOOM))
    with pytest.raises(
        DriverUnavailable, match=r"driver bad of package bad-package 1.0 failed in open\(\): ValueError"
    ):
        open_device("bad")


@pytest.mark.parametrize("kind", ["KeyboardInterrupt", "SystemExit"])
def test_interrupts_pass_through_plugins(folder: PluginFolder, kind: str) -> None:
    """An exception that a signal handler raises while a plugin is loaded is not caught."""
    folder.install("slow", {GROUP: {"slow": "slow:Driver"}}, slow=f"raise {kind}")
    with pytest.raises(KeyboardInterrupt if kind == "KeyboardInterrupt" else SystemExit):
        load_driver("slow")


def test_packages_that_declare_one_name_are_both_named(folder: PluginFolder) -> None:
    for package in ("one", "two"):
        folder.install(package, {GROUP: {"acme": f"acme_{package}:Driver"}}, **{f"acme_{package}": text("acme")})
    with pytest.raises(DriverUnavailable, match="of package one 1.0 and of package two 1.0 is declared twice"):
        open_device("acme")


def test_built_in_names_cannot_be_taken(folder: PluginFolder) -> None:
    taken = {
        GROUP: {"vulkan": "bad:X"},
        "orchestrion.formats": {"opencl-c": "bad:X"},
        "orchestrion.profiles": {"spirv": "bad:X"},
        "orchestrion.conformance": {"spirv": "bad:X"},
    }
    folder.install("thief", taken, bad=BOOM)
    assert load_driver("vulkan").name == "vulkan"
    assert not is_confined("opencl-c") and find_profile("spirv") is not None
    for group in taken:
        for plugin in plugins.declared(group).values():
            assert listing.problem(plugin) == "the name is built in"


def test_unreadable_metadata_hides_nothing(folder: PluginFolder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.install("good", {GROUP: {"good": "good:Driver"}}, good=text("good"))
    folder.install("garbled", {GROUP: {"bad": "bad:Driver"}})
    (folder.path / "garbled-1.0.dist-info" / "entry_points.txt").write_bytes(b"[orchestrion.hal]\n\xff\xfe = x:y\n")
    plugins.rescan()
    assert open_device("good").close() == ()
    assert "garbled-1.0.dist-info: UnicodeDecodeError" in plugins.unreadable()[0]
    assert vm_run(["--list-plugins"]) == 0
    assert "entry points cannot be read: " in capsys.readouterr().out


# declarations

DECLARATIONS = """
from orchestrion.schema.profiles import Format, Profile
code = Format("acme-code", confined=True, doc="code")
profile = Profile("acme", "acme-code", "acme", "a device", features=frozenset({"acme.wmma"}))
wmma = "matrices of 16 by 16"
nowhere = Profile("nowhere", "lost-code", "acme", "of a format that nobody declares")
unfit = Profile("unfit", "acme-code", "acme", "of a feature that nobody declares", features=frozenset({"acme.lost"}))
renamed = Format("other", confined=True, doc="declared under another name")
"""


LATER = """
from orchestrion.schema.profiles import Profile
swift = Profile("swift", "spirv", "later-driver", "a target whose driver has another name")
"""


@pytest.fixture
def acme(folder: PluginFolder) -> PluginFolder:
    points = {
        "orchestrion.formats": {"acme-code": "acme:code", "renamed": "acme:renamed", "odd": "acme:wmma"},
        "orchestrion.profiles": {"acme": "acme:profile", "nowhere": "acme:nowhere", "unfit": "acme:unfit"},
        "orchestrion.features": {"acme.wmma": "acme:wmma", "wmma": "acme:wmma"},
    }
    folder.install("acme", points, acme=DECLARATIONS)
    return folder


def test_declared_rows_are_found(acme: PluginFolder) -> None:
    format, profile = find_format("acme-code"), find_profile("acme")
    assert format is not None and format.confined and profile is not None and profile.format == "acme-code"
    assert find_feature("acme.wmma") == "matrices of 16 by 16"
    assert find_format("nobody") is None and find_profile("nobody") is None and find_feature("nobody") is None


@pytest.mark.parametrize(
    ("find", "name", "words"),
    [
        (find_format, "renamed", "executable format renamed is declared as other"),
        (find_format, "odd", "executable format odd of package acme 1.0 is a str, not a Format"),
        (find_profile, "nowhere", "is of format lost-code, which no package declares"),
        (find_profile, "unfit", "needs feature acme.lost, which no package declares"),
        (find_feature, "wmma", "must be called vendor.feature"),
    ],
)
def test_wrong_declarations(acme: PluginFolder, find: object, name: str, words: str) -> None:
    with pytest.raises(PluginError, match=words):
        find(name)  # type: ignore[operator]
    assert not is_confined(name)


def test_a_format_is_confined_if_both_say_so(acme: PluginFolder) -> None:
    policy, stranger = Policy(), bytes(32)
    verifying = replace(INFO, verified_formats=frozenset({"acme-code", "unknown-code"}))
    assert policy.refusal("acme-code", stranger, verifying) == ""
    assert "whose driver does not say that it verifies" in policy.refusal("acme-code", stranger, INFO)
    unknown = policy.refusal("unknown-code", stranger, verifying)
    assert "unknown-code is native code, as no installed package declares the format" in unknown


def test_built_in_names_start_no_scan(tmp_path: Path) -> None:
    """Looking for entry points takes 20 ms; loading and calling a module that needs no plugin does not do it."""
    module = tmp_path / "m.fb"
    example = Path(__file__).parent.parent.parent / "examples" / "simple_mul.mlir"
    Compilation(targets=("reference",)).write(example, module)
    code = (
        f"import sys, numpy; from orchestrion import vm; p = vm.load({str(module)!r}, device='reference');"
        "x = numpy.ones(4, numpy.float32); p.simple_mul(x, x); print('importlib.metadata' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


# targets, machines


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (BOOM, "compiler target acme of package acme-target 1.0 cannot be loaded: ValueError: boom"),
        ("TARGET = 5", "is a int, not a Target"),
        ("T.name = 'other'", "calls itself 'other'"),
        ("T.api_version = (1, 2)", "written for version 1.2 of the target interface, this is version 1.1: update orch"),
        (
            "T.api_version = (0, 1)",
            "written for version 0.1 of the target interface, this is version 1.1: update the p",
        ),
        ("T.api_version = None", "states the api_version None, not a pair of numbers"),
    ],
)
def test_targets_that_do_not_fit(acme: PluginFolder, source: str, words: str) -> None:
    whole = (
        "from orchestrion.compiler.targets.opencl.target import OpenCLTarget\n"
        "class T(OpenCLTarget):\n    name = 'acme'\n    api_version = (1, 0)\n" + "TARGET = T()\n" + source + "\n"
    )
    acme.install("acme-target", {"orchestrion.targets": {"acme": "acme_target:TARGET"}}, acme_target=whole)
    with pytest.raises(CompileError, match=words):
        Compilation(targets=("acme",))


def test_later_versions_take_earlier_targets(acme: PluginFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that states no version is of 1.0, and chooses no schedules unless it says how."""
    from orchestrion.compiler.targets import target

    source = (
        "from orchestrion.compiler.targets.target import Payload, Target\n"
        "class T(Target):\n    name = 'acme'\n"
        "    def lower(self, entry, machine='cpu'): pass\n"
        "    def serialize(self, executable): return Payload(b'', frozenset(), 0)\n"
        "TARGET = T()\n"
    )
    monkeypatch.setattr(target, "API_VERSION", (1, 7))
    acme.install("acme-target", {"orchestrion.targets": {"acme": "acme_target:TARGET"}}, acme_target=source)
    found = target.target.__wrapped__("acme")
    assert found.api_version == (1, 0) and found.choose(Body("elementwise", [], {}, [], [])) is None


def test_a_device_of_a_package_stands_for_its_profile(acme: PluginFolder) -> None:
    """Profiles that cannot be used are skipped."""
    from orchestrion.schema.profiles import find_profile_name

    acme.install("later", {"orchestrion.profiles": {"swift": "later:swift"}}, later=LATER)
    assert find_profile_name("later-driver:1") == "swift" and find_profile_name("nobody") is None


def test_a_profile_without_a_target(acme: PluginFolder) -> None:
    with pytest.raises(CompileError, match="no installed package declares the compiler target of profile acme"):
        Compilation(targets=("acme",))
    with pytest.raises(
        CompileError, match="no target is called nobody; targets are reference, spirv, spirv_least, opencl, cpu, acme"
    ):
        Compilation(targets=("nobody",))


MACHINE = """
from orchestrion.compiler.kernel.machine import Machine, MachineKind
kind = MachineKind("a GPU of ACME", {"spirv": Machine(simd=2, accumulators=4)})
"""


def test_machines_of_other_packages(folder: PluginFolder) -> None:
    """A machine for one of our own targets: its code runs on any device of the target."""
    folder.install("acme", {"orchestrion.machines": {"acme-gpu": "acme:kind"}}, acme=MACHINE)
    rows = Compilation(targets=("spirv",), machines=("acme-gpu",)).rows(example("mlp"))
    assert [program.name for program in rows.programs] == ["spirv_acme-gpu"]
    assert rows.programs[0].executables != Compilation(targets=("spirv",)).rows(example("mlp")).programs[0].executables
    with pytest.raises(CompileError, match="machine acme-gpu has no row for target opencl"):
        Compilation(targets=("spirv", "opencl"), machines=("acme-gpu",))
    with pytest.raises(CompileError, match="devices cannot choose between several"):
        Compilation(targets=("spirv",), machines=("acme-gpu", "cpu"))
    with pytest.raises(CompileError, match="no machine is called npu; there are cpu, gpu, mcu, acme-gpu"):
        Compilation(targets=("spirv",), machines=("npu",))


def example(name: str) -> Path:
    return Path(__file__).parent.parent.parent / "examples" / f"{name}.mlir"


# native modules

NATIVES = """
from orchestrion.vm.native import NativeModule, native

class Acme(NativeModule):
    name = "acme"

    @native("double", "(i32) -> i32")
    def double(self, call, x):
        print("doubles", x)
        return 2 * x

class Other(NativeModule):
    name = "other"
"""
CALLER = """
import @acme.double (i32) -> i32
export @main () -> ()
program @p profile "reference" {
  func @main () -> () {
    %i0 = i32.const 21
    %i0 = call_import @acme.double(%i0)
    %i0 = call_import @acme.double(%i0)
    return ()
  }
  entry @main
}
"""


def test_native_modules_by_name(folder: PluginFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A module gets the native modules that its caller names, in `vm.load` and `vm-run`; the error for
    others says how.
    """
    folder.install("acme", {"orchestrion.natives": {"acme": "acme:Acme", "wrong": "acme:Other"}}, acme=NATIVES)
    module = tmp_path / "m.fb"
    module.write_bytes(write(assemble(CALLER)))
    program = vm.load(module, natives=["acme"])
    program["main"]()
    program.close()
    assert capsys.readouterr().out == "doubles 21\ndoubles 42\n"
    assert vm_run([str(module), "--native=acme"]) == 0
    assert capsys.readouterr().out == "doubles 21\ndoubles 42\n"
    assert vm_run([str(module)]) == 1
    assert "acme.double (i32) -> i32 is not there" in (said := capsys.readouterr().err) and "--native=acme" in said
    with pytest.raises(CallerError, match="Other is not a NativeModule of that name"):
        vm.load(module, natives=["wrong"])
    with pytest.raises(CallerError, match="no installed package declares native module 'lost'; there are acme, wrong"):
        vm.load(module, natives=["lost"])


def test_listing_says_what_is_wrong(acme: PluginFolder, capsys: pytest.CaptureFixture[str]) -> None:
    assert vm_run(["--list-plugins"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert "executable format acme-code (acme 1.0)" in shown
    assert any(line.startswith("target profile unfit (acme 1.0): cannot be used: ") for line in shown)
    assert set(listing._CHECKS) == set(plugins.GROUPS)
