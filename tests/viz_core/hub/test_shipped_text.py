"""The models of English that ship: small, and opened like any other."""

from __future__ import annotations

import pytest

from viz_core.hub import load_hub, local_models
from viz_core.hub.store.files import SHIPPED_FOLDER
from viz_core.runtime.assets import ASSETS

MB = 1e6


@pytest.mark.parametrize(
    ("name", "kind", "scheme"), [("writer-en", "decoder", "rotary"), ("reader-en", "encoder", "learned")]
)
def test_the_lab_opens_it_like_any_other_and_says_that_it_ships(name: str, kind: str, scheme: str) -> None:
    card = load_hub(name, device="cpu", offline=True).card
    assert (card.kind, card.source, card.licence) == (kind, "shipped", "cc-by-2.0")
    assert scheme in card.positions
    assert name in [model.name for model in local_models()]


def test_all_weights_together_are_small() -> None:
    for folder in SHIPPED_FOLDER.iterdir():
        assert sum(file.stat().st_size for file in folder.iterdir()) < 6 * MB
    weights = [*(ASSETS / "checkpoints").rglob("*.safetensors"), *SHIPPED_FOLDER.rglob("*.safetensors")]
    assert sum(file.stat().st_size for file in weights) < 60 * MB
