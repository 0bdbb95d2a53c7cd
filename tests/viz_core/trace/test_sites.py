"""Sites of attention layers are set once, from outside, and copied with them."""

from __future__ import annotations

import copy
import io

import pytest
import torch
from torch import nn

from viz_core.attention import AdditiveAttention, MultiHeadAttention
from viz_core.models import (
    EncoderDecoder,
    Seq2SeqAttentionDecoder,
    Seq2SeqEncoder,
    TransformerDecoder,
    TransformerDecoderBlock,
    TransformerEncoder,
    TransformerEncoderBlock,
    ViT,
    ViTBlock,
)
from viz_core.trace import find_sites, name_site, name_sites, record, site_of


def sites_by_path(model: nn.Module) -> dict[str, str]:
    """The site of each layer that has one, by its path in the model."""
    return {path: site for path, module in model.named_modules() if (site := site_of(module)) is not None}


@pytest.fixture
def transformer() -> EncoderDecoder:
    sizes = {"vocab_size": 9, "num_hiddens": 8, "ffn_num_hiddens": 8, "num_heads": 2, "num_blks": 2, "dropout": 0.0}
    return EncoderDecoder(TransformerEncoder(**sizes), TransformerDecoder(**sizes)).eval()


PLACES = {
    "encoder.blks.block0.attention": "encoder.0.self",
    "encoder.blks.block1.attention": "encoder.1.self",
    "decoder.blks.block0.attention1": "decoder.0.self",
    "decoder.blks.block0.attention2": "decoder.0.cross",
    "decoder.blks.block1.attention1": "decoder.1.self",
    "decoder.blks.block1.attention2": "decoder.1.cross",
}


def test_a_model_tells_its_layers_where_they_stand(transformer: EncoderDecoder) -> None:
    assert sites_by_path(transformer) == PLACES
    assert sites_by_path(ViT(8, 4, 8, 8, 2, 2, 0.0, 0.0)) == {
        "blks.0.attention": "encoder.0.self",
        "blks.1.attention": "encoder.1.self",
    }
    assert sites_by_path(Seq2SeqAttentionDecoder(9, 4, 4, 2)) == {"attention": "decoder.0.cross"}
    assert sites_by_path(Seq2SeqEncoder(9, 4, 4, 2)) == {}


def test_sites_of_torchs_own_layers_are_found_without_a_word_to_them() -> None:
    model = nn.Transformer(8, 2, 1, 1, 8, batch_first=True)
    places = {module: path for path, module in model.named_modules()}
    assert {places[layer]: site for layer, site in find_sites(model).items()} == {
        "encoder.layers.0.self_attn": "encoder.0.self",
        "decoder.layers.0.self_attn": "decoder.0.self",
        "decoder.layers.0.multihead_attn": "decoder.0.cross",
    }
    assert sites_by_path(model) == {}
    as_torchvision_names_them = nn.ModuleDict({"encoder_layer_7": nn.ModuleDict({"x": nn.MultiheadAttention(8, 2)})})
    assert list(find_sites(as_torchvision_names_them).values()) == ["encoder.7.self"]
    Decoder = type("Decoder", (nn.Sequential,), {})  # as in x-transformers: no path says so
    assert list(find_sites(nn.ModuleDict({"attn_layers": Decoder(nn.MultiheadAttention(8, 2))})).values()) == [
        "decoder.0.self"
    ]


def test_two_stacks_are_named_at_once(transformer: EncoderDecoder) -> None:
    for module in transformer.modules():
        vars(module).pop("attention_site", None)
    assert sites_by_path(transformer) == {}
    assert name_sites(transformer) == tuple(PLACES.values())
    assert sites_by_path(transformer) == PLACES


def test_parts_of_a_model_by_themselves_are_told_nothing() -> None:
    sizes = (8, 8, 2, 0.0)
    parts = [TransformerEncoderBlock(*sizes), TransformerDecoderBlock(*sizes), ViTBlock(8, 8, 8, 2, 0.0)]
    parts += [MultiHeadAttention(8, 2), AdditiveAttention(8, 8, 8)]
    assert [sites_by_path(part) for part in parts] == [{}] * 5
    X = torch.randn(1, 3, 8)
    with record() as trace:
        parts[0](X)
    assert trace.sites == ("attention.0",)


def test_copies_keep_their_sites_and_a_state_dict_knows_none(transformer: EncoderDecoder) -> None:
    assert sites_by_path(copy.deepcopy(transformer)) == PLACES
    stored = io.BytesIO()
    torch.save(transformer, stored)
    stored.seek(0)
    assert sites_by_path(torch.load(stored, weights_only=False)) == PLACES
    assert not any("site" in name for name in transformer.state_dict())


def test_a_layer_is_told_a_name_of_its_own() -> None:
    layer = MultiHeadAttention(8, 2)
    name_site(layer, "here")
    X = torch.randn(1, 3, 8)
    with record() as trace:
        layer(X, X, X)
    assert (site_of(layer), trace.sites) == ("here", ("here",))
