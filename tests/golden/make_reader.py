"""Keeps the runtime of a format version, to open the files of later versions: `python tests/golden/make_reader.py`

Packs what git tracks of the packages schema, vm and hal into `readers/orchestrion-MAJOR.MINOR.zip`, without the drivers
of OpenCL and Vulkan, which the tests of readers do not use. Equal sources make equal bytes. `readers/SHA256SUMS` keeps
the digests.
README.md has the rule: what was released is not packed again.
"""

import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
READERS = HERE / "readers"
PACKAGES = ("hal", "schema", "vm")
#: folders that no reader on the reference device needs
LEFT_OUT = ("hal/cts", "hal/opencl", "hal/vulkan", "vm/pyinstaller")


def sources() -> list[str]:
    """Files of the runtime that git tracks, in the order of names."""
    listed = subprocess.run(["git", "ls-files", *PACKAGES], cwd=ROOT, capture_output=True, text=True, check=True)
    left_out = tuple(f"{folder}/" for folder in LEFT_OUT)
    return sorted(name for name in listed.stdout.splitlines() if not name.startswith(left_out))


def pack(target: Path) -> None:
    """Write the archive. Neither times nor rights of files are in it."""
    with zipfile.ZipFile(target, "w") as archive:
        for name in ["LICENSE", *sources()]:
            entry = zipfile.ZipInfo(name if name == "LICENSE" else f"orchestrion/{name}")
            entry.external_attr, entry.create_system = 0o644 << 16, 3
            archive.writestr(entry, (ROOT / name).read_bytes(), zipfile.ZIP_DEFLATED, 9)


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
