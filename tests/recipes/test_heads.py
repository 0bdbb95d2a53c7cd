"""What heads are worth and do: importance, a run that is stopped and goes on, marks, and alignments of words."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from safetensors.torch import load_file

from recipes.__main__ import main
from recipes.alignments import (
    AlignedPair,
    aligned_pairs,
    aligned_samples,
    alignment_error_rate,
    measure_alignments,
    word_of_each_token,
)
from recipes.head_importance import IMPORTANCE, MEANS, ClassifierSubject, TranslatorSubject
from recipes.head_table import draw_heads, mark_shares, table
from recipes.marks import value_lengths
from recipes.picture_sets import Pictures, PictureSplit
from recipes.sentence_pairs import Pair, load_pairs, split_pairs
from tests.tiny_models import TINY
from ui.compute.heads import read_importance
from viz_core.pretrained import Translator, load, load_translator
from viz_core.pretrained.bleu import paired_bootstrap, percentage_right
from viz_core.pretrained.decoding import greedy_search
from viz_core.pretrained.samples import held_out
from viz_core.pretrained.shipped import CHECKPOINTS, CheckpointError
from viz_core.trace import Trace, gate, intervene, record
from viz_core.view.components import group_labels
from viz_core.view.shipped import aligning_head, translation_groups


@pytest.fixture
def mine(checkpoints: Path, tmp_path: Path) -> Path:
    """Checkpoints that a test may write to."""
    shutil.copytree(checkpoints, tmp_path / "checkpoints")
    return tmp_path / "checkpoints"


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
    mine: Path, data: Path, monkeypatch: pytest.MonkeyPatch
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
    assert [bool(head.without) for head in unfinished.heads] == [True, True, False, False]
    assert main(command) == 0
    assert len(calls) == 4 + 1 + 2 * 4 - 2
    closed = [call["encoder.0.self"][0].heads for call in calls[-4:]]  # each head alone: the others are off
    assert closed == [(1, 2, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2)]
    found = read_importance(mine / TINY, card)
    assert found is not None
    assert all(head.without and head.alone and head.gradient > 0 for head in found.heads)
    text = (mine / TINY / "card.md").read_text(encoding="utf-8")
    assert main(command) == 0, "nothing is left to do"
    assert (mine / TINY / "card.md").read_text(encoding="utf-8") == text
    assert text.count("\n## Heads\n") == 1
    before = len(calls)
    assert main([*command, "--every", "2"]) == 0, "other examples: all heads are measured anew"
    assert len(calls) == before + 1 + 2 * 4

    means = load_file(mine / TINY / MEANS)
    assert {tuple(each.shape) for each in means.values()} == {(4, 8)}
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


def test_the_table_counts_heads_and_leaves_out_roles_of_marks() -> None:
    shares = {"encoder-self": np.array([[0.9, 0.6], [0.1, 0.2]]), "decoder-self": np.array([[0.4, 0.7], [0.0, 0.3]])}
    roles = {
        "encoder-self": [["separator", ""], ["previous", "previous"]],
        "decoder-self": [["", "first"], ["separator", "next"]],
    }
    first, second, *_, last = table(shares, roles).splitlines()[2:]
    assert first == "| encoder-self 1 | 0.75 | 2 of 2 | separator 1 |"
    assert second == "| encoder-self 2 | 0.15 | 0 of 2 | previous 2 |"
    assert last == "| all | 0.35 | 3 of 8 | 4 heads with another role than their mark's |"


def test_shares_are_means_over_the_queries_of_sentences_of_6_to_12_words() -> None:
    translator = load_translator("transformer-en-fr", "cpu")
    sample = next(each for each in held_out() if len(each.english.split()) in range(6, 13))
    short = next(each for each in held_out() if len(each.english.split()) < 6)
    ids = [translator.tokenizer.encode(text).ids for text in (sample.english, sample.references[0])]
    with record() as trace:
        translator.model(*translator.teacher_forced(*([*each, translator.special.eos] for each in ids)))
    found = mark_shares(translator, [short, sample])
    end, start = trace["encoder.1.self"].weights()[0], trace["decoder.2.self"].weights()[0]
    assert found["encoder-self"][1].tolist() == pytest.approx(end[..., -1].mean(-1).tolist(), abs=1e-6)
    after_the_first = torch.stack([start[:, i, 0] for i in range(1, start.shape[1])]).mean(0)
    assert found["decoder-self"][2].tolist() == pytest.approx(after_the_first.tolist(), abs=1e-6)


def test_every_self_attention_head_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    draw_heads("transformer-en-fr", CHECKPOINTS, None)
    drawn = np.asarray(Image.open("transformer-en-fr-heads.png")).astype(int)
    assert drawn.shape == (6 * 72, 8 * 72)  # three layers of the encoder above three of the decoder, eight heads
    first = drawn[3 * 72 : 4 * 72, :72]  # of the decoder, whose queries see no later key
    assert first[8, 60] == 255
    assert first[60, 4:60].min() < 128


def test_lengths_are_those_of_the_values_that_the_layer_makes() -> None:
    translator = load_translator("transformer-en-fr", "cpu")
    sample = held_out()[0]
    ids = [
        [*translator.tokenizer.encode(t).ids, translator.special.eos] for t in (sample.english, sample.references[0])
    ]
    layer = translator.model.encoder.blocks[0].attention  # type: ignore[union-attr]
    seen: list[torch.Tensor] = []
    handle = layer.W_v.register_forward_hook(lambda _module, _inputs, output: seen.append(output.detach()))
    with torch.inference_mode():
        translator.model(*translator.teacher_forced(*ids))
    handle.remove()
    lengths = seen[0][0].unflatten(-1, (layer.num_heads, -1)).norm(dim=-1)  # (tokens, heads)
    wanted = lengths[-1] / lengths[:-1].mean(dim=0)
    assert value_lengths(translator, [sample])["encoder-self"][0].tolist() == pytest.approx(wanted.tolist(), rel=1e-4)


def test_words_are_cut_as_the_file_says() -> None:
    pair = AlignedPair("He can't, it's Tom's.", "J'ai l'eau, qu'il dit-elle.", frozenset(), frozenset())
    english = [pair.english[start:stop] for start, stop in pair.english_spans]
    french = [pair.french[start:stop] for start, stop in pair.french_spans]
    assert english == ["He", "ca", "n't", ",", "it", "'s", "Tom", "'s", "."]
    assert french == ["J'", "ai", "l'", "eau", ",", "qu'", "il", "dit", "-", "elle", "."]


def test_each_token_is_a_piece_of_a_word() -> None:
    tokenizer = load_translator("transformer-en-fr", "cpu").tokenizer
    for sample in aligned_samples():
        for text, spans in ((sample.english, sample.english_spans), (sample.french, sample.french_spans)):
            words = word_of_each_token(tokenizer.encode(text), spans)
            assert list(words) == sorted(words)
            assert set(words) == set(range(len(spans) + 1))  # each word has a token, the end is one more


def test_what_ships_is_what_is_measured() -> None:
    """And one head aligns the words it writes, another the words it has read: not one for both (Chen 2020)."""
    model = load_translator("transformer-en-fr", "cpu")
    measured, shipped = measure_alignments(model), model.card.training["alignments"]
    assert measured is not None
    assert measured["pairs"] == shipped["pairs"] == 100
    for reading in ("written", "read"):
        for found, expected in zip(measured[reading], shipped[reading], strict=True):
            assert found == pytest.approx(expected, abs=0.01)
    view = aligning_head(translation_groups(model.translate("He is calm."), group_labels("translation")))
    best = min(rate for layer in shipped["written"] for rate in layer)
    assert shipped["written"][view.layer][view.head] == best < shipped["diagonal"]
    assert shipped["read"][view.layer][view.head] > shipped["diagonal"]


def test_the_error_rate_by_hand() -> None:
    sure, possible = [{(0, 0), (1, 1)}], [{(2, 1)}]
    assert alignment_error_rate([{(0, 0), (1, 1)}], sure, possible) == 0
    # a possible pair is not wrong: |A & S| = 2, |A & P| = 3, |A| = 3, |S| = 2
    assert alignment_error_rate([{(0, 0), (1, 1), (2, 1)}], sure, possible) == 0
    # one sure pair missed, one pair wrong: 1 - (1 + 1) / (2 + 2)
    assert alignment_error_rate([{(0, 0), (3, 3)}], sure, possible) == 0.5
    assert alignment_error_rate([{(3, 3)}], sure, possible) == 1
    # sentences are counted together, not one by one: 1 - (2 + 2 + 0) / (2 + 2 + 1 + 1)
    two = [[{(0, 0), (1, 1)}, {(0, 1)}], [{(0, 0), (1, 1)}, {(0, 0)}], [set(), set()]]
    assert alignment_error_rate(*two) == pytest.approx(1 / 3)


def test_the_end_of_a_sentence_has_no_partner() -> None:
    written = torch.tensor([[0.0, 0.8, 0.2], [0.9, 0.1, 0.0], [0.0, 0.0, 1.0]])
    assert aligned_pairs(written, 2) == {(1, 0), (0, 1)}
    assert aligned_pairs(written.roll(1, dims=0), 2) == {(1, 1), (0, 2)}
