"""Stacks with other options than the book's, the ViT written out, and the steps of an encoder."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.viz_core.models.test_transformer import (
    BLOCKS,
    FFN,
    HEADS,
    SIZES,
    WIDTH,
    copy_attention,
    copy_rest,
    random_ids,
    shaken,
)
from viz_core.models import (
    BlockOptions,
    EncoderDecoder,
    GatedFFN,
    TransformerDecoder,
    TransformerDecoderBlock,
    TransformerEncoder,
    ViTBlock,
)
from viz_core.models.transformer_decoder import DecoderState
from viz_core.models.vit import ViT, interpolate_positions
from viz_core.positional import (
    AbsolutePositionEmbedding1d,
    ALiBi,
    PositionScheme,
    RelativePositionEmbedding1d,
    Rotary,
    T5RelativeBias,
)
from viz_core.trace import record

LENGTH, HEAD_DIM = 8, WIDTH // HEADS
OPTIONS: dict[str, dict[str, Any]] = {
    "book": {},
    "rotary": {"positions": Rotary()},
    "rotary-half-split": {"positions": Rotary(100.0, interleaved=False)},
    "alibi": {"positions": ALiBi()},
    "t5": {"positions": T5RelativeBias(HEADS, 8, 6, bidirectional=False)},
    "t5 in both directions": {"positions": T5RelativeBias(HEADS, 8, 6)},
    "relative": {"positions": RelativePositionEmbedding1d(LENGTH, HEAD_DIM, HEADS)},
    "shaw": {"positions": lambda: RelativePositionEmbedding1d(3, HEAD_DIM, max_distance=2)},
    "absolute": {"positions": AbsolutePositionEmbedding1d(LENGTH, HEAD_DIM)},
    "none": {"positions": PositionScheme},
    "window": {"window": 3},
    "rotary in a window": {"positions": Rotary(), "window": 2, "num_key_heads": 1, "softcap": 1.0, "norm_first": True},
    "grouped": {"num_key_heads": 1},
    "softcap": {"softcap": 0.5},
    "llama": {"norm_first": True, "norm": nn.RMSNorm, "ffn": GatedFFN, "positions": Rotary(), "num_key_heads": 1},
}


def model(**options: Any) -> EncoderDecoder:
    own = BlockOptions(**options)
    built = EncoderDecoder(TransformerEncoder(*SIZES, 0.0, options=own), TransformerDecoder(*SIZES, 0.0, options=own))
    shaken(built)
    return built.eval()


@pytest.mark.parametrize("chunks", [[1] * LENGTH, [3, 1, 4]], ids=str)
@pytest.mark.parametrize("name", OPTIONS)
def test_cached_steps_equal_one_pass(name: str, chunks: list[int]) -> None:
    built = model(**OPTIONS[name])
    source, target, lengths = random_ids(2, LENGTH), random_ids(2, LENGTH), torch.tensor([LENGTH, 2])
    with record() as whole:
        expected = built(source, target, lengths)
    state = built.decoder.init_state(built.encoder(source, lengths), lengths)
    parts, taken = [], 0
    for chunk in target.split(chunks, dim=1):
        with record() as step:
            logits, state = built.decoder(chunk, state)
        parts.append(logits)
        for site in ("decoder.0.self", f"decoder.{BLOCKS - 1}.cross"):
            rows = whole[site].weights(queries=slice(taken, taken + chunk.shape[1]))
            weights = step[site].weights()
            torch.testing.assert_close(weights, rows[..., : weights.shape[-1]], atol=1e-5, rtol=0)
        taken += chunk.shape[1]
    torch.testing.assert_close(torch.cat(parts, dim=1), expected, atol=5e-5, rtol=0)


NO_DIFFERENCE = ("book", "none", "grouped", "softcap", "llama")


@pytest.mark.parametrize("name", [name for name in OPTIONS if name not in NO_DIFFERENCE])
def test_the_option_makes_a_difference(name: str) -> None:
    """From the same weights: what an option changes must be seen in the encoder's output."""
    options = OPTIONS[name]
    changed = model(**options).encoder
    without = {"window": None, **({"positions": PositionScheme} if "positions" in options else {})}
    plain = TransformerEncoder(*SIZES, 0.0, options=BlockOptions(**{**options, **without})).eval()
    own = {key: tensor for key, tensor in changed.state_dict().items() if ".positions." not in key}
    plain.load_state_dict(own, strict=True)
    ids = random_ids(2, LENGTH)
    assert not torch.allclose(changed(ids), plain(ids), atol=1e-2)


def test_norm_first_decoder_block_equals_torchs_layer() -> None:
    block = TransformerDecoderBlock(WIDTH, FFN, HEADS, 0.1, options=BlockOptions(norm_first=True))
    shaken(block)
    block.eval()
    theirs = nn.TransformerDecoderLayer(WIDTH, HEADS, FFN, dropout=0.0, batch_first=True, norm_first=True)
    with torch.no_grad():
        copy_attention(block.attention1, theirs.self_attn)
        copy_attention(block.attention2, theirs.multihead_attn)
    copy_rest(block, theirs, norms=3)
    X, memory, lengths = torch.randn(2, 4, WIDTH), torch.randn(2, 6, WIDTH), torch.tensor([3, 6])
    future = torch.ones(4, 4, dtype=torch.bool).triu(1)
    expected = theirs(X, memory, tgt_mask=future, memory_key_padding_mask=torch.arange(6) >= lengths[:, None])
    output, _ = block(X, DecoderState(memory, lengths, (None,)))
    torch.testing.assert_close(output, expected, atol=2e-5, rtol=0)


def test_masks_and_biases_reach_every_block() -> None:
    built = model()
    ids = random_ids(2, 5)
    mask = torch.ones(5, 5, dtype=torch.bool).tril()[None, None]
    bias = torch.zeros(5, 5).masked_fill(~mask[0, 0], -torch.inf)[None, None]
    expected = built.encoder(ids, causal=True)
    torch.testing.assert_close(built.encoder(ids, mask=mask), expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(built.encoder(ids, bias=bias), expected, atol=1e-5, rtol=0)
    assert not torch.allclose(built.encoder(ids), expected, atol=1e-3)


def test_a_padded_prompt_is_masked_at_every_step() -> None:
    """Two prompts of unequal length, padded on the left: with a mask each decodes as by itself."""
    built = model(positions=PositionScheme)  # a shift by padding must not matter
    memory = built.encoder(random_ids(1, 4))
    ids = random_ids(1, 3)
    alone, _ = built.decoder(ids, built.decoder.init_state(memory))
    padded = torch.cat([torch.zeros(1, 2, dtype=torch.long), ids], dim=1)
    mask = (torch.arange(5) >= 2)[None, None, None]
    together, _ = built.decoder(padded, built.decoder.init_state(memory), mask=mask)
    torch.testing.assert_close(together[:, 2:], alone, atol=1e-5, rtol=0)
    state = built.decoder.init_state(memory)
    for i in range(5):
        step, state = built.decoder(padded[:, i : i + 1], state, mask=mask[..., : i + 1])
    torch.testing.assert_close(step[:, 0], alone[:, -1], atol=1e-5, rtol=0)


def test_a_vision_block_with_norms_last_equals_torchs_layer() -> None:
    block = ViTBlock(16, 16, 24, 2, 0.0, options=BlockOptions(norm_first=False))
    shaken(block)
    theirs = nn.TransformerEncoderLayer(16, 2, 24, dropout=0.0, batch_first=True, activation="gelu").eval()
    with torch.no_grad():
        copy_attention(block.attention, theirs.self_attn)
    theirs.linear1.load_state_dict(block.mlp.dense1.state_dict())
    theirs.linear2.load_state_dict(block.mlp.dense2.state_dict())
    theirs.norm1.load_state_dict(block.ln1.state_dict())
    theirs.norm2.load_state_dict(block.ln2.state_dict())
    X = torch.randn(2, 5, 16)
    torch.testing.assert_close(block.eval()(X), theirs(X), atol=2e-5, rtol=0)


def by_formula(state: dict[str, Tensor], X: Tensor) -> Tensor:
    """Logits from a state dict with the names of the book's classes: pre-norm blocks of two heads, 8 wide."""
    used = set()

    def affine(name: str, x: Tensor) -> Tensor:
        used.update({f"{name}.weight", f"{name}.bias"} & set(state))
        return F.linear(x, state[f"{name}.weight"], state.get(f"{name}.bias"))

    def norm(name: str, x: Tensor) -> Tensor:
        used.update({f"{name}.weight", f"{name}.bias"})
        return F.layer_norm(x, (16,), state[f"{name}.weight"], state[f"{name}.bias"])

    filters = state["patch_embedding.conv.weight"], state["patch_embedding.conv.bias"]
    patches = F.conv2d(X, *filters, stride=4).flatten(2).mT
    H = torch.cat([state["cls_token"].expand(len(X), -1, -1), patches], dim=1) + state["pos_embedding"]
    for block in ("blks.0.", "blks.1."):
        Z = norm(f"{block}ln1", H)
        q, k, v = (
            affine(f"{block}attention.{W}", Z).unflatten(-1, (2, 8)).transpose(1, 2) for W in ("W_q", "W_k", "W_v")
        )
        heads = (q @ k.mT / 8**0.5).softmax(dim=-1) @ v
        H = H + affine(f"{block}attention.W_o", heads.transpose(1, 2).flatten(2))
        H = H + affine(f"{block}mlp.dense2", F.gelu(affine(f"{block}mlp.dense1", norm(f"{block}ln2", H))))
    logits = affine("head.1", norm("head.0", H[:, 0]))
    others = {"cls_token", "pos_embedding", "patch_embedding.conv.weight", "patch_embedding.conv.bias"}
    assert used | others == set(state), "the book's classes have these parameters and no others"
    return logits


@pytest.mark.parametrize(("use_bias", "channels"), [(False, 3), (True, 1)])
def test_a_state_dict_of_the_books_classes_loads_and_answers_alike(use_bias: bool, channels: int) -> None:
    ours = ViT(12, 4, 16, 24, 2, 2, 0.1, 0.1, use_bias=use_bias, num_channels=channels).eval()
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))  # no zeros and ones that would hide a mix-up
    X = torch.randn(3, channels, 12, 12)
    torch.testing.assert_close(ours(X), by_formula(ours.state_dict(), X), atol=2e-6, rtol=1e-5)


def test_interpolated_positions_keep_the_class_token_and_every_point_both_grids_share() -> None:
    """On a grid three times as fine, the middle of each three by three lies where a learned position does."""
    table = torch.randn(1, 12, 5)
    positions = torch.cat((torch.full((1, 1, 5), 9.0), table), dim=1)
    found = interpolate_positions(positions, (4, 3), (12, 9))
    assert found.shape == (1, 109, 5)
    assert torch.equal(found[:, 0], positions[:, 0])
    middles = found[0, 1:].reshape(12, 9, 5)[1::3, 1::3]
    torch.testing.assert_close(middles, table.reshape(4, 3, 5), atol=1e-6, rtol=0)
    level = interpolate_positions(torch.full((1, 13, 5), 2.5), (4, 3), (7, 2))
    torch.testing.assert_close(level, torch.full((1, 15, 5), 2.5))
    assert interpolate_positions(positions, (4, 3), (4, 3)) is positions
