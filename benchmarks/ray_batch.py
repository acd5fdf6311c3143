"""10,000 inputs on a Ray cluster of two nodes, one of whose workers is killed: `make ray-batch`.

Starts two Ray nodes on this machine with one CPU each, runs vm-batch with one worker per node, kills one worker with
SIGKILL while it has inputs, and checks that every input has its results exactly once and that they are right. Then does
the same with processes, without Ray. Prints what vm-batch prints. Needs the extra `ray`.
"""

import argparse
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import ray
from ray.cluster_utils import Cluster

from orchestrion import compiler
from orchestrion.tools import batch
from orchestrion.tools.batching.local import LocalWorkers
from orchestrion.tools.batching.pool import Event, Started
from orchestrion.tools.batching.ray_workers import RayWorkers
from orchestrion.tools.batching.worker import Task

COLUMNS, UNITS = 64, 16
#: the number of the task whose worker is killed
KILL_AFTER = 20


class Killing:
    """A mixin for a class of workers: kills the process that gets task number `KILL_AFTER`."""

    pids: dict[int, int]
    given = 0
    killed = 0

    def wait(self) -> list[Event]:
        found: list[Event] = super().wait()  # type: ignore[misc]
        self.pids = getattr(self, "pids", {}) | {e.worker: e.ready.pid for e in found if isinstance(e, Started)}
        return found

    def submit(self, worker: int, task: Task) -> None:
        super().submit(worker, task)  # type: ignore[misc]
        self.given += 1
        if self.given == KILL_AFTER:
            os.kill(self.pids[worker], signal.SIGKILL)
            Killing.killed = self.pids[worker]


class KillingRay(Killing, RayWorkers):
    """Workers that are Ray actors."""


class KillingProcesses(Killing, LocalWorkers):
    """Workers that are processes of this machine."""


def write_inputs(folder: Path, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Write `layer.fb` and `x.npz`; returns the inputs and the weights, small integers whose products are exact."""
    import jax
    import jax.numpy as jnp

    random = np.random.default_rng(0)
    w = random.integers(-9, 9, (COLUMNS, UNITS)).astype(np.float32)
    x = random.integers(-9, 9, (count, COLUMNS)).astype(np.float32)
    (b,) = jax.export.symbolic_shape("b")
    shape = jax.ShapeDtypeStruct((b, COLUMNS), np.float32)
    blob = compiler.compile(lambda x: {"y": jnp.maximum(x @ w, 0)}, shape)
    (folder / "layer.fb").write_bytes(blob)
    np.savez(folder / "x.npz", x=x)
    return x, w


def check(output: Path, x: np.ndarray, w: np.ndarray) -> None:
    """Raise SystemExit unless each input has exactly one result, which is right."""
    names = sorted(path.name for path in output.iterdir())
    wanted = sorted([*(f"{index:06d}.npz" for index in range(len(x))), "run.json"])
    if names != wanted:
        raise SystemExit(f"{output}: {len(names)} files instead of {len(wanted)}; {set(names) ^ set(wanted)}")
    for index, row in enumerate(x):
        with np.load(output / f"{index:06d}.npz") as found:
            if not np.array_equal(found["y"], np.maximum(row @ w, 0)):
                raise SystemExit(f"{output}: the results of input {index} are wrong")
    print(f"  worker {Killing.killed} was killed; each of {len(x)} inputs has exactly one result, which is right")


def run(folder: Path, name: str, workers: Any, arguments: list[str]) -> None:
    batch.start_workers = lambda options, setup: workers(setup, *([options.ray] if options.ray else []))
    line = [str(folder / "layer.fb"), f"--input={folder / 'x.npz'}", f"--output={folder / name}", *arguments]
    if batch.main(line):
        raise SystemExit(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=10_000, help="inputs (default: 10000)")
    parser.add_argument("--device", default="reference", help="of all workers (default: reference)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        device = f"--device={options.device}"
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        try:
            cluster.add_node(num_cpus=1)
            x, w = write_inputs(folder, options.count)  # after the nodes were started: JAX does not like forks
            run(folder, "ray", KillingRay, [device, f"--ray={cluster.address}"])
        finally:
            ray.shutdown()
            cluster.shutdown()
        check(folder / "ray", x, w)
        run(folder, "local", KillingProcesses, [device])
        check(folder / "local", x, w)


if __name__ == "__main__":
    sys.exit(main())
