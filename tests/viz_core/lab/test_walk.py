"""The walk against the trace of the model's own run, and against its matrices, for all three kinds of model."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from viz_core.hub import HubError, Sampling, load_hub
from viz_core.images.drawn import drawn_picture
from viz_core.lab.walk import walk_picture, walk_translation, walk_writing
from viz_core.lab.walk_records import Edits, Walk, walk_edits
from viz_core.pretrained import TextError, load
from viz_core.trace import Trace, head_outputs, intervene, record

TEXT, SENTENCE = "The little girl", "The black cat is sleeping on my bed."
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
    walk = walk_writing(writer(), TEXT, edits=edits)
    with intervene(walk_edits(edits)):
        run = writer().run(TEXT, max_new_tokens=4)
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
        assert np.allclose(call.weights, recorded.weights()[0], atol=TOLERANCE)
        assert np.allclose(call.queries, recorded.source.queries[0], atol=TOLERANCE)
        assert np.allclose(call.keys, recorded.source.keys[0], atol=TOLERANCE)
        assert np.allclose(call.values, recorded.values[0], atol=TOLERANCE)
        assert np.allclose(call.outputs, head_outputs(recorded)[0], atol=TOLERANCE)


@KINDS
def test_each_stage_follows_from_the_one_before(case: Case) -> None:
    walk, _ = case()
    for stack in walk.stacks:
        for block in stack.blocks:
            for call in block.attentions:
                group = len(call.queries) // len(call.keys)
                keys, values = (np.repeat(each, group, axis=0) for each in (call.keys, call.values))
                products = call.queries @ keys.transpose(0, 2, 1) / np.sqrt(call.queries.shape[-1])
                assert np.allclose(call.scores, products, atol=TOLERANCE)
                exps = np.where(call.allowed, np.exp(call.scores - call.scores.max(axis=-1, keepdims=True)), 0)
                assert np.allclose(call.weights, exps / exps.sum(axis=-1, keepdims=True), atol=TOLERANCE)
                assert np.allclose(call.outputs, call.weights @ values, atol=TOLERANCE)
                joined = call.outputs.transpose(1, 0, 2).reshape(call.joined.shape)
                assert np.allclose(call.joined, joined, atol=TOLERANCE)


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


@KINDS
def test_blocks_follow_one_another_from_the_embedding_on(case: Case) -> None:
    for stack in case()[0].stacks:
        first = stack.embedded if stack.positions is None else stack.embedded + stack.positions
        assert np.allclose(stack.blocks[0].input, first, atol=TOLERANCE)
        for block, following in zip(stack.blocks, stack.blocks[1:], strict=False):
            assert np.array_equal(block.output, following.input)


def test_the_words_chosen_are_those_of_the_model() -> None:
    run = writer().run(TEXT, max_new_tokens=4)
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
    cold, warm = (walk_writing(writer(), TEXT, 1, Sampling(t, top_k=3)).choices[0] for t in (0.5, 2.0))
    for choice in (cold, warm):
        assert np.count_nonzero(choice.distribution) == 3
        assert choice.distribution.sum() == pytest.approx(1, abs=1e-6)
    assert cold.distribution.max() > warm.distribution.max()
    top = np.sort(np.array(warm.logits))[::-1][:3] / 2.0
    assert np.sort(warm.distribution)[::-1][:3] == pytest.approx(np.exp(top) / np.exp(top).sum(), abs=1e-5)


@pytest.mark.parametrize(
    "edit",
    [("off", "decoder.0.self"), ("off", "decoder.0.self", "x"), ("burn", "decoder.0.self", "1"), ("hide", "a", "1")],
)
def test_what_is_no_edit_is_refused(edit: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="expected|invalid literal"):
        walk_edits((edit,))


def test_bad_input_is_refused_as_by_the_models() -> None:
    with pytest.raises(HubError):
        walk_writing(writer(), " ")
    with pytest.raises(TextError):
        walk_translation(translator(), "")
    with pytest.raises(ValueError, match="decoder.9.self"):
        walk_translation(translator(), SENTENCE, (("off", "decoder.9.self", "0"),))
