"""The shipped translator: what it promises, and what it says to text and files it cannot use."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
import math
import os
import pickle
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from viz_core.pretrained import CheckpointError, TextError, Translator, available, load
from viz_core.tokenization import train_tokenizer
from viz_core.trace import record

NAME = "tiny-en-fr"
SENTENCE = "The cat is on the bed."


@pytest.fixture
def folder(checkpoints: Path, tmp_path: Path) -> Path:
    """A copy of the model to break."""
    return Path(shutil.copytree(checkpoints, tmp_path / "checkpoints"))


def edit_config(folder: Path, **changes: Any) -> None:
    path = folder / NAME / "config.json"
    config = {**json.loads(path.read_text(encoding="utf-8")), **changes}
    path.write_text(json.dumps({k: v for k, v in config.items() if v is not None}), encoding="utf-8")


def edit_tensors(folder: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    """Other weights under a digest that fits them: only their names and shapes can give them away."""
    path = folder / NAME / "model.safetensors"
    tensors = load_tensors(path.read_bytes())
    change(tensors)
    content = save_tensors(tensors)
    path.write_bytes(content)
    edit_config(folder, sha256=hashlib.sha256(content).hexdigest())


# Translating


@pytest.mark.parametrize("beam", [1, 4])
def test_tokens_and_maps_have_the_same_sides(translator: Translator, beam: int) -> None:
    result = translator.translate(SENTENCE, beam=beam)
    n, m = len(result.source_ids), len(result.target_ids)
    assert len(result.source_tokens) == n
    assert len(result.target_tokens) == len(result.decoder_tokens) == m
    assert result.source_tokens[-1] == "<eos>"
    assert "".join(result.source_tokens[:-1]).replace("·", "") == SENTENCE.replace(" ", "")
    assert result.decoder_tokens == ("<bos>", *result.target_tokens[:-1])
    assert result.trace.sites == (
        "encoder.0.self",
        "encoder.1.self",
        "decoder.0.self",
        "decoder.0.cross",
        "decoder.1.self",
        "decoder.1.cross",
    )
    sides = {"encoder.self": (n, n), "decoder.self": (m, m), "decoder.cross": (m, n)}
    for call in result.trace:
        weights = call.weights()
        assert tuple(weights.shape) == (1, 4, *sides[f"{call.stack}.{call.kind}"])
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]), atol=1e-5, rtol=0)
    assert result.trace["decoder.1.self"].weights().triu(1).max() == 0


@torch.no_grad()
@pytest.mark.parametrize("beam", [1, 3])
def test_log_probability_is_the_sum_over_single_steps(translator: Translator, beam: int) -> None:
    result = translator.translate("Where is the dog?", max_new_tokens=9, beam=beam)
    source = torch.tensor([result.source_ids])
    total = 0.0
    for i, token in enumerate(result.target_ids):
        prefix = torch.tensor([[translator.special.bos, *result.target_ids[:i]]])
        total += translator.model(source, prefix)[0, -1].log_softmax(-1)[token].item()
    assert result.log_probability == pytest.approx(total, abs=1e-4)
    assert result.log_probability < 0


@torch.no_grad()
def test_greedy_writes_the_likeliest_token_of_its_own_pass(translator: Translator) -> None:
    result = translator.translate(SENTENCE)
    logits = translator.model(torch.tensor([result.source_ids]), torch.tensor([[1, *result.target_ids[:-1]]]))[0]
    logits[:, [0, 1]] = -math.inf
    assert tuple(logits.argmax(-1).tolist()) == result.target_ids


def test_the_trace_is_of_the_whole_translation_and_nothing_else(translator: Translator) -> None:
    one, two = translator.translate("Go."), translator.translate(SENTENCE)
    with torch.no_grad(), record() as again:
        source = torch.tensor([one.source_ids])
        translator.model(source, torch.tensor([[1, *one.target_ids[:-1]]]), torch.tensor([source.shape[1]]))
    for call in one.trace:
        assert torch.equal(call.weights(), again[call.site].weights())
    assert one.trace["encoder.0.self"].num_keys != two.trace["encoder.0.self"].num_keys


def with_ending(translator: Translator, bias: float) -> Translator:
    """The same model, keener on ending."""
    model = copy.deepcopy(translator.model)
    model.decoder.dense.bias[translator.special.eos] += bias
    return dataclasses.replace(translator, model=model)


def test_an_ended_translation_is_complete_and_a_cut_one_is_not(translator: Translator) -> None:
    ended = with_ending(translator, 1e4).translate(SENTENCE)
    assert (ended.text, ended.target_tokens, ended.decoder_tokens) == ("", ("<eos>",), ("<bos>",))
    assert ended.complete
    cut = with_ending(translator, -1e4).translate(SENTENCE, max_new_tokens=5)
    assert len(cut.target_ids) == 5
    assert not cut.complete
    assert cut.text == translator.tokenizer.decode(list(cut.target_ids))


def test_length_is_bounded_by_the_source(translator: Translator) -> None:
    endless = with_ending(translator, -1e4)
    result = endless.translate("Go.")
    assert len(result.target_ids) == 2 * len(result.source_ids) + 20


def test_the_same_twice_and_in_eight_threads(translator: Translator) -> None:
    sentences = ["Go.", SENTENCE, "I don't know.", "She reads a book."]

    def answer(i: int) -> tuple[str, float, torch.Tensor]:
        result = translator.translate(sentences[i % 4], max_new_tokens=8)
        return result.text, result.log_probability, result.trace["decoder.1.cross"].weights()

    serial = [answer(i) for i in range(4)]
    with ThreadPoolExecutor(8) as threads:
        for i, (text, log_probability, weights) in enumerate(threads.map(answer, range(64))):
            assert (text, log_probability) == serial[i % 4][:2]
            assert torch.equal(weights, serial[i % 4][2])


# Text


@pytest.mark.parametrize("text", ["", "   ", "\t\n\r", "\u200b\u00ad", "\x00\x07\x1b", "\u202f\u00a0", "\ud800"])
def test_nothing_to_translate(translator: Translator, text: str) -> None:
    with pytest.raises(TextError, match="There is nothing to translate yet: type an English sentence."):
        translator.translate(text)


def test_too_many_characters(translator: Translator) -> None:
    with pytest.raises(TextError, match="This text has 2,001 characters; at most 2,000 can be translated."):
        translator.translate("a" * 2001)
    assert translator.translate("cat " * 500, max_new_tokens=1).num_unknown == 0


def test_too_many_tokens(translator: Translator) -> None:
    with pytest.raises(TextError, match=r"This text has 1,000 tokens; the model takes at most 511."):
        translator.translate("3 " * 1000)
    assert len(translator.encode("3 " * 511)) == 512


@pytest.mark.parametrize(
    "text", ["😀🎉", "👩‍👩‍👧", "שלום עולם", "مرحبا بالعالم", "\u202eשלום\u202c", "猫は静か", "!!!", "☃ ☂"]
)
def test_text_without_a_known_word(translator: Translator, text: str) -> None:
    with pytest.raises(TextError, match="The model knows no word or sign in this text."):
        translator.translate(text)


@pytest.mark.parametrize("text", ["The cat 😀", "The cat שלום", "\u202eThe cat\u202c猫"])
def test_unknown_among_known_is_counted(translator: Translator, text: str) -> None:
    result = translator.translate(text, max_new_tokens=2)
    assert result.num_unknown == result.source_tokens.count("<unk>") >= 1
    assert result.source_tokens[:2] == ("The", "cat")


@pytest.mark.parametrize(
    "text",
    [
        "<b>The cat</b>",
        "<script>alert('the cat')</script>",
        "**The** `cat` [is](http://a.b) $x^2$ :red[on]",
        "# The bed\n- the cat\n> the dog",
        "the cat \x00\x1b[31m is \x07 red",
        "<eos> the <pad> cat <bos>",
    ],
)
def test_markup_is_text_like_any_other(translator: Translator, text: str) -> None:
    result = translator.translate(text, max_new_tokens=3)
    ids = result.source_ids
    assert ids[-1] == translator.special.eos
    assert not {translator.special.pad, translator.special.bos, translator.special.eos} & set(ids[:-1])
    assert result.trace["encoder.0.self"].num_keys == len(result.source_tokens)


@pytest.mark.parametrize("count", [0, -1, 257])
def test_max_new_tokens_has_a_range(translator: Translator, count: int) -> None:
    with pytest.raises(ValueError, match=f"max_new_tokens: expected 1 to 256, got {count}"):
        translator.translate("Go.", max_new_tokens=count)


@pytest.mark.parametrize("beam", [0, -1, 17])
def test_beam_has_a_range(translator: Translator, beam: int) -> None:
    with pytest.raises(ValueError, match=f"beam: expected 1 to 16, got {beam}"):
        translator.translate("Go.", beam=beam)


# Loading


def test_a_loaded_model_is_what_was_stored(translator: Translator, checkpoints: Path) -> None:
    stored = load_tensors((checkpoints / NAME / "model.safetensors").read_bytes())
    parameters = dict(translator.model.named_parameters())
    assert stored.keys() == parameters.keys()
    for name, parameter in parameters.items():
        assert stored[name].dtype == torch.float16
        assert parameter.dtype == torch.float32
        assert not parameter.requires_grad
        assert torch.equal(parameter, stored[name].float())
    model = translator.model
    assert model.decoder.dense.weight is model.decoder.embedding.weight is model.encoder.embedding.weight
    assert not any(module.training for module in model.modules())
    assert translator.device == torch.device("cpu")


def test_available_reads_the_cards_and_leaves_out_the_broken(folder: Path) -> None:
    (card,) = available(folder)
    assert (card.name, card.title, card.task) == (NAME, "A tiny Transformer", "translation")
    assert card.licence.startswith("CC BY 2.0")
    assert set(card.scores) == {"bleu_greedy", "bleu_beam_4"}
    assert card.text.startswith("# A tiny Transformer")
    shutil.copytree(folder / NAME, folder / "a-broken-one")
    (folder / "a-broken-one" / "config.json").write_text("{", encoding="utf-8")
    (folder / "an-empty-one").mkdir()
    (folder / NAME / "card.md").unlink()
    (card,) = available(folder)
    assert (card.name, card.text) == (NAME, "")
    assert available(folder / "nowhere") == ()


@pytest.mark.parametrize("name", ["", ".", "..", "nothing", "../checkpoints/tiny-en-fr", "tiny-en-fr/", "/etc", "a\0b"])
def test_only_names_of_models_that_ship(folder: Path, name: str) -> None:
    shutil.copy(folder / NAME / "config.json", folder / "config.json")
    shutil.copy(folder / NAME / "config.json", folder.parent / "config.json")
    with pytest.raises(CheckpointError, match="There is no model .*; the models that ship are tiny-en-fr."):
        load(name, device="cpu", folder=folder)


def test_no_models_at_all(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="There is no model 'tiny-en-fr'; the models that ship are none."):
        load(NAME, device="cpu", folder=tmp_path)


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json"])
def test_a_missing_file_is_named(folder: Path, file: str) -> None:
    (folder / NAME / file).unlink()
    with pytest.raises(CheckpointError, match=f"The model 'tiny-en-fr' lacks its file {file}."):
        load(NAME, device="cpu", folder=folder)


@pytest.mark.parametrize("keep", [0, 4, 200, -1])
def test_a_truncated_checkpoint_says_so(folder: Path, keep: int) -> None:
    path = folder / NAME / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(CheckpointError, match=r"its SHA-256 differs\): it may be cut short or altered. Fetch it again"):
        load(NAME, device="cpu", folder=folder)
    edit_config(folder, sha256=None)  # also without a digest to compare
    with pytest.raises(CheckpointError, match=r"model.safetensors cannot be read, it may be cut short"):
        load(NAME, device="cpu", folder=folder)


def test_one_altered_bit_is_noticed(folder: Path) -> None:
    path = folder / NAME / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="is not the file that was published"):
        load(NAME, device="cpu", folder=folder)


def test_a_wrong_shape_is_named(folder: Path) -> None:
    name = "decoder.blks.block1.ffn.dense1.weight"
    edit_tensors(folder, lambda tensors: tensors.update({name: tensors[name].T.contiguous()}))
    with pytest.raises(CheckpointError, match=rf"{name} has the wrong shape: expected \(48, 32\), got \(32, 48\)"):
        load(NAME, device="cpu", folder=folder)


def test_missing_and_unknown_weights_are_named(folder: Path) -> None:
    def rename(tensors: dict[str, torch.Tensor]) -> None:
        tensors["decoder.dense.offset"] = tensors.pop("decoder.dense.bias")

    edit_tensors(folder, rename)
    expected = r"missing \['decoder.dense.bias'\], unknown \['decoder.dense.offset'\]"
    with pytest.raises(CheckpointError, match=expected):
        load(NAME, device="cpu", folder=folder)


def test_one_weight_too_many_is_named(folder: Path) -> None:
    edit_tensors(folder, lambda tensors: tensors.update({"decoder.dense.weight": torch.zeros(1)}))
    with pytest.raises(CheckpointError, match=r"missing \[\], unknown \['decoder.dense.weight'\]"):
        load(NAME, device="cpu", folder=folder)


class Trap:
    """Unpickling this leaves a mark."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.mark),)


def test_a_pickle_is_refused_and_never_run(folder: Path) -> None:
    mark = folder / "executed"
    path = folder / NAME / "model.safetensors"
    edit_config(folder, sha256=None)
    for content in (pickle.dumps(Trap(mark)), pickle.dumps({"weight": 1})):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match="model.safetensors cannot be read"):
            load(NAME, device="cpu", folder=folder)
    torch.save({"trap": Trap(mark)}, path)
    with pytest.raises(CheckpointError, match="model.safetensors cannot be read"):
        load(NAME, device="cpu", folder=folder)
    assert not mark.exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"{}", b'{"title": "no more"}', b"\xff\xfe\x00"])
def test_a_broken_config_says_so(folder: Path, content: bytes) -> None:
    (folder / NAME / "config.json").write_bytes(content)
    with pytest.raises(CheckpointError, match="config.json of model 'tiny-en-fr' cannot be read"):
        load(NAME, device="cpu", folder=folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"num_heads": 5},
        {"num_heads": 0},
        {"num_hiddens": -32},
        {"num_hiddens": "wide"},
        {"num_blks": None},
        {"dropout": 3.0},
        {"colour": "teal"},
        {"architecture": "seq2seq"},
    ],
)
def test_an_impossible_architecture_says_so(folder: Path, changes: dict[str, Any]) -> None:
    config = json.loads((folder / NAME / "config.json").read_text(encoding="utf-8"))["model"]
    merged = {key: value for key, value in {**config, **changes}.items() if value is not None}
    edit_config(folder, model=merged)
    with pytest.raises(CheckpointError, match="config.json does not describe this architecture"):
        load(NAME, device="cpu", folder=folder)


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("model", [None, [], "transformer", 3])
def test_a_config_without_an_architecture_says_so(folder: Path, model: Any) -> None:
    edit_config(folder, model=model)
    with pytest.raises(CheckpointError, match="config.json does not describe a known architecture, got None"):
        load(NAME, device="cpu", folder=folder)


@pytest.mark.parametrize("content", [b"", b"{}", b"not json", b"\xff\xfe"])
def test_a_broken_tokenizer_says_so(folder: Path, content: bytes) -> None:
    (folder / NAME / "tokenizer.json").write_bytes(content)
    with pytest.raises(CheckpointError, match="tokenizer.json cannot be read"):
        load(NAME, device="cpu", folder=folder)


def test_the_tokenizer_of_another_model_is_refused(folder: Path) -> None:
    path = folder / NAME / "tokenizer.json"
    train_tokenizer(["the cat sat"] * 2, vocab_size=60).save(str(path))
    with pytest.raises(CheckpointError, match=r"tokenizer.json does not fit the model: expected \d+ tokens, got \d+"):
        load(NAME, device="cpu", folder=folder)


def test_a_tokenizer_without_special_tokens_is_refused(folder: Path) -> None:
    path = folder / NAME / "tokenizer.json"
    path.write_text(path.read_text(encoding="utf-8").replace("<eos>", "<end>"), encoding="utf-8")
    with pytest.raises(CheckpointError, match="tokenizer.json cannot be read: expected the tokenizer to have '<eos>'"):
        load(NAME, device="cpu", folder=folder)


def test_an_absent_device_is_a_clear_error(checkpoints: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="device='cuda' is not on this machine; it has"):
        load(NAME, device="cuda", folder=checkpoints)
    monkeypatch.setenv("ATLAS_DEVICE", "cuda:7")
    with pytest.raises(ValueError, match="ATLAS_DEVICE='cuda:7' is not on this machine; it has"):
        load(NAME, folder=checkpoints)
    monkeypatch.setenv("ATLAS_DEVICE", "cpu")
    assert load(NAME, folder=checkpoints).device == torch.device("cpu")
