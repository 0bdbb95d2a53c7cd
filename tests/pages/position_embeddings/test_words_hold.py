"""What the position-embeddings chapter says of its pictures, held against what was drawn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.position_embeddings import sections
from tests.pages.reading import drawn, one_line, stands
from viz_core.lessons.position_embeddings.scheme_parts import STAGES, offsets_of, skew_stages

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
    monkeypatch.setattr(sections, "SECONDS", 0.0)
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
