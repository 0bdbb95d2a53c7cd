"""The model that ships: what its card says is what it does."""

import pytest
import torch
from safetensors import safe_open

from viz_core.pretrained import CHECKPOINTS, Translator, available, load
from viz_core.pretrained.bleu import book_bleu
from viz_core.pretrained.samples import sentences
from viz_core.pretrained.tokenization import clean

NAME = "transformer-en-fr"


@pytest.fixture(scope="module")
def translator() -> Translator:
    return load(NAME)


def test_it_is_among_the_models_available_and_small_enough() -> None:
    assert NAME in [card.name for card in available()]
    assert (CHECKPOINTS / NAME / "model.safetensors").stat().st_size <= 16_000_000
    assert sum(path.stat().st_size for path in CHECKPOINTS.rglob("*.safetensors")) < 40_000_000


def test_its_weights_are_half_precision_and_all_of_them(translator: Translator) -> None:
    with safe_open(CHECKPOINTS / NAME / "model.safetensors", framework="pt") as stored:
        names = list(stored.keys())
        assert all(stored.get_tensor(name).dtype == torch.float16 for name in names)
        assert set(names) == {name for name, _ in translator.model.named_parameters()}
    assert sum(p.numel() for p in translator.model.parameters()) == translator.card.config["parameters"]


def test_its_scores_reach_what_it_was_trained_for(translator: Translator) -> None:
    scores = translator.card.scores
    assert scores["bleu_greedy"] >= 50
    assert scores["bleu_beam_4"] > scores["bleu_greedy"]
    for score in scores.values():
        assert f"{score:.1f}" in translator.card.text


@pytest.mark.parametrize("sample", sentences()[:4], ids=lambda sample: sample.id)
def test_the_books_four_sentences_are_right(translator: Translator, sample: object) -> None:
    english, references = sample.english, sample.references  # type: ignore[attr-defined]
    found = translator.translate(english).text
    assert max(book_bleu(clean(found).lower().split(), clean(r).lower().split()) for r in references) == 1.0


@pytest.mark.parametrize("name", [NAME, "bahdanau-en-fr", "seq2seq-en-fr"])
def test_it_does_with_the_books_own_strings_what_its_card_says(name: str) -> None:
    model = load(name)
    strings = model.card.training["book_strings"]
    assert list(strings) == ["go .", "i lost .", "he's calm .", "i'm home ."]
    for english, french in strings.items():
        assert model.translate(english).text == french
        assert f"| {english} | {french} |" in model.card.text
    assert 0 < model.card.scores["bleu_lower_case"] < model.card.scores["bleu_greedy"]


def test_the_card_names_its_data_and_their_licence(translator: Translator) -> None:
    assert "CC BY 2.0" in translator.card.text
    assert "tatoeba.org" in translator.card.licence
