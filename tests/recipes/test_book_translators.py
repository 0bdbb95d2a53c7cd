"""The book's translators: its settings, its loss, and that they learn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from recipes.book_pairs import prepare
from recipes.book_translators import BOOK_TRANSLATORS, SENTENCES, masked_loss, train, train_once, translate
from recipes.sentence_pairs import Pair
from viz_core.models import EncoderDecoder
from viz_core.pretrained.bleu import book_bleu

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def text(pairs: list[Pair]) -> str:
    """Five pairs, the book's four first, each four times: every word is met often enough."""
    return "\n".join(f"{pair.english}\t{pair.french}" for pair in pairs[:5] * 4)


def test_the_settings_the_book_prints() -> None:
    assert BOOK_TRANSLATORS["book-transformer"].sizes == {
        "num_hiddens": 256,
        "ffn_num_hiddens": 64,
        "num_heads": 4,
        "num_blks": 2,
        "dropout": 0.2,
    }
    assert BOOK_TRANSLATORS["book-bahdanau"].sizes == {
        "embed_size": 256,
        "num_hiddens": 256,
        "num_layers": 2,
        "dropout": 0.2,
    }
    assert [spec.learning_rate for spec in BOOK_TRANSLATORS.values()] == [0.001, 0.005]
    assert {(spec.epochs, spec.clip_norm) for spec in BOOK_TRANSLATORS.values()} == {(30, 1.0)}


@pytest.mark.parametrize(
    ("name", "scores"), [("book-transformer", [1.0, 1.0, 0.658, 1.0]), ("book-bahdanau", [1.0, 1.0, 0.0, 1.0])]
)
def test_the_scores_the_book_prints(name: str, scores: list[float]) -> None:
    printed = zip(BOOK_TRANSLATORS[name].printed, SENTENCES.values(), strict=True)
    assert [round(book_bleu(text.split(), right.split()), 3) for text, right in printed] == scores


@pytest.mark.parametrize("name", BOOK_TRANSLATORS)
def test_a_few_pairs_are_learned_by_heart(name: str, text: str) -> None:
    pairs = prepare(text, num_train=16)
    model, curve = train_once(BOOK_TRANSLATORS[name], pairs, seed=0, epochs=40, device=CPU)
    assert curve[0]["train_loss"] > 1.0
    assert curve[-1]["validation_loss"] < 0.02  # the same pairs, without dropout
    assert translate(model, pairs, list(SENTENCES), CPU) == list(SENTENCES.values())


def test_one_seed_gives_one_model(text: str) -> None:
    pairs = prepare(text, num_train=16)
    runs = [train_once(BOOK_TRANSLATORS["book-transformer"], pairs, seed, 1, CPU) for seed in (3, 3, 4)]
    first, again, other = (model.state_dict() for model, _ in runs)
    assert runs[0][1] == runs[1][1] != runs[2][1]
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["encoder.embedding.weight"], other["encoder.embedding.weight"])


@pytest.mark.parametrize("name", BOOK_TRANSLATORS)
def test_padding_costs_nothing(name: str, text: str) -> None:
    pairs = prepare(text, num_train=16)
    model: EncoderDecoder = train_once(BOOK_TRANSLATORS[name], pairs, 0, 1, CPU)[0]
    batch, pad = pairs.validation, pairs.target_words.special.pad
    with torch.no_grad():
        log_p = model(batch.source, batch.target[:, :-1], batch.valid_lens).log_softmax(dim=-1)
        wanted = batch.target[:, 1:]
        losses = -log_p.gather(2, wanted[..., None])[..., 0]
        real = wanted != pad
        assert 0 < int(real.sum()) < real.numel()
        assert float(masked_loss(model, batch, pad)) == pytest.approx(float(losses[real].mean()), rel=1e-5)


def test_a_run_leaves_its_files(text: str, tmp_path: Path) -> None:
    (tmp_path / "fra.txt").write_text(text, encoding="utf-8")
    out = tmp_path / "out"
    train("book-bahdanau", tmp_path, out, CPU, epochs=2, seeds=(0, 7), limit=16)
    names = ["card.md", "seed-0.safetensors", "seed-7.safetensors", "training.json", "vocabularies.json"]
    assert sorted(path.name for path in out.iterdir()) == names
    record = json.loads((out / "training.json").read_text(encoding="utf-8"))
    assert [run["seed"] for run in record["runs"]] == [0, 7]
    assert [[point["epoch"] for point in run["curve"]] for run in record["runs"]] == [[1, 2], [1, 2]]
    assert record["settings"]["epochs"] == 2
    words = json.loads((out / "vocabularies.json").read_text(encoding="utf-8"))
    assert record["vocabularies"] == [len(words["source"]), len(words["target"])]

    pairs = prepare(text, num_train=16)
    model, curve = train_once(BOOK_TRANSLATORS["book-bahdanau"], pairs, 7, 2, CPU)
    assert record["runs"][1]["curve"] == curve
    assert record["runs"][1]["translations"] == translate(model, pairs, list(SENTENCES), CPU)
    stored = load_file(out / "seed-7.safetensors")
    assert stored.keys() == model.state_dict().keys()
    assert all(torch.equal(stored[name], value) for name, value in model.state_dict().items())


def test_the_card_shows_both(text: str, tmp_path: Path) -> None:
    (tmp_path / "fra.txt").write_text(text, encoding="utf-8")
    train("book-transformer", tmp_path, tmp_path / "out", CPU, epochs=1, seeds=(0, 1), limit=16)
    card = (tmp_path / "out" / "card.md").read_text(encoding="utf-8")
    record = json.loads((tmp_path / "out" / "training.json").read_text(encoding="utf-8"))
    assert card.startswith("# The book's Transformer, English to French\n")
    assert "trained from scratch on 16 sentence pairs" in card
    assert "(the book, from the whole archive: 194 and 214)" in card
    assert (
        "| English | the book printed | the book's BLEU | seed 0 | the book's BLEU | seed 1 | the book's BLEU |" in card
    )
    ours = [run["translations"][2] for run in record["runs"]]
    scores = [book_bleu(text.split(), "il est calme .".split()) for text in ours]
    cells = " | ".join(f"{text} | {score:.3f}" for text, score in zip(ours, scores, strict=True))
    assert f"| he's calm . | il est mouillé . | 0.658 | {cells} |" in card
    assert "| ffn_num_hiddens | 64 |" in card
    assert "CC BY 2.0" in card


def test_too_little_data_leaves_nothing_behind(text: str, tmp_path: Path) -> None:
    (tmp_path / "fra.txt").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="expected more than 512 sentence pairs, got 20"):
        train("book-transformer", tmp_path, tmp_path / "out", CPU)
    assert not (tmp_path / "out").exists()
