"""BLEU: the book's by hand, sacrebleu's against sacrebleu."""

import math

import pytest
import sacrebleu

from viz_core.pretrained.bleu import book_bleu, book_sentence_bleu, corpus_bleu, sentence_bleu
from viz_core.pretrained.samples import sentences


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


@pytest.mark.parametrize("k", [0, -1])
def test_k_is_positive(k: int) -> None:
    with pytest.raises(ValueError, match=f"k: expected at least 1, got {k}"):
        book_bleu(["a"], ["a"], k)


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


def test_corpus_bleu_needs_references_for_each() -> None:
    with pytest.raises(ValueError, match="expected references for 2 predictions, got 1 lists"):
        corpus_bleu(["a", "b"], [["a"]])
    with pytest.raises(ValueError, match="predictions: expected at least one text, got none"):
        corpus_bleu([], [])
    with pytest.raises(ValueError, match="references of sentence 1: expected at least one text, got none"):
        corpus_bleu(["a", "b"], [["a"], []])
    with pytest.raises(ValueError, match="references: expected at least one text, got none"):
        sentence_bleu("a", [])
    with pytest.raises(ValueError, match="reference: expected at least one token, got none"):
        book_bleu(["a"], [])
    with pytest.raises(ValueError, match="references: expected at least one text, got none"):
        book_sentence_bleu("a", [])


@pytest.mark.usefixtures("shapes_unchecked")
def test_a_text_is_no_list_of_tokens_or_texts() -> None:
    """A str is a sequence of characters: the book's 0.658 became 0.685, a perfect corpus 9.5."""
    with pytest.raises(ValueError, match="prediction: expected a list of tokens, got the text 'il est mouillé .'"):
        book_bleu("il est mouillé .", ["il", "est"])
    with pytest.raises(ValueError, match="reference: expected a list of tokens"):
        book_bleu(["il", "est"], "il est calme .")
    with pytest.raises(ValueError, match="references of sentence 0: expected a list of texts, got the text 'A cat.'"):
        corpus_bleu(["A cat."], ["A cat."])
    with pytest.raises(ValueError, match="predictions: expected a list of texts"):
        corpus_bleu("A cat.", [["A cat."]])
    with pytest.raises(ValueError, match="references: expected a list of texts"):
        sentence_bleu("A cat.", "A cat.")
    with pytest.raises(ValueError, match="references: expected a list of texts"):
        book_sentence_bleu("A cat.", "A cat.")
    with pytest.raises(ValueError, match="prediction: expected texts, got list"):
        sentence_bleu(["A", "cat."], ["A cat."])


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
