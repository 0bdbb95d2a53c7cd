"""The command that counts words, and what it writes beside a checkpoint."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from recipes.__main__ import main
from recipes.sentence_pairs import as_json, count_words
from viz_core.pretrained.familiarity import FEW, WordCounts, word_counts


def test_words_are_counted_over_the_training_half_alone(
    checkpoints: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = next(path.name for path in checkpoints.iterdir())
    shutil.copytree(checkpoints / name, tmp_path / name)
    data = tmp_path / "data"
    data.mkdir()
    # "I fell." is a sentence of the test split, for ever; "Go." and "Hi." are trained on
    lines = ["Go.\tVa !", "Go.\tAllez !", "Hi.\tSalut !", "I fell.\tJe suis tombé."]
    (data / "fra.txt").write_text("\n".join(lines), encoding="utf-8")
    for _ in range(2):  # a second count takes the place of the first
        assert main(["word-counts", name, "--data", str(data), "--checkpoints", str(tmp_path)]) == 0
    counts = word_counts(name, tmp_path)
    assert counts is not None
    assert (counts.sentences, counts.counts) == (2, {"Go": 1, "Hi": 1})
    training = json.loads((tmp_path / name / "training.json").read_text(encoding="utf-8"))
    assert training["words"] == {"sentences": 2, "different": 2, "hardly_seen": 2}
    assert (tmp_path / name / "card.md").read_text(encoding="utf-8").count("## Words\n") == 1
    assert main(["word-counts", "nobody", "--data", str(data), "--checkpoints", str(tmp_path)]) == 1
    assert "word-counts of nobody cannot be measured: There is no model 'nobody'" in capsys.readouterr().err


def test_sentences_are_counted_not_words() -> None:
    counts = count_words(["a cat, a cat", "A cat", *["a dog"] * (FEW + 3)])
    assert counts.sentences == FEW + 5
    assert counts.counts == {"a": FEW, "cat": 2, "A": 1, "dog": FEW}


def test_what_is_written_is_read() -> None:
    counts = count_words(["un été", "1984", "Tom's"])
    assert WordCounts.from_json(as_json(counts)) == counts
    assert WordCounts.from_json(as_json(count_words([]))).counts == {}
