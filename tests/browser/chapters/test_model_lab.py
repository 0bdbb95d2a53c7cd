"""The model lab in a real browser: a writer that ships, and tiny models in a folder of the host; one server for all.

Of those in the folder: a decoder; a hybrid, whose layers have a softmax or none; a vision model, in the lab and in the
vision chapter; and a question about a picture.
"""

import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from benchmarks.serving import serve
from tests.browser.attention_view.live_view import patch_place, weight_in
from tests.browser.page_checks import box_of, expect_rest
from tests.viz_core.hub.fake_hub import FakeHub, serving
from tests.viz_core.hub.families import build, build_all
from tests.viz_core.images.hostile_pictures import encode, quarters
from viz_core.hub import HubVision, load_hub
from viz_core.images.open_image import open_picture
from viz_core.lab.sentence_pair import TwoSentences
from viz_core.lab.two_sentences import compare, sweep

SLOW = 180_000  # the first model in a folder takes transformers' import along
PICTURE = encode(quarters(), "PNG")
GRID = (4, 4)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_all(("gpt2", "vit", "llava", "qwen3_5_text"), tmp_path_factory.mktemp("models"))


def test_open_look_type_look(page: Page, lab_url: str) -> None:
    """No network and nothing fetched before: the first model is there, and has been asked something."""
    page.goto(lab_url)
    expect(page.get_by_text("It writes:")).to_be_visible(timeout=SLOW)
    expect(page.get_by_role("application", name=re.compile("^Attention map"))).to_be_visible(timeout=SLOW)
    box = page.get_by_label("Your text", exact=True)
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
    weight = run.trace["decoder.2.self"].weights(head=3)[0, row, column]
    assert float(found[3]) == pytest.approx(float(weight), abs=0.006)
    page.get_by_text("Query times key").click()
    expect(page.get_by_label("Key", exact=True)).to_be_visible()
    page.get_by_role("application", name=re.compile("^Attention map")).focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)  # opens the pair in the map, which the two lists then name
    # A list that is drawn again is there twice for a moment.
    expect(page.get_by_label("Query", exact=True).first).to_have_value(f"2 {run.tokens[1].label}")
    expect(page.get_by_label("Key", exact=True).first).to_have_value(f"1 {run.tokens[0].label}")


def test_change_a_word_click_a_cell_and_read_the_changed_prediction(page: Page, lab_url: str) -> None:
    page.goto(f"{lab_url}?ml-model=writer-en&ml-open-two-sentences=true&ts-what=heads&ts-answer=are&ts-other=is")
    box = page.get_by_label("Second sentence", exact=True)
    expect(box).to_be_visible(timeout=SLOW)
    box.fill("The boy in the house")
    box.press("Enter")
    writer = load_hub("writer-en", device="cpu")
    sentences = TwoSentences("The girls in the house", "The boy in the house", "are", "is")
    found, grid = compare(writer, sentences), sweep(writer, sentences, "decoder", "heads")
    expect(page.get_by_text(f"m2 = {found.corrupted:+.2f}".replace("-", "−"))).to_be_visible(timeout=SLOW)
    page.locator(".st-key-figure-sweep").scroll_into_view_if_needed()
    chart = page.locator(".st-key-figure-sweep .nsewdrag")
    expect(chart).to_be_visible()
    area = box_of(chart)
    page.mouse.click(area["x"] + area["width"] * 3.5 / 4, area["y"] + area["height"] * 3.5 / 4)
    page.wait_for_url(re.compile("ts-layer=4.*ts-cell=4|ts-cell=4.*ts-layer=4"))
    patched = f"{float(grid[3, 3]):+.2f}".replace("-", "−")
    share = f"{found.recovered(float(grid[3, 3])):.0%} of the change"
    expect(page.get_by_text(re.compile(f"to {re.escape(patched)}: {re.escape(share)}"))).to_be_visible()
    assert parse_qs(urlsplit(page.url).query)["ts-corrupted"] == [sentences.corrupted]


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
    prints = page.locator('[data-part="prints"]')
    undefined = page.get_by_text("so entropy and shares of attention are not defined for it")
    expect(prints.locator("[data-measure]")).to_have_count(3)
    expect(prints.locator('[data-measure="memory"] .value')).to_have_text(re.compile(r"^\d+\.\d\d tokens$"))
    expect(page.get_by_text("Layer 1, head 2 · gated delta rule")).to_be_visible()
    expect(undefined).to_be_visible()
    page.locator('button[data-layer="2"][data-head="1"]').click()
    expect(note).to_be_hidden()
    expect(prints.locator('[data-measure="entropy"]')).to_be_visible()
    expect(undefined).to_be_hidden()


def test_a_picture_in_the_lab_and_the_way_to_the_vision_chapter(page: Page, lab_url: str, folders: Path) -> None:
    page.goto(f"{lab_url}?ml-model=vit")
    page.locator("input[type=file]").first.set_input_files(
        {"name": "quarters.png", "mimeType": "image/png", "buffer": PICTURE}, timeout=SLOW
    )
    stage = page.get_by_role("application", name=re.compile("over the picture")).first
    expect(stage).to_be_visible(timeout=SLOW)

    # While a page is drawn again, what moved down stands in both places for a moment.
    page.get_by_role("link", name=re.compile("vision chapter")).first.click()
    expect(page.get_by_role("heading", name="Prediction:")).to_be_visible(timeout=SLOW)
    expect(page.get_by_text("Lab: vit")).to_be_visible()
    page.get_by_text("Upload", exact=True).click()
    page.locator("input[type=file]").set_input_files(
        {"name": "quarters.png", "mimeType": "image/png", "buffer": PICTURE}
    )
    model = HubVision(load_hub(folders / "vit", device="cpu"))
    found = model.classify_prepared(model.prepare(open_picture(PICTURE)))
    percent = f"{100 * found.probabilities[found.label]:.1f}%"
    expect(page.get_by_role("heading", name=f"Prediction: {found.label}, {percent}")).to_be_visible()

    x, y = patch_place(stage, GRID, 1, 2)
    stage.click(position={"x": x, "y": y})
    page.mouse.move(0, 0)
    note = page.locator("[data-part=sentenceNote]")
    expect(note).to_contain_text("Pinned: row 2, column 3.")
    page.wait_for_url(re.compile("pin=q7"))
    page.locator('button[data-layer="1"][data-head="3"]').click()
    weights = found.trace["encoder.1.self"].weights(head=3)[0, 1 + 4 + 2]
    best = int(weights.argmax())
    name = "[CLS]" if best == 0 else f"row {(best - 1) // 4 + 1}, column {(best - 1) % 4 + 1}"
    expect(note).to_contain_text(f"looks most at {name}")
    assert weight_in(note.inner_text().rstrip(". ")) == pytest.approx(float(weights[best]), abs=0.0051)


def test_a_question_about_a_picture(page: Page, lab_url: str, folders: Path) -> None:
    """The picture under the map shows the row of the word that is chosen."""
    page.goto(f"{lab_url}?ml-model=llava&ml-asked=Where+is+the+cat%3F&ml-new=3")
    chosen = page.get_by_role("combobox", name=re.compile("Query token"))
    expect(chosen).to_be_visible(timeout=SLOW)  # of the sample
    page.locator("input[type=file]").first.set_input_files(
        {"name": "quarters.png", "mimeType": "image/png", "buffer": PICTURE}, timeout=SLOW
    )
    model = load_hub(folders / "llava", device="cpu")
    prompt = model.card.prompt.replace("{text}", "Where is the cat?")
    run = model.run(prompt, image=open_picture(PICTURE), max_new_tokens=3)
    (grid,) = run.patches

    def sentence(token: int) -> re.Pattern[str]:
        row = run.trace["decoder.1.self"].weights(head=0, queries=slice(token, token + 1))[0, 0].numpy()
        best = int(grid.places.ravel()[grid.over(row).argmax()])
        return re.compile(rf"Largest: {run.tokens[best].label}, {row[best]:.3f}")

    token = run.num_prompt_tokens - 1
    expect(page.get_by_text(sentence(token))).to_be_visible(timeout=SLOW)
    chosen.scroll_into_view_if_needed()
    expect_rest(page)  # a list closes when the page moves
    chosen.focus()
    page.keyboard.press("ArrowDown")
    expect(chosen).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"ml-looking=\d+"))
    place = int(parse_qs(urlsplit(page.url).query)["ml-looking"][0]) - 1
    assert place > token
    expect(page.get_by_text(sentence(place))).to_be_visible(timeout=SLOW)


def test_a_download_shows_how_far_it_is(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "model"
    model.mkdir()
    build("gpt2", model)
    fake = FakeHub()
    fake.repos["someone/gpt"] = {file.name: file.read_bytes() for file in model.iterdir()}
    fake.open.clear()
    with serving(fake) as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
        monkeypatch.setenv("HF_HUB_OFFLINE", "0")
        with serve(tmp_path) as url:
            page.goto(f"{url}/model-lab?ml-source=Type+a+name&ml-name=someone%2Fgpt&ml-start=The+cat&ml-new=2")
            page.get_by_role("button", name="Download").click(timeout=SLOW)
            expect(page.get_by_text("Loading someone/gpt")).to_be_visible(timeout=SLOW)
            bar = page.get_by_role("progressbar")
            expect(bar).to_be_visible(timeout=SLOW)
            # Everything but the weights has come: some of the way, and not all of it.
            expect(bar).to_have_attribute("aria-valuenow", re.compile("^[1-9][0-9]?$"), timeout=SLOW)
            fake.open.set()
            expect(page.get_by_text(re.compile("tokens · 8 maps"))).to_be_visible(timeout=SLOW)
            expect(bar).to_have_count(0)
