"""The small runs of the book's exercises: that the command writes what the pages read."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from recipes import exercises
from ui.chapter import book_exercises
from ui.chapter.book_exercises import recorded
from viz_core.models import ViT

TEXT = "\n".join(f"{word} it .\t{word} ça ." for word in ("go", "do", "see", "take", "have") for _ in range(140))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exercises, "DEPTHS", (1,))
    monkeypatch.setattr(exercises, "SEEDS", (0,))
    monkeypatch.setattr(exercises, "SIDES", (14,))
    monkeypatch.setattr(exercises, "CHANGES", {name: exercises.CHANGES[name] for name in ("as-it-is", "average")})


@pytest.mark.usefixtures("small")
def test_the_command_writes_what_the_pages_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exercises, "read_text", lambda _: TEXT)
    threads = torch.get_num_threads()
    try:
        out = tmp_path / "exercises.json"
        assert exercises.main(["--data", str(tmp_path), "--out", str(out), "--epochs", "1"]) == 0
    finally:
        torch.set_num_threads(threads)
    monkeypatch.setattr(book_exercises, "RECORDED", out)
    recorded.cache_clear()
    found = recorded()
    recorded.cache_clear()
    assert found.depths.keys() == {1}
    assert found.depths[1].seconds > 0 < found.depths[1].training[0]
    assert found.seconds[14] > 0
    assert found.gains("average")[0] == found.right["average"][0] - found.right["as-it-is"][0]


def test_what_ships_is_of_the_runs_as_they_are() -> None:
    found = recorded()
    assert tuple(found.depths) == exercises.DEPTHS
    assert tuple(found.seconds) == exercises.SIDES
    assert tuple(found.right) == tuple(exercises.CHANGES)
    assert {len(shares) for shares in found.right.values()} == {len(exercises.SEEDS)}


def test_the_average_is_read_from_the_patches_alone() -> None:
    model = ViT(**exercises.VIT, num_channels=1).eval()
    X = torch.randn(2, 1, 28, 28)
    tokens = model.tokens(X)
    torch.testing.assert_close(exercises.answer(model, X, average=True), model.head(tokens[:, 1:].mean(dim=1)))
    torch.testing.assert_close(exercises.answer(model, X, average=False), model(X))
