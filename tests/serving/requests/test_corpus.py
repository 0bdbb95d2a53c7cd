"""A corpus through a model: planted heads are found by name, parts add up, and nothing kept grows with the corpus."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from serving.requests.corpus import NOTHING, CorpusFound, read_sentences
from serving.requests.corpus_kind import MOST_WORDS, QUANTILES, SAMPLED, STRONGEST, WordSeen
from viz_core.hub import HubError, HubModel, HubRun, Token, load_hub
from viz_core.hub.runs.run import SINK, RunInputs
from viz_core.maps.measures import equal_tokens, induction_targets
from viz_core.maps.roles import COLUMNS
from viz_core.pretrained.samples import held_out
from viz_core.runtime.interruption import interruptible
from viz_core.trace import intervene, pattern, record, record_weights, uniform

TinyModel = Callable[[str], HubModel]
PLANTED = ("previous", "next", "diagonal", "first", "separator", "punctuation", "same-word", "induction", None)


def planted_maps(tokens: list[str]) -> torch.Tensor:
    """A head of each role, whose queries look there most of the time, where there is such a key; and one of none."""
    n = len(tokens)
    spot = torch.eye(n)
    heads = {
        "previous": spot.roll(-1, 1).tril(),
        "next": spot.roll(1, 1).triu(),
        "diagonal": spot,
        "first": torch.zeros(n, n).index_fill(1, torch.tensor([0]), 1.0),
        "separator": torch.zeros(n, n).index_fill(1, torch.tensor([n - 1]), 1.0),
        "punctuation": torch.tensor([[float(token == ",") for token in tokens]] * n),
        "same-word": (equal_tokens(tokens, tokens) & torch.tensor([token.isalpha() for token in tokens])).float()
        - spot,
        "induction": induction_targets(tokens).float(),
        None: torch.zeros(n, n),
    }
    maps = []
    for role in PLANTED:
        target, noise = heads[role].clamp(min=0), torch.randn(n, n).softmax(dim=-1)
        rows = target.sum(dim=-1, keepdim=True)
        maps.append(torch.where(rows > 0, 0.8 * target / rows.clamp(min=1) + 0.2 * noise, noise))
    return torch.stack(maps)


@dataclass(frozen=True, eq=False)
class Planted(HubModel):
    """A made-up model whose heads were given their roles; a word is a token."""

    def run_inputs(self, inputs: RunInputs) -> HubRun:
        if not inputs.text:
            raise HubError("nothing")
        tokens = [*inputs.text.split(), "</s>"]
        with record() as trace:
            record_weights(planted_maps(tokens)[None], "encoder.0.self")
        read = tuple(Token(0, token, token, starts_word=True, special=token == "</s>") for token in tokens)
        return HubRun(read, trace, torch.zeros(1))


@pytest.fixture
def planted(tiny_model: TinyModel) -> Planted:
    bert = tiny_model("bert")
    return Planted(bert.card, bert.engine)


def sentences(count: int, seed: int = 0) -> list[str]:
    """Words that come again, with commas between them."""
    draw = random.Random(seed)
    return [" ".join(draw.choices([*"abcdefghij", ","], k=draw.randint(6, 18))) for _ in range(count)]


def same(one: CorpusFound, other: CorpusFound) -> None:
    assert (one.sentences, one.tokens, one.left_out, one.why) == (
        other.sentences,
        other.tokens,
        other.left_out,
        other.why,
    )
    assert one.kinds.keys() == other.kinds.keys()
    for name, kind in one.kinds.items():
        np.testing.assert_allclose(kind.roles.value(), other.kinds[name].roles.value(), atol=1e-9)
        np.testing.assert_allclose(kind.roles.half_width(), other.kinds[name].roles.half_width(), atol=1e-9)
        assert kind.strongest == other.kinds[name].strongest
        assert kind.sampled == other.kinds[name].sampled
        assert kind.words.keys() == other.kinds[name].words.keys()


def test_planted_heads_are_found_by_name(planted: Planted) -> None:
    found = read_sentences(planted, sentences(40))
    kind = found.kinds["encoder-self"]
    assert kind.heads == tuple((0, head) for head in range(len(PLANTED)))
    assert tuple(kind.role_of(place) for place in range(len(PLANTED))) == PLANTED
    previous = kind.measured(0, "-1")
    assert previous.sentences == 40
    assert 0.8 < previous.low < previous.value < previous.high < 0.85
    assert 0.05 < previous.chance < 0.2
    assert kind.measured(0, "-1").value > 10 * kind.measured(0, "-2").value


def test_planted_heads_of_a_decoder_are_found_in_the_maps_it_really_had(tiny_model: TinyModel) -> None:
    model = tiny_model("llama")
    edits = {
        "decoder.0.self": [pattern(0, "previous"), pattern(1, "first"), uniform(2), pattern(3, "diagonal")],
        "decoder.1.self": [uniform(0), pattern(2, "first")],
    }
    with intervene(edits):
        kind = read_sentences(model, [sample.english for sample in held_out()[:6]]).kinds["decoder-self"]
    roles = dict(zip(kind.heads, map(kind.role_of, range(8)), strict=True))
    assert {head: roles[head] for head in ((0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 2))} == {
        (0, 0): "previous",
        (0, 1): "first",
        (0, 2): None,
        (0, 3): "diagonal",
        (1, 0): None,
        (1, 2): "first",
    }
    # Who looks at all keys alike has what chance gives, sentence by sentence.
    for column in range(len(COLUMNS)):
        one = kind.measured(2, COLUMNS[column])
        assert one.value == pytest.approx(one.chance, abs=1e-6, nan_ok=True)


@pytest.mark.parametrize("at_once", [1, 7])
def test_parts_add_up_to_the_whole(planted: Planted, at_once: int) -> None:
    texts = [*sentences(20), ""]  # nothing to read in the last
    torch.manual_seed(3)
    whole = read_sentences(planted, texts)
    assert (whole.sentences, whole.left_out) == (20, 1)
    assert [(number, str(why)) for number, why in whole.why] == [(20, "nothing")]
    torch.manual_seed(3)
    firsts = range(0, len(texts), at_once)
    parts = (read_sentences(planted, texts[first : first + at_once], first) for first in firsts)
    same(sum(parts, NOTHING), whole)
    same(NOTHING + whole, whole)


@pytest.mark.parametrize(
    ("family", "kinds"),
    [
        ("bert", ["encoder-self"]),
        ("gpt2", ["decoder-self"]),
        ("gpt-oss", ["decoder-self"]),  # with a sink before all tokens
        ("t5", ["encoder-self", "decoder-self", "decoder-cross"]),
    ],
)
def test_every_kind_of_model_is_read(tiny_model: TinyModel, family: str, kinds: list[str]) -> None:
    model = tiny_model(family)
    texts = ["The cat looked at the cat, and the cat looked at the dog.", "She reads."]
    found = read_sentences(model, texts, max_new_tokens=5)
    assert list(found.kinds) == kinds
    run = model.run(texts[0], max_new_tokens=0 if family.startswith("gpt") else 5)
    for maps in run.maps:
        tokens = sum(token is not SINK for token in maps.key_tokens)
        kind = read_sentences(model, texts[:1], 0, 5).kinds[maps.id]
        for place, (layer, head) in enumerate(kind.heads):
            weights = maps.calls[layer].weights(head=head)[0]
            weights = weights[:, len(maps.key_tokens) - tokens :]  # without a sink
            assert kind.measured(place, "first").value == pytest.approx(float(weights[:, 0].mean()), abs=1e-6)
            for one in (*kind.strongest[place], *kind.sampled[place]):
                assert one.weight == pytest.approx(float(weights[one.query, one.key]), abs=1e-6)
    for (name, number), (queries, keys) in found.sides.items():
        for one in (one for head in found.kinds[name].strongest for one in head if one.sentence == number):
            assert one.query < len(queries)
            assert one.key < len(keys)
            assert "sink" not in keys


def test_where_a_head_fires_is_no_resting_place(planted: Planted) -> None:
    found = read_sentences(planted, sentences(30))
    kind = found.kinds["encoder-self"]
    for head in kind.strongest:
        assert len(head) == STRONGEST
        assert [one.weight for one in head] == sorted((one.weight for one in head), reverse=True)
        assert len({one.sentence for one in head}) == STRONGEST, "a sentence counts once"
        for one in head:
            queries, keys = found.sides["encoder-self", one.sentence]
            assert one.key > 0
            assert "</s>" not in (queries[one.query], keys[one.key])
    shown = (*kind.strongest, *kind.sampled)
    assert {number for _, number in found.sides} == {one.sentence for head in shown for one in head}
    by_role = dict(zip(PLANTED, kind.strongest, strict=True))
    assert all(one.key == one.query - 1 for one in by_role["previous"])
    assert all(found.sides["encoder-self", one.sentence][1][one.key] == "," for one in by_role["punctuation"])


def test_examples_are_at_quantiles_of_a_sample_and_come_once(planted: Planted) -> None:
    kind = read_sentences(planted, sentences(SAMPLED + 40)).kinds["encoder-self"]
    for place, sampled in enumerate(kind.sampled):
        assert len(sampled) == SAMPLED
        assert {one.sentence for one in sampled} - set(range(SAMPLED)), "not the first sentences alone"
        assert len({one.query for one in sampled}) > 2, "queries anywhere in a sentence"
        weights = [one.weight for one in sampled]
        assert max(weights) <= kind.strongest[place][0].weight
        found = kind.at_quantiles(place)
        assert found[0] == (1.0, kind.strongest[place][0])
        assert len({one for _, one in found}) == len(found)
        for quantile, one in found[1:]:
            assert one.weight == pytest.approx(np.quantile(weights, quantile, method="nearest"), abs=1e-6)
    assert max(len(kind.at_quantiles(place)) for place in range(len(kind.heads))) == 1 + len(QUANTILES)


def test_what_heads_look_at_in_a_word(planted: Planted) -> None:
    torch.manual_seed(1)
    found = read_sentences(planted, ["a , b a", "c d"]).kinds["encoder-self"]
    torch.manual_seed(1)
    weights = planted_maps(["a", ",", "b", "a", "</s>"])
    both = weights[:, [1, 2, 3, 4], 0].mean(dim=-1) + weights[:, [0, 1, 2, 4], 3].mean(dim=-1)
    np.testing.assert_allclose(found.words["a"].mean, both / 2, atol=1e-6)
    assert (found.words["a"].count, found.words["a"].sentences) == (2, (0,))
    assert found.words.keys() == {"a", "b", "c", "d"}
    (best, given), *_ = found.heads_attending_to(" A ")
    assert given == max(found.words["a"].mean) == found.words["a"].mean[best]
    assert found.heads_attending_to("nowhere") == ()


def test_pieces_of_a_word_are_one_word(tiny_model: TinyModel) -> None:
    model = tiny_model("bert")
    run = model.run("He sat.")
    words = read_sentences(model, ["He sat."]).kinds["encoder-self"].words
    assert {"he", "sat"} == words.keys(), [token.label for token in run.tokens]


def test_words_sentences_and_reasons_kept_are_bounded(planted: Planted) -> None:
    one = read_sentences(planted, ["a b"])
    kind = one.kinds["encoder-self"]
    many = {f"w{i}": WordSeen(1, np.zeros(len(kind.heads)), (i,)) for i in range(MOST_WORDS + 5)}
    assert len((kind + replace(kind, words=many)).words) == MOST_WORDS
    assert set(kind.words) <= set((kind + replace(kind, words=many)).words)
    often = read_sentences(planted, ["a b"] * 200)
    assert len(often.kinds["encoder-self"].words["a"].sentences) <= 8
    assert len(often.sides) <= SAMPLED + STRONGEST * len(PLANTED)
    assert len(read_sentences(planted, [""] * 60).why) == 20


def test_too_long_a_sentence_is_left_out_and_told(tiny_model: TinyModel) -> None:
    found = read_sentences(tiny_model("gpt2"), ["The cat sat.", "The cat " * 14], most_tokens=30)
    assert (found.sentences, found.left_out) == (1, 1)
    assert found.why[0][0] == 1
    assert "30" in str(found.why[0][1])


def test_it_ends_when_it_is_told_to(planted: Planted) -> None:
    steps = 0

    def check() -> None:
        nonlocal steps
        steps += 1
        if steps == 5:
            raise TimeoutError

    with interruptible(check), pytest.raises(TimeoutError):
        read_sentences(planted, sentences(50))
    assert steps == 5


def test_pictures_are_no_corpus(tiny_model: TinyModel) -> None:
    with pytest.raises(ValueError, match="one that takes text"):
        read_sentences(tiny_model("vit"), ["a"])
    with pytest.raises(ValueError, match="the same heads"):
        _ = (
            read_sentences(tiny_model("bert"), ["a"]).kinds["encoder-self"]
            + read_sentences(tiny_model("albert"), ["a"]).kinds["encoder-self"]
        )


def test_the_shipped_translator_writes_for_many_what_it_writes_for_each() -> None:
    model = load_hub("transformer-en-fr", device="cpu")
    texts = ["He is calm.", "", "The dog looked at the cat that sat on the bed."]
    found = list(model.run_each(texts, max_new_tokens=20))
    assert isinstance(found[1], HubError)
    for text, one in zip(texts, found, strict=True):
        if isinstance(one, HubRun):
            alone = model.run(text, max_new_tokens=20)
            assert (one.text, one.tokens, one.target_tokens) == (alone.text, alone.tokens, alone.target_tokens)
            assert one.made == alone.made
            for ours, theirs in zip(one.trace, alone.trace, strict=True):
                torch.testing.assert_close(ours.weights(), theirs.weights())
