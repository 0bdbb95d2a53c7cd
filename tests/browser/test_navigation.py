"""The table of contents, links that lead straight into a chapter, and both by keyboard alone."""

import re
from urllib.parse import quote_plus

from playwright.sync_api import Locator, Page, Route, WebSocketRoute, expect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.browser.page_checks import expect_rest
from ui.chapter.contents import all_chapters
from ui.compute.heads import head_scans
from ui.text.words import load_words
from viz_core.pretrained import load

EXISTING = all_chapters()[1:]


def test_a_fresh_servers_first_visitor_may_follow_a_link_and_click_at_once(fresh_app_url: str, page: Page) -> None:
    page.goto(f"{fresh_app_url}/transformer")
    page.get_by_text("I'm home.", exact=True).click()
    expect(page.get_by_label("An English sentence")).to_have_value("I'm home.")
    expect(page.get_by_role("heading", name="Je suis chez moi.")).to_be_visible()
    expect(page.get_by_role("heading", level=1, name=load_words("transformer").title)).to_be_visible()
    contents = page.get_by_test_id("stSidebarNav")
    expect(contents.get_by_role("link", name=load_words("transformer").menu, exact=True)).to_be_visible()
    expect(contents.get_by_role("link", name="app", exact=True)).to_have_count(0)
    expect(page.get_by_text("Page not found")).to_have_count(0)


def test_the_gallery_leads_to_every_chapter_by_its_picture_and_each_has_a_title(page: Page, app_url: str) -> None:
    page.goto(app_url)
    main = page.get_by_test_id("stMain")
    for name in EXISTING:
        expect(main.locator(f".st-key-card-{name}").get_by_role("link", name=load_words(name).menu)).to_be_visible()
        link = page.get_by_test_id("stSidebarNav").get_by_role("link", name=load_words(name).menu, exact=True)
        expect(link).to_have_attribute("href", re.compile(f"/{name}$"))
    expect(page).to_have_title("Attention Atlas")
    expect_rest(page)  # nothing moves any more
    page.locator(".st-key-card-transformer img").click(force=True)  # the link lies over it
    page.wait_for_url("**/transformer")
    expect(page.get_by_role("heading", level=1, name=load_words("transformer").title)).to_be_visible()
    expect(page).to_have_title("The Transformer · Attention Atlas")


_LISTENS = "history[Symbol.for('atlas.history')]"


def test_back_goes_through_what_was_typed_and_stays_in_the_chapter(page: Page, app_url: str) -> None:
    page.goto(app_url)
    page.wait_for_function(_LISTENS)
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="Bahdanau attention").click()
    box = page.get_by_label("An English sentence")
    expect(box).not_to_have_value("")
    start = box.input_value()
    for text in ("I lost.", "Go."):
        box.fill(text)
        box.press("Enter")
        page.wait_for_url(f"**/bahdanau?b-text={quote_plus(text)}*")
    page.get_by_text("I'm home.", exact=True).click()
    page.wait_for_url("**/bahdanau?b-text=I%27m+home*")
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="The Transformer").click()
    page.wait_for_url("**/transformer?t-text=*")  # the sentence came along, and one press goes back
    expect(box).to_have_value("I'm home.")
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    page.go_back()
    page.wait_for_url("**/bahdanau?b-text=I%27m+home*")
    for text in ("Go.", "I lost.", start):
        expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
        page.go_back()
        expect(box).to_have_value(text)
    page.go_back()
    expect(page).to_have_title("Attention Atlas")


def test_back_returns_through_a_text_typed_before_the_script_that_listens_has_come(page: Page, app_url: str) -> None:
    held: list[Route] = []
    page.route("**/atlas/history-*", lambda route: held.append(route))
    with page.expect_request("**/atlas/history-*"):
        page.goto(f"{app_url}/bahdanau?b-search=beam+4", wait_until="domcontentloaded")
    box = page.get_by_label("An English sentence")
    expect(box).not_to_have_value("")
    start = box.input_value()
    box.fill("Go.")
    box.press("Enter")
    page.wait_for_url("**/bahdanau?b-search=beam+4&b-text=Go.", wait_until="commit")
    held[0].continue_()
    page.wait_for_function(_LISTENS)
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    page.go_back()
    expect(box).to_have_value(start)
    expect(page.get_by_role("radio", name="beam 4")).to_be_checked()
    page.go_forward()
    expect(box).to_have_value("Go.")


def test_a_link_keeps_its_parameters_although_the_page_before_writes_its_own_late(page: Page, app_url: str) -> None:
    """The message that writes them comes after the click and before the new page begins."""
    late = ForwardMsg()
    late.page_info_changed.query_string = "late=1"
    clicked: list[bool] = []

    def connect(browser: WebSocketRoute) -> None:
        server = browser.connect_to_server()

        def pass_on(message: str | bytes) -> None:
            if clicked and clicked.pop():
                browser.send(late.SerializeToString())
            server.send(message)

        browser.on_message(pass_on)

    page.route_web_socket(re.compile("/_stcore/stream"), connect)
    page.goto(app_url)
    page.wait_for_function(_LISTENS)
    expect_rest(page)
    clicked.append(True)
    page.locator(".st-key-tour-link").get_by_role("link").click()
    page.wait_for_url(re.compile("/queries-keys-values[?].*tour=1"))
    expect(page.get_by_role("heading", level=1, name=load_words("queries-keys-values").title)).to_be_visible()
    expect_rest(page)
    assert "late" not in page.url
    expect(page.locator(".tour-bar")).to_be_visible()
    page.go_back()
    expect(page).to_have_url(f"{app_url}/")


_MAX = 120  # presses


def go_to(page: Page, wanted: Locator) -> None:
    """Press Tab until this has the focus, where everybody sees it."""
    for _ in range(_MAX):
        if wanted.count() == 1 and wanted.evaluate("node => node.getRootNode().activeElement === node"):
            assert wanted.evaluate("node => getComputedStyle(node).outlineStyle !== 'none' || node.tagName === 'INPUT'")
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{_MAX} presses of Tab do not reach {wanted}")


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
    page.keyboard.press("Escape")
    expect(page.get_by_text("Pinned: ")).to_have_count(0)
    go_to(page, page.locator(".line.queries .token").first)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Pinned: ")).to_be_visible()


def test_the_language_is_changed_and_a_star_placed_and_compared(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/relative-projection")
    expect(page.locator("html")).to_have_attribute("lang", "en")
    expect_rest(page)
    go_to(page, page.get_by_test_id("stSidebar").get_by_role("combobox"))
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("option").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("html")).not_to_have_attribute("lang", "en")
    expect_rest(page)
    go_to(page, page.locator(".st-key-exercise-hand input[type=checkbox]"))
    page.keyboard.press("Space")  # to draw on the figure
    board = page.locator("svg[role=slider]")
    expect(board).to_be_visible()
    expect_rest(page)
    go_to(page, board)
    before = board.get_attribute("aria-valuetext")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("ArrowUp")
    expect(board).not_to_have_attribute("aria-valuetext", before or "")
    go_to(page, page.locator("[data-part=reveal]"))
    page.keyboard.press("Enter")
    expect(page.locator(".sketch.revealed")).to_be_visible()


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
