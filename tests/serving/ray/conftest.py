"""A pool of two replicas on this machine, whose lab holds tiny models."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from serving.compute.cache import LRUCache
from serving.runners.remote import RemoteRunner
from tests.viz_core.hub.families import build_all

FAMILIES = ("gpt2", "t5", "vit")


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_all(FAMILIES, tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def runner(folders: Path) -> Iterator[RemoteRunner]:
    """What asks the pool."""
    ray = pytest.importorskip("ray", reason="make serve-test installs Ray")
    from ray import serve

    from serving.runners.ray_serve import APPLICATION, PoolSize, on_serve, pool

    with pytest.MonkeyPatch.context() as environment:  # replicas inherit it
        environment.setenv("ATLAS_MODEL_FOLDERS", str(folders))
        environment.setenv("HF_HUB_OFFLINE", "1")
        ray.init(log_to_driver=False, namespace="serve")  # the cluster of RAY_ADDRESS where there is one, else its own
        serve.run(pool(PoolSize(min_replicas=2, max_replicas=2, cpus=0.5)), name=APPLICATION, route_prefix=None)
        yield on_serve("auto", LRUCache(512, 2**28))
        serve.shutdown()
        ray.shutdown()


class Pool:
    """The replicas, to be killed."""

    def replicas(self) -> list[str]:
        import ray

        from serving.runners.ray_serve import APPLICATION

        names = ray.util.list_named_actors(all_namespaces=True)
        return [one["name"] for one in names if one["name"].startswith(f"SERVE_REPLICA::{APPLICATION}#models")]

    def kill_one(self) -> None:
        import ray

        ray.kill(ray.get_actor(self.replicas()[0], namespace="serve"))

    def wait_for_both(self, seconds: float = 300.0) -> None:
        end = time.monotonic() + seconds
        while len(self.replicas()) < 2 and time.monotonic() < end:
            time.sleep(0.5)
        assert len(self.replicas()) == 2


@pytest.fixture
def replicas(runner: RemoteRunner) -> Pool:  # it has started them
    found = Pool()
    found.wait_for_both()
    return found
