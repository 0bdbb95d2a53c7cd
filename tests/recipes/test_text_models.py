"""From a folder of sentence pairs to models of English that the lab opens like any other."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForMaskedLM

from recipes import text_models
from recipes.__main__ import main
from recipes.text_rows import (
    SPECIAL,
    HiddenWord,
    Sentence,
    TextBatch,
    collate,
    encode,
    filled,
    hide_words,
    packaged,
    perplexity,
    plan_rows,
    train_tokenizer,
)
from viz_core.hub import load_hub

SMALL = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models of the same kinds that train in seconds."""
    for name, spec in text_models.TEXT_MODELS.items():
        architecture = {key: SMALL.get(key, value) for key, value in spec.architecture.items()}
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
    tokenizer = train_tokenizer(["a b c d", "b a"], 270)
    sentences = encode(tokenizer, ["a b c d", "b a"])
    model = text_models.writer({"vocab_size": 270, **text_models.TEXT_MODELS["writer-en"].architecture, **SMALL}).eval()
    torch.nn.init.zeros_(model.lm_head.weight)
    assert perplexity(model, sentences, torch.device("cpu")) == pytest.approx(270, rel=1e-4)


TEXTS = ["I have 1998 cats.", "She doesn't care.", "He has a cat, too."]
PAIR = [Sentence([10, 11], [0, 1]), Sentence([12], [0])]


def test_two_texts_are_told_apart_by_who_fills_gaps_and_go_on_for_who_writes() -> None:
    tokenizer = train_tokenizer(TEXTS, 300)
    cat = tokenizer.encode("cat").ids
    packed = packaged(tokenizer, ends=True, limit=64)("cat", "cat")
    assert packed["input_ids"] == [1, *cat, 2, *cat, 2]
    assert packed["token_type_ids"] == [0] * (len(cat) + 2) + [1] * (len(cat) + 1)
    assert packaged(tokenizer, ends=False, limit=64)("cat")["input_ids"] == [1, *cat]


def test_a_pair_in_a_row_and_the_pieces_of_words() -> None:
    (found,) = encode(train_tokenizer(TEXTS, 261), ["mm cq."])  # hardly any merges
    assert found.words == [0, 0, 0, 1, 1, 1, 2]
    apart = collate(PAIR, [(0, 1)], stop_between=True)
    assert apart.ids.tolist() == [[1, 10, 11, 2, 12, 2]]
    assert apart.segments.tolist() == [[0, 0, 0, 0, 1, 1]]
    assert apart.words.tolist() == [[-1, 0, 1, -1, 1000, -1]]
    on = collate(PAIR, [(0, 1), (1,)], stop_between=False)
    assert on.ids.tolist() == [[1, 10, 11, 12, 2], [1, 12, 2, 0, 0]]
    assert on.segments.sum() == 0


@settings(max_examples=30)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=60), st.integers(0, 5), st.floats(0, 1))
def test_every_sentence_once_in_batches_that_fit(lengths: list[int], seed: int, in_pairs: float) -> None:
    sentences = [Sentence([9] * n, list(range(n))) for n in lengths]
    plan = plan_rows(sentences, 64, seed, in_pairs)
    assert plan == plan_rows(sentences, 64, seed, in_pairs)
    assert sorted(i for rows in plan for row in rows for i in row) == list(range(len(lengths)))
    for rows in plan:
        assert len(rows) == 1 or collate(sentences, rows, stop_between=True).ids.numel() <= 64


def test_words_are_hidden_whole_and_special_tokens_never() -> None:
    words = torch.tensor([[-1, 0, 0, 1, 2, 2, 2, -1]] * 4000)
    batch = TextBatch(
        torch.full_like(words, 20).masked_fill(words < 0, SPECIAL["</s>"]), words, torch.zeros_like(words)
    )
    given, hidden = hide_words(batch, 50, torch.Generator().manual_seed(0))
    assert not hidden[:, [0, 7]].any()
    assert torch.equal(hidden[:, 1], hidden[:, 2])
    assert torch.equal(hidden[:, 4], hidden[:, 6])
    assert not torch.equal(hidden[:, 1], hidden[:, 3])
    assert torch.equal(given[~hidden], batch.ids[~hidden])
    assert abs(float(hidden[:, 3].float().mean()) - 0.25) < 0.03, "drawn evenly from 0.1 to 0.4"
    assert abs(float((given[hidden] == SPECIAL["<mask>"]).float().mean()) - 0.8) < 0.03
    assert given.min() >= 0
    assert int((given[hidden] == SPECIAL["<pad>"]).sum()) == 0


def test_a_word_of_two_pieces_is_named_if_both_are() -> None:
    """By a model that names token 11 in every place."""

    def model(input_ids: torch.Tensor, attention_mask: torch.Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=torch.nn.functional.one_hot(torch.full_like(input_ids, 11), 13))

    words = [HiddenWord(0, (0, 1)), HiddenWord(0, (2,))]
    assert filled(model, [Sentence([10, 11, 11], [0, 0, 1])], words, torch.device("cpu")) == 50
