"""The language, kept and carried; scripts that no server answers, and where lines break."""

import re
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from tests.browser.page_checks import expect_rest, expect_streamlit_to_speak, watch
from ui.text.words import load_words
from viz_core.view.components import link_modules, read_component

CHAPTER = "queries-keys-values"
TEXTS = "(nodes) => nodes.map((node) => node.textContent)"
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


def expect_language(page: Page, language: str) -> None:
    expect(page.locator("html")).to_have_attribute("lang", language)
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

    page.goto("about:blank")
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
    page.get_by_role("button", name="Ajuda", exact=True).nth(2).hover()
    tooltip = page.get_by_test_id("stTooltipContent")
    expect(tooltip).to_contain_text("desvio de 0,0012")
    shown = [
        *badges.all_text_contents(),
        *lookups.get_by_text("pontuação").all_inner_texts(),
        *tooltip.all_inner_texts(),
    ]
    shown += [text or "" for text in page.get_by_role("figure").locator("text").evaluate_all(TEXTS)]
    assert len(shown) > 20
    assert not [text for text in shown if re.search(r"\d\.\d{1,2}(?!\d)", text)]
    with page.expect_download() as download:
        page.locator(".st-key-section-code").get_by_role("button", name="Dados (CSV)").click()
    exported = download.value.path().read_text(encoding="utf-8-sig")
    print(exported[:300])
    assert re.fullmatch(r"Li;0,8\d+", exported.splitlines()[3])


def test_streamlits_own_labels_are_in_the_language_of_the_page(page: Page, app_url: str) -> None:
    page.goto(f"{app_url}/vision-transformer?vt-source=upload&lang=zh-TW")
    expect_language(page, "zh-TW")
    uploader = page.get_by_test_id("stFileUploader")
    expect(uploader.get_by_role("button", name="上傳", exact=True)).to_be_visible()
    expect(uploader).to_contain_text("每個檔案上限")
    expect_streamlit_to_speak(page, "zh-TW")
    choose(page, "語言", "Português (Brasil)")
    expect_language(page, "pt-BR")
    expect(uploader.get_by_role("button", name="Enviar", exact=True)).to_be_visible()
    expect_streamlit_to_speak(page, "pt-BR")
    choose(page, "Idioma", "English")
    expect_language(page, "en")
    expect(uploader.get_by_role("button", name="Upload", exact=True)).to_be_visible()


COMPONENTS = Path(__file__).resolve().parents[2] / "assets" / "components"
WRAP = """async ([source, text]) => {
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    const { piecesOf, textWidth, wrap } = await import(address);
    const font = "12px sans-serif";
    const long = (piece) => textWidth(piece, font);
    const all = [];
    for (let width = Math.ceil(Math.max(...piecesOf(text).map(long))); width < long(text); width += 4) {
        const lines = wrap(text, width, font);
        all.push({ lines, fits: lines.every((line) => long(line) <= width) });
    }
    return { pieces: piecesOf(text), all };
}"""


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("logits (of x), y", ["logits", " ", "(of", " ", "x),", " ", "y"]),
        ("softmax，看「貓」：第 2 層（頭 3）。", "softmax，|看|「貓」：|第| |2| |層|（頭| |3）。".split("|")),
        ("權重（attention），展開。", "權|重|（attention），|展|開。".split("|")),
    ],
    ids=["English", "Chinese", "both"],
)
def test_no_line_begins_with_a_comma_or_ends_with_a_bracket(page: Page, text: str, pieces: list[str]) -> None:
    found = page.evaluate(WRAP, [(COMPONENTS / "shared" / "canvas.js").read_text(encoding="utf-8"), text])
    assert found["pieces"] == pieces
    assert len(found["all"]) > 3
    for wrapped in found["all"]:
        lines = wrapped["lines"]
        assert wrapped["fits"]
        assert re.sub(" ", "", "".join(lines)) == text.replace(" ", "")
        assert not [line for line in lines if line[0] in "，。：）」" or line[-1] in "（「"]


def formula(*parts: str) -> str:
    """As KaTeX writes one: a line may break after each part, which ends with a relation."""
    bases = "".join(f"<span class='base'><span>{part}</span></span>" for part in parts)
    return f"<span class='katex'><span class='katex-html'>{bases}</span></span>"


def test_no_comma_is_parted_from_a_formula_and_a_long_one_still_breaks(page: Page) -> None:
    watch(page)
    page.goto("about:blank")
    sentences = (
        f"甲乙{formula('x=', 'y')}，一二三（{formula('ab')}）四五",
        f"some words {formula('x=', 'y')}, more ({formula('ab')}).",
    )
    texts = "".join(f"<p style='width:{width}px'>{text}</p>" for width in range(60, 260, 4) for text in sentences)
    page.set_content(f"<style>.base {{ display: inline-block; white-space: nowrap; }}</style>{texts}")
    assert len(broken(page)) > 3  # as a browser does it, which takes a formula for a box
    page.add_style_tag(content=(COMPONENTS / "app.css").read_text(encoding="utf-8"))
    assert broken(page) == []
    parted = (
        "(all) => all.some(({ children: [a, b] }) => b?.getBoundingClientRect().top > a.getBoundingClientRect().top)"
    )
    assert page.locator(".katex-html").evaluate_all(parted)


def broken(page: Page) -> list[str]:
    return [each for each in page.evaluate("textsThatDoNotFit()") if each.startswith("broken")]


def test_a_browser_follows_an_import_over_several_lines(page: Page) -> None:
    sources = {
        "x/main.js": 'import {\n  one,\n  two as b,\n} from "../shared/b.js";\nexport default () => one + b();\n',
        "shared/b.js": 'import { half as c } from "./c.js";\nexport const one = 2 * c;\n'
        "export function two() { return 2; }\n",
        "shared/c.js": "export const half = 0.5;\n",
    }
    assert page.evaluate(f"(async () => ({link_modules(sources, 'x/main.js')})())()") == 3


def test_every_component_loads(page: Page) -> None:
    page.goto("about:blank")
    for path in sorted(COMPONENTS.glob("*/main.js")):
        show = read_component(path.parent.name).show
        assert page.evaluate(f"(async () => typeof ({show}))()") == "function", path
