"""How far pictures are from those a model was trained on: by hand, and for the models that ship."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from viz_core.images.drawn import GARMENTS, drawn_picture
from viz_core.pretrained import CHECKPOINTS, CheckpointError, load_classifier
from viz_core.pretrained.familiarity import COUNTS, FEW, FILE, Familiarity, WordCounts, word_counts, words_of


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
