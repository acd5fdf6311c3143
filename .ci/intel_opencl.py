"""Unpacks Intel's OpenCL runtime for CPUs into a folder: `python intel_opencl.py FOLDER`.

The wheels come from the package index by `pip download` (273 MB). Only their libraries are unpacked (404 MB), since
`pip install --target` loses what wheels put beside their packages. FOLDER/intel.icd names the runtime by its full path,
so that OCL_ICD_VENDORS=FOLDER makes it the only OpenCL platform of a process. Nothing finds it otherwise.
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

WHEELS = ("intel-opencl-rt==2026.2.0", "intel-cmplr-lib-rt==2026.2.0", "tbb==2023.2.0")
#: the libraries that the runtime loads, by how their names begin
LIBRARIES = ("libintelocl.so", "libcommon_clang.so", "libocl_svml", "clbltfn", "cllibrary", "cl.cfg")
LIBRARIES += ("libimf.so", "libintlc.so", "libirc.so", "libirng.so", "libsvml.so", "libtbb.so", "libtbbmalloc.so")
#: bytes that must be free: wheels and libraries are there together for a while
ROOM = 2 << 30


def main(folder: Path) -> str:
    """Unpack. Gives why that is not possible, or nothing."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        return f"Intel builds it for Linux on x86-64, this is {sys.platform} on {platform.machine()}"
    free = shutil.disk_usage(folder.parent).free
    if free < ROOM:
        return f"{folder.parent} has {free >> 20} MiB left, {ROOM >> 20} MiB wanted"
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        room = Path(name)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        done = subprocess.run([*command, "--dest", name, *WHEELS], capture_output=True, text=True)
        if done.returncode:
            return (done.stderr.strip() or "pip download failed").splitlines()[-1]
        made = room / folder.name
        made.mkdir()
        for wheel in room.glob("*.whl"):
            unpack(wheel, made)
        (made / "intel.icd").write_text(f"{folder / 'libintelocl.so'}\n")
        os.rename(made, folder)
    return ""


def unpack(wheel: Path, folder: Path) -> None:
    """A wheel repeats a library under each of its names, since it has no links: the longest name is kept as a file."""
    with zipfile.ZipFile(wheel) as archive:
        kept: dict[tuple[int, int], str] = {}
        rows = [row for row in archive.infolist() if PurePosixPath(row.filename).name.startswith(LIBRARIES)]
        for row in sorted(rows, key=lambda row: -len(row.filename)):
            name = PurePosixPath(row.filename).name
            same = kept.setdefault((row.CRC, row.file_size), name)
            if same != name:
                (folder / name).symlink_to(same)
                continue
            with archive.open(row) as source, open(folder / name, "wb") as target:
                shutil.copyfileobj(source, target)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()) or None)
