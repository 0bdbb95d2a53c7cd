"""Heads switched off: the translation without them beside the one with, and what that costs on held-out sentences."""

from __future__ import annotations

from difflib import SequenceMatcher

import numpy as np
import streamlit as st

from pages.transformer.word_probabilities import show_words
from serving.models.model_spec import ShippedTranslator
from serving.requests.translation import held_out_statistics
from ui.blocks.heads_off import name_heads, score_examples
from ui.blocks.translation import TranslationInputs, show_result
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate_model, translation, translation_maps
from ui.text.words import current_language
from viz_core.maps.contribution_shares import ContributionKind
from viz_core.pretrained import Translation
from viz_core.pretrained.bleu import bleu_of
from viz_core.pretrained.samples import held_out
from viz_core.pretrained.tokenization import clean
from viz_core.trace import HeadsOff
from viz_core.view.map_group import MapGroup

_AT_ONCE = 25  # sentences between two steps of the progress


def show_both(
    chapter: Chapter, model: str, request: TranslationInputs, result: Translation, off: tuple[str, ...], heads: HeadsOff
) -> None:
    """Show the translation with and without the heads, changed words marked, and BLEU on demand."""
    without = translation(model, request.text, request.beam, heads)
    places = st.columns(2, gap="medium")
    both = zip(places, ("with", "without"), (result, without), words_changed(result, without), strict=True)
    for place, name, one, changed in both:
        with place, st.container(gap="xsmall", key=f"translation-{name}"):
            show_result(one)
            chapter.text(f"off-{name}", heads=name_heads(off), score=f"{one.log_probability:.2f}")
            show_words(chapter, f"said-{name}", one.words, changed)
    chapter.finding("same-translation", result.target_ids == without.target_ids)
    shipped = ShippedTranslator(model)

    def statistics(heads: HeadsOff, start: int, stop: int) -> np.ndarray:
        return evaluate_model(shipped, held_out_statistics, heads, start, stop)

    score_examples(chapter, shipped, statistics, bleu_of, heads, len(held_out()), _AT_ONCE)


def maps_without(
    model: str, request: TranslationInputs, off: tuple[str, ...], heads: HeadsOff, contribution_kind: ContributionKind
) -> tuple[tuple[MapGroup, ...], tuple[str, str]]:
    """The maps of the run without these heads, and labels of both runs."""
    maps = translation_maps(model, request.text, request.beam, current_language(), heads, contribution_kind)
    return maps, (clean(request.text), f"{clean(request.text)} − {name_heads(off)}")


def words_changed(one: Translation, other: Translation) -> tuple[frozenset[int], frozenset[int]]:
    """Places of the words of two translations that no longest common subsequence of the two pairs."""
    first, second = ([word.text for word in each.words] for each in (one, other))
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    same = [(block.a + i, block.b + i) for block in matcher.get_matching_blocks() for i in range(block.size)]
    unchanged = [{pair[side] for pair in same} for side in (0, 1)]
    return frozenset(range(len(first))) - unchanged[0], frozenset(range(len(second))) - unchanged[1]
