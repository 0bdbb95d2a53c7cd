"""Questions asked again, and the model lab: a writer that ships, and a tiny hybrid in a folder of the host."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.page_checks import box_of
from tests.viz_core.hub.families import build_all
from ui.chapter.exercises import NUMBERS, reviewed_chapters
from viz_core.hub import load_hub

DAY = 24 * 60 * 60 * 1000
IDEAS = len(reviewed_chapters()) * len(NUMBERS)


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
    page.evaluate("""localStorage.setItem("atlas.review", '{"multi-head.1": {"streak": "x"}, "nonsense": 3}')""")
    page.reload()  # what others have stored breaks nothing
    expect(page.get_by_text(f"0 of {IDEAS} ideas known, 0 due.")).to_be_visible()


def test_an_answer_is_chosen_on_the_figure_by_keys(page: Page, app_url: str) -> None:
    """A place in a plotly figure, on a phone; the ring is then around the right one."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(reduced_motion="reduce")
    page.goto(f"{app_url}/linear-attention")
    start = page.get_by_role("button", name="Choose on the figure")
    start.click()
    marks = page.locator(".marks [role=radio]")
    expect(marks.first).to_be_focused()
    note = page.locator(".marks .note")
    page.locator(".stMain").evaluate("main => main.scrollTo(0, 0)")
    page.locator(".stMainBlockContainer > *").first.evaluate("page => (page.style.paddingBottom = '9rem')")  # grows
    for each in (note, *marks.all()):
        expect(each).to_be_in_viewport(ratio=1)
    above, box, below = map(box_of, (page.locator(".st-key-main-controls"), note, page.locator(".st-key-figure-state")))
    assert above["y"] + above["height"] <= box["y"] <= below["y"] - box["height"], "the question covers nothing"
    page.keyboard.press("ArrowRight")
    expect(marks.nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(note).to_contain_text("Not quite.")
    expect(note).to_be_in_viewport()
    expect(page.get_by_role("radio", checked=True).first).to_be_attached()
    assert "la-time=10" in page.url
    ring = page.locator(".marks .ring")
    place, right = ring.bounding_box(), marks.nth(2).bounding_box()
    assert place == pytest.approx(right, abs=2)
    start.click()
    expect(ring).to_have_count(0)


SLOW = 180_000  # the first model in a folder takes transformers' import along


@pytest.mark.parametrize("width", [1400, 390])
def test_after_a_guess_takeaways_open_and_what_then_breaks_the_figure_is_seen_with_it(
    page: Page, app_url: str, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{app_url}/transformer")
    question, choice = page.locator(".st-key-exercise-off"), page.locator(".st-key-breaks-main")
    question.locator("summary").click()
    question.get_by_text("None", exact=True).first.click()
    expect(page.locator(".st-key-takeaways li").first).to_be_visible()
    assert box_of(question)["y"] < box_of(choice)["y"]
    choice.get_by_role("radio").last.click()
    for each in (choice, choice.get_by_role("alert"), page.locator(".st-key-broken")):
        expect(each).to_be_in_viewport(ratio=0.9)
    assert box_of(choice)["y"] < box_of(question)["y"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_all(("qwen3_5_text",), tmp_path_factory.mktemp("models"))


def test_open_look_type_look(page: Page, lab_url: str) -> None:
    """No network and nothing fetched before: the first model is there, and has been asked something."""
    page.goto(lab_url)
    expect(page.get_by_text("It writes:")).to_be_visible(timeout=SLOW)
    expect(page.get_by_role("application", name=re.compile("^Attention map"))).to_be_visible(timeout=SLOW)
    expect(page.locator("[data-part=openName]")).to_have_text("Layer 3, head 3: previous token")
    assert box_of(page.locator(".st-key-stage"))["y"] < box_of(page.locator(".st-key-ml-break"))["y"]
    menu, more = (page.get_by_role("button", name=name, exact=True) for name in ("Switch and compare", "More"))
    assert box_of(menu)["y"] == box_of(more)["y"]
    page.set_viewport_size({"width": 390, "height": 844})
    box = page.get_by_label("Your text", exact=True)
    assert 0 <= box_of(box)["y"] - box_of(menu)["y"] - box_of(menu)["height"] < 8, "in the line of its label"
    expect(page.locator("[data-part=filter]")).to_be_visible()
    box.fill("Tom gave Mary a book. Tom gave")
    box.press("Control+Enter")
    run = load_hub("writer-en", device="cpu").run("Tom gave Mary a book. Tom gave", max_new_tokens=12)
    expect(page.get_by_text(f"It writes: {run.text.strip()}")).to_be_visible(timeout=SLOW)
    page.locator('button[data-layer="2"][data-head="3"]').click()
    page.wait_for_url(re.compile(r"head=decoder-self\.2\.3"))
    page.get_by_role("application", name=re.compile("^Attention map")).focus()
    page.keyboard.press("ArrowDown")
    announcement = page.locator("[aria-live]").filter(has_text=re.compile(r"Layer 3, head 4.* looks at .*\d\.\d\d"))
    expect(announcement).to_be_visible()
    found = re.search(r": (.+) looks at (.+), (\d\.\d+)\.", announcement.inner_text())
    assert found
    row, column = ([token.label for token in run.tokens].index(found[i]) for i in (1, 2))
    assert float(found[3]) == pytest.approx(float(run.trace["decoder.2.self"].weights()[0, 3, row, column]), abs=0.006)


def test_a_hybrid_shows_all_its_layers_in_order_each_with_its_kind(page: Page, lab_url: str, folders: Path) -> None:
    page.goto(f"{lab_url}?ml-model=qwen3_5_text&ml-start=The+cat&ml-new=2")
    run = load_hub(folders / "qwen3_5_text", device="cpu").run("The cat", max_new_tokens=2)
    expect(page.get_by_text(f"{len(run.tokens)} tokens · 16 maps")).to_be_visible(timeout=SLOW)
    headers = page.get_by_role("rowheader")
    expect(headers).to_have_text(["L1", "L2", "L3", "L4"])
    kinds = [header.get_attribute("title") for header in headers.all()]
    assert kinds == ["gated delta rule", "gated delta rule", "softmax", "gated delta rule"]
    note = page.get_by_text("Rows need not sum to 1; colours end at the largest weight here.")
    page.locator('button[data-layer="0"][data-head="1"]').click()
    expect(note).to_be_visible()
    page.get_by_role("application", name=re.compile("^Attention map")).focus()
    page.keyboard.press("ArrowDown")
    sign = "+" if run.trace["decoder.0.self"].weights(head=1)[0, 0, 0] > 0 else "−"
    announcement = page.locator("[aria-live]").filter(has_text=re.compile(rf"looks at .*{re.escape(sign)}\d"))
    expect(announcement).to_be_visible()
    undefined = page.get_by_text("so entropy and shares of attention are not defined for it")
    expect(undefined).to_be_visible()
    page.locator('button[data-layer="2"][data-head="1"]').click()
    expect(note).to_be_hidden()
    expect(undefined).to_be_hidden()
