"""Shuffling, and one score for each offset."""

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from tests.tiny_models import GREY, write_tiny_vit
from viz_core.lessons.position_embeddings.order import (
    offset_spread,
    order_changes,
    picture,
    picture_tokens,
    shipped_position_tables,
)
from viz_core.lessons.position_embeddings.shared_layer import SharedLayer
from viz_core.positional.entry import SchemeEntry, SchemeSizes
from viz_core.positional.register import BY_NAME, SCHEMES
from viz_core.pretrained import load_classifier
from viz_core.pretrained.token_vectors import shuffled_order


@settings(max_examples=20)
@given(n=st.integers(2, 12), heads=st.sampled_from([1, 2, 4]), seed=st.integers(0, 99))
def test_order_matters_with_every_scheme_and_without_positions_it_does_not(n: int, heads: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    s = SharedLayer(torch.randn(n, 32, generator=generator), SchemeSizes(n, 32, heads, 1, n), seed=seed)
    order = shuffled_order([str(i) for i in range(n)], seed)
    for scheme in SCHEMES:
        change = order_changes(scheme, s, order).max()
        ordered = bool((order != torch.arange(n)).any()) and scheme.depends_on != "nothing"
        backwards = scheme.depends_on == "distance" and torch.equal(order, torch.arange(n).flip(0))
        assert change > 1e-3 if ordered and not backwards else change < 1e-5, scheme.name


def test_the_change_by_hand() -> None:
    """The layer's outputs for shuffled tokens, one by one, against those of the tokens in order."""
    s, scheme = SharedLayer(torch.randn(3, 8), SchemeSizes(3, 8, 1, 1, 3)), BY_NAME["alibi"]
    order = torch.tensor([2, 0, 1])
    shuffled = SharedLayer(s.X[[2, 0, 1]], s.sizes).output(scheme)
    plain = s.output(scheme)
    by_hand = [(shuffled[i] - plain[order[i]]).abs().max().item() for i in range(3)]
    assert order_changes(scheme, s, order).tolist() == pytest.approx(by_hand)


def test_spread_and_contrast_by_hand() -> None:
    scores = torch.tensor([[[5.0, 1, 7], [2, 6, 1], [9, 4, 5]]])
    assert offset_spread(scores) == 2  # on the diagonal of offset -1: 2 and 4


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.name)
def test_an_offset_has_one_score_where_positions_count_by_offset_alone(scheme: SchemeEntry) -> None:
    s = SharedLayer(torch.randn(9, 32), SchemeSizes(9, 32, 2, 1, 9)).one_word()
    spread = offset_spread(s.scores(scheme))
    assert spread > 0.1 if scheme.depends_on == "position" else spread < 1e-5  # a grid of one row is a line


def test_patches_are_row_major_and_of_unit_variance() -> None:
    tokens = picture_tokens(3, 5, 256)
    assert tokens.labels[:6] == ("1,1", "1,2", "1,3", "1,4", "1,5", "2,1")
    assert 0.5 < tokens.X.var().item() < 2
    pixels = torch.from_numpy(picture(3, 5))
    projection = torch.randn(64, 256, generator=torch.Generator().manual_seed(0)) / 8
    patch = (pixels[8:16, 16:24].flatten() - pixels.mean()) / pixels.std()
    torch.testing.assert_close(tokens.X[1 * 5 + 2], patch @ projection, atol=1e-4, rtol=1e-4)


def write_model(folder: Path, name: str, tensors: dict[str, torch.Tensor] | bytes) -> None:
    (folder / name).mkdir()
    card = {"title": name, "task": "x", "licence": "x"}
    (folder / name / "config.json").write_text(json.dumps(card), encoding="utf-8")
    path = folder / name / "model.safetensors"
    if isinstance(tensors, bytes):
        path.write_bytes(tensors)
    else:
        save_file(tensors, str(path))


def test_the_table_of_a_shipped_picture_model_is_found(tmp_path: Path) -> None:
    assert shipped_position_tables(tmp_path) == []
    write_model(tmp_path, "a-translator", {"weight": torch.zeros(2)})
    write_model(tmp_path, "b-broken", b"cut short")
    assert shipped_position_tables(tmp_path) == []
    table = torch.randn(1, 50, 8)
    write_model(tmp_path, "vit", {"pos_embedding": table.half()})
    (found,) = shipped_position_tables(tmp_path)
    assert found.card.name == "vit"
    torch.testing.assert_close(found.positions, table[0, 1:].half().float())


def test_the_table_comes_out_of_a_checkpoint_as_training_writes_it(tmp_path: Path) -> None:
    write_tiny_vit(tmp_path, GREY)
    (found,) = shipped_position_tables(tmp_path)
    assert torch.equal(found.positions, load_classifier(GREY, "cpu", tmp_path).model.pos_embedding[0, 1:])
