"""From a folder of sentence pairs to models of English that the lab opens like any other."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForMaskedLM

from recipes import loop, text_models
from recipes.__main__ import main
from recipes.text_measures import perplexity
from recipes.text_rows import encode
from recipes.text_tokenizer import train_tokenizer
from viz_core.hub import load_hub

SMALL = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """200 sentences, 7 of which fall to validation and 5 to test."""
    monkeypatch.setenv("ATLAS_DEVICE", "cpu")
    monkeypatch.setattr(loop, "reuse_freed_memory", lambda: None)
    for name, design in text_models.TEXT_MODELS.items():
        small = {key: SMALL.get(key, value) for key, value in design.architecture.items()}
        config = replace(design.config, vocabulary_size=280, batch_tokens=512, adam_lr=0.02)
        monkeypatch.setitem(text_models.TEXT_MODELS, name, replace(design, architecture=small, config=config))
    lines = [f"I have {n} cats.\tJ'ai {n} chats.\tCC-BY" for n in range(200)]
    (tmp_path / "fra.txt").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("name", ["writer-en", "reader-en"])
def test_from_sentences_to_a_model_that_the_lab_opens(
    name: str, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / name
    arguments = [name, "--data", str(data), "--out", str(out), "--epochs", "2"]
    assert main(arguments) == 0
    scores = json.loads(capsys.readouterr().out.splitlines()[-1])
    training = json.loads((out / "training.json").read_text(encoding="utf-8"))
    assert training["scores"] == scores
    assert training["curve"][-1]["validation_loss"] < training["curve"][0]["validation_loss"]
    model = load_hub(out, device="cpu")
    assert model.card.licence == "cc-by-2.0"
    run = model.run("I have 3 cats.", max_new_tokens=2)
    assert run.tokens[0].label == "<s>"
    assert [token.text for token in run.tokens[1:3]] == ["I", "have"]
    assert len(run.trace) == 1
    assert "188 sentences to train on, 7 to validate, 5 to test" in (out / "README.md").read_text(encoding="utf-8")

    before = (out / "model.safetensors").read_bytes()
    assert main([*arguments, "--resume"]) == 0  # nothing left to train: the same model again
    assert (out / "model.safetensors").read_bytes() == before


def test_the_reader_ships_with_the_layer_that_names_words(data: Path, tmp_path: Path) -> None:
    assert main(["reader-en", "--data", str(data), "--out", str(tmp_path / "out"), "--epochs", "1"]) == 0
    _, report = AutoModelForMaskedLM.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]


@pytest.mark.parametrize("name", ["writer-en", "reader-en"])
def test_each_design_fits_its_size(name: str) -> None:
    design = text_models.TEXT_MODELS[name]
    with torch.device("meta"):
        model = design.build({"vocab_size": design.config.vocabulary_size, **design.architecture})
    assert 2 * sum(p.numel() for p in model.parameters()) < 5.5 * 2**20  # float16; the tokenizer takes some more


def test_a_model_that_knows_nothing_is_as_perplexed_as_its_vocabulary_is_large() -> None:
    tokenizer = train_tokenizer(["a b c d", "b a"], 270)
    sentences = encode(tokenizer, ["a b c d", "b a"])
    model = text_models.writer({"vocab_size": 270, **text_models.TEXT_MODELS["writer-en"].architecture, **SMALL}).eval()
    torch.nn.init.zeros_(model.lm_head.weight)
    assert perplexity(model, sentences, torch.device("cpu")) == pytest.approx(270, rel=1e-4)
