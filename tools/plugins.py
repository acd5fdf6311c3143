"""vm-run --list-plugins: lists the additions of installed packages, kind by kind, and why one cannot be used."""

from collections.abc import Callable, Collection

from orchestrion.schema.plugins import GROUPS, Plugin, declared, unreadable

from . import cli


def list_plugins() -> int:
    """Prints a line per plugin: its kind and name, its package, and its problem, if any."""
    count = 0
    for group, kind in GROUPS.items():
        for name, plugin in declared(group).items():
            why = problem(plugin)
            said = f": cannot be used: {why}" if why else ""
            print(f"{kind} {name} ({' and '.join(plugin.packages)}){said}")
            count += 1
    for line in unreadable():
        print(f"entry points cannot be read: {line}")
    if not count:
        print("no installed package adds anything")
    return cli.DONE


def problem(plugin: Plugin) -> str:
    """Why a plugin cannot be used; empty if it can."""
    if plugin.name in _built_in(plugin.group):
        return "the name is built in"
    try:
        _CHECKS[plugin.group](plugin.name)
    except Exception as error:
        if not cli.is_expected(error):
            raise
        return str(error)
    return ""


def _built_in(group: str) -> Collection[str]:
    from orchestrion.compiler.profiles import MACHINES
    from orchestrion.compiler.targets.target import TARGETS
    from orchestrion.hal.cts.kernels import FORMATS as KERNELS
    from orchestrion.hal.registry import BUILT_IN
    from orchestrion.schema.profiles import FEATURES, FORMATS, PROFILES

    tables: dict[str, Collection[str]] = {
        "orchestrion.hal": BUILT_IN,
        "orchestrion.formats": FORMATS,
        "orchestrion.profiles": PROFILES,
        "orchestrion.features": FEATURES,
        "orchestrion.machines": MACHINES,
        "orchestrion.targets": TARGETS,
        "orchestrion.conformance": KERNELS,
        "orchestrion.natives": ("hal",),
    }
    return tables[group]


def _driver(name: str) -> object:
    from orchestrion.hal.registry import load_driver

    return load_driver(name)


def _format(name: str) -> object:
    from orchestrion.schema.profiles import find_format

    return find_format(name)


def _profile(name: str) -> object:
    from orchestrion.schema.profiles import find_profile

    return find_profile(name)


def _feature(name: str) -> object:
    from orchestrion.schema.profiles import find_feature

    return find_feature(name)


def _machine(name: str) -> object:
    from orchestrion.compiler.kernel.machine import find_machine

    return find_machine(name)


def _target(name: str) -> object:
    from orchestrion.compiler.targets.target import target

    return target(name)


def _kernels(name: str) -> object:
    from orchestrion.hal.cts.kernels import find_kernels

    return find_kernels(name)


def _native(name: str) -> object:
    from orchestrion.vm.native import native_modules

    return native_modules([name])


_CHECKS: dict[str, Callable[[str], object]] = {
    "orchestrion.hal": _driver,
    "orchestrion.formats": _format,
    "orchestrion.profiles": _profile,
    "orchestrion.features": _feature,
    "orchestrion.machines": _machine,
    "orchestrion.targets": _target,
    "orchestrion.conformance": _kernels,
    "orchestrion.natives": _native,
}
