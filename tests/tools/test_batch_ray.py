"""vm-batch and `vm.Predictor` on Ray: a cluster on this machine that Ray believes to have four CPUs."""

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")

from batches import KillsOne, check, compile_modules, rows

from orchestrion import vm
from orchestrion.tools import batch
from orchestrion.tools.batching import ray_workers
from orchestrion.tools.batching.ray_workers import RayWorkers
from orchestrion.tools.cli import InputError


class OneIsKilled(KillsOne, RayWorkers):
    """Actors, one of which is killed."""


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("modules")
    compile_modules(folder)
    return folder


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    pytest.importorskip("ray")  # takes seconds to import
    from ray_cluster import local_cluster

    with local_cluster(cpus=4):
        yield


@pytest.mark.long
@pytest.mark.usefixtures("cluster")
def test_a_killed_worker_is_replaced(
    modules: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import ray

    monkeypatch.chdir(tmp_path)
    x = rows(400)
    np.savez("in.npz", x=x)
    arguments = [str(modules / "dynamic.fb"), "--input=in.npz", "--output=out", "--ray=local", "--workers=2"]
    assert batch.main(arguments) == 1
    said = capsys.readouterr().err
    assert "only the device reference runs the module, and it is used only if it is named" in said
    assert not Path("out/run.json").exists()
    monkeypatch.setattr(batch, "start_workers", lambda options, setup: OneIsKilled(setup, options.ray))
    monkeypatch.setattr(ray_workers, "_NOTE_SECONDS", 0.01)
    assert batch.main([*arguments, "--device=reference"]) == 0
    check(Path("out"), x)
    told = capsys.readouterr()
    assert "400 inputs: 400 done, 0 were done before, 0 failed, 1 worker replaced" in told.out
    assert told.err.count("the Ray cluster has started no worker yet; each needs a CPU") == 1
    assert ray.is_initialized(), "who started Ray shuts it down"


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Ray, for its own settings
@pytest.mark.usefixtures("cluster")
def test_map_batches_takes_a_predictor(modules: Path, tmp_path: Path) -> None:
    """Each worker maps the module once for any number of batches."""
    import ray.data

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False

    class Counted(vm.Predictor):
        def __init__(self, loads: str, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            with open(os.path.join(loads, str(os.getpid())), "x"):
                pass

    (tmp_path / "loads").mkdir()
    x = rows(100)
    data = ray.data.from_items([{"x": row, "id": i} for i, row in enumerate(x)], override_num_blocks=2)
    found = data.map_batches(
        Counted,
        fn_constructor_args=(str(tmp_path / "loads"), str(modules / "four.fb"), "reference"),
        fn_constructor_kwargs={"keep": ["id"]},
        concurrency=2,
        batch_size=10,
        batch_format="numpy",
    ).take_all()
    assert len(found) == 100
    for row in found:
        np.testing.assert_array_equal(row["y"], x[row["id"]] * 2 + 1)
    assert 1 <= len(list((tmp_path / "loads").iterdir())) <= 2


def test_ray_is_missing(
    modules: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "ray", None)
    np.savez("in.npz", x=rows(4))
    assert batch.main([str(modules / "dynamic.fb"), "--input=in.npz", "--output=out", "--ray=auto"]) == 1
    assert "vm-batch: --ray needs Ray: python -m pip install 'ray[data]' pyarrow" in capsys.readouterr().err


class FakeRay(ModuleType):
    """The part of Ray that `RayWorkers` needs to start and to end. `cluster`: whether it can connect to a cluster."""

    def __init__(self, initialized: bool, cluster: bool = True) -> None:
        super().__init__("ray")
        self.calls: list[str] = []
        self.initialized = initialized
        self.cluster = cluster

    def is_initialized(self) -> bool:
        return self.initialized

    def init(self, address: str, **_: Any) -> None:
        self.calls.append(f"init {address}")
        if not self.cluster:
            raise ConnectionError("nobody answers")

    def shutdown(self) -> None:
        self.calls.append("shutdown")

    def nodes(self) -> list[dict[str, bool]]:
        return [{"Alive": True}, {"Alive": False}, {"Alive": True}]

    def remote(self, **_: Any) -> Any:
        return lambda kind: kind

    def put(self, value: Any) -> Any:
        return value


@pytest.mark.parametrize(("initialized", "calls"), [(False, ["init auto", "shutdown"]), (True, [])])
def test_only_what_was_started_is_shut_down(
    initialized: bool, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeRay(initialized)
    monkeypatch.setitem(sys.modules, "ray", fake)
    setup: Any = None
    workers = RayWorkers(setup, "auto")
    assert workers.default == 2, "one per machine that is there"
    workers.close()
    assert fake.calls == calls


def test_there_is_no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", FakeRay(False, cluster=False))
    setup: Any = None
    with pytest.raises(InputError, match="--ray=auto: there is no cluster: nobody answers"):
        RayWorkers(setup, "auto")


@pytest.mark.parametrize("prefix", ["", "ray://"])
def test_nobody_answers_at_an_address(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray would be asked for more than ten minutes."""
    fake = FakeRay(False)
    monkeypatch.setitem(sys.modules, "ray", fake)
    setup: Any = None
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"{prefix}127.0.0.1:{server.getsockname()[1]}"
        RayWorkers(setup, address).close()
    assert fake.calls == [f"init {address}", "shutdown"]
    with pytest.raises(InputError, match=f"--ray={address}: there is no cluster: .*refused"):
        RayWorkers(setup, address)
    assert fake.calls == [f"init {address}", "shutdown"]


def test_a_node_that_does_not_start_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    class Late(FakeRay):
        def init(self, address: str, **_: Any) -> None:
            raise Exception("the current node timed out during startup")

    monkeypatch.setitem(sys.modules, "ray", Late(False))
    setup: Any = None
    with pytest.raises(InputError, match="--ray=local: there is no cluster: the current node timed out"):
        RayWorkers(setup, "local")
