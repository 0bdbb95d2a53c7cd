"""Links from before choices were moved or renamed open what they opened."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

OpenPage = Callable[..., AppTest]


@pytest.mark.parametrize(
    ("chapter", "former", "key", "value"),
    [
        ("architectures", {"a-break": "a layer too few"}, "a-break", "shallow"),
        ("attention-pooling", {"ap-break": "a kernel below zero"}, "ap-break", "signed"),
        ("bahdanau", {"b-break": "erase with attention"}, "b-break-models", "attended"),
        ("learning", {"l-source": "Train one here and now"}, "l-source", "own"),
        ("learning", {"l-measure": "si mesmo"}, "l-measure", "diagonal"),
        ("learning", {"l-source": "此時此地訓練一個"}, "l-source", "own"),
        ("position-embeddings", {"pe-break": "no-order"}, "pe-break-order", "no-order"),
        ("queries-keys-values", {"qkv-break": "negative"}, "qkv-break-plane", "negative"),
        ("queries-keys-values", {"qkv-break": "not divided"}, "qkv-break", "undivided"),
        ("scoring-functions", {"sf-break": "no delta"}, "sf-break-mask", "no-delta"),
        ("scoring-functions", {"sf-scene": "20 contra 2"}, "sf-scene", "widths"),
        ("transformer", {"t-break": "vectors of one length"}, "t-break-contributions", "as-long"),
        ("transformer", {"t-search": "束搜尋，寬 4"}, "t-search", "beam 4"),
        ("vision-transformer", {"vt-break": "columns divided"}, "vt-break-lab", "columns"),
        ("vision-transformer", {"vt-break": "positions kept"}, "vt-break-order", "with-positions"),
        ("vision-transformer", {"vt-sample": "T 恤"}, "vt-sample", "t-shirt"),
    ],
)
def test_a_former_choice_is_the_choice_of_today(
    open_page: OpenPage, chapter: str, former: dict[str, str], key: str, value: str
) -> None:
    app = open_page(chapter, **former)
    assert not app.exception
    assert app.session_state[key] == value
    (label,) = former.values()
    assert not [each.value for each in app.warning if f" = {label}" in each.value]  # none is called unknown


@pytest.mark.parametrize(
    ("chapter", "former"),
    [
        ("relative-projection", {"rp-section": "Can a model learn it?", "rp-reach": "100"}),
        ("relative-projection", {"rp-open-types": "true"}),
        ("bahdanau", {"b-open-worth": "true"}),
        ("multi-head", {"mh-section": "One batch or one by one"}),
        ("transformer", {"t-section": "What scores are made of", "t-terms-head": "3"}),
        ("vision-transformer", {"vt-open-depth": "true"}),
        ("position-embeddings", {"pe-section": "Shuffle the words", "pe-backwards": "true"}),
        ("position-embeddings", {"pe-break-shuffle": "unshuffled"}),
        ("queries-keys-values", {"qkv-against": "Hu", "qkv-open-ways": "true"}),
        ("model-lab", {"ml-section": "All heads at a glance", "ml-measure": "entropy"}),
        ("sinusoidal-encoding", {"se-section": "On a sentence", "se-sentence": "one two"}),
        ("multi-head", {"mh-open-cost": "true", "mh-count": "parameters"}),
        ("learning", {"l-open-measured": "true", "l-break-claims": "given"}),
        ("attention-pooling", {"ap-open-learn": "true", "ap-break-shortcut": "kept"}),
        ("attention-pooling", {"ap-break": "kept"}),
        ("architectures", {"a-open-table": "true", "a-guess-cheapest": "3"}),
        ("linear-attention", {"la-open-recall": "true", "la-guess-erase": "1"}),
        ("queries-keys-values", {"qkv-open-plane": "true", "qkv-guess-star-drawn": "true", "qkv-guess-star": "2013"}),
        ("scoring-functions", {"sf-open-shapes": "true", "sf-b": "3", "sf-sheet": "2"}),
        ("sinusoidal-encoding", {"se-open-curves": "true", "se-guess-wave-drawn": "true"}),
        ("vision-transformer", {"vt-open-patches": "true", "vt-filters": "first"}),
        ("architectures", {"a-open-climb": "true", "a-guess-climb": "1"}),
    ],
)
def test_a_link_to_a_section_that_was_dropped_opens_its_chapter(
    open_page: OpenPage, chapter: str, former: dict[str, str]
) -> None:
    app = open_page(chapter, **former)
    assert not app.exception
    assert not app.error
    assert not app.warning
