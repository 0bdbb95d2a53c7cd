"""Break it: each setting turns the badges it says it turns, says why, and stands in the address."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.reading import badges, charts, texts
from tests.tiny_vit import GREY
from ui.chapter.contents import all_chapters
from ui.text.words import load_words

OpenPage = Callable[..., AppTest]
SCHEME = load_words("position-embeddings", "en")
SCORES = load_words("scoring-functions", "en")

# Of each chapter, and of a part of it after a colon: for each setting, words of the claims that fail with it, and of
# no other.
BREAKS: dict[str, dict[str, list[str]]] = {
    "attention-pooling": {
        "unguarded": ["reach a key sum to 1"],
        "signed": ["within the range"],
        "no-bias": ["gives the same curve"],
    },
    "bahdanau": {
        "undivided": ["every step's weights sum to one"],
        "no-tanh": ["recorded weights equal the formula's"],
    },
    "bahdanau: models": {"attended": ["does not change when all source states"]},
    "learning": {name: ["repeats unseen sequences", "an induction head forms"] for name in ("one-layer", "untrained")},
    "multi-head": {
        "wrong-root": ["the output equals that of", "the weights of all heads"],
        "dealt-out": ["the output equals that of", "the weights of all heads"],
        "undivided": ["the output equals that of", "the weights of all heads", "every row of every map sums to 1"],
    },
    "position-embeddings: absolute": {"by-offset": ["every row is the same"]},
    "position-embeddings: relative": {"left-padding": ["the skew equals"]},
    "position-embeddings: shaw": {"unclipped": ["to one side"]},
    "position-embeddings: relative-2d": {"column-major": ["row term plus column term"]},
    "position-embeddings: rotary": {"summed": ["n − m alone", "changes no length"]},
    "position-embeddings: alibi": {"from-one": ["of 8 heads", "of 16 heads"], "logarithm": ["every step costs"]},
    "position-embeddings: t5": {"one-way": ["16 ranges"]},
    "position-embeddings: order": {"no-order": ["shuffling changes the outputs"]},
    "relative-projection": {"mirrored": ["p_{i+\\delta}$ for all"]},
    "sinusoidal-encoding": {
        "no-cosine": [
            "the same squared length",
            "pairs repeat every",
            "similarity depends only on the offset, from",
        ],
        "odd": ["the same squared length", "similarity depends only on the offset, from"],
        "single": ["pairs repeat every", "similarity depends only on the offset, from"],
    },
    "architectures": {
        "shallow": ["as many layers as its path"],
        "deep": ["with one layer fewer no stack"],
    },
    "heads": {"no-chance": ["scores 0 for every role"]},
    "linear-attention": {"no-removal": ["what the state returns"]},
    "queries-keys-values": {
        "undivided": ["sum to 1", "gives itself all the weight", "all weights are equal"],
        "no-exp": ["gives itself all the weight", "all weights are equal"],
        "twins": ["gives itself all the weight"],
    },
    "scoring-functions": {"no-root": ["have variance 1"], "no-softmax": ["no weight is negative"]},
    "scoring-functions: mask": {
        "book-mask": ["scores are unchanged", "no weight on a masked key at lengths"],
        "no-delta": ["the formula equals", "sums to zero"],
    },
    "transformer": {
        "no-mask": ["sees a later one", "changing the last word"],
    },
    "vision-transformer": {name: ["patches in order, with their positions"] for name in ("shuffled", "no-positions")},
    "vision-transformer: lab": {"columns": ["rollout sums to one"]},
    "vision-transformer: order": {"with-positions": ["without positions, shuffling"]},
}
TYPED = {"pe-source": "sentence", "pe-text": "I lost my keys again"}
OPENED_AT: dict[str, dict[str, str]] = {
    **{
        f"position-embeddings: {name}": {
            "open-all": "false",
            "pe-section": "One scheme, closer",
            "pe-scheme": SCHEME(f"option.{name}"),
        }
        for name in ("absolute", "relative", "shaw", "relative-2d", "rotary", "alibi", "t5")
    },
    "position-embeddings: order": {"open-all": "false"} | TYPED,
    "transformer": {"t-text": "I lost."},
    "vision-transformer": {"vt-model": GREY},
    "vision-transformer: lab": {"vt-model": GREY},
    "vision-transformer: order": {"vt-model": GREY},
}

PARTS_WITH_A_CHOICE = (
    "bahdanau: models",
    "scoring-functions: mask",
    "vision-transformer: lab",
    "vision-transformer: order",
    "position-embeddings: order",
)
"""Parts that are broken by a control of their own, `break-PART`."""

# Broken on pages that another test opens: words of the claims.
REMOTE = {
    "queries-keys-values": ["in the cone", "in the convex hull"],
    "model-lab": ["every row of", "no token sees a later one", "no written token sees"],
    "position-embeddings": ["a share of that without positions", "share of its variance explained"],
    "transformer": ["more weight than length"],
}


@pytest.fixture
def around(request: pytest.FixtureRequest, chapter: str) -> None:
    """Small models where those that ship are large."""
    if chapter == "vision-transformer":
        request.getfixturevalue("small_vision_models")


@pytest.mark.parametrize(("chapter", "part"), [name.partition(": ")[::2] for name in BREAKS])
@pytest.mark.usefixtures("around")
def test_a_broken_setting_turns_its_badges_and_says_why(open_page: OpenPage, chapter: str, part: str) -> None:
    place = f"{chapter}: {part}" if part else chapter
    breaks, params = BREAKS[place], OPENED_AT.get(place, {})
    words = load_words(chapter, "en")
    key = words.prefix + "-break"
    if place in PARTS_WITH_A_CHOICE:
        key += f"-{part}"
    first = words(f"option.{next(iter(breaks))}")
    app = open_page(chapter, **params | {key: first})
    control = app.segmented_control(key=key)
    assert set(control.options) == {words("option.nothing"), *(words(f"option.{name}") for name in breaks)}
    for name, failing in breaks.items():
        if name != next(iter(breaks)):
            app.segmented_control(key=key).set_value(name).run()
        assert not app.exception
        assert words(f"break.{name}") in [warning.value for warning in app.warning]
        failed = [claim for claim, holds in badges(app).items() if not holds]
        assert len(failed) == len(failing), failed
        for phrase in failing:
            assert sum(phrase in claim for claim in failed) == 1, failed


def test_a_width_unlike_the_other_turns_the_badge_of_a_round_kernel(open_page: OpenPage) -> None:
    """Broken by the chapter's own sliders, beside which the page says why."""
    app = open_page("attention-pooling", **{"ap-section": "In the plane", "ap-width-x": "1.5"})
    assert [claim for claim, holds in badges(app).items() if not holds] == ["rotating both by 30° changes no weight"]
    assert "directions differ, so a rotation changes the weights" in texts(app)


def _may_say(claim: str, phrase: str) -> bool:
    """Whether a claim says these words once what it leaves open is filled in."""
    fillings = [*phrase.split(), *phrase.split(": ")[:-1]]
    return phrase in claim or any(
        phrase in re.sub(r"\{\w+\}", filling.replace("\\", ""), claim) for filling in fillings
    )


@pytest.mark.parametrize("chapter", all_chapters()[1:])
def test_every_claim_has_a_setting_that_breaks_it_or_a_sentence_why_none_does(chapter: str) -> None:
    words = load_words(chapter, "en")
    breaks = [settings for place, settings in BREAKS.items() if place.partition(": ")[0] == chapter]
    broken = [phrase for settings in breaks for failing in settings.values() for phrase in failing] + REMOTE.get(
        chapter, []
    )
    claims = {name.removeprefix("claim."): text for name, text in words.sections.items() if name.startswith("claim.")}
    assert claims
    for name, claim in claims.items():
        assert any(_may_say(claim, phrase) for phrase in broken) != words.has(f"unbroken.{name}"), name


@pytest.mark.parametrize(
    ("scheme", "setting", "intact", "broken"),
    [
        ("shaw", "unclipped", "index", "index"),
        ("relative-2d", "column-major", "grid", "grid"),
        ("alibi", "from-one", "penalty", "broken-penalty"),
        ("alibi", "logarithm", "penalty", "broken-penalty"),
        ("t5", "one-way", "buckets", "buckets"),
    ],
)
def test_a_wrong_scheme_is_drawn_beside_the_right_one(
    open_page: OpenPage, scheme: str, setting: str, intact: str, broken: str
) -> None:
    params = OPENED_AT[f"position-embeddings: {scheme}"]
    app = open_page("position-embeddings", **params | {"pe-break": SCHEME(f"option.{setting}")})
    (_, right), (_, wrong) = charts(app, intact) if intact == broken else [*charts(app, intact), *charts(app, broken)]
    assert not all(numbers_equal(*traces) for traces in zip(right, wrong, strict=True))


def numbers_equal(first: dict[str, object], second: dict[str, object]) -> bool:
    """Whether two traces draw the same numbers."""
    axis = "z" if "z" in first else "y"
    return np.array_equal(np.asarray(first[axis]), np.asarray(second[axis]))


def test_a_wrong_gradient_is_drawn(open_page: OpenPage) -> None:
    key = SCORES("option.no-delta")
    app = open_page("scoring-functions", **{"sf-section": "Masks", "sf-break-mask": key})
    (_, (right, *_)), (_, (wrong, *_)) = (*charts(app, "gradient"), *charts(app, "broken-gradient"))
    assert not numbers_equal(right, wrong)
