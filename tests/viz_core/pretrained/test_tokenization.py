"""Cleaning and tokens, BLEU, and how far inputs are from those that a model was trained on."""

import math
import shutil
import unicodedata
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from safetensors.torch import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from viz_core.pretrained import CHECKPOINTS, CheckpointError, load_classifier
from viz_core.pretrained.bleu import book_bleu, book_sentence_bleu, corpus_bleu, sentence_bleu
from viz_core.pretrained.familiarity import FILE, Familiarity, word_counts
from viz_core.pretrained.token_vectors import shuffled_order
from viz_core.pretrained.tokenization import clean, special_tokens

# Cleaning


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ça va\u202f?", "Ça va ?"),
        ("\u00abOui\u00a0!\u00bb", "«Oui !»"),
        ("J\u2019ai", "J'ai"),
        ("e\u0301te\u0301", "été"),
        ("\ufb01n…", "fin..."),
        ("ze\u200bro\u200d wi\ufeffdth", "zero width"),
        ("\u202eright\u202c \u2067to\u2069 \u200fleft\u200e", "right to left"),
        ("e\u200b\u0301", "é"),
        ("nul\x00l bell\x07 esc\x1b[0m", "nul l bell esc [0m"),
        ("half a pair \ud83d", "half a pair"),
        ("\u200b\u00ad\x00 \t", ""),
    ],
)
def test_clean(text: str, expected: str) -> None:
    assert clean(text) == expected


@settings(max_examples=300)
@given(st.text(alphabet=st.characters(exclude_categories=[])))
def test_clean_text_is_clean(text: str) -> None:
    cleaned = clean(text)
    assert clean(cleaned) == cleaned
    assert not any(unicodedata.category(c) in {"Cc", "Cf", "Cs"} for c in cleaned)
    assert unicodedata.is_normalized("NFKC", cleaned.replace("'", ""))
    assert cleaned == " ".join(cleaned.split(" "))
    cleaned.encode("utf-8")


# Tokens


@given(
    tokens=st.lists(st.sampled_from("abc"), min_size=2, max_size=9).filter(lambda t: len(set(t)) > 1),
    seed=st.integers(0, 99),
)
def test_a_shuffle_keeps_the_tokens_and_changes_their_order(tokens: list[str], seed: int) -> None:
    order = shuffled_order(tokens, seed).tolist()
    assert sorted(order) == list(range(len(tokens)))
    assert [tokens[i] for i in order] != tokens


@pytest.mark.parametrize(
    ("prediction", "reference", "score"),
    [
        ("va !", "va !", 1.0),
        ("j'ai perdu .", "j'ai perdu .", 1.0),
        # 3 of 4 words and 1 of 3 pairs: (3/4)^(1/2) (1/3)^(1/4)
        ("il est mouillé .", "il est calme .", 0.658),
        ("a b c d", "a b", math.sqrt(1 / 2) * (1 / 3) ** 0.25),
        # a word of the reference is matched once only
        ("a a a", "a b c", 0.0),
        ("a a a", "a a c", math.sqrt(2 / 3) * (1 / 2) ** 0.25),
        ("", "a b", 0.0),
    ],
)
def test_the_books_measure(prediction: str, reference: str, score: float) -> None:
    assert book_bleu(prediction.split(), reference.split()) == pytest.approx(score, abs=5e-4)


@pytest.mark.parametrize(
    ("prediction", "references", "score"),
    [
        # a full stop is a token: with it in the last word these were 0.687 and 0.776
        ("Il est fou.", ["Il est calme."], 0.658),
        (
            "Le chat est en train de dormir dans mon lit.",
            ["Le chat noir dort sur mon lit.", "Le chat noir est en train de dormir sur mon lit."],
            0.796,
        ),
        ("Va !", ["Va !"], 1.0),  # the blank that French writes is not doubled
    ],
)
def test_the_books_measure_of_texts(prediction: str, references: list[str], score: float) -> None:
    assert book_sentence_bleu(prediction, references) == pytest.approx(score, abs=5e-4)


HYPOTHESES = ["The cat sat on the mat.", "He is very calm today.", "I do not know where it is."]
REFERENCES = [
    ["The cat sat on a mat.", "A cat was sitting on the mat."],
    ["He is calm today.", "He's very calm today."],
    ["I don't know where it is.", "I do not know where he is."],
]


def test_corpus_bleu_is_sacrebleus() -> None:
    columns = [list(column) for column in zip(*REFERENCES, strict=True)]
    expected = sacrebleu.corpus_bleu(HYPOTHESES, columns).score
    assert 20 < expected < 90
    assert corpus_bleu(HYPOTHESES, REFERENCES) == pytest.approx(expected)


NOT_MEASURED: list[tuple[Callable[[], object], str]] = [
    (lambda: corpus_bleu(["a", "b"], [["a"], []]), "references of sentence 1: expected at least one text, got none"),
    # A str is a sequence of characters: the book's 0.658 became 0.685, a perfect corpus 9.5.
    (lambda: book_bleu("il est", ["il", "est"]), "prediction: expected a list of tokens, got the text 'il est'"),
    (lambda: corpus_bleu(["A cat."], ["A cat."]), "references of sentence 0: expected a list of texts, got the text"),
    # Tokens.
    (lambda: shuffled_order(["a", "a", "a"], 0), "at least two different"),
    (lambda: special_tokens(Tokenizer(WordLevel({"<pad>": 0, "<bos>": 1}))), "expected the tokenizer to have '<eos>'"),
]


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize(("call", "message"), NOT_MEASURED)
def test_what_is_no_text_or_token_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("i", range(3))
def test_sentence_bleu_is_sacrebleus(i: int) -> None:
    expected = sacrebleu.sentence_bleu(HYPOTHESES[i], REFERENCES[i]).score
    assert sentence_bleu(HYPOTHESES[i], REFERENCES[i]) == pytest.approx(expected)
    assert sentence_bleu(REFERENCES[i][1], REFERENCES[i]) == pytest.approx(100)


def test_distances_by_hand() -> None:
    known = Familiarity(torch.tensor([1.0, 0.0]), torch.tensor([[2.0, 0.0], [0.0, 0.5]]))
    # variances 1/4 and 4: sqrt(x^2 / 0.25 + y^2 / 4)
    torch.testing.assert_close(known.distances(torch.tensor([[2.0, 0.0], [2.0, 2.0]])), torch.tensor([4.0, 5.0]).sqrt())


@pytest.mark.parametrize("name", ["vit-cifar10", "vit-fashion-mnist"])
def test_pictures_like_no_other_are_strange(name: str) -> None:
    """One red pixel was "airplane, 91.2%" without a word of caution."""
    model = load_classifier(name, "cpu")
    dot = Image.new("RGB", (32, 32))
    dot.putpixel((9, 17), (255, 0, 0))
    noise = Image.fromarray(np.random.default_rng(1).integers(0, 256, (32, 32, 3), dtype=np.uint8))
    for picture in (dot, noise, Image.new("RGB", (1, 1), (255, 0, 0))):
        found = model.classify(picture).distance
        assert found is not None
        assert found.is_unfamiliar
        assert found.threshold == model.card.training["familiarity"]["threshold"]
    assert min(model.card.training["familiarity"]["strange"].values()) > 0.8


def test_a_file_that_is_cut_short_or_of_another_model_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "vit-fashion-mnist"
    shutil.copytree(CHECKPOINTS / "vit-fashion-mnist", folder)
    content = (folder / FILE).read_bytes()
    (folder / FILE).write_bytes(content[:1000])
    with pytest.raises(CheckpointError, match=f"{FILE} cannot be read"):
        load_classifier("vit-fashion-mnist", "cpu", tmp_path)
    save_file({"mean": torch.zeros(3), "whitening": torch.eye(3)}, folder / FILE)
    with pytest.raises(CheckpointError, match="expected a width of 144, got"):
        load_classifier("vit-fashion-mnist", "cpu", tmp_path)


NAME = "transformer-en-fr"


def test_what_ships_with_the_translator() -> None:
    counts = word_counts(NAME)
    assert counts is not None
    assert counts.sentences == 110_893
    assert counts.rare_words("The cat is sleeping on my bed.") == ()
    assert counts.rare_words("The cat saw sharks") == (("sharks", 0),)
    assert word_counts("seq2seq-en-fr") is None
