"""vm-pack thin: writes a module's file for some of its targets only. Signatures stay valid.

- `--target`: programs of other targets are removed, including the reference program unless it is named.
- `--feature`: the file is for devices with these features. One program stays per target, the one that such a device
  takes (`vm/selection.py`), and only those variants of its executables that need no other feature.

It removes the segments that no remaining program or variant needs. Segments that belong to no program stay. A loader
that finds a program or a variant without its segments takes the next one, or reports why there is none.
"""

import argparse
from collections.abc import Mapping, Sequence

from orchestrion.schema.module import Module
from orchestrion.schema.profiles import FEATURES, PROFILES, feature_bits, feature_names, find_profile_name, levels_of
from orchestrion.schema.rows import Program, Variant
from orchestrion.tools import cli
from orchestrion.tools.arguments import Parser

from .module_parts import all_variants, constants_of, executables_of, is_complete, source_map_of, variants_of

EXAMPLES = (
    ("vm-pack thin m.fb --target=spirv -o small.fb", "Keeps what Vulkan devices run."),
    (
        "vm-pack thin m.fb --target=opencl,reference --feature= -o small.fb",
        "Keeps what runs on OpenCL devices without any features.",
    ),
)


def add(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    made = cli.subcommand(subparsers, "thin", run, "Takes programs and variants out of a module's file.", EXAMPLES)
    made.add_argument("file", metavar="M.fb", help="the module")
    made.add_argument(
        "--target", metavar="NAME,...", required=True, help=f"targets whose programs stay, of {', '.join(PROFILES)}"
    )
    made.add_argument(
        "--feature",
        metavar="NAME,...",
        help=f"features that the devices have, of {', '.join(FEATURES)}; empty for none (default: keep all programs)",
    )
    made.add_argument("-o", dest="output", metavar="T.fb", required=True, help="the file to write")


def run(options: argparse.Namespace) -> int:
    from orchestrion.schema.decoder import open_module

    from .rewrite import say, write_without

    names = ",".join([find_profile_name(name) or name for name in options.target.split(",")])
    targets = _names(names, "target", PROFILES, "orchestrion.profiles")
    features = None if options.feature is None else frozenset(_names(options.feature, "feature", FEATURES))
    module = open_module(options.file)
    there = {module.strings[row.profile] for row in module.programs if is_complete(module, row)}
    targets += [level for name in targets for level in levels_of(name) if level in there and level not in targets]
    dropped = dropped_segments(module, targets, features)
    gone, size = write_without(module, dropped, options.output)
    say(options.output, gone, size)
    return cli.DONE


def _names(text: str, what: str, known: Mapping[str, object], group: str = "") -> list[str]:
    found = text.split(",") if text else []
    if not found and what == "target":
        raise cli.UsageError(f"--target: no target is given; there are {', '.join(known)}")
    unknown = [name for name in found if name not in known]
    if unknown and group:
        from orchestrion.schema.plugins import declared

        known = {**known, **declared(group)}
        unknown = [name for name in found if name not in known]
    if unknown:
        raise cli.UsageError(f"--{what}: no {what} is called {', '.join(unknown)}; there are {', '.join(known)}")
    return found


def dropped_segments(module: Module, targets: Sequence[str], features: frozenset[str] | None) -> set[int]:
    """The segments that only removed programs and variants need. Raises InputError if a target would have
    no program.
    """
    kept = kept_programs(module, targets, features)
    needed: set[int] = set()
    for row in kept:
        needed |= constants_of(module, row) | source_map_of(row)
        for executable in executables_of(module, row):
            stay = [variant for variant in variants_of(module, executable) if _fits(variant, features)]
            if not stay:
                name = module.strings[row.name], module.strings[executable.name]
                raise cli.InputError(f"program {name[0]}: no variant of executable {name[1]} is for {_words(features)}")
            needed |= {variant.payload for variant in stay}
    used: set[int] = set()
    for row in module.programs:
        used |= constants_of(module, row) | source_map_of(row)
        used |= {variant.payload for _, variant in all_variants(module, row)}
    return used - needed


def kept_programs(module: Module, targets: Sequence[str], features: frozenset[str] | None) -> list[Program]:
    """The programs that stay, at least one for each target."""
    found: list[Program] = []
    for target in dict.fromkeys(targets):
        rows = [row for row in module.programs if module.strings[row.profile] == target]
        there = [row for row in rows if is_complete(module, row)]
        fitting = there if features is None else [row for row in there if _needs(row.features) <= features][:1]
        if not fitting:
            raise cli.InputError(f"{_why_none(module, target, rows, there, features)}")
        found += fitting
    return found


def _why_none(
    module: Module, target: str, rows: list[Program], there: list[Program], features: frozenset[str] | None
) -> str:
    if not rows:
        names = dict.fromkeys(module.strings[row.profile] for row in module.programs)
        return f"the module has no program for target {target}; it has {', '.join(names) or 'none'}"
    if not there:
        return f"the programs for target {target} were taken out of this file"
    needs = "; ".join(f"{module.strings[row.name]} needs {', '.join(sorted(_needs(row.features)))}" for row in there)
    return f"no program for target {target} is for {_words(features)}: {needs}"


def _needs(bits: int) -> frozenset[str]:
    """Features by name. Bits unknown to this version are features that no device has."""
    unknown = bits >> len(FEATURES)
    return frozenset(feature_names(bits)) | ({f"feature bits {unknown << len(FEATURES):#x}"} if unknown else set())


def _fits(variant: Variant, features: frozenset[str] | None) -> bool:
    return features is None or not variant.features & ~feature_bits(features)


def _words(features: frozenset[str] | None) -> str:
    return f"devices with {', '.join(sorted(features))}" if features else "devices without any feature"
