"""vm-pack parameters: lists the values that a module takes from separate files, and checks such files.

Without files it lists the parameters. With files, or with `--beside`, they are checked as when the module is loaded,
and each value is compared with the one that the module was compiled with.
"""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrion.schema.printable import printable
from orchestrion.tools import cli
from orchestrion.tools.arguments import Parser

if TYPE_CHECKING:
    from orchestrion.schema.parameters import Parameter

EXAMPLES = (
    ("vm-pack parameters m.fb", "Lists the parameters with their types."),
    ("vm-pack parameters m.fb weights.safetensors", "Checks that a file has the parameters that the module wants."),
)


def add(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    made = cli.subcommand(
        subparsers, "parameters", run, "Lists the parameters of a module, checks files of them.", EXAMPLES
    )
    made.add_argument("module", metavar="M.fb", help="the module")
    made.add_argument("files", metavar="FILE", nargs="*", help="safetensors files, or folders of them, to be checked")
    made.add_argument("--beside", action="store_true", help="check the file that vm-compile wrote beside the module")
    made.add_argument("--adapter", metavar="FILE", action="append", default=[], help="low-rank adapter to be checked")
    made.add_argument(
        "--extra-parameters", action="store_true", help="files may hold more parameters than the module needs"
    )
    made.add_argument(
        "--store",
        metavar="DIR",
        help="copy the files, when they fit, to DIR/<SHA-256>.safetensors, where modules find them",
    )
    made.add_argument("--json", action="store_true", help="print the result as JSON")


def run(options: argparse.Namespace) -> int:
    from orchestrion.schema.container import open_file
    from orchestrion.schema.decoder import decode
    from orchestrion.schema.parameters import parameters_of
    from orchestrion.vm.parameters import find, open_adapters, updates_of

    if options.files and options.beside:
        raise cli.UsageError("--beside and files cannot be combined")
    module = decode(open_file(options.module))
    rows = parameters_of(module)
    given, changed = {}, {}
    if options.files or options.beside:
        folder = Path(options.module).parent
        given = find(module, rows, folder, options.files or None, options.extra_parameters)
    if options.adapter:
        changed = updates_of(module, rows, open_adapters(options.adapter), options.extra_parameters)
    found = [_described(row, given.get(row.name), len(changed.get(row.name, ()))) for row in rows]
    stored = _store(options.files, Path(options.store)) if options.store is not None else []
    if options.json:
        print(json.dumps({"parameters": found, "stored": stored}, indent=2))
        return cli.DONE
    total = sum(row["bytes"] for row in found)
    print(f"{options.module} takes {len(found)} parameters, {total:,} bytes")
    for row in found:
        print(printable(_line(row)))
    for place in stored:
        print(f"stored {place}")
    return cli.DONE


def _described(row: "Parameter", given: Any, adapters: int) -> dict[str, Any]:
    from hashlib import sha256
    from math import prod

    compiled = None if not any(row.digest) else row.digest.hex()
    found = {
        "name": row.name,
        "type": str(row),
        "bytes": prod(row.dims) * row.dtype.itemsize,
        "compiled_with": compiled,
    }
    if given is not None:
        found |= {"file": given.source.label, "digest": sha256(given.data).hexdigest()}
    return found | ({"adapters": adapters} if adapters else {})


def _line(row: dict[str, Any]) -> str:
    from orchestrion.schema.safetensors import shown

    text = f"  {shown(row['name'])}: {row['type']}, {row['bytes']:,} bytes"
    compiled, count = row["compiled_with"], row.get("adapters", 0)
    if "digest" in row:
        same = "as compiled" if row["digest"] == compiled else f"values {row['digest'][:16]}"
        text += f", {same} in {row['file']}"
    else:
        text += ", any values" if compiled is None else f", compiled with {compiled[:16]}"
    return text + (f", changed by {count} adapter{'s' if count > 1 else ''}" if count else "")


def _store(files: list[str], folder: Path) -> list[str]:
    """Copies files to paths at which modules find them by their content."""
    from hashlib import sha256

    if not files or any(Path(name).is_dir() for name in files):
        raise cli.UsageError("--store takes files that are named")
    folder.mkdir(parents=True, exist_ok=True)
    places = []
    for name in files:
        data = cli.read_bytes(name)
        places.append(str(folder / f"{sha256(data).hexdigest()}.safetensors"))
        cli.write_whole(places[-1], data)
    return places
