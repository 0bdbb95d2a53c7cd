"""The walk, heads off and the lens, each against the model's own run and modules."""

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.viz_core.hub.families import build, hooks, zero_head
from viz_core.hub import HubModel, Sampling, load_hub
from viz_core.lab.circuits import MAX_PLACES, through_the_layers
from viz_core.lab.heads_off import switchable, without_heads
from viz_core.lab.walk import walk_picture, walk_translation, walk_writing
from viz_core.lab.walk_records import Edits, Walk, walk_edits
from viz_core.pretrained import load
from viz_core.pretrained.samples import drawn_picture
from viz_core.trace import Trace, head_outputs, intervene, record

STORY, SENTENCE = "The little girl", "The black cat is sleeping on my bed."
TOLERANCE = 2e-5  # float32, after up to six layers


@cache
def writer() -> Any:
    return load_hub("writer-en", offline=True)


@cache
def translator() -> Any:
    return load("transformer-en-fr")


@cache
def classifier() -> Any:
    return load("vit-fashion-mnist")


def written(edits: Edits = ()) -> tuple[Walk, Trace]:
    walk = walk_writing(writer(), STORY, edits=edits)
    with intervene(walk_edits(edits)):
        run = writer().run(STORY, max_new_tokens=4)
        return walk, writer().recorded_again(run)


def translated(edits: Edits = ()) -> tuple[Walk, Trace]:
    walk = walk_translation(translator(), SENTENCE, edits)
    with intervene(walk_edits(edits)), torch.inference_mode():
        done = translator().translate(SENTENCE)
        with record(values=True) as trace:
            translator().model(*translator().teacher_forced(done.source_ids, done.target_ids))
    return walk, trace


def classified(edits: Edits = ()) -> tuple[Walk, Trace]:
    image = drawn_picture("ankle-boot")
    walk = walk_picture(classifier(), image, edits)
    pixels = classifier().prepare(image).pixels
    with intervene(walk_edits(edits)), torch.inference_mode(), record(values=True) as trace:
        classifier().model(pixels)
    return walk, trace


Case = Callable[..., tuple[Walk, Trace]]
KINDS = pytest.mark.parametrize("case", [written, translated, classified])
# One site of each kind of model.
SITES = {written: "decoder.1.self", translated: "decoder.2.cross", classified: "encoder.3.self"}


@KINDS
def test_every_array_is_that_of_the_trace(case: Case) -> None:
    walk, trace = case()
    assert walk.residual == 0
    calls = [call for stack in walk.stacks for block in stack.blocks for call in block.attentions]
    assert sorted(call.site for call in calls) == sorted(trace.sites)
    for call in calls:
        recorded = trace[call.site]
        exps = np.where(call.allowed, np.exp(call.scores - call.scores.max(axis=-1, keepdims=True)), 0)
        assert np.allclose(call.weights, exps / exps.sum(axis=-1, keepdims=True), atol=TOLERANCE)
        assert np.allclose(call.joined, call.outputs.transpose(1, 0, 2).reshape(call.joined.shape), atol=TOLERANCE)
        assert np.allclose(call.weights, recorded.weights()[0], atol=TOLERANCE)
        assert np.allclose(call.queries, recorded.source.queries[0], atol=TOLERANCE)
        assert np.allclose(call.keys, recorded.source.keys[0], atol=TOLERANCE)
        assert np.allclose(call.values, recorded.values[0], atol=TOLERANCE)
        assert np.allclose(call.outputs, head_outputs(recorded)[0], atol=TOLERANCE)


def test_states_are_sums_before_a_norm_and_normed_after_one() -> None:
    writing, translating, seeing = written()[0], translated()[0], classified()[0]
    for walk in (writing, seeing):  # norms first: plain sums
        for block in walk.stacks[0].blocks:
            (call,) = block.attentions
            assert np.allclose(call.state, block.input + call.added, atol=TOLERANCE)
            assert np.allclose(block.output, call.state + block.ffn, atol=TOLERANCE)
    encoder = translating.stacks[0].blocks[0]
    norm = translator().model.encoder.blks[0].addnorm1.ln
    summed = torch.from_numpy(encoder.input + encoder.attentions[0].added)
    assert np.allclose(encoder.attentions[0].state, norm(summed).numpy(), atol=TOLERANCE)


def test_the_words_chosen_are_those_of_the_model() -> None:
    run = writer().run(STORY, max_new_tokens=4)
    walk, _ = written()
    assert "".join(" " + word if word.isalpha() else word for word in walk.written).strip() == run.text.strip()
    done = translator().translate(SENTENCE)
    walk, _ = translated()
    assert walk.written == done.target_tokens[walk.num_given - 1 :]
    chosen = walk.choices[0]
    likeliest = float(np.exp(done.log_probabilities[walk.num_given - 1]))
    assert chosen.probabilities(chosen.numbers)[chosen.words.index(chosen.chosen)] == pytest.approx(likeliest, rel=1e-4)
    assert classified()[0].written == (classifier().classify(drawn_picture("ankle-boot")).label,)


@KINDS
def test_a_head_that_is_off_gives_nothing_and_everything_after_it_is_the_edited_models(case: Case) -> None:
    site = SITES[case]
    walk, trace = case((("off", site, "1"),))
    call = next(
        call for stack in walk.stacks for block in stack.blocks for call in block.attentions if call.site == site
    )
    assert not call.weights[1].any()
    assert not call.outputs[1].any()
    assert call.allowed[1].any()  # what the mask allows is still shown
    for other in (call for stack in walk.stacks for block in stack.blocks for call in block.attentions):
        assert np.allclose(other.weights, trace[other.site].weights()[0], atol=TOLERANCE)
    plain, _ = case()
    assert plain.follows(walk, 0)
    assert not np.allclose(plain.choices[0].distribution, walk.choices[0].distribution, atol=1e-4)


def test_a_hidden_key_has_no_weight_in_any_head() -> None:
    walk, _ = translated((("hide", "decoder.2.cross", "1", "2"),))
    call = walk.stacks[1].blocks[2].attentions[1]
    assert not call.allowed[:, 1, 2].any()
    assert not call.weights[:, 1, 2].any()
    assert np.allclose(call.weights.sum(axis=-1), 1, atol=TOLERANCE)


def test_temperature_and_top_k_shape_the_choice() -> None:
    choice = walk_writing(writer(), STORY, 1, Sampling(2.0, top_k=3)).choices[0]
    top = np.sort(np.array(choice.logits))[::-1][:3] / 2.0
    assert np.count_nonzero(choice.distribution) == 3
    assert np.sort(choice.distribution)[::-1][:3] == pytest.approx(np.exp(top) / np.exp(top).sum(), abs=1e-5)


TEXT = "The cat sat on the mat."
OFF = (("decoder.0.self", 1), ("decoder.1.self", 3))


def cut(model: HubModel, *heads: tuple[str, int]) -> Any:
    """A copy of the model with the columns of these heads at zero."""
    whole = copy.deepcopy(model.engine.model)
    for site, head in heads:
        zero_head(whole, site, head)
    return whole


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_next_words_and_perplexity_of_the_same_text(family: str, tiny_model: Callable[[str], HubModel]) -> None:
    model = tiny_model(family)
    run = model.run(TEXT, max_new_tokens=4)
    found = without_heads(model, run, OFF, position=2, count=5)
    ids = torch.tensor([[token.id for token in run.tokens]])
    with torch.inference_mode():
        both = [each(input_ids=ids).logits[0] for each in (model.engine.model, cut(model, *OFF))]
    perplexities = []
    for logits in both:
        log_p = logits.log_softmax(dim=-1)
        nll = [-float(log_p[i, ids[0, i + 1]]) for i in range(len(log_p) - 1)]
        perplexities.append(math.exp(np.mean(nll)))
    assert found.perplexity == pytest.approx(perplexities, rel=1e-4)
    assert found.perplexity is not None
    assert abs(found.perplexity[0] - found.perplexity[1]) > 1e-3 * found.perplexity[0]
    assert found.counted == len(run.tokens) - 1
    before, after = (logits[2].softmax(dim=-1) for logits in both)
    best = int(torch.maximum(before, after).argmax())
    assert found.changes[0].label == model.engine.tokenizer.read([best])[0].label
    assert (found.changes[0].before, found.changes[0].after) == pytest.approx(
        (float(before[best]), float(after[best])), abs=1e-5
    )
    assert len(found.changes) == 5
    same = without_heads(model, run, (), position=2)
    assert all(change.before == change.after for change in same.changes)


def test_an_encoders_output_turns_by_an_angle(tiny_model: Callable[[str], HubModel]) -> None:
    model = tiny_model("bert")
    run = model.run(TEXT, text_pair="A dog.")
    off = (("encoder.0.self", 2),)
    found = without_heads(model, run, off)
    with torch.inference_mode():
        after = cut(model, *off)(**run.inputs).last_hidden_state[0]
    before = run.output
    cos = (before * after).sum(-1) / (before.norm(dim=-1) * after.norm(dim=-1))
    assert found.distances is not None
    np.testing.assert_allclose(found.distances, 1 - cos, atol=1e-5)
    assert float(found.distances.max()) > 1e-3
    assert (found.changes, found.perplexity) == ((), None)


def test_layers_that_share_weights_are_switched_off_each_for_itself(tiny_model: Callable[[str], HubModel]) -> None:
    model = tiny_model("albert")
    run = model.run(TEXT)
    assert len(run.trace) == 3
    assert switchable(model, run) == tuple((f"encoder.{i}.self", 4) for i in range(3))
    engine = replace(model.engine, holds_maps=True)
    assert switchable(replace(model, engine=engine), run) == ()


Head = Callable[[Any, Tensor], Tensor]


def of_bert(model: Any, H: Tensor) -> Tensor:
    head = model.cls.predictions
    return head.decoder(head.transform.LayerNorm(nn.functional.gelu(head.transform.dense(H))))


def of_gemma2(model: Any, H: Tensor) -> Tensor:
    cap = model.config.final_logit_softcapping
    return cap * torch.tanh(model.lm_head(model.model.norm(H)) / cap)


# What is done to the states of each family, by hand.
HEADS: dict[str, Head] = {
    "gpt2": lambda model, H: model.lm_head(model.transformer.ln_f(H)),
    "llama": lambda model, H: model.lm_head(model.model.norm(H)),
    "gemma2": of_gemma2,
    "bert-fills": of_bert,
}


@pytest.mark.parametrize("family", HEADS)
def test_each_row_is_the_state_through_norm_and_head(family: str, tmp_path: Path) -> None:
    build(family, tmp_path)
    model = load_hub(tmp_path, device="cpu")
    assert model.card.head == ("mask" if family.endswith("fills") else "words")
    run = model.run(TEXT, **({} if family.endswith("fills") else {"max_new_tokens": 0}))
    listeners = hooks(model.network)
    found = through_the_layers(model, run)
    assert hooks(model.network) == listeners, "what listens sits on copies"
    assert found.residual < 1e-5
    assert len(found.tokens) == len(found.probabilities) == 3
    assert found.read == tuple(token.label for token in run.tokens)[-MAX_PLACES:]
    whole = model.engine.model
    ids = torch.tensor([[token.id for token in run.tokens]])
    with torch.inference_mode():
        result = whole(input_ids=ids, output_hidden_states=True)
        rows = [HEADS[family](whole, H)[0].softmax(dim=-1) for H in result.hidden_states[:-1]]
        rows.append(result.logits[0].softmax(dim=-1))
    final_word = rows[-1].argmax(dim=-1)
    for number, row in enumerate(rows):
        torch.testing.assert_close(torch.from_numpy(found.probabilities[number]), row.amax(dim=-1))
        best = model.engine.tokenizer.read(row.argmax(dim=-1).tolist())
        assert found.tokens[number] == tuple(token.label for token in best)
        followed = row.gather(-1, final_word[:, None])[:, 0]
        torch.testing.assert_close(torch.from_numpy(found.final_word[number]), followed)
    assert float((rows[0] - rows[-1]).abs().max()) > 1e-3, "rows that are all alike would prove nothing"
