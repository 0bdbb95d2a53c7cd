"""Scans made on the page: of a model of the lab, of own texts, stopped and resumed, bounded where hosted."""

import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs

import numpy as np
import pytest
import streamlit as st
from safetensors.torch import load_file, save_file
from streamlit.testing.v1 import AppTest

from pages.heads import live
from serving.requests.lab import text_beside
from tests.pages.reading import drawn, figure_names, texts
from tests.visits import Visits
from tests.viz_core.hub.families import build_all
from ui.compute.models import evaluate_model
from ui.text.words import load_words
from viz_core.hub import load_hub
from viz_core.lab.scan import scan
from viz_core.pretrained.samples import SETS, scan_inputs, scan_picture

OpenPage = Callable[..., AppTest]
CHAPTER = "heads"
WORDS = load_words(CHAPTER, "en")
LINES = ("The cat looked at the cat, and the cat sat.", "She reads a letter.", "The dog sat.", "word " * 600)
pytestmark = pytest.mark.usefixtures("offline_lab", "few_repeats")


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_all(("gpt2", "t5", "vit", "clip", "llava", "whisper"), tmp_path_factory.mktemp("models"))


def open_lab(open_page: OpenPage, model: str, **params: str) -> AppTest:
    return open_page(CHAPTER, **{"hs-model": "lab", "hs-lab": model, **params})


def test_a_model_of_the_lab_is_scanned_on_the_readers_own_texts(open_page: OpenPage, folders: Path) -> None:
    app = open_lab(open_page, "gpt2", **{"hs-texts": "own", "hs-own": "\n".join(LINES), "hs-y": "entropy"})
    assert not app.exception
    assert "heads" not in figure_names(app), "nothing is computed before it is asked for"
    app.button(key="hs-scan-go").click().run()
    assert not app.exception
    model = load_hub(folders / "gpt2", device="cpu")
    (kind,) = scan(model, LINES, worth=4).kinds.values()
    found = drawn(app, "heads")
    for axis, measure in (("x", "previous"), ("y", "entropy")):
        points = np.concatenate([trace[axis] for trace in found])
        one = kind.summary(measure)
        expected = one.mean if measure == "entropy" else (one.mean - one.chance) / (1 - one.chance)
        np.testing.assert_allclose(np.sort(points), np.sort(expected), rtol=1e-4, atol=1e-6)
    lengths = np.concatenate([trace["error_y"]["array"] for trace in found])
    assert np.isfinite(lengths).all(), "each number has an interval"
    written = texts(app)
    assert "Skipped: 1. The first is line 4" in written
    assert "`python -m recipes scan gpt2 --texts FILE --out FILE --worth 4`" in written
    app.selectbox(key="hs-y").select("worth").run()
    points = np.concatenate([trace["y"] for trace in drawn(app, "heads")])
    np.testing.assert_allclose(np.sort(points), np.sort(kind.summary("worth").mean), rtol=1e-3, atol=1e-5)
    assert WORDS("unit.words") in texts(app)


@pytest.mark.parametrize(("model", "pictures", "axis"), [("vit", True, "distance")])
def test_narrow_and_broad_inputs_are_scanned_one_after_the_other(
    open_page: OpenPage, folders: Path, model: str, pictures: bool, axis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "_MAX_INPUTS", {False: 3, True: 3})
    app = open_lab(open_page, model, **{"hs-y": axis, "open-all": "false"})
    kinds = {}
    for name in SETS:
        app.button_group(key="hs-texts").set_value([name]).run()
        app.button(key="hs-scan-go").click().run()
        assert not app.exception
        inputs = scan_inputs(name, pictures)[:3]
        given = [scan_picture(each) for each in inputs] if pictures else inputs
        kinds[name] = scan(load_hub(folders / model, device="cpu"), given).kinds["encoder-self"]
    app.toggle(key="open-all").set_value(True).run()
    assert not app.exception
    assert ("python -m recipes scan" in texts(app)) != pictures, "the command line takes no pictures"
    points = drawn(app, "sets")[0]
    np.testing.assert_allclose(points["x"], kinds["narrow"].summary(axis).mean, rtol=1e-4)
    np.testing.assert_allclose(points["y"], kinds["broad"].summary(axis).mean, rtol=1e-4)
    assert f"ml-model={model}" in [link.proto.query_string for link in app.get("page_link")]


def test_the_command_is_of_the_scan_that_is_shown(open_page: OpenPage) -> None:
    """The writer's tables ship; those of own texts are made here."""
    app = open_page(CHAPTER, **{"hs-texts": "own", "hs-own": "A cat.\nA dog sat."})
    app.button(key="hs-scan-go").click().run()
    assert not app.exception
    assert "`python -m recipes scan writer-en --texts FILE" in texts(app)
    assert "hs-texts=own&hs-own=A+cat" in texts(app), "the link to the card opens it over the same texts"


@pytest.mark.parametrize(("model", "kind"), [("llava", "decoder-self")])
def test_pictures_are_scanned_with_texts(
    open_page: OpenPage, folders: Path, model: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both towers are drawn; the example is a picture and its text."""
    monkeypatch.setattr(live, "_MAX_INPUTS", {False: 12, True: 12})
    app = open_lab(open_page, model, **{"hs-x": "first", "hs-y": "entropy", "open-all": "false"})
    assert app.button_group(key="hs-texts").options == [WORDS(f"option.{name}") for name in SETS]
    app.button(key="hs-scan-go").click().run()
    assert not app.exception
    loaded, names = load_hub(folders / model, device="cpu"), scan_inputs("narrow", pictures=True)[:12]
    given = [
        {"image": scan_picture(name), "text": text_beside(name, loaded.card.prompt), "max_new_tokens": 0}
        for name in names
    ]
    expected = scan(loaded, given)
    assert expected.texts > 1
    values = np.concatenate([expected.kinds[each].summary("entropy").mean for each in (kind, "vision-self")])
    points = np.concatenate([trace["y"] for trace in drawn(app, "heads")])
    np.testing.assert_allclose(np.sort(points), np.sort(values), rtol=1e-4)
    for head in (f"{kind}.1.2", "vision-self.1.1"):
        app.selectbox(key="hs-head").select(head).run()
        app.toggle(key="open-all").set_value(True).run()
        assert not app.exception, [error.message for error in app.exception]
        assert WORDS(f"figure.{kind if head.startswith(kind) else 'vision-self'}") in texts(app)
    assert "QK circuit: this model's layers do not allow it" in texts(app), "a vision tower reads no tokens"


def test_weights_that_are_no_numbers_are_named_beside_a_scan(
    open_page: OpenPage, folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(shutil.copytree(folders / "gpt2", tmp_path / "undefined"))
    weights = load_file(path / "model.safetensors")
    last = max(name for name in weights if name.endswith("mlp.c_proj.bias"))
    weights[last][0] = np.nan
    save_file(weights, path / "model.safetensors", {"format": "pt"})
    monkeypatch.delenv("ATLAS_MODEL_FOLDERS")
    sentence = load_words("model-lab", "en")("not-finite", parts=["X"]).partition("X")[0]
    app = open_folder(open_page, path, **{"hs-texts": "own", "hs-own": "A cat sat.\nThe dog."})
    assert not [each for each in app.warning if sentence in each.value], "nothing is loaded before it is asked for"
    app.button(key="hs-scan-go").click().run()
    assert not app.exception
    assert sum(sentence in each.value for each in app.warning) == 1


def test_a_speech_model_says_why_it_is_not_scanned(visits: Visits) -> None:
    app = open_lab(visits, "whisper")
    assert not app.exception
    assert WORDS("no-sounds", model="whisper") in texts(app)
    assert "ml-model=whisper" in [link.proto.query_string for link in app.get("page_link")]
    assert "heads" not in figure_names(app)


def open_folder(open_page: OpenPage, folder: Path, **params: str) -> AppTest:
    return open_page(CHAPTER, **{"hs-model": "lab", "hs-folder": str(folder), **params})


def test_a_folder_opens_by_a_link_and_leads_back_to_the_lab(
    open_page: OpenPage, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ATLAS_MODEL_FOLDERS")
    app = open_folder(open_page, folders / "gpt2", **{"hs-texts": "own", "hs-own": "A cat sat.\nNo."})
    app.button(key="hs-scan-go").click().run()
    assert not app.exception
    assert "heads" in figure_names(app)
    assert f"python -m recipes scan {folders / 'gpt2'} --texts FILE" in texts(app)
    links = [parse_qs(link.proto.query_string) for link in app.get("page_link")]
    assert {"ml-source": ["folder"], "ml-folder": [str(folders / "gpt2")]} in links
    app.button(key="hs-forget").click().run()
    assert "hs-folder" not in app.query_params
    assert app.selectbox(key="hs-lab")


def test_a_folder_does_not_open_where_the_lab_would_not_open_it(
    open_page: OpenPage, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not outside the folders of the host, not for a visitor from another machine, not on a public server."""
    assert "not among the folders" in texts(open_folder(open_page, Path("/etc")))
    monkeypatch.delenv("ATLAS_MODEL_FOLDERS")
    assert "is not a folder on this computer" in texts(open_folder(open_page, folders / "nothing"))
    monkeypatch.setattr(type(st.context), "ip_address", property(lambda _context: "192.0.2.7"))
    assert WORDS("no-link") in texts(open_folder(open_page, folders / "gpt2"))
    monkeypatch.setenv("ATLAS_MODEL_FOLDERS", str(folders))
    monkeypatch.setenv("ATLAS_HOSTED", "1")
    app = open_folder(open_page, folders / "gpt2")
    assert WORDS("no-link") in texts(app)
    assert app.selectbox(key="hs-lab")


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
    assert not app.exception
    assert "heads" in figure_names(app)
