"""How far a model was trained, read from its training record."""

from __future__ import annotations

import pytest

from pages.bahdanau.training_compared import Trained


@pytest.mark.parametrize(("muon_lr", "muon"), [(None, False), (4e-3, True)])
def test_read_from_what_training_wrote(muon_lr: float | None, muon: bool) -> None:
    recipe = {"batch_tokens": 2048, "muon_lr": muon_lr}
    training = {"curve": [{"epoch": 1.0}, {"epoch": 1.5}], "updates": 900, "recipe": recipe}
    assert Trained.read(training) == Trained(1.5, 900, 2048, muon)
