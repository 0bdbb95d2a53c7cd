"""The table of contents, the way back, a page by keyboard alone, and its language; scripts that no server answers."""

import re
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote_plus

from playwright.sync_api import Locator, Page, Response, Route, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from tests.browser.page_checks import box_of, expect_rest
from ui.chapter.contents import all_chapters
from ui.compute.heads import head_scans
from ui.text.words import load_words
from viz_core.pretrained import load
from viz_core.pretrained.samples import sentence
from viz_core.view.components import read_component


def test_the_gallery_leads_to_every_chapter_by_its_picture_and_each_has_a_title(page: Page, app_url: str) -> None:
    files: list[Response] = []
    frames: list[int] = []
    page.on("response", lambda answer: files.append(answer) if "/linked_sentences-" in answer.url else None)
    page.on("websocket", lambda socket: socket.on("framereceived", lambda data: frames.append(len(data))))
    page.goto(app_url)
    main = page.get_by_test_id("stMain")
    expect(main.get_by_role("button", name="noir")).to_be_visible()
    assert len(files[0].body()) + sum(frames) < 150_000
    for name in all_chapters()[1:]:
        expect(main.locator(f".st-key-card-{name}").get_by_role("link", name=load_words(name).menu)).to_be_visible()
        link = page.get_by_test_id("stSidebarNav").get_by_role("link", name=load_words(name).menu, exact=True)
        expect(link).to_have_attribute("href", re.compile(f"/{name}$"))
    expect(page).to_have_title("Attention Atlas")
    expect_rest(page)  # nothing moves any more
    page.set_viewport_size({"width": 390, "height": 844})
    order = (".st-key-card-linear-attention", "h2#positions", ".st-key-card-sinusoidal-encoding")
    tops = [box_of(main.locator(each))["y"] for each in order]
    assert tops == sorted(tops)
    page.locator(".st-key-card-transformer img").click(force=True)  # the link lies over it
    page.wait_for_url("**/transformer")
    expect(page.get_by_role("heading", level=1, name=load_words("transformer").title)).to_be_visible()
    expect(page).to_have_title("The Transformer · Attention Atlas")


def test_back_goes_through_what_was_typed_and_stays_in_the_chapter(page: Page, app_url: str) -> None:
    page.goto(app_url)
    page.wait_for_function("history[Symbol.for('atlas.history')]")
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="Bahdanau attention").click()
    box = page.get_by_label("An English sentence")
    expect(box).not_to_have_value("")
    start = box.input_value()
    for text in ("I lost.", "Go."):
        box.fill(text)
        box.press("Enter")
        page.wait_for_url(f"**/bahdanau?b-text={quote_plus(text)}*")
    page.get_by_text("an old book", exact=True).click()
    page.wait_for_url(f"**/bahdanau?b-text={quote_plus(sentence('book'))}*")
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="The Transformer").click()
    page.wait_for_url("**/transformer?t-text=*")  # the sentence came along, and one press goes back
    expect(box).to_have_value(sentence("book"))
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    page.go_back()
    page.wait_for_url(f"**/bahdanau?b-text={quote_plus(sentence('book'))}*")
    for text in ("Go.", "I lost.", start):
        expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
        page.go_back()
        expect(box).to_have_value(text)
    page.go_back()
    expect(page).to_have_title("Attention Atlas")


def go_to(page: Page, wanted: Locator, most: int = 120) -> None:
    """Press Tab until this has the focus, where everybody sees it."""
    for _ in range(most):
        if wanted.count() == 1 and wanted.evaluate("node => node.getRootNode().activeElement === node"):
            assert wanted.evaluate("node => getComputedStyle(node).outlineStyle !== 'none' || node.tagName === 'INPUT'")
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{most} presses of Tab do not reach {wanted}")


def test_a_sentence_is_typed_a_head_opened_and_switched_off_a_token_pinned_and_the_link_copied(
    page: Page, app_url: str
) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{app_url}/transformer")
    box = page.get_by_label("An English sentence")
    expect(box).not_to_have_value("")
    expect_rest(page)
    go_to(page, box)
    page.keyboard.press("Control+A")
    page.keyboard.type("I lost.")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("t-text=I\\+lost"))
    # The page rests while it waits for the translation, and its maps replace those that could have the focus.
    expect(page.get_by_role("heading", name=load("transformer-en-fr").translate("I lost.").text)).to_be_visible()
    expect_rest(page)
    go_to(page, page.get_by_role("tab", name="Cross"))
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(re.compile(r"head=decoder-self\.0\.0"))
    page.keyboard.press("ArrowRight")
    go_to(page, page.locator("button.head[aria-selected=true]"))
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile(r"head=cross\.1\.1"))
    expect_rest(page)
    go_to(page, page.locator("[data-part=openSwitch]"))
    page.keyboard.press("Space")
    page.wait_for_url(re.compile("t-without=cross-2\\.2"))
    expect(page.locator(".st-key-translation-without")).to_be_visible()
    expect_rest(page)
    go_to(page, page.locator("[data-part=exports] summary"))
    page.keyboard.press("Enter")
    go_to(page, page.locator("[data-export=link]"))
    page.keyboard.press("Enter")
    expect(page.locator("[data-part=exportNote]")).not_to_be_empty()
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    page.keyboard.press("Escape")
    go_to(page, page.get_by_role("application"))
    page.keyboard.press("ArrowDown")  # shows the first cell
    page.keyboard.press("Enter")
    expect(page.get_by_text("Pinned: ")).to_be_visible()


def test_points_of_a_chart_are_walked_by_height_named_and_chosen(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/heads?hs-y=previous")
    chart = page.locator(".st-key-figure-heads [data-drawn]")
    expect(chart).to_be_visible()
    expect_rest(page)
    go_to(page, chart)
    announcement, table = chart.locator("[aria-live]"), head_scans("writer-en").tables["narrow", "decoder-self"]
    ranked = [table.heads[place] for place in table.plotted("previous").argsort()]
    for layer, head in (ranked[-1], ranked[-2]):
        page.keyboard.press("ArrowDown")
        expect(announcement).to_contain_text(f"layer {layer + 1}, head {head + 1}")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(rf"head=decoder-self\.{ranked[-2][0]}\.{ranked[-2][1]}"))


def test_a_script_that_comes_cut_short_leaves_a_sentence_and_the_page(page: Page, app_url: str) -> None:
    def half(route: Route) -> None:
        code = route.fetch().text()
        route.fulfill(body=code[: len(code) // 2], content_type="text/javascript")

    page.route("**/heatmap-*.js", half)
    page.goto(f"{app_url}/sinusoidal-encoding")
    expect(page.get_by_text(load_words("common")("no-script").split(":")[0]).first).to_be_visible()
    expect(page.get_by_role("heading", level=1).first).to_be_visible()


CHAPTER = "queries-keys-values"
POINT_AT = """(term) => {
    const texts = document.createTreeWalker(document.querySelector(".stMain"), NodeFilter.SHOW_TEXT);
    for (let node; (node = texts.nextNode()); ) {
        const start = node.data.indexOf(term);
        if (start < 0 || !node.parentElement.closest(".stMarkdown p")) continue;
        if (node.parentElement.closest("a, button, label, summary")) continue; // these do something else
        node.parentElement.scrollIntoView({ block: "center", behavior: "instant" });
        const range = document.createRange();
        range.setStart(node, start);
        range.setEnd(node, start + term.length);
        const { left, top, width, height } = range.getBoundingClientRect();
        return [left + width / 2, top + height / 2];
    }
}"""


def expect_title(page: Page, language: str) -> None:
    expect(page.get_by_role("heading", level=1, name=load_words(CHAPTER, language).title, exact=True)).to_be_visible()
    expect_rest(page)


def choose(page: Page, label: str, option: str) -> None:
    box = page.get_by_role("combobox", name=label, exact=True)
    box.click()
    page.get_by_role("option", name=option, exact=True).click()


def test_a_chosen_language_is_there_at_the_next_visit_and_a_link_does_not_change_it(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/{CHAPTER}")
    expect_title(page, "en")
    choose(page, "Language", "Português (Brasil)")
    expect_title(page, "pt-BR")
    page.wait_for_function("document.cookie.includes('atlas-language=pt-BR')")

    page.goto("about:blank")
    page.goto(f"{app_url}/{CHAPTER}")
    expect_title(page, "pt-BR")
    page.wait_for_url("**lang=pt-BR*")  # a copied link shows the same to somebody else

    page.goto(f"{app_url}/{CHAPTER}?lang=zh-TW")
    expect_title(page, "zh-TW")
    page.goto("about:blank")
    page.goto(f"{app_url}/{CHAPTER}")
    expect_title(page, "pt-BR")


def test_a_term_that_is_pointed_at_is_named_in_the_other_languages(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/{CHAPTER}")
    expect_title(page, "en")
    expect_rest(page)  # what is drawn later moves the term away
    tooltip = page.get_by_role("tooltip")
    expect_tooltip(page, "query", "consulta · 查詢")
    page.keyboard.press("Escape")
    expect(tooltip).to_have_count(0)
    page.goto(f"{app_url}/{CHAPTER}?lang=zh-TW")
    expect_title(page, "zh-TW")
    expect_rest(page)
    page.evaluate(POINT_AT, "鍵")  # scrolls, which would hide what is shown
    page.wait_for_timeout(300)
    page.mouse.click(*page.evaluate(POINT_AT, "鍵"))  # touched
    expect(tooltip.first).to_contain_text("key · chave")


def expect_tooltip(page: Page, term: str, text: str) -> None:
    """Point at a term until the page listens, which it may not yet while its scripts come."""
    tooltip = page.get_by_role("tooltip")
    for _ in range(60):
        page.mouse.move(*page.evaluate(POINT_AT, term))
        with suppress(PlaywrightTimeout):
            tooltip.wait_for(timeout=1_000)
            break
        page.mouse.move(1, 1)
    expect(tooltip).to_have_text(text)


def test_readout_badge_tooltip_chart_and_export_have_numbers_of_the_language(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/{CHAPTER}?lang=pt-BR&open-all=true")
    expect_title(page, "pt-BR")
    lookups = page.locator(".st-key-section-ways")
    lookups.scroll_into_view_if_needed()
    expect(lookups.get_by_text("pontuação 0,50")).to_be_visible()
    expect_rest(page)
    badges = page.locator("[class*='claim'] code")
    expect(badges.filter(has_text="0,0012")).to_be_attached()
    page.locator("details").filter(has=badges.filter(has_text="0,0012")).locator("summary").click()
    expect(badges.filter(has_text="0,0012")).to_be_visible()
    chart = page.get_by_role("figure").first.locator("text")
    expect(chart.filter(has_text=re.compile(r"^0,898$"))).to_be_visible()
    tooltip = page.get_by_test_id("stTooltipContent")
    for _ in range(10):  # what is drawn above moves the button away from the pointer
        page.get_by_role("button", name="Ajuda", exact=True).nth(2).hover()
        with suppress(PlaywrightTimeout):
            tooltip.wait_for(timeout=2_000)
            break
        page.mouse.move(1, 1)
    expect(tooltip).to_contain_text("desvio de 0,0012")
    shown = [*badges.all_text_contents(), *tooltip.all_inner_texts()]
    shown += page.get_by_role("figure").locator("text").all_text_contents()
    assert len(shown) > 20
    assert not [text for text in shown if re.search(r"\d\.\d{1,2}(?!\d)", text)]
    with page.expect_download() as download:
        page.locator(".st-key-section-code").get_by_role("button", name="Dados (CSV)").click()
    exported = download.value.path().read_text(encoding="utf-8-sig")
    assert re.fullmatch(r"Li;0,8\d+", exported.splitlines()[3])


def test_every_component_loads(page: Page) -> None:
    page.goto("about:blank")
    for path in sorted((Path(__file__).resolve().parents[2] / "assets" / "components").glob("*/main.js")):
        show = read_component(path.parent.name).show
        assert page.evaluate(f"(async () => typeof ({show}))()") == "function", path
