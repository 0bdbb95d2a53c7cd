"""What the position-embeddings chapter says of its pictures, held against what was drawn."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.position_embeddings import sections
from tests.pages.reading import charts, drawn, finding, number, one_line, stands
from tests.visits import Visits
from viz_core.lessons.position_embeddings.scheme_parts import STAGES, offsets_of, skew_stages
from viz_core.pretrained import available

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


@pytest.mark.parametrize("shown", ["what positions add", "scores", "weights"])
@pytest.mark.parametrize("source", ["sentence", "one word", "picture"])
def test_of_all_schemes_side_by_side(visits: Visits, source: str, shown: str) -> None:
    """The maps named are those with one value along each diagonal, and no others."""
    app = opened(visits, source=source, show=shown)
    striped = []
    for alt, traces in charts(app, "small"):
        values = traces[0]["z"]
        spread = max(np.ptp(values.diagonal(k)) for k in range(1 - len(values), len(values)))
        if spread <= 1e-5 * (1 + np.abs(values).max()):
            striped.append(alt.split(":")[0])
    if finding(app, "These maps have one value per offset", "No map has constant diagonals"):
        assert f"(constant diagonals): {', '.join(striped)}." in one_line(app)
        assert shown != "what positions add" or {"ALiBi", "T5 buckets"} <= set(striped)
    else:
        assert not striped


@pytest.mark.parametrize("scheme", ["Learned", None])
@pytest.mark.parametrize(("source", "task"), [("sentence", "translation"), ("picture", "classification")])
def test_of_what_is_trained(visits: Visits, source: str, task: str, scheme: str | None) -> None:
    """Models ship, so the page names the one that has learned what is shown, with a link to its chapter."""
    app = opened(visits, source=source, **({"section": CLOSER, "scheme": scheme} if scheme else {}))
    assert any(
        re.search(f"shipped (picture )?model {re.escape(card.title)}", one_line(app)) for card in available(task=task)
    )
    assert "No picture model ships" not in one_line(app)
    assert "Nothing" not in one_line(app)
    links = [link.proto.page for link in app.get("page_link")]
    assert ("transformer" if source == "sentence" else "vision-transformer") in links


def test_without_models_nothing_is_trained(no_checkpoints: object, open_page: OpenPage) -> None:
    assert "Nothing in these maps is trained" in one_line(opened(open_page, text="one two"))
    app = opened(open_page, source="picture", section=CLOSER, scheme="Learned")
    assert "No shipped model could be read: this table is random" in one_line(app)


@pytest.mark.parametrize(("m", "n", "d", "base"), [(0, 100, 64, 10_000), (8, 3, 4, 2), (50, 0, 128, 1_000_000)])
def test_of_rotary(visits: Visits, m: int, n: int, d: int, base: int) -> None:
    app = opened(visits, section=CLOSER, scheme="Rotary", m=m, key_position=n, d=d, base=base)
    (products,) = drawn(app, "decay")
    sizes, distance = np.abs(products["y"]), np.abs(products["x"])
    close, far = (sizes[(distance >= low) & (distance <= high)].mean() for low, high in ((1, 50), (151, 200)))
    assert finding(app, "It decreases with distance", "it hardly decreases") == (far < 0.8 * close)


@pytest.mark.parametrize(("both", "buckets", "most"), [("true", 32, 128), ("false", 32, 128), ("true", 64, 256)])
def test_of_t5(visits: Visits, both: str, buckets: int, most: int) -> None:
    """`max_distance` is not the largest distance told apart: at T5's 128 the last bucket begins at 91."""
    app = opened(visits, section=CLOSER, scheme="T5 buckets", bidirectional=both, buckets=buckets, max_distance=most)
    before, after = drawn(app, "buckets")
    last = number(app, "the last bucket begins at **")
    assert last == min(-before["x"][before["y"] == max(before["y"])])
    assert last == 91 or (both, buckets, most) != ("true", 32, 128)
    alone = [bucket for bucket, count in Counter(before["y"].tolist()).items() if count == 1]
    assert number(app, "ach of the") == len(alone)
    assert finding(app, "far away many share one", "a decoder never sees them") == (len(set(after["y"])) > 1)


@pytest.mark.parametrize(("heads", "head"), [(8, 1), (1, 1), (16, 16)])
def test_of_alibi(visits: Visits, heads: int, head: int) -> None:
    app = opened(visits, section=CLOSER, scheme="ALiBi", alibi_heads=heads, alibi_head=head)
    slope = -drawn(app, "penalty")[0]["z"][0, 1]
    assert math.exp(-slope * number(app, "this head's weight halves every")) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(("heads", "per_head"), [(8, "false"), (1, "false"), (8, "true")])
def test_of_costs(visits: Visits, heads: int, per_head: str) -> None:
    app = opened(visits, section="Cost and reach", cost_heads=heads, per_head=per_head)
    parameters = dict(zip(app.dataframe[0].value["scheme"], app.dataframe[0].value["parameters"], strict=True))
    assert parameters["Relative, 1-D"] == (2 * 256 - 1) * 256 // heads * (heads if per_head == "true" else 1)


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
    app.slider(key="pe-step").set_value(4).run()
    app.run()
    assert shows(4)
