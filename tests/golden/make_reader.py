"""Keeps the runtime of a format version, to open the files of later versions: `python tests/golden/make_reader.py`

Packs the packages schema, vm and hal into `readers/orchestrion-MAJOR.MINOR.zip`, without the drivers of OpenCL and
Vulkan, which the tests of readers do not use. Equal sources make equal bytes. `readers/SHA256SUMS` keeps the digests.
README.md has the rule: what was released is not packed again.
"""

import sys
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
READERS = HERE / "readers"
PACKAGES = ("hal", "schema", "vm")
#: folders that no reader on the reference device needs
LEFT_OUT = ("hal/cts", "hal/opencl", "hal/vulkan", "vm/pyinstaller")
KEPT = (".py", ".fbs", ".typed")


def sources() -> Iterator[tuple[str, Path]]:
    """Name in the archive and file, in the order of names."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*"), key=lambda path: path.relative_to(ROOT).as_posix()):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in KEPT and not name.startswith(tuple(f"{folder}/" for folder in LEFT_OUT)):
                yield f"orchestrion/{name}", path


def pack(target: Path) -> None:
    """Write the archive. Neither times nor rights of files are in it."""
    with zipfile.ZipFile(target, "w") as archive:
        for name, path in [*sources(), ("LICENSE", ROOT / "LICENSE")]:
            entry = zipfile.ZipInfo(name)
            entry.external_attr, entry.create_system = 0o644 << 16, 3
            archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED, 9)


def main() -> None:
    from orchestrion.schema.versions import MAJOR, MINOR

    READERS.mkdir(exist_ok=True)
    target = READERS / f"orchestrion-{MAJOR}.{MINOR}.zip"
    pack(target)
    sums = [f"{sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(READERS.glob("*.zip"))]
    (READERS / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")
    sys.stdout.write(f"{target.relative_to(ROOT)}: {target.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
