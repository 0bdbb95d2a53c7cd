"""The guided tour, and presenting: one figure after another."""

import re

import pytest
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


def expect_step(page: Page, number: int, language: str = "en") -> Step:
    """The bar asks the step's question, its chapter is open, as the step sets it, and its place is in the window."""
    step = steps()[number - 1]
    bar, words = page.locator(".tour-bar"), load_words("tour", language)
    expect(bar.locator(".tour-place")).to_have_text(
        words("bar.place").replace("{place}", str(number)).replace("{count}", str(len(steps())))
    )
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
    assert found["figure"] == bool(step.hides), "what is around the answer is seen"


def expect_shown(page: Page, step: Step, reply: str, language: str = "en") -> None:
    """The bar says what is shown, which is whole in the window, and nothing covers it."""
    expect(page.locator(".tour-sentence")).to_have_text(f"{reply} {step.question(language).why}".strip())
    expect(page.locator(".tour-answer")).to_have_count(0)
    expect_rest(page)
    page.wait_for_function(
        f"(place) => {{ const seen = ({_SEEN})(place); return seen.inside && !seen.covers.length }}",
        arg=[step.place, step.part],
        timeout=20_000,
    )


def on_the_page(page: Page, key: str) -> str:
    """What a part of the page says, and what is said of its pictures."""
    within = page.locator(f".stMainBlockContainer .st-key-{key}")
    named = within.locator("[aria-label]").evaluate_all("(all) => all.map((each) => each.getAttribute('aria-label'))")
    return " ".join([within.inner_text(), *named])


_WITH_ALL_HEADS = {"off": "dans le parc", "spare": "n'irons pas"}


def expect_it_is_so(page: Page, step: Step, language: str) -> None:
    """Numbers with decimals and French words of what the step says are those of the page."""
    content = step.question(language).why
    if step.name in _WITH_ALL_HEADS:  # the step before shows another sentence
        result = page.locator(".stMainBlockContainer .st-key-result")
        expect(result).to_contain_text(_WITH_ALL_HEADS[step.name], use_inner_text=True)
        expect_rest(page)
    shown = on_the_page(page, step.place)
    for number in re.findall(r"\d+[.,]\d+|\d+%", content):
        assert number in shown, (step.name, number)
    if step.name == "translate":
        assert re.search(r"n'irons\??\s+35%", shown)
        assert re.search(r"pleut\s+98%", shown)
    if step.name == "off":
        assert "parc" not in shown
    if step.name == "spare":
        assert "n'irons pas" in shown
    if step.name == "silenced":
        assert "is a famous." in shown
        assert "is a famous singer." in page.locator(".stMainBlockContainer").inner_text()


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
        expect_it_is_so(page, step, language)
        if step.number < len(steps()):
            page.set_viewport_size(SIZES[step.number > len(steps()) // 2])
            page.locator(".tour-next").click()
    right = [step for step in steps() if step.number % 3 == 1]
    recap = page.locator(".tour-recap li")
    expect(recap).to_have_count(1 + len(steps()))
    expect(recap.first).to_have_text(load_words("tour", language)("bar.recap", right=len(right), count=len(steps())))
    expect(recap.filter(has_text="✓")).to_have_count(len(right))
    assert page.evaluate("Object.keys(localStorage).filter((key) => key.includes('tour'))") == []


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
    page.go_back()
    expect_question(page, expect_step(page, 4))
    page.get_by_role("button", name="Leave").click()
    expect(page.locator(".tour-bar")).to_have_count(0)
    page.goto(f"{app_url}/{first.link}")
    expect_question(page, expect_step(page, 1))


def test_a_place_that_rests_is_followed_when_the_page_above_it_grows(page: Page, app_url: str) -> None:
    """As on a slow computer, where a chart above it comes late; until the reader scrolls."""
    page.goto(f"{app_url}/{steps()[0].link}")
    place = page.locator(f".stMainBlockContainer .st-key-{expect_step(page, 1).place}")
    expect_rest(page)
    page.wait_for_timeout(1000)  # it has come to rest
    page.add_style_tag(content="[data-testid=stMain], [data-testid=stMain] * { overflow-anchor: none }")  # by us alone
    grow = """() => {
      const late = document.createElement("div");
      late.style.height = "2000px";
      document.querySelector(".stMainBlockContainer").prepend(late);
    }"""
    page.evaluate(grow)
    page.wait_for_timeout(500)
    expect(place).to_be_in_viewport()
    page.mouse.wheel(0, 10)
    page.wait_for_timeout(500)
    page.evaluate(grow)
    page.wait_for_timeout(500)
    expect(place).not_to_be_in_viewport()


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
    page.locator("body").press("p")
    expect(presenting).to_be_attached()
    page.keyboard.press("p")
    expect(presenting).not_to_be_attached()


@pytest.mark.parametrize(
    ("address", "shown", "title"),
    [
        ("transformer?present=exercise-aligner", ".st-key-exercise-aligner", "aligns the word being written"),
        ("multi-head?present=figure-flow&mh-open-flow=true", ".st-key-part-multi-head-figure-flow", ""),
        ("multi-head?present=figure-nowhere", ".st-key-maps", ""),
    ],
)
def test_a_link_begins_with_the_figure_or_question_it_names(
    page: Page, app_url: str, address: str, shown: str, title: str
) -> None:
    """Also in a section that is closed; where there is none of that name, with the first."""
    page.goto(f"{app_url}/{address}")
    presented = page.locator(f"{shown}:is([data-presented=figure], [data-presented=question])")
    expect(presented).to_be_visible()
    expect(presented).to_contain_text(title)
    page.wait_for_timeout(1000)  # sections open above it
    expect(presented).to_be_visible()
    assert address.split("present=")[1].split("&")[0] in page.url
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Escape")
    expect(page.locator("html[data-presenting]")).not_to_be_attached()
    expect(page).not_to_have_url(re.compile("present"))


def test_a_class_sees_the_sentence_and_all_figures(page: Page, app_url: str) -> None:
    """The chapter from its first figure to the last of its closed sections; its first question on the way."""
    page.goto(f"{app_url}/bahdanau?present=1&b-text=He+is+calm.")
    bar = page.get_by_role("toolbar", name="Present")
    expect(bar).to_contain_text("Bahdanau attention · He is calm. → Il est calme.")
    first = page.locator(".st-key-figure-weights")
    expect_to_fill(page, first)
    expect(page.get_by_text("has the largest weight").first).to_be_visible()  # what to look for

    question = page.locator(".st-key-exercise-bed")
    go_to(page, question)
    expect(question.get_by_text("a weight names a state")).to_have_count(0)
    question.get_by_text("The full stop").first.click()
    expect(question.get_by_text("a weight names a state")).to_be_visible()

    go_to(page, page.locator(".st-key-part-bahdanau-figure-alike-curves"))  # of a section that nobody has opened
    place = bar.get_by_text(re.compile(r"^\d+ of \d+$"))
    page.keyboard.press("Escape")
    expect(place).to_have_count(0)


def go_to(page: Page, figure: Locator) -> None:
    """Click until the figure is shown; where the chapter still opens its sections, wait for it."""
    expect(figure).to_be_attached()
    for _ in range(40):
        if figure.is_visible():
            return
        page.get_by_role("button", name="Next figure", exact=True).click()
    raise AssertionError("it is not among the figures")


def test_back_and_forward_between_two_presented_chapters(page: Page, app_url: str) -> None:
    """What a lesson or the tour opens without loading the page anew; each chapter's own figures are presented."""
    bar = page.get_by_role("toolbar", name="Present")
    page.goto(f"{app_url}/sinusoidal-encoding?present=1")
    expect(bar).to_contain_text("Sinusoidal encoding")
    expect_rest(page)
    page.evaluate(
        """() => {
          history.pushState({}, "", "relative-projection?present=1");
          dispatchEvent(new PopStateEvent("popstate", { state: {} }));
        }"""
    )
    expect(bar).to_contain_text("Relative projection")
    for step, name, title in (
        (page.go_back, "sinusoidal-encoding", "Sinusoidal encoding"),
        (page.go_forward, "relative-projection", "Relative projection"),
        (page.go_back, "sinusoidal-encoding", "Sinusoidal encoding"),
    ):
        step()
        expect(bar).to_contain_text(title)
        page.wait_for_timeout(1000)  # sections open
        expect(page).to_have_url(re.compile(f"/{name}[?].*present=1"))
        expect(bar).to_contain_text(title)
