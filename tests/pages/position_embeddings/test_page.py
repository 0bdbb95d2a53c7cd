"""The position-embeddings chapter through AppTest: each control moves its numbers, no link or input breaks it."""

import functools
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from streamlit.testing.v1 import AppTest

from pages.position_embeddings import offset_figures
from tests.pages import reading
from tests.pages.reading import array
from viz_core.lessons.position_embeddings.order import SharedLayer
from viz_core.lessons.position_embeddings.scheme_parts import offsets_of, skew_stages
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
    address = {f"pe-{name.replace('_', '-')}": str(value) for name, value in parameters.items()}
    return open_page(CHAPTER, **{"open-all": "false"} | address)


@functools.cache
def translator() -> Translator:
    return load_translator("transformer-en-fr")


def setting(text: str = DEFAULT, heads: int = 8, **sizes: Any) -> SharedLayer:
    tokens = sentence_tokens(text, 64, 256, translator())
    n = len(tokens.labels)
    return SharedLayer(tokens.X, SchemeSizes(n, 256, heads, 1, n, **sizes))


def small_maps(app: AppTest) -> dict[str, np.ndarray]:
    return dict(zip(BY_NAME, (array(f["data"][0]["z"]) for f in figures(app)[1:]), strict=True))


CONTROLS: dict[str, tuple[object, Callable[[], list[torch.Tensor]]]] = {
    "head": (3, lambda: [setting().position_scores(s)[2] for s in SCHEMES]),
    "show": ("weights", lambda: [setting().weights(s)[0] for s in SCHEMES]),
    "source": ("one-word", lambda: [setting().one_word().position_scores(s)[0] for s in SCHEMES]),
    "text": ("I lost.", lambda: [setting("I lost.").position_scores(s)[0] for s in SCHEMES]),
}


def test_each_control_moves_the_maps(open_page: OpenPage) -> None:
    app = open_at(open_page)
    cards = [each.proto for each in app.get("flex_container") if "-card-" in each.proto.id]
    assert [card.height_config.use_stretch for card in cards] == [False] + [True] * len(SCHEMES), "as high as its row"
    kinds = {"head": "number_input", "text": "text_input"}
    for name, (value, expected) in CONTROLS.items():
        widget = getattr(app, kinds.get(name, "segmented_control"))(key=f"pe-{name}")
        before = widget.value
        widget.set_value(value).run()
        for values, wanted in zip(small_maps(app).values(), expected(), strict=True):
            np.testing.assert_allclose(values, wanted.numpy(), atol=1e-5)
        getattr(app, kinds.get(name, "segmented_control"))(key=f"pe-{name}").set_value(before).run()


def test_t5_ranges_are_the_published_ones_and_move(open_page: OpenPage) -> None:
    app = open_at(open_page, section=CLOSER, scheme="T5 buckets")
    ranges = app.dataframe[0].value.iloc[0]
    assert (ranges["8"], ranges["10"], ranges["14"], ranges["15"]) == ("8–11", "16–22", "64–90", "91+")
    app.toggle(key="pe-bidirectional").set_value(False).run()
    assert len(app.dataframe[0].value.columns) == 32


def test_no_words_keep_the_last_and_a_long_text_says_what_is_shown(open_page: OpenPage) -> None:
    app = open_at(open_page, source="one word")
    app.text_input(key="pe-text").set_value("\x00\x07").run()
    assert "Type a few words above. Below is still “The black cat is sleeping on my bed" in app.warning[0].value
    assert small_maps(app)["relative"].shape == (9, 9)
    app.text_input(key="pe-text").set_value("cat dog " * 200).run()
    assert "400 tokens; the maps show the first 64" in app.warning[0].value
    assert small_maps(app)["relative"].shape == (64, 64)


LABELS: dict[str, str] = defaultdict(lambda: "label")


def test_the_skew_of_four_tokens_by_hand() -> None:
    stages = skew_stages(4)
    assert {name: entries.shape for name, entries in stages.items()} == {
        "scores": (4, 7), "padded": (4, 8), "flattened": (1, 32), "extended": (1, 35), "reshaped": (5, 7),
        "result": (4, 4),
    }  # fmt: skip
    assert offsets_of(stages["scores"], 4)[2].tolist() == [-3, -2, -1, 0, 1, 2, 3]
    assert offsets_of(stages["result"], 4).tolist() == [[0, 1, 2, 3], [-1, 0, 1, 2], [-2, -1, 0, 1], [-3, -2, -1, 0]]
    assert np.isnan(offsets_of(stages["padded"], 4)[:, 7]).all()
    assert (stages["extended"] == 0).sum() == 4 + 3


def test_indices_are_0_to_6_for_minus_3_to_3() -> None:
    table = offset_figures.table_figure(4, LABELS).data[0]
    assert table.z[0].tolist() == [-3, -2, -1, 0, 1, 2, 3]
    index = offset_figures.index_figure(4, None, LABELS).data[0]
    assert ["".join(row) for row in index.text.tolist()] == ["3456", "2345", "1234", "0123"]
    clipped = offset_figures.index_figure(4, 1, LABELS).data[0]
    assert clipped.text[0].tolist() == ["1", "2", "2", "2"]
    assert clipped.z[3].tolist() == [-1, -1, -1, 0]
