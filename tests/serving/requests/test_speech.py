"""Attention of words over time, against whole maps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from serving.requests.speech import over_time
from tests.viz_core.hub.test_speech import ALIGNING, SOUND
from viz_core.hub import HubModel, HubRun, load_hub


@pytest.fixture(scope="module")
def model(tiny: Callable[[str], Path]) -> HubModel:
    return load_hub(tiny("whisper"), device="cpu")


@pytest.fixture(scope="module")
def run(model: HubModel) -> HubRun:
    return model.run(sound=SOUND, max_new_tokens=9)


def test_a_word_over_time_and_what_the_silence_after_it_gets(model: HubModel, run: HubRun) -> None:
    weights, rest = over_time(model, run, [(0, 1), (1, 2)], (3, 5))
    maps = [run.trace[f"decoder.{layer}.cross"].weights(head=head)[0, 3:5] for layer, head in ALIGNING]
    whole = torch.stack(maps).mean(dim=(0, 1))
    torch.testing.assert_close(weights, whole[:135])
    assert rest == pytest.approx(float(whole[135:].sum()), abs=1e-6)
    assert 0 < rest < 1
