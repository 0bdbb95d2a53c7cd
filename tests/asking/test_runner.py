"""One way to ask a translator, here or elsewhere: the same answers, and no trace on the way."""

from __future__ import annotations

from collections import defaultdict

import pytest
import torch

from asking.model_spec import Shipped
from asking.runner import Here, There
from asking.sentences import Sentence
from hosting.cache import Kept
from tests.asking.wire import Wire
from tests.viz_core.view.attention_groups import ask
from viz_core.models.anatomy import Step
from viz_core.pretrained import CheckpointError, TextError, Translation, Translator
from viz_core.view.payload import View, decode_view, encode_view
from viz_core.view.translation import aligning_head
from viz_core.view.words import WORD_NAMES

TINY = Shipped("tiny-en-fr")
CALM = Sentence(TINY, "The dog is in the house.")
LABELS: dict[str, str] = defaultdict(lambda: "a label")


@pytest.fixture
def here(translator: Translator) -> Here:
    return Here(lambda _model: translator, Kept(100, 2**24))


@pytest.fixture
def wire(here: Here) -> Wire:
    return Wire(here)


def test_a_translation_from_elsewhere_is_the_same_and_so_is_every_weight(here: Here, wire: Wire) -> None:
    near, far = here.run(CALM), There(wire).run(CALM)
    assert (far.text, far.target_ids, far.source_tokens) == (near.text, near.target_ids, near.source_tokens)
    assert far.trace.sites == near.trace.sites
    assert far.trace.nbytes == 0
    for site in near.trace.sites:
        assert torch.equal(far.trace[site].weights(), near.trace[site].weights())
        tile = {"head": 1, "queries": slice(1, 3), "keys": slice(0, 2)}
        assert torch.equal(far.trace[site].weights(**tile), near.trace[site].weights(**tile))
        assert torch.equal(far.trace[site].overview(2), near.trace[site].overview(2))


def test_the_view_of_maps_elsewhere_is_byte_for_byte_that_of_maps_here(here: Here, wire: Wire) -> None:
    words = dict.fromkeys(WORD_NAMES, "a word")
    near, far = here.groups(CALM, LABELS), There(wire).groups(CALM, LABELS)
    state = aligning_head(near)
    assert aligning_head(far) == state
    wants = ["map 0.cross:0.1_1.2:max:words", "tile 0.cross:0.0:mean:tokens 0 0 0 0"]
    wants += ["token 0 cross 1 q0", "token 0 cross 0 k1", "picture 0 encoder-self 1", "map 0.cross:9.9:mean:tokens"]
    one = decode_view(encode_view(View(near, words), state, wants=ask(*wants)))
    other = decode_view(encode_view(View(far, words), state, wants=ask(*wants)))
    assert one.parts.keys() == other.parts.keys()
    assert len(one.parts) > len(wants)
    for name, part in one.parts.items():
        assert torch.equal(part, other.parts[name]), name
    assert one.header["parts"] == other.header["parts"]
    assert [question for question, _ in wire.crossed].count("parts") == 1, "what one message asks crosses at once"
    assert one.header["missing"] == other.header["missing"] == ["map 0.cross:9.9:mean:tokens"]


def test_a_second_input_elsewhere_is_asked_for_by_its_own_sentence(here: Here, wire: Wire) -> None:
    words = dict.fromkeys(WORD_NAMES, "a word")
    other = Sentence(TINY, "She has a red car.")
    view = View(There(wire).groups(CALM, LABELS), words, There(wire).groups(other, LABELS), ("one", "two"))
    name = "map 1.cross:1.3:mean:tokens"
    sent = decode_view(encode_view(view, aligning_head(view.groups), wants=ask(name))).parts[name]
    assert torch.equal(sent, here.run(other).trace["decoder.1.cross"].weights(head=3)[0])


def test_nothing_large_crosses(here: Here, wire: Wire) -> None:
    """The trace stays: what crosses for a first view of a long sentence is far less than its maps."""
    long = Sentence(TINY, " ".join(["The dog is in the house and the cat is on the bed."] * 12))
    groups = There(wire).groups(long, LABELS)
    for group in groups:
        for layer in range(len(group.calls)):
            group.picture(layer)
    trace = here.run(long).trace
    whole = sum(4 * call.num_heads * call.num_queries * call.num_keys for call in trace)
    assert {question for question, _ in wire.crossed} == {"outline", "picture"}
    assert sum(size for _, size in wire.crossed) < whole / 4


@pytest.mark.parametrize("question", ["residuals", "encoder-steps"])
def test_looks_are_worked_out_beside_the_model(here: Here, wire: Wire, question: str) -> None:
    assert question in Sentence.looks
    torch.testing.assert_close(plain(There(wire).look(CALM, question)), plain(here.look(CALM, question)))


def plain(answer: object) -> object:
    """The answer as what `assert_close` compares: steps as their outputs."""
    if isinstance(answer, Step):
        return answer.output
    return [plain(part) for part in answer] if isinstance(answer, tuple) else answer


def test_what_is_wrong_with_a_text_is_told_as_it_is_here(wire: Wire) -> None:
    with pytest.raises(TextError, match="nothing to translate yet"):
        There(wire).run(Sentence(TINY, "  "))


def test_several_sentences_in_one_batch_become_what_each_becomes_alone(translator: Translator) -> None:
    texts = ["Go.", "She has a red car.", "Go.", "Where is the cat?", "I don't know."]
    sentences = [Sentence(TINY, text) for text in texts]
    together = Here(lambda _model: translator, Kept(100, 2**24)).run_all(sentences)
    for text, made in zip(texts, together, strict=True):
        assert isinstance(made, Translation)
        alone = translator.translate(text)
        assert (made.text, made.target_ids, made.complete) == (alone.text, alone.target_ids, alone.complete)
        assert made.log_probability == pytest.approx(alone.log_probability, abs=1e-6)
        for call in alone.trace:
            torch.testing.assert_close(made.trace[call.site].weights(), call.weights(), rtol=0, atol=1e-6)


def test_a_batch_may_mix_models_and_beams(translator: Translator) -> None:
    sentences = [Sentence(Shipped(model), "Go.", beam) for model in ("a", "b") for beam in (1, 4)]
    made = Here(lambda _model: translator, Kept(100, 2**24)).run_all(sentences)
    alone = [translator.translate("Go.", beam=one.beam).text for one in sentences]
    assert [one.text for one in made if isinstance(one, Translation)] == alone


def test_one_bad_text_spoils_no_batch(here: Here) -> None:
    good, bad = Sentence(TINY, "Go."), Sentence(TINY, "  ")
    made = here.run_all([good, bad, good])
    assert isinstance(made[1], TextError)
    assert made[0] is made[2]
    assert isinstance(made[0], Translation)
    assert made[0].text == here.run(good).text


def test_a_model_that_is_not_there_spoils_no_batch_of_others(translator: Translator) -> None:
    def load(model: Shipped) -> Translator:
        if model != TINY:
            raise CheckpointError(f"There is no model {model.name!r}")
        return translator

    here = Here(load, Kept(100, 2**24))
    made = here.run_all([Sentence(Shipped("nothing"), "Go."), Sentence(TINY, "Go.")])
    assert isinstance(made[0], CheckpointError)
    assert isinstance(made[1], Translation)
    with pytest.raises(CheckpointError, match="no model 'nothing'"):
        here.run(Sentence(Shipped("nothing"), "Go."))
