"""The models of English that ship: better than a 5-gram, and as good as their cards say."""

from __future__ import annotations

import json

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

from recipes.text_measures import filled, hidden_words, perplexity
from recipes.text_rows import encode
from viz_core.hub.store.files import SHIPPED_FOLDER
from viz_core.pretrained.samples import held_out

CPU = torch.device("cpu")
SENTENCES = tuple(dict.fromkeys(sample.english for sample in held_out()))


def scores(name: str) -> dict[str, float]:
    found: dict[str, float] = json.loads((SHIPPED_FOLDER / name / "training.json").read_text())["scores"]
    return found


def test_the_writer_is_less_perplexed_than_a_5_gram() -> None:
    recorded = scores("writer-en")
    assert recorded["perplexity"] < recorded["five_gram_perplexity"]
    model = AutoModelForCausalLM.from_pretrained(SHIPPED_FOLDER / "writer-en", dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(SHIPPED_FOLDER / "writer-en").backend_tokenizer
    # 200 of the 2,197 sentences that the card's figure is of.
    assert perplexity(model, encode(tokenizer, SENTENCES), CPU) == pytest.approx(recorded["perplexity"], rel=0.15)
    assert f"perplexity {recorded['perplexity']:.2f}" in (SHIPPED_FOLDER / "writer-en" / "README.md").read_text()


def test_the_reader_fills_more_gaps_than_a_5_gram_from_the_left() -> None:
    recorded = scores("reader-en")
    assert recorded["words_filled"] > recorded["five_gram_words_filled"]
    model = AutoModelForMaskedLM.from_pretrained(SHIPPED_FOLDER / "reader-en", dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(SHIPPED_FOLDER / "reader-en").backend_tokenizer
    sentences = encode(tokenizer, SENTENCES)
    words = hidden_words(tokenizer, sentences)
    assert filled(model, sentences, words, CPU) == pytest.approx(recorded["words_filled"], abs=4)
    assert f"it names {recorded['words_filled']:.1f}%" in (SHIPPED_FOLDER / "reader-en" / "README.md").read_text()
