"""Weights between words against the trace's weights between pieces."""

from __future__ import annotations

import pytest

from viz_core.pretrained import load
from viz_core.view.linked_sentences import linked_sentences
from viz_core.view.shipped import open_translation


def test_weights_between_words_follow_from_those_between_pieces() -> None:
    model = load("transformer-en-fr", device="cpu")
    translation = model.translate("Photographers photographed the unbelievable sunset.")
    groups, opened = open_translation(translation, "en")
    found = linked_sentences(groups)
    source, target = found["lines"]
    assert len(source) < len(translation.source_tokens)
    assert "".join(source) == "".join(translation.source_tokens)
    assert "".join(target) == "".join(translation.target_tokens)
    across = found["across"]
    assert (across["layer"], across["head"], across["pattern"]) == (opened.layer, opened.head, "written")
    weights = translation.trace[f"decoder.{opened.layer}.cross"].weights(head=opened.head)[0]
    rows, columns = (
        [[i for i, own in enumerate(numbers) if own == word] for word in range(numbers[-1] + 1)]
        for numbers in (translation.target_words, translation.source_words)
    )
    for query, own in zip(rows, across["weights"], strict=True):
        assert own == pytest.approx([float(weights[query][:, key].sum(dim=1).mean()) for key in columns], abs=6e-4)
    assert found["within"] is None or found["within"]["pattern"] in ("previous", "next")
