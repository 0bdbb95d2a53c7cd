"""What the Transformer's chapter claims of a translation, against hooks and loops."""

import copy
import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from viz_core.attention import MultiHeadAttention
from viz_core.lessons.transformer import layers as claims
from viz_core.lessons.transformer.decoding import (
    BEAM,
    SAMPLE_ID,
    BeamTree,
    beam_tree,
    sample,
    split_of_the_logits,
    through_the_layers,
)
from viz_core.lessons.transformer.layers import encoder_shapes, saved_tensors, unmasked_logits
from viz_core.maps.fingerprints import row_sum_error
from viz_core.models import decoding_step
from viz_core.models.transformer import BlockOptions, TransformerEncoder
from viz_core.models.transformer_decoder import TransformerDecoder
from viz_core.pretrained import Translation, Translator, load
from viz_core.pretrained.samples import held_out
from viz_core.trace import record, record_weights

SENTENCE = "The dog is in the house."


@pytest.fixture(scope="module")
def translation(translator: Translator) -> Translation:
    return translator.translate(SENTENCE, max_new_tokens=8)


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


@pytest.mark.parametrize(("beam", "plain"), [(1, False), (3, False), (1, True), (3, True)])
def test_a_cache_that_forgets_its_place_is_noticed(
    translator: Translator, monkeypatch: pytest.MonkeyPatch, beam: int, plain: bool
) -> None:
    """In the decoder's own modules, and in the step that stands for them."""
    positions, step_of = translator.model.decoder.pos_encoding, decoding_step.plain_step

    def from_the_start(decoder: TransformerDecoder, rows: int) -> decoding_step.Step:
        step = step_of(decoder, rows)
        return lambda X, state: step(X, state._replace(num_steps=0))

    if plain:
        monkeypatch.setattr(decoding_step, "plain_step", from_the_start)
    else:
        monkeypatch.setattr(positions, "forward", lambda X, **_: type(positions).forward(positions, X))
    broken = translator.translate(SENTENCE, max_new_tokens=8, beam=beam)
    assert claims.translation_residuals(translator, broken)["cache"] > 1e-3


def test_a_shortcut_past_the_shown_steps_is_noticed(translator: Translator, translation: Translation) -> None:
    model = copy.deepcopy(translator.model)
    model.encoder.register_forward_hook(lambda _, __, output: output * 1.01)
    broken = dataclasses.replace(translator, model=model)
    assert claims.encoder_walk(broken, translation)[1]["walk"] > 1e-3


def test_a_net_that_tells_positions_apart_is_noticed(translator: Translator) -> None:
    encoder = copy.deepcopy(translator.model.encoder)

    class Positioned(nn.Module):
        def forward(self, X: Tensor) -> Tensor:
            return X + torch.arange(X.shape[1])[:, None]

    encoder.blocks[0].ffn = Positioned()
    assert claims.position_wise_error(encoder, num_positions=5) == pytest.approx(4.0)


def test_the_books_shapes() -> None:
    assert encoder_shapes() == {"block": (2, 100, 24), "encoder": (2, 100, 24)}


@pytest.mark.parametrize("norm_first", [False, True])
def test_without_its_mask_a_decoder_reads_ahead(norm_first: bool) -> None:
    torch.manual_seed(0)
    encoder = TransformerEncoder(9, 16, 32, 2, 2, 0.0).eval()
    decoder = TransformerDecoder(9, 16, 32, 2, 2, 0.0, options=BlockOptions(norm_first=norm_first)).eval()
    with torch.inference_mode():
        memory = encoder(torch.tensor([[1, 2, 3]]))
        one = torch.tensor([[4]])  # a single step has no future: masked or not is the same
        causal = decoder(one, decoder.init_state(memory))[0]
        torch.testing.assert_close(unmasked_logits(decoder, one, memory, None), causal)
        first, second = (unmasked_logits(decoder, torch.tensor([[4, word]]), memory, None) for word in (5, 6))
        assert float((first - second)[:, 0].abs().max()) > 1e-3
    assert saved_tensors(encoder) == saved_tensors(decoder) == 0
    decoder.map = torch.zeros(1)
    assert saved_tensors(decoder) == 1


SENTENCES = ("Go.", "She reads a book.", "Where is the cat?")


def way(tree: BeamTree, name: str) -> list[str]:
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
    tree = beam_tree(translator, translator.translate(text))
    beam, greedy = (translator.translate(text, beam=width) for width in (BEAM, 1))
    assert tree.beam[:2] == (beam.text, beam.target_ids)
    assert way(tree, "on_beam") == list(beam.target_tokens)
    held = tree.greedy_steps
    assert way(tree, "on_greedy")[:held] == list(greedy.target_tokens[:held])
    assert tree.beam.score == pytest.approx(beam.log_probability / ((5 + len(beam.target_ids)) / 6))
    for step in tree.steps:
        assert [node.in_beam for node in step] == sorted((node.in_beam for node in step), reverse=True)
        assert sum(node.in_beam for node in step) <= BEAM


def test_beam_search_finds_for_the_sample_what_greedy_search_misses() -> None:
    """The shortest held-out sentence that the beam alone translates as a reference does: computed again."""
    translator = load("transformer-en-fr")
    tree = beam_tree(translator, translator.translate(sample()))
    references = next(each.references for each in held_out() if each.id == SAMPLE_ID)
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


def test_a_rival_is_the_most_likely_other_token(translator: Translator) -> None:
    made = translator.translate("The cat is on the bed.", max_new_tokens=4)
    found = split_of_the_logits(translator, made)
    source, target, lengths = translator.teacher_forced(made.source_ids, made.target_ids)
    with torch.inference_mode():
        logits = translator.model(source, target, lengths)[0]
    for step, token in enumerate(made.target_ids):
        ids = [i for i in range(logits.shape[1]) if i not in {token, translator.special.pad, translator.special.bos}]
        rival = max(ids, key=lambda i: float(logits[step, i]))
        assert found.rivals[step] == translator.readable_tokens([rival])[0]
        assert found.differences[step] == pytest.approx(float(logits[step, token] - logits[step, rival]), abs=1e-5)
    assert found.residual < 1e-4
    assert len(found.heads) == 2 * 2 * 4
    heads = [i for i, (name, *_) in enumerate(found.names) if name in ("self", "cross")]
    assert found.strongest(0, 3) == sorted(heads, key=lambda i: -abs(found.parts[i, 0]))[:3]
    assert found.of_heads(0) == pytest.approx(found.parts[heads, 0].sum(), abs=1e-5)
    np.testing.assert_allclose(found.parts.sum(axis=0), found.differences, atol=1e-4)


def test_the_lens_ends_with_the_models_own_logits(translator: Translator) -> None:
    """Through the decoder's last norm, which a hook makes felt: it is none where each block norms its output."""
    made = translator.translate("He is calm.")
    handle = translator.model.decoder.norm.register_forward_hook(lambda _module, _inputs, output: 2 * output)
    assert through_the_layers(translator, made).residual < 1e-4
    handle.remove()


def test_on_the_shipped_model_the_last_layer_makes_the_words_likely() -> None:
    """They were said to need no more than agreement of the last layer."""
    translator = load("transformer-en-fr")
    made = translator.translate("The black cat is sleeping on my bed.")
    early, before, after = through_the_layers(translator, made).before_and_after(made.target_tokens)
    assert early == 4
    assert before < 0.15 < 0.9 < after
