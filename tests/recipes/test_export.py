"""What ships: files that say what the model is, how well it does, and hold every parameter once."""

from __future__ import annotations

import copy
import hashlib
import json
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from safetensors.torch import load as load_tensors
from tokenizers import Tokenizer

from recipes.batches import translate_all
from recipes.export import BOOK_SENTENCES, BOOK_STRINGS, LENGTH_EDGES, export_translator, translation_card
from recipes.sentence_pairs import Pair, Split, train_tokenizer
from recipes.translation import TranslationConfig, TranslationState
from viz_core.models import EncoderDecoder
from viz_core.pretrained import build_translation_model, load
from viz_core.pretrained.bleu import corpus_bleu
from viz_core.pretrained.decoding import beam_search, greedy_search
from viz_core.pretrained.familiarity import word_counts

NAME = "export-test"
CONFIG = {
    "architecture": "transformer",
    "num_hiddens": 16,
    "ffn_num_hiddens": 24,
    "num_heads": 2,
    "num_blks": 1,
    "dropout": 0.2,
}
CURVE = [
    {"epoch": 1.0, "train_loss": 3.0, "validation_loss": 2.5, "validation_bleu": 10.0},
    {"epoch": 1.75, "train_loss": 2.0, "validation_loss": 2.625, "validation_bleu": 20.0},
]


class Exported(NamedTuple):
    out: Path
    scores: dict[str, Any]
    before: dict[str, torch.Tensor]  # the parameters as they were trained
    model: EncoderDecoder  # as the export left it
    split: Split

    def read(self, file: str) -> Any:
        return json.loads((self.out / file).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def exported(pairs: list[Pair], tmp_path_factory: pytest.TempPathFactory) -> Exported:
    out = tmp_path_factory.mktemp("checkpoints") / NAME
    out.mkdir()
    test = [*pairs[:10], Pair("Go.", "Allez !")]
    split = Split(pairs[10:], pairs[8:10], test)
    tokenizer = train_tokenizer([text for pair in pairs for text in pair], vocab_size=200)
    tokenizer.save(str(out / "tokenizer.json"))
    config = {"vocab_size": tokenizer.get_vocab_size(), **CONFIG}
    torch.manual_seed(5)
    model = build_translation_model(config)
    with torch.no_grad():
        model.decoder.dense.bias[2] += 1.5  # some sentences end early, so that lengths and scores differ
    before = copy.deepcopy(dict(model.named_parameters()))
    state = TranslationState(epoch=2, updates=1234, elapsed=3723.4, curve=CURVE)
    cpu = torch.device("cpu")
    scores = export_translator(
        NAME, "A test", "a model", config, model, tokenizer, split, state, TranslationConfig(epochs=7), out, cpu
    )
    return Exported(out, scores, before, model, split)


def test_the_folder_has_all_files_and_translates(exported: Exported) -> None:
    files = sorted(path.name for path in exported.out.iterdir())
    assert files == ["card.md", "config.json", "model.safetensors", "tokenizer.json", "training.json", "words.json"]
    counts = word_counts(NAME, exported.out.parent)
    assert counts is not None
    assert counts.sentences == len(exported.split.train)
    assert counts.rare_words("dinosaur, here!") == (("dinosaur", 0), ("here", 1))
    translator = load(NAME, device="cpu", folder=exported.out.parent)
    assert translator.card.scores == exported.scores
    book = exported.read("training.json")["book_sentences"] | exported.read("training.json")["book_strings"]
    for english in (*BOOK_SENTENCES, *BOOK_STRINGS):
        result = translator.translate(english)
        n = min(len(result.text), len(book[english]))
        assert result.text[:n] == book[english][:n]  # cut at different lengths where they do not end


def test_every_parameter_once_in_float16(exported: Exported) -> None:
    content = (exported.out / "model.safetensors").read_bytes()
    stored = load_tensors(content)
    assert stored.keys() == exported.before.keys()
    assert "decoder.embedding.weight" not in stored  # shared with the encoder's
    for name, parameter in exported.before.items():
        assert stored[name].dtype == torch.float16
        assert torch.equal(stored[name], parameter.detach().half())
    assert exported.read("config.json")["sha256"] == hashlib.sha256(content).hexdigest()
    assert exported.read("config.json")["parameters"] == sum(p.numel() for p in stored.values())
    for name, parameter in exported.model.named_parameters():  # what was scored is what ships
        assert torch.equal(parameter, exported.before[name].half().float())


def test_scores_equal_a_recomputation_from_the_files(exported: Exported) -> None:
    translator = load(NAME, device="cpu", folder=exported.out.parent)
    references: dict[str, list[str]] = {}
    for pair in exported.split.test:
        references.setdefault(pair.english, []).append(pair.french)
    assert references["Go."] == ["Va !", "Allez !"]
    sentences = list(references)
    lower = [english.lower() for english in references]
    for key, search, given, rows in (
        ("bleu_greedy", greedy_search, sentences, 128),
        ("bleu_beam_4", beam_search, sentences, 32),
        ("bleu_lower_case", greedy_search, lower, 128),
    ):
        texts = translate_all(translator.model, translator.tokenizer, given, search, torch.device("cpu"), rows=rows)
        expected = round(corpus_bleu(texts, list(references.values())), 2)
        assert exported.scores[key] == exported.read("config.json")["scores"][key] == expected


def test_config_and_training_record(exported: Exported) -> None:
    config, training = exported.read("config.json"), exported.read("training.json")
    assert (config["title"], config["task"]) == ("A test", "translation")
    assert config["licence"].startswith("CC BY 2.0")
    assert config["model"] == {"vocab_size": exported.before["decoder.dense.bias"].numel(), **CONFIG}
    assert training["curve"] == CURVE
    assert (training["updates"], training["seconds"]) == (1234, 3723)
    assert training["device"].startswith("CPU")
    assert training["recipe"]["epochs"] == 7
    assert list(training["book_sentences"]) == ["Go.", "I lost.", "He's calm.", "I'm home."] == list(BOOK_SENTENCES)
    assert list(training["book_strings"]) == ["go .", "i lost .", "he's calm .", "i'm home ."] == list(BOOK_STRINGS)
    bins = training["bleu_by_length"]
    tokenizer = Tokenizer.from_file(str(exported.out / "tokenizer.json"))
    sentences = {pair.english for pair in exported.split.test}
    lengths = [len(tokenizer.encode(sentence).ids) + 1 for sentence in sentences]  # the end counts
    edges = [*LENGTH_EDGES, max(lengths) + 1]
    counts = {low: sum(low <= n < high for n in lengths) for low, high in pairwise(edges) if low < high}
    assert {b["from"]: b["sentences"] for b in bins} == {low: count for low, count in counts.items() if count}
    assert sum(counts.values()) == 10
    assert all(0 <= b["bleu"] <= 100 and b["from"] <= b["to"] for b in bins)


def test_the_card_has_the_numbers_and_the_notes(exported: Exported) -> None:
    card = (exported.out / "card.md").read_text(encoding="utf-8")
    parameters = sum(p.numel() for p in exported.before.values())
    for expected_text in (
        f"{parameters:,} parameters",
        "10 English sentences",
        f"greedy {exported.scores['bleu_greedy']:.1f}, beam 4 {exported.scores['bleu_beam_4']:.1f}",
        f"not trained on: greedy {exported.scores['bleu_lower_case']:.1f}.",
        "22 pairs to train on,\n2 to validate, 11 to test",
        "1.75 epochs of the 7 planned, 1,234 updates",
        "in 1:02:03 on CPU",
        "(2.500 nats a token)",
        "| num_heads | 2 |",
        "| label_smoothing | 0.1 |",
        "| He's calm. |",
    ):
        assert expected_text in card, expected_text
    published, training = exported.read("config.json"), exported.read("training.json")
    plain, noted = (
        translation_card(NAME, "A test", "a model", published, training | more, exported.split)
        for more in ({}, {"notes": ["After 10 updates the rate was halved."]})
    )
    assert noted != plain
    assert noted.replace("\nAfter 10 updates the rate was halved.\n", "") == plain
