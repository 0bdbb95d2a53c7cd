"""A stranger's text file becomes sentences, or a sentence about what is wrong with it."""

import pytest

from pages.model_lab.corpus_text import sentences_of
from viz_core.hub import HubError


@pytest.mark.parametrize(
    ("content", "sentences", "more"),
    [
        (b"One.\n\n  Two. \r\nThree.", ("One.", "Two."), 1),
        ("\ufeffÉté.\nA\x07b\n".encode(), ("Été.", "Ab"), 0),
        ("Ünter\nwegs".encode("utf-16"), ("Ünter", "wegs"), 0),
        ("a\u2028b".encode(), ("a", "b"), 0),
    ],
)
def test_a_line_is_a_sentence(content: bytes, sentences: tuple[str, ...], more: int) -> None:
    assert sentences_of(content, 1000, 2) == (sentences, more)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "holds no sentence"),
        (b" \n\t\n\x07", "holds no sentence"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "no text in UTF-8"),
        ("été".encode("latin-1"), "no text in UTF-8"),
        (b"\xff\xfea", "no text in UTF-8"),  # half a character
        (b"a\x00b", "no plain text"),
        (b"a" * 1001, "1,001 bytes; at most 1,000"),
    ],
)
def test_what_is_no_text_is_a_sentence(content: bytes, says: str) -> None:
    with pytest.raises(HubError, match=says):
        sentences_of(content, 1000, 2)
