"""What the lab draws, folders and downloads: what comes, and a sentence for all that may not."""

import json
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs

import numpy as np
import pytest
import streamlit as st
import torch
from huggingface_hub import constants
from safetensors.torch import load_file, save_file
from streamlit.testing.v1 import AppTest

from pages.model_lab.figures import bias_figure, fingerprint_figure
from serving.compute.slots import reset_singletons
from serving.requests.hub import HubModelSpec
from tests.pages.reading import claims, texts
from tests.viz_core.hub.fake_hub import COMMIT, FakeHub, serving, use_only
from tests.viz_core.hub.families import build
from ui.text.words import load_words
from viz_core.hub import HubError
from viz_core.hub.runs.positions import bias_by_offset

LABELS = load_words("model-lab", "en").group("figure")


def test_the_map_of_heads_has_the_first_layer_on_top() -> None:
    figure = fingerprint_figure(np.array([[0.0, 0.5], [0.25, 1.0]], dtype=np.float32), "diagonal", LABELS)
    assert figure.data[0].z[1][1] == 1.0
    assert figure.layout.yaxis.autorange == "reversed"
    assert figure.layout.xaxis.title.text == "head"
    silent = fingerprint_figure(np.zeros((1, 1), dtype=np.float32), "first", LABELS)
    assert silent.data[0].zmax > 0
    with warnings.catch_warnings(action="error"):
        fingerprint_figure(np.full((1, 1), np.nan, dtype=np.float32), "first", LABELS)


def test_bias_by_offset_takes_each_bucket_of_the_model() -> None:
    values = torch.arange(8.0)[:, None] * torch.tensor([1.0, -1.0])  # bucket b adds b to head 1, -b to head 2
    # Both ways, 8 buckets: 4 a side, of which 0 and 1 are exact; keys after the query start at 4.
    both = bias_by_offset(values, True, 16, 2)
    assert both.shape == (2, 5)
    assert both[0].tolist()[1:4] == [1.0, 0.0, 5.0]
    assert torch.equal(both[1], -both[0])
    back = bias_by_offset(values, False, 16, 3)
    assert back[0].tolist() == [3.0, 2.0, 1.0, 0.0]
    figure = bias_figure(back.numpy(), 3, 1, LABELS)
    assert list(figure.data[-1].x) == [-3, -2, -1, 0]
    assert list(figure.data[-1].y) == [-3.0, -2.0, -1.0, 0.0]


OpenPage = Callable[..., AppTest]


@pytest.mark.usefixtures("offline_lab")
def test_at_home_a_pickle_is_converted_and_a_pattern_finds_the_tokens(
    open_page: OpenPage, folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(shutil.copytree(folders / "bert", tmp_path / "bert"))
    torch.save(load_file(path / "model.safetensors"), path / "pytorch_model.bin")
    (path / "model.safetensors").unlink()
    for file in path.glob("*token*.json"):
        file.unlink()
    (path / "vocab.txt").write_text("[UNK]\nC\nO\n")
    link = {"ml-source": "folder", "open-all": "false", "ml-folder": str(path), "ml-pattern": "\\S"}
    refused = open_page("model-lab", **link)
    assert "not among the folders" in texts(refused), "where the owner names folders, nothing is written"
    monkeypatch.delenv("ATLAS_MODEL_FOLDERS")
    app = open_page("model-lab", **link)
    assert "are a pickle" in app.info[0].value
    assert not (path / "model.safetensors").exists(), "not before a click"
    next(button for button in app.button if button.label == "Convert to safetensors").click().run()
    assert (path / "model.safetensors").exists()
    assert claims(app)
    assert "29 of 29 tokens are unknown" in texts(app), "every character but spaces"
    broken = open_page("model-lab", **{**link, "ml-pattern": "["})
    assert "is not a regular expression" in texts(broken)


@pytest.mark.attack("models")
@pytest.mark.usefixtures("offline_lab")
def test_weights_that_are_no_numbers_are_named_beside_the_maps(
    open_page: OpenPage,
    folders: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    recwarn: pytest.WarningsRecorder,
) -> None:
    path = Path(shutil.copytree(folders / "vit", tmp_path / "folders" / "undefined"))
    weights = load_file(path / "model.safetensors")
    save_file({n: w * torch.nan for n, w in weights.items()}, path / "model.safetensors", {"format": "pt"})
    monkeypatch.setenv("ATLAS_MODEL_FOLDERS", str(path.parent))
    app = open_page("model-lab", **{"ml-model": "undefined", "lang": "zh-TW"})
    sentence = load_words("model-lab", "zh-TW")("not-finite", parts=["X"]).partition("X")[0]
    assert sum(sentence in warning.value for warning in app.warning) == 1
    assert [each.category for each in recwarn if issubclass(each.category, RuntimeWarning)] == []


@pytest.mark.usefixtures("offline_lab")
def test_at_home_any_folder_opens_and_a_host_refuses_it(
    open_page: OpenPage, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ATLAS_MODEL_FOLDERS")
    link = {"ml-source": "folder", "open-all": "false"}
    assert "attention-atlas open" in texts(open_page("model-lab", **link))
    opened = open_page("model-lab", **link, **{"ml-folder": str(folders / "bert")})
    assert claims(opened)
    links = [parse_qs(each.proto.query_string) for each in opened.get("page_link")]
    assert {"hs-model": ["lab"], "hs-folder": [str(folders / "bert")]} in links
    refused = open_page("model-lab", **link, **{"ml-folder": str(folders / "nothing")})
    assert "is not a folder on this computer" in texts(refused)
    assert not claims(refused)
    monkeypatch.setenv("ATLAS_HOSTED", "1")
    with pytest.raises(HubError, match="not among the folders"):
        HubModelSpec("bert", folder=str(folders / "bert")).load(None)


@pytest.mark.usefixtures("offline_lab")
def test_no_folder_is_opened_for_a_visitor_from_another_machine(
    open_page: OpenPage, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ATLAS_MODEL_FOLDERS")
    monkeypatch.setattr(type(st.context), "ip_address", property(lambda _context: "192.0.2.7"))
    link = {"ml-source": "folder", "ml-folder": str(folders / "bert"), "open-all": "false"}
    app = open_page("model-lab", **link)
    assert not [text_input for text_input in app.text_input if text_input.key == "ml-folder"]


NAME = "someone/model"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("gpt2")
    build("gpt2", folder)
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """An empty cache, no folder, and a Hub with whatever a test puts there."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ATLAS_MODEL_FOLDERS", str(tmp_path / "none"))
    monkeypatch.delenv("ATLAS_MODELS", raising=False)
    st.cache_data.clear()
    reset_singletons()
    fake = FakeHub()
    with serving(fake) as address:
        use_only(address, monkeypatch)
        yield fake
    st.cache_data.clear()
    reset_singletons()


def open_model(open_page: OpenPage, **parameters: str) -> AppTest:
    app = open_page("model-lab", **{"ml-source": "Type a name", "ml-name": NAME, "ml-start": "The cat", **parameters})
    assert f"{NAME} is not on this machine" in texts(app)
    return app.button[0].click().run()


def test_a_model_is_downloaded_after_a_click_and_its_commit_is_shown(
    open_page: OpenPage, hub: FakeHub, files: dict[str, bytes]
) -> None:
    hub.repos[NAME] = files
    app = open_model(open_page)
    assert COMMIT in texts(app)
    assert claims(app)
    num_requests = len(hub.requests)
    reset_singletons()
    again = open_page("model-lab", **{"ml-source": "Type a name", "ml-name": NAME, "ml-start": "The cat"})
    assert claims(again), "what came once needs no click"
    assert len(hub.requests) == num_requests


def test_a_model_whose_terms_nobody_accepted_is_a_sentence(open_page: OpenPage, hub: FakeHub) -> None:
    hub.errors[NAME] = (403, "GatedRepo")
    app = open_model(open_page)
    assert "accept terms first" in texts(app)
    assert not claims(app)
    assert app.text_input(key="ml-name").value == NAME


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model.safetensors": None, "pytorch_model.bin": b"pickle"}, "only as a pickle"),
        ({"config.json": json.dumps({"model_type": "never-heard-of"}).encode()}, "does not know"),
        ({"model.safetensors": b"\x10\x00\x00\x00\x00\x00\x00\x00{broken"}, "model.safetensors"),
    ],
)
def test_what_cannot_be_shown_is_a_sentence_and_the_session_goes_on(
    open_page: OpenPage, hub: FakeHub, files: dict[str, bytes], changes: dict[str, bytes | None], message: str
) -> None:
    hub.repos[NAME] = {name: content for name, content in {**files, **changes}.items() if content is not None}
    hub.repos["someone/good"] = files
    app = open_model(open_page)
    assert message in texts(app)
    assert not claims(app)
    app.text_input(key="ml-name").set_value("someone/good").run()
    app.button[0].click().run()
    assert claims(app)
