"""The chapter on heads: its points are the numbers of the tables, and scans made on the page are the library's."""

import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from pages.heads import live
from pages.heads.marks import recorded
from pages.heads.plot import all_heads
from recipes.marks import sample_maps
from tests.pages.reading import drawn, figure_names, figures, texts
from tests.visits import Visits
from tests.viz_core.hub.families import build_all
from ui.compute.heads import HeadScans, HeadTable, head_scans
from ui.compute.models import evaluate_model
from ui.text.words import load_words
from viz_core.hub import load_hub
from viz_core.lab.scan import scan
from viz_core.pretrained import load_translator
from viz_core.pretrained.samples import scan_inputs, sentence

CHAPTER = "heads"
WORDS = load_words(CHAPTER, "en")


def test_every_head_is_a_point(visits: Visits) -> None:
    app = visits(CHAPTER)
    table = head_scans("writer-en").tables["narrow", "decoder-self"]
    for axis, measure in (("x", "previous"), ("y", "worth")):
        points = np.concatenate([trace[axis] for trace in drawn(app, "heads")])
        np.testing.assert_allclose(np.sort(points), np.sort(table.plotted(measure)), rtol=1e-5)
    assert [len(trace["x"]) for trace in drawn(app, "heads")] == [4, 4, 4, 4]  # a colour for each layer
    best = table.heads[int(table.plotted("worth").argmax())]
    assert f"layer {best[0] + 1}, head {best[1] + 1}** is chosen" in texts(app)


def test_groups_of_heads_are_named_where_they_are_and_chance_where_some_are_below_it(visits: Visits) -> None:
    x, y = (np.concatenate([each[axis] for each in drawn(visits(CHAPTER), "heads")]) for axis in "xy")
    above, below = (x > x.max() / 2) & (y < y.max() / 4), (y > y.max() / 2) & (x < 0)
    cheap, costly, chance = (WORDS(f"figure.{name}") for name in ("cheap", "costly", "chance"))
    assert notes(visits(CHAPTER)) == pytest.approx({cheap: x[above].max(), costly: x[below].max(), chance: 0, "x": 0})
    assert list(notes(visits(CHAPTER, **{"hs-x": "induction"}))) == [chance], "no head does it"
    assert not notes(visits(CHAPTER, **{"hs-x": "entropy"}))
    assert not notes(visits(CHAPTER, **{"hs-break": WORDS("option.no-chance")}), "heads-raw")


def test_a_model_opens_on_a_head_of_the_figure_and_names_of_groups_are_apart(visits: Visits) -> None:
    """The translator's most costly head is one of cross-attention, which has no previous token."""
    app = visits(CHAPTER, **{"hs-model": "transformer-en-fr"})
    assert "**layer 2, head 7 · decoder** is chosen" in texts(app)
    assert sum(18 in trace["marker"]["size"] for trace in drawn(app, "heads")) == 1
    found = {note["text"]: note for note in figures(app, "heads")[0]["layout"]["annotations"]}
    cheap, costly = (found[WORDS(f"figure.{name}")] for name in ("cheap", "costly"))
    assert costly["ay"] - cheap["y"] > 0.015, "on a phone they are above each other; the axis has 0.06"


def notes(app: AppTest, figure: str = "heads") -> dict[str, float]:
    """How far across what is named on the figure is, and where a line from there ends at its name."""
    found = figures(app, figure)[0]["layout"].get("annotations", ())
    return {note["text"]: note["x"] for note in found} | {note["axref"]: note["ax"] for note in found if "ax" in note}


def test_an_address_opens_a_head_and_its_card(visits: Visits) -> None:
    app = visits(CHAPTER, **{"hs-model": "transformer-en-fr", "head": "decoder-cross.1.2", "hs-open-card": "true"})
    table = head_scans("transformer-en-fr").tables["narrow", "decoder-cross"]
    place = table.heads.index((1, 2))
    written = texts(app)
    assert "layer 2, head 3 · cross-attention" in written
    assert f"**{table.part('worth', 'mean')[place]:+.3f}** nats per token" in written
    for one in table.quoted["worth"][place]:
        assert one.text.split(",")[0] in written
    assert "QK circuit: tokens of queries" in written
    assert "head=decoder-cross.1.2" in written


def test_a_table_holds_what_its_command_measures() -> None:
    """The same scan of the writer again, without worth."""
    table = head_scans("writer-en").tables["narrow", "decoder-self"]
    found = scan(load_hub("writer-en", device="cpu"), scan_inputs("narrow")).kinds["decoder-self"]
    for measure in ("previous", "entropy", "induction"):
        summary = found.summary(measure)
        np.testing.assert_allclose(table.part(measure, "mean"), summary.mean, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(table.part(measure, "low"), summary.low, rtol=1e-2, atol=1e-3)
    assert len(scan_inputs("broad")) > 20


def test_a_head_is_named_by_its_layer_and_linked_by_the_place_of_its_map() -> None:
    """Layer 2 has no maps, so the attention view's second layer is layer 3 of the model."""
    table = HeadTable(((0, 0), (2, 0)), {"entropy": {"mean": [1.0, 2.0]}}, {"entropy": [[], []]})
    scans = HeadScans("", "text", "", {"narrow": 1}, {"narrow": 3}, {("narrow", "decoder-self"): table})
    expected = {"decoder-self.0.0": "decoder.0.self", "decoder-self.1.0": "decoder.2.self"}
    assert {link: head.site for link, head in all_heads(scans, "narrow").items()} == expected


def test_the_recording_is_of_the_weights_that_ship() -> None:
    found = sample_maps(load_translator("transformer-en-fr", "cpu"), sentence("apple"))
    for kind, stored in recorded("now")["sample"].items():
        assert stored["keys"] == [*found[kind]["keys"]]
        assert np.abs(np.array(stored["maps"]) - np.array(found[kind]["maps"])).max() <= 1


def test_the_first_weights_rest_on_marks_whose_values_are_short_and_todays_do_not() -> None:
    before, now = recorded("before"), recorded("now")
    assert before["above"] == 40 > 12 >= now["above"]
    assert now["median"] <= 0.3
    assert max(layer["value"] for kind in before["layers"].values() for layer in kind) < 0.1
    assert before["bleu"]["with"] - before["bleu"]["without"] > now["bleu"]["with"] - now["bleu"]["without"]


OpenPage = Callable[..., AppTest]
LINES = ("The cat looked at the cat, and the cat sat.", "She reads a letter.", "The dog sat.", "word " * 600)
in_the_lab = pytest.mark.usefixtures("offline_lab", "few_repeats")


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_all(("gpt2", "t5", "vit", "clip", "llava", "whisper"), tmp_path_factory.mktemp("models"))


def open_lab(open_page: OpenPage, model: str | Path, **params: str) -> AppTest:
    place = "hs-folder" if isinstance(model, Path) else "hs-lab"
    return open_page(CHAPTER, **{"hs-model": "lab", place: str(model), **params})


@in_the_lab
def test_a_model_of_the_lab_is_scanned_on_the_readers_own_texts(open_page: OpenPage, folders: Path) -> None:
    app = open_lab(open_page, "gpt2", **{"hs-texts": "own", "hs-own": "\n".join(LINES), "hs-y": "entropy"})
    assert "heads" not in figure_names(app), "nothing is computed before it is asked for"
    app.button(key="hs-scan-go").click().run()
    model = load_hub(folders / "gpt2", device="cpu")
    (kind,) = scan(model, LINES, worth=4).kinds.values()
    found = drawn(app, "heads")
    for axis, measure in (("x", "previous"), ("y", "entropy")):
        points = np.concatenate([trace[axis] for trace in found])
        one = kind.summary(measure)
        expected = one.mean if measure == "entropy" else (one.mean - one.chance) / (1 - one.chance)
        np.testing.assert_allclose(np.sort(points), np.sort(expected), rtol=1e-4, atol=1e-6)
    assert all(np.isfinite(trace["error_y"]["array"]).all() for trace in found), "each number has an interval"
    written = texts(app)
    assert "Skipped: 1. The first is line 4" in written
    assert "scan(load_hub('gpt2'), inputs, worth=4)`" in written
    app.selectbox(key="hs-y").select("worth").run()
    points = np.concatenate([trace["y"] for trace in drawn(app, "heads")])
    np.testing.assert_allclose(np.sort(points), np.sort(kind.summary("worth").mean), rtol=1e-3, atol=1e-5)
    assert WORDS("unit.words") in texts(app)


@in_the_lab
def test_a_folder_opens_by_a_link_and_leads_back_to_the_lab(
    open_page: OpenPage, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ATLAS_MODEL_FOLDERS")
    app = open_lab(open_page, folders / "gpt2", **{"hs-texts": "own", "hs-own": "A cat sat.\nNo."})
    app.button(key="hs-scan-go").click().run()
    assert "heads" in figure_names(app)
    assert f"scan(load_hub(Path({str(folders / 'gpt2')!r})), inputs" in texts(app)
    links = [parse_qs(link.proto.query_string) for link in app.get("page_link")]
    assert {"ml-source": ["folder"], "ml-folder": [str(folders / "gpt2")]} in links
    app.button(key="hs-forget").click().run()
    assert "hs-folder" not in app.query_params
    assert app.selectbox(key="hs-lab")


@in_the_lab
def test_a_folder_does_not_open_where_the_lab_would_not_open_it(
    open_page: OpenPage, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not outside the folders of the host, not for a visitor from another machine, not on a public server."""
    assert "not among the folders" in texts(open_lab(open_page, Path("/etc")))
    monkeypatch.delenv("ATLAS_MODEL_FOLDERS")
    assert "is not a folder on this computer" in texts(open_lab(open_page, folders / "nothing"))
    monkeypatch.setattr(type(st.context), "ip_address", property(lambda _context: "192.0.2.7"))
    assert WORDS("no-link") in texts(open_lab(open_page, folders / "gpt2"))
    monkeypatch.setenv("ATLAS_MODEL_FOLDERS", str(folders))
    monkeypatch.setenv("ATLAS_HOSTED", "1")
    app = open_lab(open_page, folders / "gpt2")
    assert WORDS("no-link") in texts(app)
    assert app.selectbox(key="hs-lab")


@in_the_lab
def test_a_revision_opens_by_a_link_and_is_never_downloaded(open_page: OpenPage, folders: Path, tmp_path: Path) -> None:
    commit, stored = "a" * 40, tmp_path / "cache" / "models--me--gpt2"
    shutil.copytree(folders / "gpt2", stored / "snapshots" / commit)
    (stored / "refs").mkdir()
    (stored / "refs" / "v1").write_text(commit)
    link = {"hs-revision": "v1", "hs-texts": "own", "hs-own": "A cat sat.\nNo."}
    app = open_lab(open_page, "me/gpt2", **link)
    assert "me/gpt2 @ v1" in texts(app)
    app.button(key="hs-scan-go").click().run()
    assert "heads" in figure_names(app)
    assert "load_hub('me/gpt2', 'v1')" in texts(app)
    links = [parse_qs(each.proto.query_string) for each in app.get("page_link")]
    assert {"ml-source": ["hub"], "ml-name": ["me/gpt2"], "ml-revision": ["v1"]} in links
    assert "not in this machine's cache" in texts(open_lab(open_page, "me/gpt2", **{"hs-revision": "v2"}))
    assert "is not a revision" in texts(open_lab(open_page, "me/gpt2", **{"hs-revision": "../../etc"}))


@in_the_lab
def test_a_scan_is_stopped_and_goes_on(open_page: OpenPage, folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that are done are not done again."""
    app = open_lab(open_page, "gpt2", **{"hs-texts": "own", "hs-own": "A cat.\n" * 30, "open-all": "false"})
    calls: list[int] = []

    def evaluated(model: object, function: Callable[..., object], *args: object) -> object:
        calls.append(len(calls))
        if len(calls) == 4:
            raise ValueError("the model went away")
        return evaluate_model(model, function, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(live, "evaluate_model", evaluated)
    app.button(key="hs-scan-go").click().run()
    assert "the model went away" in texts(app)
    assert WORDS("scan-kept", done=2, count=30) in texts(app)
    assert "heads" not in figure_names(app)
    app.button(key="hs-scan-go").click().run()
    assert "heads" in figure_names(app)
