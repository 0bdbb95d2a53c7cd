"""Loaded models, folders as users type them, and what is asked of the lab."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from serving.requests.hub import HubModelSpec, find_folder
from serving.requests.lab import lines_of, plan_scan
from serving.requests.models import ModelRegistry, ModelSpec, Progress
from viz_core.hub import HubError


@dataclass(frozen=True)
class Counted(ModelSpec[Any]):
    """A model that tells when it is loaded."""

    name: str
    max_loaded = 2
    loads: ClassVar[list[str]] = []

    def load(self, progress: Progress | None) -> Any:
        self.loads.append(self.name)
        if progress is not None:
            progress(1, 2)
        if self.name == "broken":
            raise ValueError("This model is broken.")
        return object()


class Other(Counted):
    """Of another kind."""


@pytest.fixture(autouse=True)
def nothing_loaded() -> None:
    Counted.loads.clear()


def test_a_model_is_loaded_once_whoever_asks() -> None:
    models = ModelRegistry()
    gate = threading.Barrier(8)

    def create(_number: int) -> Any:
        gate.wait()
        return models(Counted("a"))

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(create, range(8)))
    assert len(set(map(id, found))) == 1
    assert Counted.loads == ["a"]


def test_while_one_loads_another_is_there_already() -> None:
    """A download of minutes holds up nobody who wants another model."""
    models, begun, go_on = ModelRegistry(), threading.Event(), threading.Event()

    @dataclass(frozen=True)
    class Slow(ModelSpec[Any]):
        def load(self, progress: Progress | None) -> Any:
            begun.set()
            assert go_on.wait(60)
            return "slow"

    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(models, Slow())
        assert begun.wait(60)
        assert models(Counted("a"))
        assert not slow.done()
        go_on.set()
        assert slow.result(60) == "slow"


def test_the_longest_unused_of_a_kind_goes_and_what_failed_is_tried_again() -> None:
    models, reported = ModelRegistry(), list[tuple[int, int]]()
    first, other = models(Counted("a"), lambda *done: reported.append(done)), models(Other("a"))
    models(Counted("b"))
    assert models(Counted("a"), lambda *done: reported.append(done)) is first
    assert reported == [(1, 2)], "who asks first hears how far it is"
    models(Counted("c"))  # b was not used for longest
    assert models(Counted("a")) is first
    assert models(Other("a")) is other
    models(Counted("b"))
    assert Counted.loads == ["a", "a", "b", "c", "b"]
    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            models(Counted("broken"))
    assert Counted.loads[5:] == ["broken", "broken"]
    assert HubModelSpec("someone/model") == HubModelSpec("someone/model", offline=True), "the same once it is here"
    assert HubModelSpec("someone/model") != HubModelSpec("someone/model", revision="v2")


def test_folders_the_host_allows(tmp_path: Path) -> None:
    (tmp_path / "models" / "mine").mkdir(parents=True)
    (tmp_path / "secret").mkdir()
    (tmp_path / "models" / "way-out").symlink_to(tmp_path / "secret")
    roots = [tmp_path / "models"]
    assert find_folder("mine", roots) == tmp_path / "models" / "mine"
    assert find_folder(str(tmp_path / "models" / "mine"), roots) == tmp_path / "models" / "mine"
    refused = ["", "missing", str(tmp_path / "secret"), "../secret", "way-out", "mine/../../secret", "/", "a\0b"]
    for typed in (*refused, "x" * 5000, "~nobody-of-this-name/x"):
        with pytest.raises(HubError, match="not among the folders"):
            find_folder(typed, roots)
    with pytest.raises(HubError):
        find_folder("mine", [])


@pytest.mark.parametrize(("hosted", "parameters", "worth"), [("0", 10**8, 12), ("1", 10**8, 7), ("1", 10**9, 0)])
def test_head_worth_is_bounded(monkeypatch: pytest.MonkeyPatch, hosted: str, parameters: int, worth: int) -> None:
    monkeypatch.setenv("ATLAS_HOSTED", hosted)
    card = SimpleNamespace(head="labels", num_layers={"encoder": 2}, num_heads=4, num_parameters=parameters)
    model: Any = SimpleNamespace(card=card, engine=SimpleNamespace(inputs={"text"}))
    assert plan_scan(model).worth == worth


def test_lines_of_own_texts_are_clean_and_limited() -> None:
    assert lines_of(" The cat\x00 sat. \r\n\n\t\nNo.\x07", 30) == ("The cat sat.", "No.")
    with pytest.raises(HubError, match="31 characters"):
        lines_of("a" * 31, 30)
