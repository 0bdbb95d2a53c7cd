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

from viz_core.pretrained import CHECKPOINTS, CheckpointError, Translator, load_classifier
from viz_core.pretrained.bleu import book_bleu, book_sentence_bleu, corpus_bleu, sentence_bleu
from viz_core.pretrained.familiarity import COUNTS, FEW, FILE, Familiarity, WordCounts, word_counts, words_of
from viz_core.pretrained.samples import GARMENTS, drawn_picture, sentences
from viz_core.pretrained.token_vectors import sentence_tokens, shuffled_order
from viz_core.pretrained.tokenization import UNK, clean, special_tokens, token_id

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
        ("soft\u00adhyphen", "softhyphen"),
        ("\u202eright\u202c \u2067to\u2069 \u200fleft\u200e", "right to left"),
        ("e\u200b\u0301", "é"),
        ("a\tb\nc\r\nd", "a b c d"),
        ("nul\x00l bell\x07 esc\x1b[0m", "nul l bell esc [0m"),
        ("half a pair \ud83d", "half a pair"),
        ("  many   spaces  ", "many spaces"),
        ("line\u2028paragraph\u2029end", "line paragraph end"),
        ("plain text stays.", "plain text stays."),
        ("\u200b\u00ad\x00 \t", ""),
        ("", ""),
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


def test_words_without_a_model_have_a_vector_each() -> None:
    tokens = sentence_tokens("the cat  the\tdog", 10, 16)
    assert tokens.labels == ("the", "cat", "the", "dog")
    assert torch.equal(tokens.X[0], tokens.X[2])
    assert not torch.equal(tokens.X[0], tokens.X[1])
    assert (tokens.height, tokens.width, tokens.total) == (1, 4, 4)


def test_the_translators_tokens_and_scaled_embeddings(translator: Translator) -> None:
    tokens = sentence_tokens("The cat is on the bed.", 100, 16, translator)
    ids = translator.tokenizer.encode("The cat is on the bed.").ids
    assert tokens.labels == translator.readable_tokens(ids)
    expected = translator.model.encoder.embedding.weight[ids] * math.sqrt(tokens.X.shape[1])
    torch.testing.assert_close(tokens.X, expected.detach())


@pytest.mark.parametrize("text", ["", "  \t ", "\x00\x07", "\u200b"])
def test_nothing_to_see_is_no_tokens(text: str, translator: Translator) -> None:
    assert sentence_tokens(text, 10, 16).labels == ()
    assert sentence_tokens(text, 10, 16, translator).labels == ()


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
        ("a b", "a b c d", math.exp(-1)),
        ("a b c d", "a b", math.sqrt(1 / 2) * (1 / 3) ** 0.25),
        # a word of the reference is matched once only
        ("a a a", "a b c", 0.0),
        ("a a a", "a a c", math.sqrt(2 / 3) * (1 / 2) ** 0.25),
        ("a", "a b", math.exp(-1)),
        ("x y", "a b", 0.0),
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
        ("VA\u202f!", ["va!"], 1.0),
        ("", ["Va !"], 0.0),
    ],
)
def test_the_books_measure_of_texts(prediction: str, references: list[str], score: float) -> None:
    assert book_sentence_bleu(prediction, references) == pytest.approx(score, abs=5e-4)


def test_longer_n_grams_weigh_less() -> None:
    prediction, reference = "a b c d".split(), "a b c x".split()
    assert book_bleu(prediction, reference, k=1) == pytest.approx((3 / 4) ** 0.5)
    expected = (3 / 4) ** 0.5 * (2 / 3) ** 0.25 * (1 / 2) ** 0.125
    assert book_bleu(prediction, reference, k=3) == pytest.approx(expected)
    assert book_bleu(prediction, reference, k=4) == 0.0


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


def test_sentences_may_have_different_numbers_of_references() -> None:
    ragged = [REFERENCES[0], REFERENCES[1][:1], REFERENCES[2]]
    # saying a reference twice changes nothing: counts are clipped by their maximum, the closest length stays
    repeated = [REFERENCES[0], REFERENCES[1][:1] * 2, REFERENCES[2]]
    expected = sacrebleu.corpus_bleu(HYPOTHESES, [list(column) for column in zip(*repeated, strict=True)]).score
    assert corpus_bleu(HYPOTHESES, ragged) == pytest.approx(expected)
    assert corpus_bleu(HYPOTHESES, ragged) < corpus_bleu(HYPOTHESES, REFERENCES)


NOT_MEASURED: list[tuple[Callable[[], object], str]] = [
    (lambda: book_bleu(["a"], ["a"], 0), "k: expected at least 1, got 0"),
    (lambda: book_bleu(["a"], []), "reference: expected at least one token, got none"),
    (lambda: corpus_bleu(["a", "b"], [["a"]]), "expected references for 2 predictions, got 1 lists"),
    (lambda: corpus_bleu([], []), "predictions: expected at least one text, got none"),
    (lambda: corpus_bleu(["a", "b"], [["a"], []]), "references of sentence 1: expected at least one text, got none"),
    (lambda: sentence_bleu("a", []), "references: expected at least one text, got none"),
    (lambda: book_sentence_bleu("a", []), "references: expected at least one text, got none"),
    # A str is a sequence of characters: the book's 0.658 became 0.685, a perfect corpus 9.5.
    (lambda: book_bleu("il est", ["il", "est"]), "prediction: expected a list of tokens, got the text 'il est'"),
    (lambda: book_bleu(["il", "est"], "il est calme ."), "reference: expected a list of tokens"),
    (lambda: corpus_bleu(["A cat."], ["A cat."]), "references of sentence 0: expected a list of texts, got the text"),
    (lambda: corpus_bleu("A cat.", [["A cat."]]), "predictions: expected a list of texts"),
    (lambda: sentence_bleu("A cat.", "A cat."), "references: expected a list of texts"),
    (lambda: book_sentence_bleu("A cat.", "A cat."), "references: expected a list of texts"),
    (lambda: sentence_bleu(["A", "cat."], ["A cat."]), "prediction: expected texts, got list"),
    # Tokens.
    (lambda: shuffled_order(["a", "a", "a"], 0), "at least two different"),
    (lambda: special_tokens(Tokenizer(WordLevel({"<pad>": 0, "<bos>": 1}))), "expected the tokenizer to have '<eos>'"),
    (lambda: token_id(Tokenizer(WordLevel({"word": 2})), UNK), "expected the tokenizer to have '<unk>'"),
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


def test_the_books_sentences_come_first_with_its_references() -> None:
    first = [(sample.english, sample.references) for sample in sentences()[:4]]
    assert first == [
        ("Go.", ("Va !",)),
        ("I lost.", ("J'ai perdu.",)),
        ("He's calm.", ("Il est calme.",)),
        ("I'm home.", ("Je suis chez moi.",)),
    ]


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


def test_the_garment_that_the_chapter_opens_on_is_not() -> None:
    model = load_classifier("vit-fashion-mnist", "cpu")
    first = model.classify(drawn_picture(GARMENTS[0])).distance
    assert first is not None
    assert not first.is_unfamiliar, "the chapter opens on a picture that the model is said not to know"


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
    (folder / FILE).unlink()
    with pytest.raises(CheckpointError, match=f"lacks its file {FILE}"):
        load_classifier("vit-fashion-mnist", "cpu", tmp_path)


NAME = "transformer-en-fr"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("He\u2019s at Tom's, isn't he?", ["He's", "at", "Tom's", "isn't", "he"]),
        ("At 2:30, in 1984!", ["At", "2", "30", "in", "1984"]),
        ("'Go' - well-known, caf\u00e9_", ["Go", "well", "known", "café"]),
        ("\U0001f600 \u202e", []),
    ],
)
def test_words_without_signs(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_rare_words_of_a_text() -> None:
    counts = WordCounts(FEW + 5, {"a": FEW, "cat": 2, "A": 1, "dog": FEW})
    assert counts.rare_words("The cat saw a dog; the cat ran") == (
        ("The", 0),
        ("cat", 2),
        ("saw", 0),
        ("the", 0),
        ("ran", 0),
    )
    assert counts.rare_words("") == ()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"sentences": 1, "words": ["a"]}', '{"sentences": 1, "words": {"x": "a"}}']
)
def test_what_is_no_count_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected counts of words, got"):
        WordCounts.from_json(text)


def test_what_ships_with_the_translator(tmp_path: Path) -> None:
    counts = word_counts(NAME)
    assert counts is not None
    assert counts.sentences == 110_893
    assert counts.rare_words("The cat is sleeping on my bed.") == ()
    assert counts.rare_words("The cat saw sharks") == (("sharks", 0),)
    assert counts is word_counts(NAME), "read once"
    assert word_counts("seq2seq-en-fr") is None
    folder = tmp_path / NAME
    folder.mkdir()
    (folder / COUNTS).write_text("{", encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"words.json of model 'transformer-en-fr' cannot be read"):
        word_counts(NAME, tmp_path)
    shutil.rmtree(folder)
    assert word_counts(NAME, tmp_path) is None
