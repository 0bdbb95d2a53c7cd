"""Two GRUs trained alike: the same updates from the same seeds, gone on with where they were cut off, scored alike."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from pages.bahdanau.recorded_comparison import MEASURED, Alike, Scores, alike
from recipes.by_length import EDGES, PER_BIN
from recipes.controlled_comparison import CONFIG, FILE, MODELS, SEEDS, measure, scores
from recipes.sentence_pairs import Pair, Split
from viz_core.pretrained.bleu import corpus_bleu
from viz_core.pretrained.bootstrap import Difference

SMALL = replace(CONFIG, epochs=1, vocab_size=300, batch_tokens=400, curve_sentences=2)


def test_both_get_as_many_updates_and_what_is_done_is_not_done_again(
    pairs: list[Pair], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    split = Split(pairs[:40], pairs[:4], pairs[:12])
    first = measure(split, tmp_path, SMALL, (0, 1), torch.device("cpu"), edges=(1,), per_bin=4)
    assert capsys.readouterr().out.count('"epoch": 1.0') == 4
    for name in MODELS:
        assert len(first["validation_loss"][name]) == len(first["balanced"]["bleu"][name]) == 2
        assert first["validation_loss"][name][0] != first["validation_loss"][name][1], "two seeds"
    assert first["parameters"]["attention"] - first["parameters"]["plain"] == 2 * 128**2 + 128, "W_q, W_k and w_v"
    again = measure(split, tmp_path, SMALL, (0, 1), torch.device("cpu"), edges=(1,), per_bin=4)
    assert '"epoch"' not in capsys.readouterr().out
    assert again == first


def test_what_attention_adds_is_of_all_seeds_together() -> None:
    references = {"a": ["le chat noir dort sur mon lit"], "b": ["il pleut encore ce matin"]}
    right = {name: each[0] for name, each in references.items()}
    runs = [{"a": "le chien noir dort sur mon lit", "b": "il pleut encore ce soir"}, right]
    found = scores({"plain": runs, "attention": [right, right]}, ["a", "b"], references)
    wanted = [references["a"], references["b"]]
    assert found["bleu"] == {
        "plain": [pytest.approx(corpus_bleu([runs[0]["a"], runs[0]["b"]], wanted), abs=0.01), 100],
        "attention": [100, 100],
    }
    both = corpus_bleu([runs[0]["a"], runs[0]["b"], right["a"], right["b"]], wanted * 2)
    assert found["difference"][0] == pytest.approx(100 - both, abs=0.01)
    assert found["difference"][1] <= found["difference"][0] <= found["difference"][2]


def test_what_is_told_of_it_by_hand() -> None:
    less, more = (Scores(4, (1.0, 3.0), (4.0, 5.0), Difference(value, 0.5, 4.0)) for value in (2.0, 3.0))
    losses = {"plain": ((3.0, 2.0), (3.0, 2.4)), "attention": ((2.0, 1.9), (2.0, 1.7))}
    found = Alike({}, 7, {}, losses, {(1, 4): less, (5, 9): more}, less)
    assert found.last_gain == pytest.approx(1 / 3)
    assert found.grows
    assert not replace(found, bins={(1, 4): more, (5, 9): more}).grows
    assert found.curve("plain")[1] == pytest.approx({"epoch": 2, "validation_loss": 2.2})
    assert less.spread("plain") == (2.0, 1.0, 3.0)
    assert less.times == 2.25


def test_what_is_recorded_is_whole() -> None:
    assert FILE == MEASURED
    found = alike()
    assert found.recipe.items() >= {"epochs": CONFIG.epochs, "batch_tokens": CONFIG.batch_tokens}.items()
    assert [low for low, _ in found.bins] == list(EDGES)
    assert {each.sentences for each in found.bins.values()} == {PER_BIN}
    for each in (*found.bins.values(), found.balanced):
        assert len(each.plain) == len(each.attention) == len(SEEDS)
        assert each.difference.low <= each.difference.value <= each.difference.high
    assert {len(row) for rows in found.validation_loss.values() for row in rows} == {CONFIG.epochs}
