"""What the Transformer's chapter claims, against hooks; recorded runs, and recall by linear attention."""

import contextlib
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Generator, Tensor

from viz_core.attention import MultiHeadAttention
from viz_core.lessons import linear_attention
from viz_core.lessons.learning import head_measures, shot_weights
from viz_core.lessons.scoring_functions.score_contest import last_layer_input, word_scores
from viz_core.lessons.transformer import decoding
from viz_core.lessons.transformer import layers as claims
from viz_core.maps.fingerprints import row_sum_error
from viz_core.pretrained import Translation, Translator, load
from viz_core.pretrained.samples import held_out
from viz_core.runtime.hooks import interruptible
from viz_core.tasks import Plan, Shape
from viz_core.tasks.film import Film
from viz_core.trace import record, record_weights

SENTENCE = "The dog is in the house."


@pytest.fixture(scope="module")
def translation(translator: Translator) -> Translation:
    return translator.translate(SENTENCE, max_new_tokens=8)


def test_scores_of_words_are_those_of_the_last_layer(translator: Translator, translation: Translation) -> None:
    encoder, site = translator.model.encoder, f"encoder.{len(translator.model.encoder.blocks) - 1}.self"
    embedded = encoder.embed(torch.tensor([translation.source_ids]))[0]
    scores = word_scores(encoder.blocks[-1].attention, last_layer_input(encoder, embedded), head=1)
    rows = torch.stack([scores.weights(query) for query in range(len(embedded))])
    torch.testing.assert_close(rows, translation.trace[site].weights(head=1)[0], atol=1e-5, rtol=0)


def test_a_rival_is_the_most_likely_other_token(translator: Translator, translation: Translation) -> None:
    found = decoding.split_of_the_logits(translator, translation)
    source, target, lengths = translator.teacher_forced(translation.source_ids, translation.target_ids)
    logits = translator.model(source, target, lengths)[0]
    logits[:, [translator.special.pad, translator.special.bos]] = -torch.inf
    for step, token in enumerate(translation.target_ids):
        own, logits[step, token] = float(logits[step, token]), -torch.inf
        assert found.rivals[step] == translator.readable_tokens([int(logits[step].argmax())])[0]
        assert found.differences[step] == pytest.approx(own - float(logits[step].max()), abs=1e-5)
    np.testing.assert_allclose(found.parts.sum(axis=0), found.differences, atol=1e-4)


def remove_causal_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on no attention is causal."""
    attend_to = MultiHeadAttention.attend_to

    def to_all(self: MultiHeadAttention, *args: Any, causal: bool = False, **others: Any) -> Tensor:
        return attend_to(self, *args, **others)

    monkeypatch.setattr(MultiHeadAttention, "attend_to", to_all)


def test_all_hold_for_a_sound_model(translator: Translator, translation: Translation) -> None:
    assert row_sum_error(translation.trace) < 1e-5
    for call in translation.trace:
        if call.site.startswith("decoder") and call.kind == "self":
            assert claims.future_weight(call) == 0.0
    for step in range(len(translation.target_ids)):
        assert claims.future_leak(translator, translation, step) < 1e-5
    assert claims.translation_residuals(translator, translation)["cache"] == translation.cache_error < 1e-4
    encoder = translator.model.encoder
    assert claims.encoder_walk(translator, translation)[1]["walk"] < 1e-5
    assert claims.position_wise_error(encoder) < 1e-6


def test_future_weight_is_the_largest_above_the_diagonal() -> None:
    with record() as trace:
        record_weights(torch.tensor([[[[0.4, 0.35, 0.25], [0.2, 0.5, 0.3], [0.9, 0.05, 0.05]]]]))
        # two queries over three keys: the first query's newest step is key 1
        record_weights(torch.tensor([[[[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]]]))
    assert claims.future_weight(trace["attention.0"]) == pytest.approx(0.35)
    assert claims.future_weight(trace["attention.1"]) == pytest.approx(0.25)


def test_a_model_that_looks_ahead_is_noticed(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    remove_causal_mask(monkeypatch)
    translation = translator.translate(SENTENCE, max_new_tokens=8)
    assert claims.future_weight(translation.trace["decoder.0.self"]) > 1e-3
    assert claims.future_leak(translator, translation, len(translation.target_ids) - 1) > 1e-3
    assert translation.cache_error > 1e-3


SENTENCES = ("Go.", "She reads a book.", "Where is the cat?")


def way(tree: decoding.BeamTree, name: str) -> list[str]:
    """The tokens along a result, each the child of the one before."""
    found, parent = [], 0
    for i, step in enumerate(tree.steps):
        nodes = [j for j, node in enumerate(step) if getattr(node, name)]
        if not nodes:
            break
        assert len(nodes) == 1
        assert not i or step[nodes[0]].parent == parent
        parent = nodes[0]
        found.append(step[parent].token)
    return found


@pytest.mark.parametrize("text", SENTENCES)
def test_the_ways_are_the_results(translator: Translator, text: str) -> None:
    tree = decoding.beam_tree(translator, translator.translate(text))
    beam, greedy = (translator.translate(text, beam=width) for width in (decoding.BEAM, 1))
    assert tree.beam[:2] == (beam.text, beam.target_ids)
    assert way(tree, "on_beam") == list(beam.target_tokens)
    held = tree.greedy_steps
    assert way(tree, "on_greedy")[:held] == list(greedy.target_tokens[:held])
    assert tree.beam.score == pytest.approx(beam.log_probability / ((5 + len(beam.target_ids)) / 6))
    for step in tree.steps:
        assert [node.in_beam for node in step] == sorted((node.in_beam for node in step), reverse=True)
        assert sum(node.in_beam for node in step) <= decoding.BEAM


def test_beam_search_finds_for_the_sample_what_greedy_search_misses() -> None:
    """The shortest held-out sentence that the beam alone translates as a reference does: computed again."""
    translator = load("transformer-en-fr")
    tree = decoding.beam_tree(translator, translator.translate(decoding.sample()))
    references = next(each.references for each in held_out() if each.id == decoding.SAMPLE_ID)
    assert tree.beam.ids != tree.greedy.ids
    assert tree.beam.text in references
    assert tree.greedy.text not in references
    assert tree.beam.log_probability == pytest.approx(-2.22, abs=0.01)
    assert tree.greedy.log_probability == pytest.approx(-1.95, abs=0.01)
    assert tree.beam.score > tree.greedy.score
    assert tree.greedy_steps == 9
    assert tree.steps[10][0].log_probability == pytest.approx(tree.beam.log_probability, abs=0.001)
    assert tree.steps[10][0].on_beam
    rest = next(node for node in tree.steps[8] if node.on_greedy)
    assert (rest.in_beam, rest.ended) == (True, True)  # the beam holds greedy search's result, with a lower score


def test_the_lens_ends_with_the_models_own_logits(translator: Translator) -> None:
    """Through the decoder's last norm, which a hook makes felt: it is none where each block norms its output."""
    made = translator.translate("He is calm.")
    handle = translator.model.decoder.norm.register_forward_hook(lambda _module, _inputs, output: 2 * output)
    assert decoding.through_the_layers(translator, made).residual < 1e-4
    handle.remove()


def made_film(maps: np.ndarray, read: str) -> Film:
    """Shots every ten updates of these maps, (shots, layers, heads, n, n)."""
    updates, lengths = 10 * (len(maps) - 1), np.ones(maps.shape[:-1], np.float16)
    plan = Plan("repeat", Shape(num_layers=maps.shape[1], num_heads=maps.shape[2]))
    curve, held_out, spectra = (
        np.ones(updates, np.float32),
        np.ones(len(maps), np.float32),
        np.zeros((0, 0), np.float16),
    )
    shots, wanted = tuple(range(0, updates + 1, 10)), ("",) * len(read)
    return Film(plan, curve, curve, shots, held_out, maps.astype(np.float16), lengths, spectra, tuple(read), wanted)


EVEN = np.tril(np.ones((3, 3))) / np.arange(1, 4)[:, None]
PREVIOUS = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0]])
MAPS = np.stack([np.stack([EVEN, EVEN]), np.stack([EVEN, PREVIOUS])])[:, None]  # 2 shots, 1 layer, 2 heads


def test_measures_of_each_shot_and_head() -> None:
    found = head_measures(made_film(MAPS, "aba"))
    np.testing.assert_allclose(found["previous"][:, 0], [[5 / 12, 5 / 12], [5 / 12, 1]], atol=1e-3)
    np.testing.assert_allclose(found["induction"][:, 0], [[1 / 3, 1 / 3], [1 / 3, 1]], atol=1e-3)
    np.testing.assert_allclose(found["diagonal"][1, 0], [11 / 18, 1 / 3], atol=1e-3)
    np.testing.assert_allclose(found["first"][1, 0], [11 / 18, 2 / 3], atol=1e-3)
    np.testing.assert_allclose(found["entropy"][1, 0], [(1 + np.log2(3)) / 3, 0], atol=1e-2)
    np.testing.assert_allclose(shot_weights(made_film(MAPS, "aba"), 0).sum(dim=-1), 1, atol=1e-6)


def generator(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("writes", [1, 2])
def test_sequences_ask_for_every_key_and_want_its_last_value(writes: int, held_out: bool) -> None:
    drawn = linear_attention.draw_sequences(generator(), 40, 6, writes, held_out)
    for keys, values, queried, answers in zip(*(each.tolist() for each in drawn), strict=True):
        assert len(set(queried)) == 6
        assert [dict(zip(keys, values, strict=True))[key] for key in queried] == answers
        assert len(keys) == len(values) == 6 * writes
        assert ((keys[0] + values[0]) % 8 == 0) == held_out
    assert 0 <= drawn.values.min() <= drawn.values.max() < 16


@pytest.mark.parametrize("rule", linear_attention.RECALL_RULES)
def test_a_layer_is_its_formula(rule: linear_attention.RecallRule) -> None:
    layer = linear_attention.RecallLayer(rule, 4, generator()).double()
    keys, values, queried, _ = linear_attention.draw_sequences(generator(1), 2, 3, 2, held_out=False)
    k, q, v = torch.nn.functional.normalize(layer.keys, dim=-1), queried[0], layer.values[values[0]]
    if rule == "softmax":
        scores = layer.log_scale.exp() * k[q] @ k[keys[0]].T + layer.log_slope.exp() * torch.arange(6)
        outputs = scores.softmax(dim=-1) @ v
    else:
        state, strength = torch.zeros(4, 4).double(), layer.strength if rule == "delta" else 1.0
        for key, value in zip(k[keys[0]], v, strict=True):
            state = state + strength * torch.outer(key, value - key @ state if rule == "delta" else value)
        outputs = k[q] @ state
    expected = torch.nn.functional.rms_norm(outputs, (4,)) @ layer.head
    torch.testing.assert_close(layer(keys, values, queried)[0], expected)


def test_a_run_depends_on_its_plan_alone_and_can_be_interrupted_between_updates() -> None:
    plan = linear_attention.RecallPlan(steps=2, seed=2)
    whole, parts, first = linear_attention.RecallRun(plan), linear_attention.RecallRun(plan), list[float]()

    def check() -> None:
        if parts.step == 1:
            raise TimeoutError

    with interruptible(check), contextlib.suppress(TimeoutError):
        for loss in parts.advance():
            first.append(loss)
    assert parts.step == len(first) == 1
    rate = parts.optimizer.param_groups[0]["lr"]
    assert list(whole.advance()) == [*first, *parts.advance()]
    assert whole.finished
    assert whole.optimizer.param_groups[0]["lr"] == rate / 2  # it falls to 0
    assert list(whole.tests) == list(parts.tests) == [0, 1, 2]
    torch.testing.assert_close(whole.tests[2], parts.tests[2], rtol=0, atol=0)
    assert next(linear_attention.RecallRun(linear_attention.RecallPlan(steps=1, seed=3)).advance()) != first[0]


@settings(max_examples=25)
@given(seed=st.integers(0, 999), rule=st.sampled_from(linear_attention.RULES), decay=st.floats(0.5, 1.0))
def test_every_form_of_every_stream_agrees(seed: int, rule: linear_attention.RuleName, decay: float) -> None:
    stream = linear_attention.draw_stream(seed)
    forms = linear_attention.all_forms(stream.operator(rule, decay), stream.values)
    assert max(forms.map_error, forms.chunk_error) < 1e-12
    assert forms.later_weight == 0
    assert all(stream.last_written(letter, t) is not None for t, letter in enumerate(stream.wanted))


def test_costs_by_hand() -> None:
    """Three tokens of width 2: queries meet 1, 2 and 3 keys, 6 in all, each with two products of 2."""
    cost = linear_attention.head_cost(3, 2)
    assert cost == (24, 24, 12, 4)
