"""A corpus through AppTest: what the page shows is what the library finds, and each sentence opens above."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from pages.model_lab.corpus_found import _roles_table, _strongest_table
from pages.model_lab.corpus_text import RUNS
from serving.requests.corpus import read_sentences
from tests.pages.reading import drawn, texts
from tests.viz_core.hub.families import build_all
from viz_core.hub import load_hub
from viz_core.maps.roles import COLUMNS, ROLES

OpenPage = Callable[..., AppTest]
LINES = ("The cat looked at the cat, and the cat sat.", "She reads <b>a</b> letter.", "The dog sat. " * 30)
pytestmark = pytest.mark.usefixtures("offline_lab")


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_all(("bert", "t5", "vit"), tmp_path_factory.mktemp("models"))


def test_heads_are_found_shown_and_opened(open_page: OpenPage, folders: Path) -> None:
    app = open_page("model-lab", **{"ml-model": "bert", "ml-section": "A corpus", "ml-sentences": "your file"})
    app.file_uploader(key="ml-corpus-file").upload("bad.txt", b"\xff\xff", "text/plain").run()
    assert "no text in UTF-8" in texts(app)
    app.file_uploader(key="ml-corpus-file").set_value(("own.txt", "\n".join(LINES).encode(), "text/plain")).run()
    assert "sentences read" not in texts(app), "nothing is read before it is asked for"
    app.button(key="ml-corpus-read-go").click().run()
    assert not app.exception
    page_text = texts(app)
    assert "**2** sentences," in page_text
    assert "Skipped: 1. The first is line 3" in page_text
    model = load_hub(folders / "bert", device="cpu")
    found = read_sentences(model, LINES)
    kind = found.kinds["encoder-self"]
    column = COLUMNS.index(ROLES["previous"])
    np.testing.assert_allclose(drawn(app, "roles")[0]["z"].ravel(), kind.roles.value()[:, column], atol=1e-6)
    table = next(frame.value for frame in app.dataframe if len(frame.value) == len(kind.heads))
    assert table["same word"].tolist() == pytest.approx(kind.roles.value()[:, COLUMNS.index("same-word")], abs=6e-4)
    best = int(kind.roles.value()[:, column].argmax())
    layer, head = kind.heads[best]
    assert app.selectbox(key="ml-of-head").value == f"{layer + 1}.{head + 1}"
    strongest = kind.strongest[best][0]
    marked = next(m.value for m in app.markdown if m.value.startswith(f"**{strongest.weight:.2f}** "))
    assert re.search(":(blue|violet)-background", marked)
    named = [head for place, head in enumerate(kind.heads) if kind.role_of(place)]
    assert all(f"(#head=encoder-self.{layer}.{head})" in page_text for layer, head in named)
    assert ("Named heads: —." in page_text) == (not named)
    app.text_input(key="ml-of-word").set_value("Cat").run()
    place, given = kind.heads_attending_to("cat")[0]
    of_word = kind.heads[place]
    assert f"**head {of_word[1] + 1} of layer {of_word[0] + 1}** {given:.3f}" in texts(app)
    app.button(key="ml-open-0").click().run()
    assert not app.exception
    assert app.text_area(key="ml-text").value == LINES[strongest.sentence]
    assert f"[opened above](#head=encoder-self.{layer}.{head})" in texts(app)
    assert app.query_params["head"] == f"encoder-self.{layer}.{head}"
    assert app.query_params["pin"] == f"q{strongest.query}"


def test_a_head_is_shown_at_quantiles_and_a_gap_is_a_dash(open_page: OpenPage, folders: Path) -> None:
    app = open_page("model-lab", **{"ml-model": "reader-en", "ml-section": "A corpus", "ml-sentences": "random"})
    app.button(key="ml-corpus-read-go").click().run()
    assert not app.exception
    assert f"**{RUNS}** sentences, " in texts(app)
    shares = [re.match(r"\*\*[\d.]+\*\* :gray\[(\d+)%\] ", markdown.value) for markdown in app.markdown]
    assert [int(share[1]) for share in shares if share] == [100, 75, 50, 25, 0]
    table = next(frame for frame in app.dataframe if "induction" in frame.value)
    assert table.value["punctuation"].isna().all(), "there are no signs"
    assert table.value["induction"].notna().all(), "every word comes twice"
    assert table.proto.placeholder == "—"


def test_every_kind_of_maps_has_its_tables(open_page: OpenPage, folders: Path) -> None:
    found = read_sentences(load_hub(folders / "t5", device="cpu"), LINES[:2], 0, 4)
    roles, strongest = _roles_table(found), _strongest_table(found)
    assert len(roles) == 3 * 8 * len(COLUMNS)
    assert set(roles["maps"]) == {"encoder-self", "decoder-self", "decoder-cross"}
    one = roles[(roles.maps == "encoder-self") & (roles.layer == 2) & (roles["head"] == 3) & (roles.role == "previous")]
    assert one["value"].item() == pytest.approx(found.kinds["encoder-self"].measured(6, "-1").value)
    assert isinstance(strongest, pd.DataFrame)
    assert set(strongest["sentence"]) <= {1, 2}
    app = open_page("model-lab", **{"ml-model": "vit"})
    assert "A corpus" not in [tab.label for tab in app.tabs], "pictures are not sentences"
