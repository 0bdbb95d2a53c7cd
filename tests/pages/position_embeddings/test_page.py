"""The position-embeddings chapter through AppTest: each control moves its numbers, no link or input breaks it."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from streamlit.testing.v1 import AppTest

from tests.pages import reading
from tests.pages.reading import texts
from tests.visits import Visits
from ui.text.words import load_words
from viz_core.lessons.position_embeddings.order import SharedLayer, picture_tokens, shipped_position_tables
from viz_core.lessons.position_embeddings.scheme_parts import STAGES, offsets_of, rotary_products, skew_stages
from viz_core.positional import BY_NAME, SCHEMES
from viz_core.positional.entry import SchemeSizes
from viz_core.pretrained import Translator, load_translator
from viz_core.pretrained.samples import sentences
from viz_core.pretrained.token_vectors import sentence_tokens

CHAPTER = "position-embeddings"
CLOSER, COSTS = "One scheme, closer", "Cost and reach"
DEFAULT = next(sample.english for sample in sentences() if sample.id == "cat")
OpenPage = Callable[..., AppTest]


def figures(app: AppTest) -> list[dict[str, Any]]:
    """The figures below the main one."""
    return reading.figures(app)[1:]


def claims(app: AppTest) -> list[str]:
    """The claims below the main figure's one."""
    return reading.claims(app)[1:]


def open_at(open_page: OpenPage, **parameters: object) -> AppTest:
    """open_at(open_page, skew_n=4): with pe-skew-n=4 in the address."""
    parameters = {"source": "sentence", "section": "Side by side"} | parameters  # it opens on one word
    return open_page(
        CHAPTER,
        **{"open-all": "false"},
        **{f"pe-{name.replace('_', '-')}": str(value) for name, value in parameters.items()},
    )


def array(numbers: Any) -> np.ndarray:
    """An array or a list, whose gaps are None."""
    return np.array(numbers, dtype=float)


@functools.cache
def translator() -> Translator:
    return load_translator("transformer-en-fr")


def setting(text: str = DEFAULT, heads: int = 8, **sizes: Any) -> SharedLayer:
    tokens = sentence_tokens(text, 64, 256, translator())
    n = len(tokens.labels)
    return SharedLayer(tokens.X, SchemeSizes(n, 256, heads, 1, n, **sizes))


def small_maps(app: AppTest) -> dict[str, np.ndarray]:
    return dict(zip(BY_NAME, (array(f["data"][0]["z"]) for f in figures(app)[1:]), strict=True))


def test_it_opens_with_every_scheme_on_one_word(visits: Visits) -> None:
    """The first of the sentence, at every place: stripes."""
    app = open_at(visits, source="one word")
    s = setting().one_word()
    for name, values in small_maps(app).items():
        np.testing.assert_allclose(values, s.position_scores(BY_NAME[name])[0].numpy(), atol=1e-5)
    assert not small_maps(app)["none"].any()
    assert {(f["data"][0]["zmin"], f["data"][0]["zmax"]) for f in figures(app)} == {(-4, 4)}


def test_a_picture_of_every_scheme_follows_the_main_figure(visits: Visits) -> None:
    option = load_words(CHAPTER).group("option")
    (pictures,) = open_at(visits).get("image")
    assert [each.caption for each in pictures.proto.imgs] == [option[name] for name in BY_NAME]
    assert len({each.url for each in pictures.proto.imgs}) == len(BY_NAME)


CONTROLS: dict[str, tuple[object, Callable[[], list[torch.Tensor]]]] = {
    "head": (3, lambda: [setting().position_scores(s)[2] for s in SCHEMES]),
    "heads": (2, lambda: [setting(heads=2).position_scores(s)[0] for s in SCHEMES]),
    "show": ("weights", lambda: [setting().weights(s)[0] for s in SCHEMES]),
    "source": ("one-word", lambda: [setting().one_word().position_scores(s)[0] for s in SCHEMES]),
    "text": ("I lost.", lambda: [setting("I lost.").position_scores(s)[0] for s in SCHEMES]),
    "per-head": (True, lambda: [setting(per_head=True).position_scores(s)[0] for s in SCHEMES]),
}


def test_each_control_moves_the_maps(open_page: OpenPage) -> None:
    app = open_at(open_page)
    kinds = {"head": "number_input", "text": "text_input", "per-head": "toggle"}
    for name, (value, expected) in CONTROLS.items():
        widget = getattr(app, kinds.get(name, "segmented_control"))(key=f"pe-{name}")
        before = widget.value
        widget.set_value(value).run()
        assert not app.exception
        for values, wanted in zip(small_maps(app).values(), expected(), strict=True):
            np.testing.assert_allclose(values, wanted.numpy(), atol=1e-5)
        getattr(app, kinds.get(name, "segmented_control"))(key=f"pe-{name}").set_value(before).run()


def test_a_picture_is_a_grid_of_any_height_and_width(visits: Visits) -> None:
    app = open_at(visits, source="picture", height=2, width=6)
    table = shipped_position_tables()[0]  # patches are as wide as the shipped picture model's
    tokens = picture_tokens(2, 6, table.positions.shape[1])
    s = SharedLayer(tokens.X, SchemeSizes(12, table.positions.shape[1], 8, 2, 6))
    expected = s.position_scores(BY_NAME["relative-2d"])[0].numpy()
    np.testing.assert_allclose(small_maps(app)["relative-2d"], expected, atol=1e-5)


def test_a_card_opens_its_scheme(open_page: OpenPage) -> None:
    app = open_at(open_page, source="one word")
    app.button(key="open-alibi").click().run()
    assert not app.exception
    assert app.selectbox(key="pe-scheme").value == "alibi"
    assert "Press 2022" in texts(app)


LINKED = ["No positions", "Sinusoidal", "Learned", "In attention", "Relative, 1-D", "Clipped (Shaw)", "Relative, 2-D",
          "Rotary", "ALiBi", "T5 buckets"]  # fmt: skip


@pytest.mark.parametrize("scheme", LINKED)
def test_every_scheme_opens_from_a_link_and_its_claims_hold(visits: Visits, scheme: str) -> None:
    app = open_at(visits, section=CLOSER, scheme=scheme)
    name = app.selectbox(key="pe-scheme").value
    assert all("material/check" in claim for claim in claims(app))
    assert (":orange-badge[:material/close: fixed maximum length]" in texts(app)) is not BY_NAME[name].extrapolates
    map_drawn = array(figures(app)[-1]["data"][0]["z"])
    np.testing.assert_allclose(map_drawn, setting().position_scores(BY_NAME[name])[0].numpy(), atol=1e-5)


def test_the_skew_follows_its_sliders(open_page: OpenPage) -> None:
    app = open_at(open_page, section=CLOSER)
    for n, step in ((4, 2), (1, 3), (12, 4)):
        app.slider(key="pe-skew-n").set_value(n)
        app.slider(key="pe-step").set_value(step).run()
        assert not app.exception
        entries = figures(app)[0]["data"][1]
        expected = offsets_of(skew_stages(n)[STAGES[step]], n)
        assert np.array_equal(array(entries["z"]), expected, equal_nan=True)
        assert f"**Step {step}" in texts(app)
        assert any(f"for {n} tokens the skew equals" in claim and "check" in claim for claim in claims(app))


def test_the_grid_and_its_query_move(open_page: OpenPage) -> None:
    app = open_at(open_page, section=CLOSER, scheme="Relative, 2-D", grid_height=8, row=8, column=6)
    assert "8 × 6" in texts(app)
    app.slider(key="pe-grid-height").set_value(3).run()
    assert not app.exception
    assert app.number_input(key="pe-row").value == 3  # moved to the edge
    assert "**55** offsets" in texts(app)
    assert "**16** vectors" in texts(app)
    assert all("check" in claim for claim in claims(app))


def test_the_rotary_product_is_the_librarys(open_page: OpenPage) -> None:
    app = open_at(open_page, section=CLOSER, scheme="Rotary", m=20, key_position=5)
    ones = torch.ones(64, dtype=torch.float64) / 8
    assert f"{rotary_products(ones, ones, torch.tensor([-15])).item():.6f}" in texts(app)
    app.slider(key="pe-m").set_value(35).run()
    app.slider(key="pe-key-position").set_value(20).run()
    assert f"{rotary_products(ones, ones, torch.tensor([-15])).item():.6f}" in texts(app)
    app.slider(key="pe-m").set_value(36).run()
    assert f"{rotary_products(ones, ones, torch.tensor([-16])).item():.6f}" in texts(app)


def test_t5_ranges_are_the_published_ones_and_move(open_page: OpenPage) -> None:
    app = open_at(open_page, section=CLOSER, scheme="T5 buckets")
    ranges = app.dataframe[0].value.iloc[0]
    assert (ranges["8"], ranges["10"], ranges["14"], ranges["15"]) == ("8–11", "16–22", "64–90", "91+")
    app.toggle(key="pe-bidirectional").set_value(False).run()
    assert len(app.dataframe[0].value.columns) == 32


def test_costs_are_the_librarys(open_page: OpenPage) -> None:
    app = open_at(open_page, section=COSTS)
    sizes = SchemeSizes(256, 256, 8, 16, 16)
    assert app.dataframe[0].value["parameters"].tolist() == [s.cost(sizes).parameters for s in SCHEMES]
    assert app.dataframe[0].value["bytes computed"].tolist() == [s.cost(sizes).computed_bytes for s in SCHEMES]
    words = load_words("position-embeddings", "en")
    for scheme in SCHEMES:  # in a table whose lines break: a column of the other was clipped
        defined = words("yes" if scheme.extrapolates else "no")
        assert f"| {defined} | {words(f'extends.{scheme.name}')} |" in texts(app)
    app.select_slider(key="pe-n").set_value(1024).run()
    assert app.dataframe[0].value["parameters"].tolist()[2] == 1024 * 256


def test_no_words_are_an_empty_state_and_a_long_text_says_what_is_shown(open_page: OpenPage) -> None:
    app = open_at(open_page, source="one word")
    app.text_input(key="pe-text").set_value("\x00\x07").run()
    assert not app.exception
    assert "There are no tokens yet" in app.info[0].value
    app.text_input(key="pe-text").set_value("cat dog " * 200).run()
    assert not app.exception
    assert "400 tokens; the maps show the first 64" in app.warning[0].value
    assert small_maps(app)["relative"].shape == (64, 64)


def test_without_a_model_words_have_random_vectors(no_checkpoints: Path, open_page: OpenPage) -> None:
    app = open_at(open_page, text="one two three")
    tokens = sentence_tokens("one two three", 64, 256)
    expected = SharedLayer(tokens.X, SchemeSizes(3, 256, 8, 1, 3)).position_scores(BY_NAME["rotary"])[0]
    np.testing.assert_allclose(small_maps(app)["rotary"], expected.numpy(), atol=1e-5)


def test_a_shipped_picture_models_table_is_used_for_pictures(no_checkpoints: Path, open_page: OpenPage) -> None:
    folder = no_checkpoints / "vit"
    folder.mkdir()
    (folder / "config.json").write_text('{"title": "A ViT", "task": "x", "licence": "x"}', encoding="utf-8")
    table = torch.randn(1, 50, 64)
    save_file({"pos_embedding": table}, str(folder / "model.safetensors"))
    app = open_at(open_page, source="picture", height=7, width=7, section=CLOSER, scheme="Learned")
    assert "learned table of the shipped picture model A ViT" in texts(app)
    tokens = picture_tokens(7, 7, 64)
    s = SharedLayer(tokens.X, SchemeSizes(49, 64, 8, 7, 7), table[0, 1:])
    drawn = array(figures(app)[-1]["data"][0]["z"])
    np.testing.assert_allclose(drawn, s.position_scores(BY_NAME["learned"])[0].numpy(), atol=1e-5)
