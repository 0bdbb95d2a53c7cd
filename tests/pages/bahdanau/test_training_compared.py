"""What two models had reached after equally many epochs, by hand."""

from __future__ import annotations

import pytest

from pages.bahdanau.training_compared import Met, Trained, meet


def test_two_curves_meet_at_their_last_common_epoch() -> None:
    long = [{"epoch": e, "validation_bleu": 10.0 * e} for e in (1.0, 2.0, 3.0, 4.0)]
    short = [{"epoch": e, "validation_bleu": 5.0 * e} for e in (1.0, 2.0, 2.5)]
    assert meet(long, short) == Met(2.0, (20.0, 10.0), (0.5, 0.8))
    assert meet(short, long) == Met(2.0, (10.0, 20.0), (0.8, 0.5))
    assert meet(long, [{"epoch": 0.5, "validation_bleu": 1.0}]) is None


@pytest.mark.parametrize(("muon_lr", "muon"), [(None, False), (4e-3, True)])
def test_read_from_what_training_wrote(muon_lr: float | None, muon: bool) -> None:
    recipe = {"batch_tokens": 2048, "muon_lr": muon_lr}
    training = {"curve": [{"epoch": 1.0}, {"epoch": 1.5}], "updates": 900, "recipe": recipe}
    assert Trained.read(training) == Trained(1.5, 900, 2048, muon)
