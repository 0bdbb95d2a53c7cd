"""Questions asked again: answered at a chapter's end, known or due on the page of all, and a sentence that says why."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from ui.chapter.contents import all_chapters
from ui.chapter.exercises import NUMBERS

DAY = 24 * 60 * 60 * 1000
IDEAS = len(all_chapters()[1:]) * len(NUMBERS)


def test_answers_are_known_until_they_are_due_and_stay_in_the_browser(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/multi-head?mh-open-review=true")
    questions = page.locator(".st-key-section-review fieldset")
    expect(questions).to_have_count(2)
    questions.nth(0).get_by_role("button", name="The number of attention weights").click()
    expect(questions.nth(0).get_by_role("status")).to_have_text("Right.")
    questions.nth(1).get_by_role("button", name="W_o stays").click()
    expect(questions.nth(1).get_by_role("status")).to_have_text(
        "Not quite. Fixed output matrix. Each head's part moves along. See the figure"
    )
    expect(questions.nth(1).get_by_role("status").locator("b")).to_have_text("Fixed output matrix.")
    questions.nth(1).get_by_role("link", name="See the figure").click()
    expect(page.locator(".st-key-card-main")).to_be_in_viewport()

    page.goto(f"{app_url}/review")
    row = page.locator("details", has_text="Multi-head attention")
    expect(row.locator(".chip").nth(0)).to_have_text(re.compile("^Cost of heads: until "))
    expect(row.locator(".chip").nth(1)).to_have_text("Order of heads: due")
    expect(page.get_by_text(f"1 of {IDEAS} ideas known, 1 due.")).to_be_visible()

    # A second right answer on the same day is no second day; four days later the question is due.
    page.evaluate(
        """day => {
            const answers = JSON.parse(localStorage.getItem("atlas.review"));
            answers["multi-head.1"].at -= 4 * day;
            localStorage.setItem("atlas.review", JSON.stringify(answers));
        }""",
        DAY,
    )
    page.reload()
    expect(page.get_by_text(f"0 of {IDEAS} ideas known, 2 due.")).to_be_visible()
    page.get_by_role("button", name="Only what is due").click()
    expect(page.locator("details:visible")).to_have_count(1)
    row.get_by_role("button", name="The number of attention weights").click()
    expect(page.get_by_text(f"1 of {IDEAS} ideas known, 1 due.")).to_be_visible()
    streak = page.evaluate("JSON.parse(localStorage.getItem('atlas.review'))['multi-head.1'].streak")
    assert streak == 2

    page.get_by_role("button", name="Forget my answers").click()
    expect(page.get_by_text(f"0 of {IDEAS} ideas known, 0 due.")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text(f"1 of {IDEAS} ideas known, 1 due.")).to_be_visible()


def test_a_reply_links_the_first_figure_of_a_chapter_without_a_main_one(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/queries-keys-values?qkv-open-review=true")
    page.get_by_role("button", name="The value of the best key").click()
    reply = page.get_by_role("status").filter(has_text="Hard choice.")
    reply.get_by_role("link", name="See the figure").click()
    expect(page.locator(".st-key-card-lookup")).to_be_in_viewport()
    expect(reply).to_be_attached()  # the page was not loaded again


def test_what_is_stored_by_others_breaks_nothing(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/review")
    page.evaluate("""localStorage.setItem("atlas.review", '{"multi-head.1": {"streak": "x"}, "nonsense": 3}')""")
    page.reload()
    expect(page.get_by_text(f"0 of {IDEAS} ideas known, 0 due.")).to_be_visible()


def test_questions_on_an_earlier_chapter_are_at_the_start(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/bahdanau")
    page.get_by_role("button", name="Before you start").click()
    expect(page.get_by_text("Two questions on Queries, keys and values")).to_be_visible()
    page.get_by_role("button", name="A weighted sum of all values").click()
    expect(page.get_by_role("status").filter(has_text="Right.")).to_be_visible()


def test_the_reason_waits_for_the_readers_own_sentence(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/multi-head?mh-guess-double=2")
    exercise = page.locator(".st-key-exercise-double")
    box = exercise.get_by_label("Why? Write one sentence.")
    reason = page.locator("[class*=st-key-reason-of-]")
    expect(box).to_be_visible()
    expect(reason).to_be_hidden()
    box.fill("Half as wide, twice as many.")
    exercise.get_by_role("button", name="Compare with ours").click()
    expect(reason).to_be_visible()
    page.reload()
    expect(box).to_have_value("Half as wide, twice as many.")
    expect(reason).to_be_visible()
    assert "Half" not in page.url
