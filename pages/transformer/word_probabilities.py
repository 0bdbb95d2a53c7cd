"""Each French word with its probability and rivals, and the words that were rare in training.

Words are HTML of our own, with everything that comes from a model escaped. What lies behind a word shows over it, under
a pointer, at a tap, and when the Tab key comes to it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape

import pandas as pd
import streamlit as st

from ui.blocks.translation import TranslationInputs
from ui.chapter.chapter import Chapter
from ui.text.markdown import escape as escape_markdown
from ui.text.numbers import localised
from ui.text.words import Words
from viz_core.pretrained import Translation
from viz_core.pretrained.word_counts import FEW, word_counts
from viz_core.pretrained.word_probabilities import NUM_RIVALS, WordProbability


def about_words(chapter: Chapter, model: str, request: TranslationInputs, result: Translation) -> None:
    """Explain the words under the translation, and name the English words that were rare in training."""
    unsure = [word.text for word in result.words if word.is_uncertain]
    chapter.finding("hesitates", bool(unsure), count=len(unsure), words=len(result.words))
    counts = word_counts(model)
    rare = counts.rare_words(request.text) if counts else ()
    if counts and rare:
        named = [
            chapter.words("rare-few" if count else "rare-never", word=escape_markdown(word), count=count)
            for word, count in rare
        ]
        st.caption(chapter.words("rare", named=named, few=FEW, sentences=f"{counts.sentences:,}"))


def show_words(
    chapter: Chapter, key: str, words: Sequence[WordProbability], changed: Collection[int] = frozenset()
) -> None:
    """A line of words, each with its probability; those at the places `changed` are marked."""
    shown = (_word(chapter.words, f"{key}-{place}", word, place in changed) for place, word in enumerate(words))
    st.html(f'<p class="predicted">{" ".join(shown)}</p>')


def table_of_words(words: Sequence[WordProbability]) -> pd.DataFrame:
    """A row for each word: its probability, whether the model hesitates, and its rivals with theirs."""
    rows = []
    for word in words:
        row: dict[str, object] = {"word": word.text, "probability": word.probability, "hesitates": word.is_uncertain}
        for place, rival in enumerate(word.rivals, start=1):
            row |= {f"rival {place}": rival.text, f"p(rival {place})": rival.probability}
        rows.append(row)
    return pd.DataFrame(rows)


def _word(words: Words, key: str, word: WordProbability, changed: bool) -> str:
    classes = "predicted-word" + " predicted-unsure" * word.is_uncertain + " predicted-changed" * changed
    mark = "<b>?</b>" if word.is_uncertain else ""
    tip = f'<span class="predicted-tip" role="tooltip" id="{key}-tip">{_behind(words, word)}</span>'
    return (
        f'<span class="{classes}" tabindex="0" aria-describedby="{key}-tip">'
        f"<span><bdi>{escape(word.text)}</bdi>{mark}</span><small>{_percent(words, word.probability)}</small>"
        f"{tip}</span>"
    )


def _behind(words: Words, word: WordProbability) -> str:
    """The word's tokens where it has several, and its rivals."""
    factors = " × ".join(f"<bdi>{escape(token)}</bdi> {_percent(words, p)}" for token, p in word.tokens)
    whole = f"<bdi>{escape(word.text)}</bdi> {_percent(words, word.probability)}"
    first = f"{whole} = {factors}" if len(word.tokens) > 1 else whole
    rivals = "".join(
        f"<span><bdi>{escape(text)}</bdi> <span>{_percent(words, p)}</span></span>" for text, p in word.rivals
    )
    unsure = f"<i>{escape(words('said-unsure'))}</i>" if word.is_uncertain else ""
    return f"<b>{first}</b>{unsure}<i>{escape(words('said-rivals', count=NUM_RIVALS))}</i>{rivals}"


def _percent(words: Words, p: float) -> str:
    return localised(percent(p), words.language)


def percent(p: float) -> str:
    """A percentage without decimals, or with one where it is close to 0 or 100."""
    return f"{p:.0%}" if p >= 0.0995 else f"{p:.1%}" if p >= 0.0005 else "< 0.1%"
