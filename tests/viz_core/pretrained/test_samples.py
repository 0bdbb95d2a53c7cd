"""The sentences to start from."""

from __future__ import annotations

from viz_core.pretrained import MAX_CHARACTERS
from viz_core.pretrained.samples import held_out, sentence, sentences
from viz_core.pretrained.tokenization import clean


def test_the_books_sentences_come_first_with_its_references() -> None:
    first = [(sample.english, sample.references) for sample in sentences()[:4]]
    assert first == [
        ("Go.", ("Va !",)),
        ("I lost.", ("J'ai perdu.",)),
        ("He's calm.", ("Il est calme.",)),
        ("I'm home.", ("Je suis chez moi.",)),
    ]


def test_every_sample_can_be_asked_for_and_compared() -> None:
    samples = sentences()
    assert len({sample.id for sample in samples}) == len(samples) > 4
    for sample in samples:
        assert sample.id.isidentifier()
        assert 0 < len(sample.english) <= MAX_CHARACTERS
        assert sample.references
        for text in (sample.english, *sample.references):
            assert clean(text) == text


def test_a_sample_by_its_name() -> None:
    assert sentence("cat") == next(sample.english for sample in sentences() if sample.id == "cat")


def test_held_out_sentences_are_two_hundred_with_references() -> None:
    samples = held_out()
    assert len({sample.english for sample in samples}) == len(samples) == 200
    assert all(sample.references and all(sample.references) for sample in samples)
