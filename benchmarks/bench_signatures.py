"""What signatures cost: verifying a signed gigabyte compared with hashing it, and loads under `require` compared with
loads without a policy.

`vm-pack verify` of a module with a constant of 1 GiB, in this process, is compared with hashlib's SHA-256 of the same
mapped file: the constant has digests of pieces, which several threads hash. Then loads of `simple_mul` on the reference
device, with one Ed25519 or P-256 signature and without a policy: files that this process has not loaded before (each
with tensors of another size), and the same file again. Packages are imported before anything is timed. On a busy
machine the least times are more reliable than the medians.

Expected before measuring: 0.6 times the hash on two cores that are free; 200 us more for a first load (120 us for the
curve, the rest for reading keys); 10 us more for a repeated one (reading the keys file).
"""

import hashlib
import mmap
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from itertools import repeat
from pathlib import Path
from typing import Any

from bench_load import write_simple_mul, write_weighted
from harness import Timing, arguments, measure, ratio, save, table, unit

GIB = 1 << 30
#: how many new files a block loads
BLOCK = 2
WARM_UP = 3
POLICY = """[[key]]
name = "publisher"
public = '''{}'''
not-before = 2020-01-01
not-after = 2100-01-01
"""


def sign(path: Path, key: Any) -> None:
    """Sign the file in place."""
    from orchestrion.schema.container import open_bytes, open_file
    from orchestrion.tools.packing.signing import signed_pieces

    size = path.stat().st_size
    file = open_file(path) if size > 1 << 20 else open_bytes(path.read_bytes())
    with (path.parent / "signed").open("wb") as out:
        out.writelines(signed_pieces(file, [key]))
    (path.parent / "signed").replace(path)


def hash_file(path: Path) -> Callable[[], Any]:
    def run() -> bytes:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return hashlib.sha256(data).digest()

    return run


def verify_file(path: Path, public: Path) -> Callable[[], Any]:
    from orchestrion.tools.packing import verify

    options = Namespace(file=str(path), key=[str(public)], policy=None, detached=None)

    def run() -> int:
        with redirect_stdout(StringIO()):
            return verify.run(options)

    return run


def load(paths: Callable[[], Path], policy: Path | None) -> Callable[[], Any]:
    from orchestrion import vm
    from orchestrion.hal.registry import open_device

    device = open_device("reference")
    return lambda: vm.load(paths(), device=device, policy=policy).close()


def verified(folder: Path, key: Any, rounds: int) -> dict[str, Timing]:
    from orchestrion.schema.trust import keys

    path, public = folder / "large.fb", folder / "large.pub.pem"
    write_weighted(path, GIB, folder / "weight")
    (folder / "weight").unlink()
    sign(path, key)
    public.write_bytes(keys.public_pem(key))
    candidates = {"hashlib, the whole file": hash_file(path), "vm-pack verify": verify_file(path, public)}
    return measure(candidates, 1, max(3, rounds // 6), 1)


def loaded(folder: Path, pairs: dict[str, Any], rounds: int) -> dict[str, Timing]:
    from orchestrion.schema.trust import keys

    count = WARM_UP + BLOCK * rounds
    print(f"compiling {count * (1 + len(pairs)) + 1} modules", flush=True)
    candidates: dict[str, Callable[[], Any]] = {}
    for kind, (name, key) in enumerate([("no policy", None), *pairs.items()]):
        policy = None
        if key is not None:
            policy = folder / f"{name}.toml"
            policy.write_text(POLICY.format(keys.public_pem(key).decode()))
        unseen = [folder / f"{kind}-{number}.fb" for number in range(count)]
        for number, path in enumerate(unseen):
            write_simple_mul(path, 5 + number * (1 + len(pairs)) + kind)
            if key is not None:
                sign(path, key)
        same = folder / f"{name}.fb"
        write_simple_mul(same, 4)
        if key is not None:
            sign(same, key)
        candidates[f"{name}, files never seen"] = load(iter(unseen).__next__, policy)
        candidates[f"{name}, the same file"] = load(repeat(same).__next__, policy)
    time.sleep(5)  # a keys file that changed in the last seconds is read again at each load
    return measure(candidates, BLOCK, rounds, WARM_UP)


def main() -> None:
    options = arguments("signatures: verifying a file, loads under a policy")
    from orchestrion.schema.trust import keys

    pairs = {"Ed25519": keys.generate("ed25519"), "P-256": keys.generate("p256")}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = verified(folder, pairs["Ed25519"], options.rounds)
        loads = loaded(folder, pairs, 3 * options.rounds)
    table("a signed module with a constant of 1 GiB", files, "hashlib, the whole file", ["aim: at most 1.2x"])
    table("loads, first time", {k: v for k, v in loads.items() if "never" in k}, "no policy, files never seen")
    for kind in pairs:
        base, ours = loads["no policy, files never seen"], loads[f"{kind}, files never seen"]
        more, least = ours.median - base.median, min(ours.rounds) - min(base.rounds)
        print(f"  {kind}: {unit(max(more, 0))} more, by the least {unit(max(least, 0))} (aim: at most 250 us)")
    table("loads, again", {k: v for k, v in loads.items() if "same" in k}, "no policy, the same file")
    for kind in pairs:
        name, base_name = f"{kind}, the same file", "no policy, the same file"
        least = min(loads[name].rounds) / min(loads[base_name].rounds)
        print(f"  {kind}: {ratio(loads, name, base_name):.2f}x, by the least {least:.2f}x (aim: at most 1.20x)")
    save(options.json, files | loads)


if __name__ == "__main__":
    main()
