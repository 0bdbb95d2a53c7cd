"""A picture in the lab in a browser: a vision model, there and in the vision chapter; and a question about it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.attention_view.reading import patch_place, weight_in
from tests.viz_core.hub.tiny_models import build_all
from tests.viz_core.images.hostile_pictures import encode, quarters
from viz_core.hub import HubVision, load_hub
from viz_core.images.opening import open_picture

SLOW = 180_000  # the first model takes transformers' import along
PICTURE = encode(quarters(), "PNG")
GRID = (4, 4)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_all(("vit", "llava"), tmp_path_factory.mktemp("models"))


def test_a_picture_in_the_lab_and_the_way_to_the_vision_chapter(page: Page, lab_url: str, folders: Path) -> None:
    page.goto(f"{lab_url}?ml-model=vit")
    page.locator("input[type=file]").first.set_input_files(
        {"name": "quarters.png", "mimeType": "image/png", "buffer": PICTURE}, timeout=SLOW
    )
    stage = page.get_by_role("application", name=re.compile("over the picture")).first
    expect(stage).to_be_visible(timeout=SLOW)

    page.get_by_role("link", name=re.compile("vision chapter")).click()
    expect(page.get_by_role("heading", name="It says:")).to_be_visible(timeout=SLOW)
    expect(page.get_by_text("Lab: vit")).to_be_visible()
    page.get_by_text("Upload", exact=True).click()
    page.locator("input[type=file]").set_input_files(
        {"name": "quarters.png", "mimeType": "image/png", "buffer": PICTURE}
    )
    model = HubVision(load_hub(folders / "vit", device="cpu"))
    found = model.look(model.prepare(open_picture(PICTURE)))
    percent = f"{100 * found.probabilities[found.label]:.1f}%"
    expect(page.get_by_role("heading", name=f"It says: {found.label}, {percent}")).to_be_visible()

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
    page.locator("input[type=file]").first.set_input_files(
        {"name": "quarters.png", "mimeType": "image/png", "buffer": PICTURE}, timeout=SLOW
    )
    model = load_hub(folders / "llava", device="cpu")
    prompt = model.card.prompt.replace("{text}", "Where is the cat?")
    run = model.run(prompt, image=open_picture(PICTURE), max_new_tokens=3)
    (grid,) = run.patches

    def said(token: int) -> re.Pattern[str]:
        row = run.trace["decoder.1.self"].weights(head=0, queries=slice(token, token + 1))[0, 0].numpy()
        best = int(grid.places.ravel()[grid.over(row).argmax()])
        return re.compile(rf"Most goes to {run.tokens[best].label}, {row[best]:.3f}")

    token = run.num_prompt_tokens - 1
    expect(page.get_by_text(said(token))).to_be_visible(timeout=SLOW)
    slider = page.get_by_role("slider", name=re.compile("The word that looks"))
    expect(slider).to_have_value(str(token + 1))
    slider.press("ArrowRight")
    expect(page.get_by_text(said(token + 1))).to_be_visible(timeout=SLOW)
