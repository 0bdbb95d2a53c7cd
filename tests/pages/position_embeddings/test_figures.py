"""The figures of the position-embeddings chapter hold the library's numbers, and what it says of them."""

from collections import defaultdict
from collections.abc import Callable

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from pages.position_embeddings import figures, offset_figures
from tests.pages.reading import drawn, one_line, stands
from ui.chapter import parts
from viz_core.lessons.position_embeddings.scheme_parts import STAGES, grid_terms, offsets_of, skew_stages
from viz_core.positional import (
    RelativePositionEmbedding2d,
)

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


@pytest.mark.parametrize("n", [1, 2, 7, 12])
def test_every_stage_keeps_entries_and_the_result_has_row_i_in_row_i(n: int) -> None:
    stages = skew_stages(n)
    for name in STAGES[:-1]:
        present = stages[name][stages[name] > 0]
        assert sorted(present) == list(range(1, n * (2 * n - 1) + 1))
    result = stages["result"]
    assert ((result - 1) // (2 * n - 1) == np.arange(n)[:, None]).all()
    assert (offsets_of(result, n) == np.arange(n) - np.arange(n)[:, None]).all()


def test_indices_are_0_to_6_for_minus_3_to_3() -> None:
    table = offset_figures.table_figure(4, LABELS).data[0]
    assert table.z[0].tolist() == [-3, -2, -1, 0, 1, 2, 3]
    index = offset_figures.index_figure(4, None, LABELS).data[0]
    assert index.text.tolist() == [
        ["3", "4", "5", "6"],
        ["2", "3", "4", "5"],
        ["1", "2", "3", "4"],
        ["0", "1", "2", "3"],
    ]
    clipped = offset_figures.index_figure(4, 1, LABELS).data[0]
    assert clipped.text[0].tolist() == ["1", "2", "2", "2"]
    assert clipped.z[3].tolist() == [-1, -1, -1, 0]


def test_the_grid_shows_terms_offsets_and_cells_to_click() -> None:
    module = RelativePositionEmbedding2d(2, 3, 8)
    terms = grid_terms(torch.randn(1, 6, 8), module, 1, 0)
    figure = figures.grid_figure(terms, 1, 0, LABELS)
    heatmaps, points = figure.data[0::2], figure.data[1::2]
    for heatmap, values in zip(heatmaps, (terms.row_term, terms.column_term, terms.total), strict=True):
        np.testing.assert_allclose(heatmap.z, values.numpy(), rtol=1e-6)
    assert heatmaps[2].text.tolist() == [["-1, 0", "-1, +1", "-1, +2"], ["0, 0", "0, +1", "0, +2"]]
    assert [place[:2] for place in points[0].customdata] == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    assert figure.layout.shapes[0].y0 == 0.5
    assert figure.layout.coloraxis.cmin == -figure.layout.coloraxis.cmax


OpenPage = Callable[..., AppTest]
CLOSER = "One scheme, closer"


def opened(open_page: OpenPage, **parameters: object) -> AppTest:
    parameters = {"source": "sentence", "section": "Side by side"} | parameters  # it opens on one word
    address = {"open-all": "false"}
    app = open_page(
        "position-embeddings", **address, **{f"pe-{name.replace('_', '-')}": str(v) for name, v in parameters.items()}
    )
    stands(app)
    return app


def test_without_models_nothing_is_trained(no_checkpoints: object, open_page: OpenPage) -> None:
    assert "Nothing in these maps is trained" in one_line(opened(open_page, text="one two"))
    app = opened(open_page, source="picture", section=CLOSER, scheme="Learned")
    assert "No shipped model could be read: this table is random" in one_line(app)


def test_playing_moves_slider_words_and_picture_together(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once each time it looks, a step; at the last one it stops, and so it does where someone takes the slider."""
    monkeypatch.setattr(parts, "SECONDS", 0.0)
    app = opened(open_page, section=CLOSER, step=4)

    def shows(step: int) -> bool:
        entries = drawn(app, "skew")[1]["z"]
        same = np.array_equal(entries, offsets_of(skew_stages(4)[STAGES[step]], 4), equal_nan=True)
        return same and f"**Step {step}" in one_line(app) and app.slider(key="pe-step").value == step

    app.button(key="pe-step-play").click().run()
    for step in range(1, 6):
        assert shows(step)
        app.run()
    assert shows(5)  # the end: it stays
    app.button(key="pe-step-play").click().run()
    app.slider(key="pe-step").set_value(0).run()  # as a slow browser does, which does not show step 1 yet
    assert shows(2)
    app.slider(key="pe-step").set_value(4).run()
    app.run()
    assert shows(4)
