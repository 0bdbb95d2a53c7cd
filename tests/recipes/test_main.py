"""The command: from a folder of data to models that load and recorded runs, or a sentence about what is missing."""

import json
import urllib.request
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import URLError

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForMaskedLM

from recipes import copying, text_models, text_rows, translators
from recipes.__main__ import MEASURES, main
from recipes.alignments import aligned_samples
from recipes.classifiers import CLASSIFIERS
from recipes.copying import copying_cases
from recipes.task_recordings import FILMS
from recipes.translators import TRANSLATORS
from viz_core.hub import load_hub
from viz_core.pretrained import load
from viz_core.tasks.film import load_film

NAME = "transformer-en-fr"
SMALL = {"num_hiddens": 16, "ffn_num_hiddens": 24, "num_heads": 2, "num_blks": 1, "dropout": 0.1}

SMALL_GRU = {"embed_size": 16, "num_hiddens": 16, "num_layers": 2, "dropout": 0.1}


@pytest.fixture
def few_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Untrained models end no sentence: what is measured of hundreds would take minutes."""
    samples = aligned_samples()[:5]
    monkeypatch.setattr("recipes.alignments.aligned_samples", lambda: samples)
    for module in (copying, translators):
        monkeypatch.setattr(module, "copying_cases", partial(copying_cases, per_kind=3))


@pytest.mark.usefixtures("few_samples")
@pytest.mark.parametrize("name", TRANSLATORS)
def test_from_sentence_pairs_to_a_model_that_loads(
    name: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = TRANSLATORS[name]
    small = {"architecture": spec.architecture["architecture"], **(SMALL if name == NAME else SMALL_GRU)}
    # Each of these pairs has a number: there would be many varied ones. What a small model cannot start from goes.
    alone: dict[str, Any] = {
        "start": None,
        "teacher_share": 0.0,
        "beam_sentences": 0,
        "guide_penalty": 0.0,
        "guides": {},
        "aligned": None,
        "reader": None,
    }
    config = replace(spec.config, vary_pairs=False, **alone)
    monkeypatch.setitem(TRANSLATORS, name, replace(spec, architecture=small, config=config))
    out = tmp_path / "checkpoints" / name
    arguments = [name, "--data", str(data), "--out", str(out), "--epochs", "2"]
    assert main(arguments) == 0
    translator = load(name, device="cpu", folder=out.parent)
    assert translator.card.config["model"].items() >= small.items()
    assert "188 pairs to train on,\n7 to validate, 5 to test" in translator.card.text
    translation = translator.translate("I have 3 cats.", max_new_tokens=5)
    assert len(translation.trace) == {NAME: 3, "bahdanau-en-fr": 1, "seq2seq-en-fr": 0}[name]
    before = translator.card.config["sha256"]
    assert main([*arguments, "--resume"]) == 0  # nothing left to train: the same model again
    assert load(name, device="cpu", folder=out.parent).card.config["sha256"] == before


def no_network(*_: object, **__: object) -> None:
    raise URLError("no network here")


def test_reasons_not_to_train_are_sentences(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(urllib.request, "urlopen", no_network)
    folder, out = tmp_path / "other", str(tmp_path / "out")

    def reason(where: Path, *more: str, name: str = NAME) -> str:
        assert main([name, "--data", str(where), "--out", out, *more]) == 1
        return capsys.readouterr().err

    for name in CLASSIFIERS:
        assert reason(folder, name=name).startswith(f"cannot train {name}: ")
    error = reason(folder)
    assert "cannot be fetched: no network here; put it there yourself, as " in error
    assert error.endswith("other/fra-eng.zip\n")
    assert not Path(out).exists()
    folder.mkdir()
    (folder / "fra-eng.zip").write_bytes(b"not the archive")
    (folder / "fra.txt").write_text("no pair here\n", encoding="utf-8")
    assert "expected sentence pairs to train on and to validate with, got 0 and 0" in reason(folder)
    assert "nothing to resume from" in reason(data, "--resume")
    for name in MEASURES:
        assert main([name, "nobody", "--data", str(data)]) == 1
        assert f"{name} of nobody cannot be measured: There is no model 'nobody'" in capsys.readouterr().err


def test_the_command_makes_the_recorded_runs_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    only = ["--out", str(tmp_path), "--steps", "2", "--only", "repeat-one-layer", "modular-addition", "none"]
    assert main(["learning", *only, "--seeds", "1"]) == 0
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(first) == {"repeat-one-layer-1.npz", "modular-addition-1.npz", "extrapolation.json", "card.md"}
    film = load_film(tmp_path / "modular-addition-1.npz")
    assert film.plan == replace(FILMS["modular-addition"], seed=1, steps=2, every=2)
    assert film.spectra.shape == (2, 29)
    (tmp_path / "repeat-one-layer-1.npz").unlink()
    assert main(["learning", *only, "--seeds", "1"]) == 0
    assert load_film(tmp_path / "repeat-one-layer-1.npz").maps.shape == (2, 1, 4, 19, 19)


@pytest.mark.usefixtures("few_repeats")
def test_the_tables_have_every_head_and_quote_the_texts_at_percentiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {"narrow": ["A cat sat.", "No.", "He is calm, they said."], "broad": ["I went home late.", "Why not?"]}
    monkeypatch.setattr("recipes.scan.scan_inputs", lambda name, _pictures: texts[name])
    monkeypatch.setattr("recipes.scan._WORTH", 1)
    assert main(["head-scans", "writer-en", "--out", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "writer-en.json").read_text(encoding="utf-8"))
    assert found["texts"] == {"narrow": 3, "broad": 2}
    heads = found["kinds"]["decoder-self"]
    for name, own in texts.items():
        assert {len(heads["measures"][name]["entropy"][part]) for part in ("mean", "low", "p5", "p100")} == {16}
        assert set(found["quoted"][name].values()) <= set(own)


SMALL_LANGUAGE_MODEL = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models of the same kinds that train in seconds."""
    for name, spec in text_models.TEXT_MODELS.items():
        architecture = {key: SMALL_LANGUAGE_MODEL.get(key, value) for key, value in spec.architecture.items()}
        config = replace(spec.config, vocabulary_size=280, batch_tokens=512, adam_lr=0.02)
        monkeypatch.setitem(text_models.TEXT_MODELS, name, replace(spec, architecture=architecture, config=config))


@pytest.mark.usefixtures("small")
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
    assert [token.text for token in run.tokens[:3]] == ["<s>", "I", "have"]
    assert len(run.trace) == 1
    assert "188 sentences to train on, 7 to validate, 5 to test" in (out / "README.md").read_text(encoding="utf-8")
    if name == "reader-en":  # it ships with the layer that names words
        _, report = AutoModelForMaskedLM.from_pretrained(out, output_loading_info=True)
        assert not report["missing_keys"]
        assert not report["unexpected_keys"]
    before = (out / "model.safetensors").read_bytes()
    assert main([*arguments, "--resume"]) == 0  # nothing left to train: the same model again
    assert (out / "model.safetensors").read_bytes() == before


def test_a_model_that_knows_nothing_is_as_perplexed_as_its_vocabulary_is_large() -> None:
    tokenizer = text_rows.train_tokenizer(["a b c d", "b a"], 270)
    sentences = text_rows.encode(tokenizer, ["a b c d", "b a"])
    model = text_models.writer(
        {"vocab_size": 270, **text_models.TEXT_MODELS["writer-en"].architecture, **SMALL_LANGUAGE_MODEL}
    ).eval()
    torch.nn.init.zeros_(model.lm_head.weight)
    assert text_rows.perplexity(model, sentences, torch.device("cpu")) == pytest.approx(270, rel=1e-4)


SENTENCES = ["I have 1998 cats.", "She doesn't care.", "He has a cat, too."]
PAIR = [text_rows.Sentence([10, 11], [0, 1]), text_rows.Sentence([12], [0])]


def test_a_pair_in_a_row_and_the_pieces_of_words() -> None:
    (found,) = text_rows.encode(text_rows.train_tokenizer(SENTENCES, 261), ["mm cq."])  # hardly any merges
    assert found.words == [0, 0, 0, 1, 1, 1, 2]
    apart = text_rows.collate(PAIR, [(0, 1)], stop_between=True)
    assert apart.ids.tolist() == [[1, 10, 11, 2, 12, 2]]
    assert apart.segments.tolist() == [[0, 0, 0, 0, 1, 1]]
    assert apart.words.tolist() == [[-1, 0, 1, -1, 1000, -1]]
    on = text_rows.collate(PAIR, [(0, 1), (1,)], stop_between=False)
    assert on.ids.tolist() == [[1, 10, 11, 12, 2], [1, 12, 2, 0, 0]]
    assert on.segments.sum() == 0


@settings(max_examples=30)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=60), st.integers(0, 5), st.floats(0, 1))
def test_every_sentence_once_in_batches_that_fit(lengths: list[int], seed: int, in_pairs: float) -> None:
    sentences = [text_rows.Sentence([9] * n, list(range(n))) for n in lengths]
    plan = text_rows.plan_rows(sentences, 64, seed, in_pairs)
    assert plan == text_rows.plan_rows(sentences, 64, seed, in_pairs)
    assert sorted(i for rows in plan for row in rows for i in row) == list(range(len(lengths)))
    for rows in plan:
        assert len(rows) == 1 or text_rows.collate(sentences, rows, stop_between=True).ids.numel() <= 64


def test_words_are_hidden_whole_and_special_tokens_never() -> None:
    words = torch.tensor([[-1, 0, 0, 1, 2, 2, 2, -1]] * 4000)
    batch = text_rows.TextBatch(
        torch.full_like(words, 20).masked_fill(words < 0, text_rows.SPECIAL["</s>"]), words, torch.zeros_like(words)
    )
    given, hidden = text_rows.hide_words(batch, 50, torch.Generator().manual_seed(0))
    assert not hidden[:, [0, 7]].any()
    assert torch.equal(hidden[:, 1], hidden[:, 2])
    assert torch.equal(hidden[:, 4], hidden[:, 6])
    assert not torch.equal(hidden[:, 1], hidden[:, 3])
    assert torch.equal(given[~hidden], batch.ids[~hidden])
    assert abs(float(hidden[:, 3].float().mean()) - 0.25) < 0.03, "drawn evenly from 0.1 to 0.4"
    assert abs(float((given[hidden] == text_rows.SPECIAL["<mask>"]).float().mean()) - 0.8) < 0.03
    assert given.min() >= 0
    assert int((given[hidden] == text_rows.SPECIAL["<pad>"]).sum()) == 0


def test_a_word_of_two_pieces_is_named_if_both_are() -> None:
    """By a model that names token 11 in every place."""

    def model(input_ids: torch.Tensor, attention_mask: torch.Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=torch.nn.functional.one_hot(torch.full_like(input_ids, 11), 13))

    words = [text_rows.HiddenWord(0, (0, 1)), text_rows.HiddenWord(0, (2,))]
    assert text_rows.filled(model, [text_rows.Sentence([10, 11, 11], [0, 0, 1])], words, torch.device("cpu")) == 50
