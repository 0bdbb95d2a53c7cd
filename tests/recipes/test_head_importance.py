"""What heads are worth: intervals, gradients, a run that is stopped and goes on, and what it writes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from recipes.__main__ import main
from recipes.head_importance import IMPORTANCE, MEANS, ClassifierSubject, TranslatorSubject
from recipes.picture_sets import Pictures, PictureSplit
from recipes.sentence_pairs import Pair, load_pairs, split_pairs
from tests.tiny_models import TINY
from ui.compute.heads import read_importance
from viz_core.pretrained import Translator, load
from viz_core.pretrained.bleu import bleu_of, bleu_statistics, corpus_bleu, paired_bootstrap, percentage_right
from viz_core.pretrained.card import CheckpointError
from viz_core.pretrained.decoding import greedy_search
from viz_core.trace import Trace, gate, intervene, mean


@pytest.fixture
def mine(checkpoints: Path, tmp_path: Path) -> Path:
    """Checkpoints that a test may write to."""
    shutil.copytree(checkpoints, tmp_path / "checkpoints")
    return tmp_path / "checkpoints"


def test_the_statistics_of_sentences_add_up_to_the_score_of_a_corpus() -> None:
    texts = ["le chat est là", "je suis ici .", "", "non", "un chien dort dans la maison ce soir"]
    wanted = [["le chat est ici", "le chat est là ."], ["je suis là ."], ["rien"], ["non"], ["un chien dort ce soir"]]
    statistics = bleu_statistics(texts, wanted)
    for rows in ([0, 1, 2, 3, 4], [0, 4, 4]):
        expected = corpus_bleu([texts[i] for i in rows], [wanted[i] for i in rows])
        assert bleu_of(statistics[rows].sum(axis=0)) == pytest.approx(expected, abs=1e-9)


def test_the_interval_is_the_one_of_a_sum_of_draws(shapes_unchecked: None) -> None:
    right = np.array([1.0] * 60 + [0.0] * 40)
    other = np.array([1.0] * 50 + [0.0] * 50)  # ten more are wrong
    rows = [np.stack([each, np.ones(100)], axis=1) for each in (right, other)]
    found = paired_bootstrap(percentage_right, *rows, rounds=4000)
    assert found.value == -10
    spread = 1.96 * 100 * np.sqrt(0.1 * 0.9 / 100)  # of a mean of a hundred that is 1 in ten
    assert (found.low, found.high) == pytest.approx((-10 - spread, -10 + spread), abs=1)
    assert paired_bootstrap(percentage_right, rows[0], rows[0]) == (0, 0, 0)
    with pytest.raises(ValueError, match="statistics of the same examples"):
        paired_bootstrap(percentage_right, rows[0], rows[1][:50])


def test_every_head_is_weighed_and_a_stopped_run_goes_on(
    mine: Path, data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["head-importance", TINY, "--data", str(data), "--checkpoints", str(mine)]
    statistics, trace, calls = TranslatorSubject.statistics, TranslatorSubject.trace, []

    def first_site(self: TranslatorSubject) -> Trace:
        one = Trace()
        one.add(next(iter(trace(self))).source, "encoder.0.self")
        return one

    def stopped(self: TranslatorSubject, edits: Any) -> Any:
        calls.append(edits)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return statistics(self, edits)

    monkeypatch.setattr(TranslatorSubject, "statistics", stopped)
    monkeypatch.setattr(TranslatorSubject, "trace", first_site)
    short = lambda *given: greedy_search(*given[:-1], 2)  # noqa: E731
    monkeypatch.setattr("recipes.head_importance.greedy_search", short)
    with pytest.raises(KeyboardInterrupt):
        main(command)
    written = json.loads((mine / TINY / IMPORTANCE).read_text())
    assert [list(entry) for entry in written["heads"]].count(["site", "head", "gradient", "without"]) == 2

    card = load(TINY, "cpu", mine).card
    unfinished = read_importance(mine / TINY, card)
    assert unfinished is not None
    assert unfinished.heads[1].without is not None
    assert unfinished.heads[2].without is None
    assert main(command) == 0
    assert len(calls) == 4 + 1 + 2 * 4 - 2
    closed = [call["encoder.0.self"][0].heads for call in calls[-4:]]  # each head alone: the others are off
    assert closed == [(1, 2, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2)]
    assert "8/8" not in capsys.readouterr().out, "two were done before"
    found = read_importance(mine / TINY, card)
    assert found is not None
    assert (found.metric, len(found.heads)) == ("bleu", 4)
    assert all(head.without and head.alone and head.gradient > 0 for head in found.heads)
    text = (mine / TINY / "card.md").read_text(encoding="utf-8")
    assert main(command) == 0, "nothing is left to do"
    assert (mine / TINY / "card.md").read_text(encoding="utf-8") == text
    assert text.count("\n## Heads\n") == 1
    before = len(calls)
    assert main([*command, "--every", "2"]) == 0, "other examples: all heads are measured anew"
    assert len(calls) == before + 1 + 2 * 4

    translator = load(TINY, "cpu", mine)
    assert isinstance(translator, Translator)
    means = load_file(mine / TINY / MEANS)
    assert {site: tuple(each.shape) for site, each in means.items()} == dict.fromkeys(
        translator.translate("Go.", max_new_tokens=1).trace.sites, (4, 8)
    )
    with intervene({"encoder.0.self": mean(None, means["encoder.0.self"])}):
        assert translator.translate("Go.", max_new_tokens=3).cache_error < 1e-4
    (mine / TINY / IMPORTANCE).write_text("{")
    with pytest.raises(CheckpointError, match=r"heads.json of model 'tiny-en-fr' cannot be read"):
        read_importance(mine / TINY, card)
    (mine / TINY / IMPORTANCE).write_text('{"sha256": "of other weights"}')
    assert read_importance(mine / TINY, card) is None


def test_gradients_are_differences_of_the_loss(translator: Translator, data: Path) -> None:
    """A gate that is moved a little moves the loss by so much, a sentence at a time."""
    subject = TranslatorSubject(translator, data)
    gradients = subject.gradients()
    assert {site: tuple(each.shape) for site, each in gradients.items()} == dict.fromkeys(subject.trace().sites, (4,))
    test = split_pairs(load_pairs(data)).test

    def loss(one: Pair, xi: float) -> float:
        source, target = (translator.encode(text) for text in one)
        X, Y, lengths = translator.teacher_forced(source, target)
        with intervene({"decoder.1.cross": gate(2, xi)}):
            logits = translator.model(X, Y, lengths)
        return float(F.cross_entropy(logits[0], torch.tensor(target), reduction="sum"))

    slopes = [abs(loss(one, 1.01) - loss(one, 0.99)) / 0.02 for one in test]
    assert float(gradients["decoder.1.cross"][2]) == pytest.approx(sum(slopes) / len(slopes), rel=2e-2, abs=1e-3)


def test_a_classifier_s_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = load("vit-fashion-mnist", "cpu")
    draw = torch.Generator().manual_seed(2)
    pixels = torch.randint(0, 256, (70, 1, 28, 28), dtype=torch.uint8, generator=draw)
    pictures = Pictures(pixels, torch.arange(70) % 10)
    data = SimpleNamespace(load=lambda _: PictureSplit(pictures, pictures))
    monkeypatch.setattr("recipes.classifiers.CLASSIFIERS", {"vit-fashion-mnist": SimpleNamespace(data=data)})
    monkeypatch.setattr("recipes.head_importance._REFERENCE", 5)
    subject = ClassifierSubject(classifier, Path())  # type: ignore[arg-type]
    right = subject.statistics({})
    assert right.shape == (70, 2)
    assert subject.score(right.sum(axis=0)) == pytest.approx(100 * right[:, 0].mean())
    assert {each.shape for each in subject.means().values()} == {(6, 24)}
    gradients = subject.gradients()
    assert len(gradients) == 6
    assert all(bool((each > 0).all()) for each in gradients.values())
