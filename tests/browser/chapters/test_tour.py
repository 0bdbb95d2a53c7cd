"""The guided tour, and presenting: one figure after another."""

import re

from playwright.sync_api import Locator, Page, expect

from tests.browser.accessibility import found_in
from tests.browser.page_checks import expect_rest
from ui.chapter.tour import Step, steps
from ui.text.words import languages, load_words

SIZES = ({"width": 1400, "height": 900}, {"width": 390, "height": 844})

# Over a grid on the place of a step: whether it is in the window above the bar, and what covers it.
_SEEN = """([key, part]) => {
  const whole = document.querySelector(`.stMainBlockContainer .st-key-${key}`);
  const main = whole.closest('[data-testid=stMain]').getBoundingClientRect();
  const bar = document.querySelector('.tour-bar').getBoundingClientRect();
  const inner = [...whole.querySelectorAll('*')].map((each) => each.shadowRoot?.querySelector(`[data-part="${part}"]`));
  const fits = (each) => each.offsetHeight + 16 <= main.height; // and the margin above it
  const place = (!fits(whole) && inner.find(Boolean)) || whole;
  const { left, top, width, height, bottom } = place.getBoundingClientRect();
  const covers = [];
  for (const x of [0.1, 0.5, 0.9]) for (const y of [0.05, 0.5, 0.95]) {
    const [px, py] = [left + x * width, top + y * height];
    const found = document.elementFromPoint(px, py);
    if (!found || !whole.contains(found)) covers.push([px, py, found?.className ?? found?.tagName]);
  }
  const across = left >= 0 && left + width <= innerWidth + 1;
  const inside = across && top >= 0 && bottom <= Math.min(bar.top, innerHeight) + 1;
  return { inside, covers, visibility: getComputedStyle(whole.firstElementChild).visibility };
}"""

# Of what a step hides: whether each element is, whether it can be pointed at, and whether the rest is seen.
_HIDDEN = """([key, parts]) => {
  const whole = document.querySelector(`.stMainBlockContainer .st-key-${key}`);
  const roots = [whole, ...[...whole.querySelectorAll('*')].map((each) => each.shadowRoot).filter(Boolean)];
  const all = parts.length ? roots.flatMap((root) => [...root.querySelectorAll(parts.join())]) : [...whole.children];
  const seen = (each) => getComputedStyle(each).visibility !== 'hidden';
  const gone = (each) => !seen(each) && getComputedStyle(each).opacity === '0';
  return { hidden: all.map(gone), inert: whole.inert, figure: seen(whole.firstElementChild) };
}"""

# Sentences of the pages that answer a step's question, outside its place: hidden until the guess.
ANSWERING = {"mask": ("sentences",), "waves": ("definition", "look.table"), "spare": ("finding.same-translation",)}
ANSWERING |= dict.fromkeys(("lookup", "temperature", "nearness"), ("definition",))


def answers_seen(page: Page, step: Step, language: str) -> list[bool]:
    """Whether each is seen: its longest part without markup."""
    words, seen = load_words(step.chapter, language), page.get_by_test_id("stMain").inner_text()
    parts = (re.split(r"[][$*{}\n]|\(#[\w-]+\)", words(name)) for name in ANSWERING.get(step.name, []))
    return [max(each, key=len).strip() in seen for each in parts]


def expect_step(page: Page, number: int, language: str = "en") -> Step:
    """The bar asks the step's question, its chapter is open, as the step sets it, and its place is in the window."""
    step = steps()[number - 1]
    bar, words = page.locator(".tour-bar"), load_words("tour", language)
    expect(bar.locator(".tour-place")).to_have_text(words("bar.place", place=number, count=len(steps())))
    expect(page.get_by_role("heading", level=1, name=load_words(step.chapter, language).title)).to_be_visible()
    expect(page.locator(f".stMainBlockContainer .st-key-{step.place}[data-toured]")).to_be_in_viewport()
    expect(page).to_have_url(re.compile(rf"/{step.chapter}[?]tour={number}&"))
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    return step


def expect_question(page: Page, step: Step, language: str = "en") -> None:
    """The question and its answers are there, and what they are about is not seen, heard or found yet."""
    question = step.question(language)
    expect(page.locator(".tour-sentence")).to_have_text(question.question)
    expect(page.locator(".tour-answer")).to_have_text([answer.text for answer in question.answers])
    assert question.why not in page.locator(".tour-bar").inner_text()
    there = [step.place, list(step.hides)]
    page.wait_for_function(f"(there) => ({_HIDDEN})(there).hidden.length", arg=there)  # a figure is drawn late
    found = page.evaluate(_HIDDEN, there)
    assert all(found["hidden"]), step.name
    assert found["inert"]
    assert not any(answers_seen(page, step, language)), step.name
    assert found["figure"] == bool(step.hides), "what is around the answer is seen"
    title = page.locator(f".st-key-{step.place} [data-piece=titleLine]")  # of a map: it says what its head does
    expect(title.locator("visible=true")).to_have_count(0)


def expect_shown(page: Page, step: Step, reply: str, language: str = "en") -> None:
    """The bar says what is shown, which is whole in the window, and nothing covers it."""
    expect(page.locator(".tour-sentence")).to_have_text(f"{reply} {step.question(language).why}".strip())
    expect(page.locator(".tour-answer")).to_have_count(0)
    expect_rest(page)
    assert all(answers_seen(page, step, language)), step.name
    page.wait_for_function(
        f"(place) => {{ const seen = ({_SEEN})(place); return seen.inside && !seen.covers.length }}",
        arg=[step.place, step.part],
        timeout=20_000,
    )


def test_every_step_asks_before_it_shows_and_what_it_says_is_in_view_and_so(page: Page, app_url: str) -> None:
    """The whole tour, half at a desk and half on a phone: a right guess, a wrong one and none, in turn."""
    language = languages()[1]  # in English tests/pages/test_tour.py reads each step
    common = load_words("common", language)
    page.set_viewport_size(SIZES[0])
    page.goto(f"{app_url}/{steps()[0].link}&lang={language}")
    for step in steps():
        expect_step(page, step.number, language)
        expect_question(page, step, language)
        right = [answer.mark for answer in step.question(language).answers].index("x")
        turn = step.number % 3
        if turn == 2:
            page.locator(".tour-show").click()
        else:
            page.locator(".tour-answer").nth(right if turn else right - 1).click()
        reply = re.sub(r"\*", "", common("right" if turn else "wrong")) if turn != 2 else ""
        expect_shown(page, step, reply, language)
        if step.number < len(steps()):
            page.set_viewport_size(SIZES[step.number > len(steps()) // 2])
            page.locator(".tour-next").click()
    right = [step for step in steps() if step.number % 3 == 1]
    recap = page.locator(".tour-recap li")
    expect(recap).to_have_count(1 + len(steps()))
    expect(recap.first).to_have_text(load_words("tour", language)("bar.recap", right=len(right), count=len(steps())))
    expect(recap.filter(has_text="✓")).to_have_count(len(right))
    second, third = (step.question(language) for step in steps()[1:3])
    expect(recap.nth(2)).to_contain_text(second.question)
    wrong, truth = recap.nth(3).locator("s, strong").all_inner_texts()
    assert (wrong, truth) == (third.answers[1].text, third.answers[2].text)
    assert page.evaluate("Object.keys(localStorage).filter((key) => key.includes('tour'))") == []
    page.get_by_text(load_words("tour", language)("bar.onward")).click()
    expect(page.locator("[class*=st-key-gallery-]").first).to_be_visible()


def test_with_keys_from_home_and_back_and_out(page: Page, app_url: str) -> None:
    """Guesses by Enter, on without a guess, back to what was guessed; outside the tour nothing is hidden or kept."""
    page.goto(app_url)
    page.get_by_test_id("stMain").get_by_role("link", name="Take the tour").click()
    first = expect_step(page, 1)
    expect_question(page, first)
    expect(page.get_by_label("Query", exact=True)).to_have_value("Lipten")
    page.locator(".tour-answer").first.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect_shown(page, first, "Yes.")
    following = page.get_by_role("link", name="Next", exact=True)
    expect(following).to_be_focused()
    page.keyboard.press("Enter")
    expect_question(page, expect_step(page, 2))
    expect(page.locator(".tour-answer").first).to_be_focused()
    for number in (3, 4):
        following.click()
        expect_question(page, expect_step(page, number))
    assert found_in(page, ".tour-bar") == []
    expect(page.locator(".st-key-sf-asks").get_by_role("radio").nth(1)).to_be_checked()
    page.get_by_role("link", name="Back", exact=True).click()
    expect_step(page, 3)
    expect(page.locator(".st-key-ap-query")).to_contain_text("1.5")
    page.go_back()
    fourth = expect_step(page, 4)
    page.locator("body").press("Escape")
    expect(page.locator(".tour-bar")).to_have_count(0)
    expect(page.locator(f".st-key-{fourth.place} > *").first).to_have_css("visibility", "visible")
    expect(page).to_have_url(re.compile(r"/scoring-functions[?](?!tour).*sf-asks=2"))


def expect_to_fill(page: Page, figure: Locator) -> None:
    filled = "(node) => node.clientWidth > 0.85 * innerWidth && node.clientHeight > 0.6 * innerHeight"
    for _ in range(240):
        if figure.evaluate(filled):  # a run may have put another node in its place
            return
        page.wait_for_timeout(250)
    raise AssertionError("it does not fill the window")


def test_a_link_opens_on_the_first_figure_keys_go_on_and_escape_ends(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/sinusoidal-encoding?present=1&se-n=40&lang=zh-TW")
    presenting = page.locator("html[data-presenting]")
    place = page.get_by_text(re.compile(r"^第 \d+ 張，共 \d+ 張$"))
    sidebar, map_ = page.get_by_test_id("stSidebar"), page.get_by_role("application").first
    expect(presenting).to_be_attached()
    expect(place).to_have_text(re.compile("^第 1 張"))
    expect(place).to_be_visible()
    expect(sidebar).to_be_hidden()
    expect(page.get_by_role("slider").filter(visible=True)).to_have_count(0)  # no control is left
    expect(page.locator("html")).to_have_css("font-size", "21px")
    for size in ({"width": 1400, "height": 900}, {"width": 1920, "height": 1080}):
        page.set_viewport_size(size)
        expect_to_fill(page, map_)
    page.keyboard.press("ArrowRight")
    expect(place).to_have_text(re.compile("^第 2 張"))
    expect(map_).to_be_hidden()
    page.keyboard.press("PageUp")
    expect(map_).to_be_visible()
    page.keyboard.press("Escape")
    expect(presenting).not_to_be_attached()
    expect(sidebar).to_be_visible()
    assert "present" not in page.url
    assert "se-n=40" in page.url
