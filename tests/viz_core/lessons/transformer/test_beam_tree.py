"""The tree of beam search: its ways end in the results, and the sample is one where the results differ."""

from __future__ import annotations

import pytest

from viz_core.lessons.transformer.decoding import BEAM, SAMPLE_ID, BeamTree, beam_tree, sample
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
