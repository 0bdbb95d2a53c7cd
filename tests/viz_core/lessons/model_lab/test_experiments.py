"""The experiments of the book's exercises on pretraining: by hand where they can be, else where they must refuse."""

from __future__ import annotations

import math

import pytest
import torch

from viz_core.hub import HubModel, load_hub
from viz_core.lessons.model_lab import mixed_batch
from viz_core.lessons.model_lab.experiments import (
    TEXTS,
    linear_accuracy,
    log_probabilities,
    one_stack,
    perplexity,
    questions_and_statements,
    right_choices,
    sentence_pairs,
    token_states,
    with_encoder,
)
from viz_core.lessons.model_lab.mixed_batch import TASKS


@pytest.fixture(scope="module")
def writer() -> HubModel:
    return load_hub("writer-en", offline=True, device="cpu")


@pytest.fixture(scope="module")
def reader() -> HubModel:
    return load_hub("reader-en", offline=True, device="cpu")


def test_the_two_sentences_differ_in_one_token_to_each_model(writer: HubModel, reader: HubModel) -> None:
    for model in (writer, reader):
        first, second = (model.engine.encode(text)["input_ids"][0] for text in TEXTS)
        assert len(first) == len(second)
        assert int((first != second).sum()) == 1


def test_a_sentences_probability_is_that_of_its_tokens(writer: HubModel) -> None:
    """In one batch with a longer one as by itself, and as the perplexity has it."""
    text, longer = "He is calm.", "He is calm, and she is not calm at all."
    together = log_probabilities(writer, [text, longer])
    alone = float(log_probabilities(writer, [text])[0])
    assert float(together[0]) == pytest.approx(alone, abs=1e-4)
    value, count = perplexity(writer, text)
    assert count == 4
    assert -count * math.log(value) == pytest.approx(alone, abs=1e-4)


def test_of_two_sentences_the_same_one_is_chosen_whichever_comes_first(writer: HubModel) -> None:
    pairs = sentence_pairs()["order"][:3]
    turned = [(wrong, right) for right, wrong in pairs]
    found = right_choices(writer, {"right": pairs, "turned": turned})
    assert found["turned"] == tuple(not right for right in found["right"])


def test_what_only_a_decoder_can_tell_no_encoder_is_asked(reader: HubModel) -> None:
    with pytest.raises(ValueError, match="expected a decoder, got an encoder"):
        perplexity(reader, TEXTS[0])
    with pytest.raises(ValueError, match="expected a decoder, got an encoder"):
        log_probabilities(reader, TEXTS)


@pytest.mark.parametrize("kind", ["encoder-decoder", "decoder"])
def test_rows_that_saw_each_other_would_be_told(kind: mixed_batch.Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    mixed = mixed_batch.mixed_batch(kind, seed=3)
    assert max(mixed.apart, mixed.gradient) < 1e-9
    whole = mixed_batch._learn

    def leaking(model: torch.nn.Module, rows: tuple[tuple[str, str], ...]) -> object:
        predicted, gradient = whole(model, rows)
        return ([row + len(rows) for row in predicted], gradient * len(rows))

    monkeypatch.setattr(mixed_batch, "_learn", leaking)
    found = mixed_batch.mixed_batch(kind, seed=3)
    assert (found.apart, found.gradient) == (pytest.approx(1.0), pytest.approx(0.5))


def test_both_tasks_are_named_in_words_and_of_unlike_length() -> None:
    assert {source.split()[0] for source, _ in TASKS} == {"translate", "repeat"}
    assert len({len(source.split()) for source, _ in TASKS}) == len({len(target.split()) for _, target in TASKS}) == 2


def test_one_stack_loses_the_upper_triangle_of_the_source_alone() -> None:
    both, alone = with_encoder(3, 2).int(), one_stack(3, 2).int()
    assert (both - alone).tolist() == [[0, 1, 1, 0, 0], [0, 0, 1, 0, 0], *[[0] * 5] * 3]
    assert alone[4].tolist() == [1] * 5


def test_a_state_that_knows_nothing_reads_as_a_coin_and_one_that_knows_all_is_read() -> None:
    labels = torch.tensor([True, False] * 15)
    assert linear_accuracy(torch.ones(30, 4), labels) == 0.5
    assert linear_accuracy(torch.stack([labels.float(), torch.randn(30)], dim=1), labels) == 1.0


def test_states_do_not_depend_on_what_pads_them(reader: HubModel) -> None:
    texts, labels = questions_and_statements()
    assert int(labels.sum()) * 2 == len(texts) == len(labels)
    assert not [text for text in texts if text[-1] in "?!."]
    padded, lens = token_states(reader, [texts[0], " and ".join(texts[:4])])
    alone, _ = token_states(reader, [texts[0]])
    torch.testing.assert_close(padded[:, :1, : int(lens[0])], alone, atol=1e-4, rtol=1e-4)
