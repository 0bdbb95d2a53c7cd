"""A reader's walk: from the tokens to the word and back, into a cell and out, a head switched off and on again."""

import re
from functools import cache

import pytest
from playwright.sync_api import Page, expect

from ui.chapter.contents import WALK_STAGES
from ui.text.words import load_words
from viz_core.hub import load_hub
from viz_core.lab.walk import walk_writing
from viz_core.lab.walk_records import Walk

START = "walk?walk-at=tokens.0.0.0.0~0~3~~stage"
SCORES = "walk?walk-at=scores.0.0.0.0~1~3~~stage"


@cache
def walk() -> Walk:
    return walk_writing(load_hub("writer-en", offline=True), "The little girl")


@pytest.fixture
def walking(page: Page) -> Page:
    page.emulate_media(reduced_motion="reduce")  # nothing plays by itself, and the camera is there at once
    return page


def at(page: Page, **place: object) -> None:
    """The walk is at this place."""
    wanted = "".join(f'[data-{name}="{value}"]' for name, value in place.items())
    expect(page.locator(f".walk{wanted}")).to_be_visible()


def test_from_the_tokens_to_the_word_and_back(walking: Page, app_url: str) -> None:
    walking.goto(f"{app_url}/{START}")
    at(walking, stage="tokens")
    step, sentence = walking.get_by_role("button", name="Next step"), walking.locator("[data-part=say]")
    stages = [
        "embedding",
        "rotation",
        "projections",
        "scores",
        "mask",
        "softmax",
        "sum",
        "heads",
        "residual",
        "feed-forward",
    ]
    for stage in stages:
        step.click()
        at(walking, stage=stage, block=0)
    step.click()
    at(walking, stage="projections", block=1)  # asked for, and come
    walking.get_by_role("button", name="Choice").click()
    at(walking, stage="choice", block=3, round=0)
    expect(sentence).to_contain_text(f"“{walk().written[0]}”")
    step.click()
    at(walking, stage="again", round=1)
    expect(walking).to_have_url(re.compile(r"walk-at=again"))
    walking.get_by_role("slider", name="Time line").press("Home")
    at(walking, stage="tokens", round=0)


def test_into_a_cell_and_out_by_the_keyboard(walking: Page, app_url: str) -> None:
    walking.goto(f"{app_url}/{SCORES}")
    at(walking, stage="scores", head=1)
    stage = walking.get_by_role("application")
    stage.press("ArrowRight")
    stage.press("ArrowUp")
    at(walking, row=2)
    stage.press("+")
    at(walking, zoom="row")
    stage.press("+")
    at(walking, zoom="cell")
    call = walk().stacks[0].blocks[0].attentions[0]
    column = min(int(call.weights[1, 3].argmax()) + 1, 3)  # the arrow went to the right of the strongest key
    score = f"{call.scores[1, 2, column]:.3f}".replace("-", "−")
    expect(walking.locator("[data-part=sums]")).to_contain_text(f"Divided by √32: {score}")
    stage.press("-")
    stage.press("-")
    at(walking, zoom="stage")
    stage.press("-")
    stage.press("-")
    at(walking, zoom="model")


def test_a_head_is_switched_off_and_the_change_undone(walking: Page, app_url: str) -> None:
    walking.goto(f"{app_url}/{SCORES}")
    walking.get_by_role("button", name="Switch off head 2 of layer 1").click()
    at(walking, edits=1)
    expect(walking).to_have_url(re.compile(r"walk-edits=off_decoder\.0\.self_1"))
    walking.get_by_role("button", name="Choice").click()
    expect(walking.locator("[data-part=say]")).to_contain_text("ithout your changes")
    walking.get_by_role("button", name="Undo all changes").click()
    at(walking, edits=0)


def test_a_changed_word_and_temperature_stand_beside_what_was_and_are_undone(walking: Page, app_url: str) -> None:
    walking.goto(f"{app_url}/walk?walk-at=choice.0.3.0.0~0~3~~stage&w-temperature=0.5")
    at(walking, stage="choice", changed="true")
    text, outcomes = walking.get_by_label("Beginning of a text"), walking.locator("[data-part=outcomes] p")
    expect(text).to_have_value("The little girl")
    text.fill("The little boy")
    text.press("Enter")
    expect(outcomes.nth(0)).to_contain_text("The little girl → " + walk().written[0])
    expect(outcomes.nth(1)).to_contain_text("The little boy")
    expect(outcomes.nth(1).locator("span.changed")).to_have_text("boy")
    expect(walking.locator("[data-part=live]")).to_contain_text("The little boy →")
    walking.get_by_role("button", name="Undo all changes").click()
    at(walking, changed="false")
    expect(text).to_have_value("The little girl")
    expect(outcomes).to_have_count(0)
    expect(walking).not_to_have_url(re.compile("temperature|walk-was"))


def test_a_chapter_shows_where_it_is_and_each_dot_opens_its_stage(walking: Page, app_url: str) -> None:
    walking.goto(f"{app_url}/multi-head")
    dots = walking.get_by_role("navigation", name="You are here on the walk: Q, K, V, Heads").get_by_role("link")
    words = load_words("walk", "en")
    names = [words(f"view.stage-{stage}") for stage in WALK_STAGES]
    expect(dots).to_have_count(len(names))
    assert [dot.get_attribute("aria-label") for dot in dots.all()] == names
    assert [dot.get_attribute("aria-label") for dot in dots.all() if dot.get_attribute("aria-current")] == [
        "Q, K, V",
        "Heads",
    ]
    dots.nth(names.index("Softmax")).click()
    at(walking, stage="softmax")


def test_a_small_walk_plays_in_the_transformer_chapter(page: Page, app_url: str) -> None:
    page.emulate_media(reduced_motion="no-preference")
    page.goto(f"{app_url}/transformer")
    at(page, playing="true")
    page.get_by_role("link", name=load_words("walk", "en")("whole")).click()
    expect(page).to_have_url(re.compile("/walk"))


def test_it_plays_through_to_the_end(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/walk?walk-at=logits.0.3.0.3~0~3~~stage")
    at(page, stage="logits", round=3, playing="false")
    page.get_by_role("button", name="Play").click()
    at(page, stage="choice", round=3, playing="false")  # the last step, at its end
