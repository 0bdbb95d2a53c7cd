"""The tree of beam search and the logit lens, against a search and passes by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from viz_core.lessons.transformer.decoding import (
    BEAM,
    SAMPLE_ID,
    BeamTree,
    Lens,
    LogitSplit,
    beam_tree,
    sample,
    split_of_the_logits,
    through_the_layers,
)
from viz_core.pretrained import Translator, load
from viz_core.pretrained.samples import held_out

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
    assert tree.beam.log_probability == pytest.approx(-4.65, abs=0.01)
    assert tree.greedy.log_probability == pytest.approx(-7.12, abs=0.01)
    assert tree.beam.score > tree.greedy.score
    assert tree.greedy_steps == 5
    assert tree.steps[8][0].log_probability == pytest.approx(tree.beam.log_probability, abs=0.001)
    assert tree.steps[8][0].on_beam
    lost = next(node for node in tree.steps[5] if node.on_greedy)
    assert not lost.in_beam


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
    np.testing.assert_allclose(found.parts.sum(axis=0), found.differences, atol=1e-4)


def test_heads_are_sorted_and_nothing_else_is_among_them() -> None:
    names = (("constant", None, None), ("self", 0, 0), ("cross", 0, 0), ("cross", 0, 1), ("ffn", 0, None))
    parts = np.array([[9.0], [-2.0], [1.0], [0.5], [7.0]], dtype=np.float32)
    split = LogitSplit(names, parts, parts.sum(axis=0), ("a",), 0.0)
    assert split.strongest(0, 2) == [2, 1]
    assert split.strongest(0, 9) == [2, 3, 1]
    assert split.max_for(0) == 2
    assert split.of_heads(0) == pytest.approx(-0.5)


def test_words_that_only_the_last_layer_makes_likely() -> None:
    tokens = (("a", "x", "x"), ("a", "b", "x"), ("a", "b", "c"))
    written = np.array([[0.1, 0.1, 0.0], [0.2, 0.4, 0.0], [0.8, 0.6, 0.9]], dtype=np.float32)
    lens = Lens(tokens, written, written, 0.0)
    assert lens.before_and_after(("a", "b", "c")) == pytest.approx((2, 0.3, 0.7))
    assert lens.before_and_after(("d", "d", "d")) == (0, 0.0, 0.0)


def test_on_the_shipped_model_the_last_layer_makes_the_words_likely() -> None:
    """They were said to need no more than agreement of the last layer."""
    translator = load("transformer-en-fr")
    made = translator.translate("The black cat is sleeping on my bed.")
    early, before, after = through_the_layers(translator, made).before_and_after(made.target_tokens)
    assert early == 4
    assert before < 0.1 < 0.9 < after
