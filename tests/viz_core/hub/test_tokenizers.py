"""Tokens as people read them, whatever the vocabulary writes; and tokenizers that would take too long."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from tests.viz_core.hub.conftest import Refused, Tiny, change
from viz_core.hub import HubError, load_hub
from viz_core.hub.runs.token_text import Reader, visible
from viz_core.hub.runs.tokenizers import TextInput, clean_text
from viz_core.runtime.limited_process import Limits
from viz_core.runtime.tokenizer_trial import try_tokenizer

CORPUS = ["The cat sat on the mat and looked at the dog.", "She reads a book, he reads a letter."] * 3
KINDS = {"wordpiece": "bert", "bytes": "gpt2", "metaspace": "gemma"}


def labels(family: str, text: str, tiny: Tiny) -> list[str]:
    given_to = TextInput(AutoTokenizer.from_pretrained(tiny(family)), 400)
    return [token.label for token in given_to.read(given_to.encode(text)["input_ids"][0].tolist())]


def test_words_of_each_kind_of_vocabulary(tiny: Tiny) -> None:
    assert labels("bert", "The cat, reads.", tiny) == ["[CLS]", "·the", "·cat", ",", "·reads", ".", "[SEP]"]
    assert labels("gpt2", "The cat, reads.", tiny) == ["The", "·cat", ",", "·reads", "."]
    assert labels("gemma", "The cat, reads.", tiny) == ["·The", "·cat", ",", "·reads", "."]


def test_a_character_of_several_tokens_is_each_of_them(tiny: Tiny) -> None:
    for family in ("gpt2", "gemma"):
        given_to = TextInput(AutoTokenizer.from_pretrained(tiny(family)), 400)
        tokens = given_to.read(given_to.encode("😀é")["input_ids"][0].tolist())
        parts = [token for token in tokens if token.text == "😀"]
        assert [token.label[-3:] for token in parts] == ["1/4", "2/4", "3/4", "4/4"]
        assert [token.text for token in tokens if token.text not in ("😀", "")] == ["é", "é"]
    tokenizer = AutoTokenizer.from_pretrained(tiny("gpt2"))
    first, middle, *_ = tokenizer("😀")["input_ids"]
    shown = Reader(tokenizer).read([first, *tokenizer("T")["input_ids"], middle, first])
    assert [token.label for token in shown] == ["<F0>", "T", "<9F>", "<F0>"], "bytes that are no character"


SHOWN = {"cat": "cat", "\n\n": "↵↵", "\t": "⇥", "  ": "␣␣", "\u202e": "U+202E", "a\u200bb": "aU+200Bb"}
SHOWN |= {"👨\u200d👩": "👨\u200d👩", "سلام": "سلام", "<b>": "<b>", "": ""}


def test_nothing_hides() -> None:
    assert {text: visible(text) for text in SHOWN} == SHOWN
    assert clean_text("a\0b\x1b[31m\ud800c\r\nd\te") == "ab[31mc\nd\te"


@settings(max_examples=60)
@given(text=st.text(min_size=1, max_size=30))
def test_any_text_is_read_or_refused(text: str, tiny_inputs: list[TextInput]) -> None:
    for text_input in tiny_inputs:
        try:
            ids = text_input.encode(text)["input_ids"][0].tolist()
        except HubError:
            assert not clean_text(text).strip() or not text_input._tokenizer(clean_text(text))["input_ids"]
            continue
        tokens = text_input.read(ids)
        assert [token.id for token in tokens] == ids
        marks = {"Ġ", "Ċ", "##", "▁", "<0x", "Ã"} if text.isascii() and "#" not in text and "<" not in text else {}
        assert all(token.label and not any(mark in token.label for mark in marks) for token in tokens)


@pytest.fixture(scope="session")
def tiny_inputs(tiny: Tiny) -> list[TextInput]:
    return [TextInput(AutoTokenizer.from_pretrained(tiny(family)), 400) for family in KINDS.values()]


def test_marian_as_it_is_published(tiny: Tiny, tmp_path: Path) -> None:
    path = Path(shutil.copytree(tiny("marian"), tmp_path / "opus"))
    for file in path.glob("token*"):
        file.unlink()
    for side in ("source", "target"):
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(CORPUS),
            model_prefix=str(path / side),
            vocab_size=90,
            hard_vocab_limit=False,
            minloglevel=2,
        )
        (path / f"{side}.model").rename(path / f"{side}.spm")
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(path / "source.spm"))
    names = ["<pad>", "<unk>", "</s>", *(pieces.id_to_piece(i) for i in range(3, len(pieces)))]
    (path / "vocab.json").write_text(json.dumps({name: i for i, name in enumerate(names)}))
    options = {"tokenizer_class": "MarianTokenizer", "source_lang": "en", "target_lang": "fr"}
    (path / "tokenizer_config.json").write_text(json.dumps(options))
    model = load_hub(path, device="cpu")
    run = model.run("The cat sat on the mat.", target="She reads a book.")
    assert model.card.tokenizer == "SentencePiece"
    assert "".join(token.label for token in run.tokens[:-1]) == "·The·cat·sat·on·the·mat."
    assert (run.tokens[-1].label, run.tokens[-1].special) == ("</s>", True)
    assert "".join(token.label for token in run.target_tokens[:-1]) == "·She·reads·a·book."
    assert run.text == "She reads a book."


# Tokenizers made to harm


@pytest.fixture
def short_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("viz_core.hub.runs.tokenizers.Limits", lambda **given: Limits(**{**given, "cpu_seconds": 1}))


PATTERNS = {
    "doubles with every letter": r"(a+)+$",
    "doubles with what it names": r"(ß+)+$",
    "grows with the cube": r"a*a*a*[^a][^a]",
    "is no pattern": r"(",
}


def split_by(path: Path, part: str, pattern: str) -> Path:
    tokenizer = json.loads((path / "tokenizer.json").read_text())
    kind = {"type": "Split", "behavior": "Isolated", "invert": False}
    if part == "normalizer":
        kind = {"type": "Replace", "content": ""}
    tokenizer[part] = kind | {"pattern": {"Regex": pattern}}
    (path / "tokenizer.json").write_text(json.dumps(tokenizer))
    return path


@pytest.mark.usefixtures("short_trial")
@pytest.mark.parametrize("what", PATTERNS)
def test_a_pattern_of_a_tokenizer(what: str, copy: Tiny, refused: Refused) -> None:
    part = "normalizer" if what == "doubles with what it names" else "pre_tokenizer"
    assert "takes too long" in refused(split_by(copy("bert"), part, PATTERNS[what])) or what == "is no pattern"


def test_a_pattern_from_another_file(copy: Tiny, refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a tokenizer.json, as of a tekken.json, what transformers made of it is tried."""
    path = split_by(copy("bert"), "pre_tokenizer", PATTERNS["doubles with every letter"])
    made = PreTrainedTokenizerFast(tokenizer_file=str(path / "tokenizer.json"))
    (path / "tokenizer.json").rename(path / "vocab.json")
    monkeypatch.setattr(AutoTokenizer, "from_pretrained", lambda *_, **__: made)
    assert "takes too long" in refused(path)


def test_what_no_trial_found_is_a_sentence_all_the_same(copy: Tiny) -> None:
    """Greek letters, and those alone; the library gives up, and every thread goes on."""
    model = load_hub(split_by(copy("bert"), "pre_tokenizer", r"(\p{Greek}+)+$"), device="cpu")
    assert model.run("hello").tokens
    with pytest.raises(HubError, match="gives up on this text"):
        model.run("λ" * 40 + "!")


REAL = (
    r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""",  # GPT-2
    r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"""  # Llama 3
    r"""| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
    r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"""
    r"""|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+""",  # o200k
    r""" ?[^(\s|[.,!?…。，、।۔،])]+""",  # BLOOM
)


def test_patterns_of_real_tokenizers_pass() -> None:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(p), "isolated") for p in REAL])
    assert not try_tokenizer(tokenizer.to_str().encode())


def grows(letter: str, times: int) -> dict[str, Any]:
    doubled = {"type": "Replace", "pattern": {"String": letter}, "content": letter * 2}
    return {"type": "Sequence", "normalizers": [doubled] * times}


@pytest.mark.usefixtures("short_trial")
@pytest.mark.parametrize(("letter", "times"), [("ж", 30), ("a", 6)])
def test_a_tokenizer_that_grows_a_text(letter: str, times: int, copy: Tiny, refused: Refused) -> None:
    """30 doublings of one letter took minutes and gigabytes of the process that loads models."""
    path = change(copy("bert") / "tokenizer.json", normalizer=grows(letter, times))
    assert "takes too long" in refused(path)
    doubling = change(path / "tokenizer.json", normalizer=grows("a", 1))
    assert load_hub(doubling, device="cpu").run("hello").tokens
    decoder = {"type": "Sequence", "decoders": grows("a", 30)["normalizers"]}
    assert "takes too long" in refused(change(path / "tokenizer.json", decoder=decoder))
