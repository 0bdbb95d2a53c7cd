"""Folders in the model lab: where they may be opened, and what is converted."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs

import pytest
import streamlit as st
import torch
from safetensors.torch import load_file
from streamlit.testing.v1 import AppTest

from serving.requests.hub import HubModelSpec
from tests.pages.reading import claims, texts
from viz_core.hub import HubError

OpenPage = Callable[..., AppTest]
pytestmark = pytest.mark.usefixtures("offline_lab")


def test_folders_the_host_does_not_allow_are_refused(open_page: OpenPage) -> None:
    link = {"ml-source": "A folder here", "ml-folder": "/etc"}
    assert "not among the folders" in texts(open_page("model-lab", **link))
    allowed = open_page("model-lab", **{**link, "ml-folder": "bert"})
    assert claims(allowed)


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
    assert "35 of 35 tokens are unknown" in texts(app), "every character but spaces"
    broken = open_page("model-lab", **{**link, "ml-pattern": "["})
    assert "is not a regular expression" in texts(broken)


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


def test_no_folder_is_opened_for_a_visitor_from_another_machine(
    open_page: OpenPage, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ATLAS_MODEL_FOLDERS")
    monkeypatch.setattr(type(st.context), "ip_address", property(lambda _context: "192.0.2.7"))
    link = {"ml-source": "folder", "ml-folder": str(folders / "bert"), "open-all": "false"}
    app = open_page("model-lab", **link)
    assert not [text_input for text_input in app.text_input if text_input.key == "ml-folder"]
