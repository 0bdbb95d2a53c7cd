"""Stacks with positions within attention, grouped queries, windows, soft caps, and norms first."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

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
    ViT,
    ViTBlock,
)
from viz_core.models.transformer_decoder import DecoderState
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


def test_without_positions_an_encoder_sees_a_bag_of_words() -> None:
    encoder, ids = model(positions=PositionScheme).encoder, random_ids(1, 5)
    torch.testing.assert_close(encoder(ids).flip(1), encoder(ids.flip(1)), atol=1e-5, rtol=0)


def test_a_scheme_within_takes_the_place_of_sinusoids() -> None:
    encoder = TransformerEncoder(*SIZES, 0.5, options=BlockOptions(positions=Rotary()))
    ids = random_ids(1, 1200)  # longer than any table
    assert encoder.eval()(ids).shape == (1, 1200, WIDTH)
    embedded = encoder.embed(ids)
    assert torch.equal(encoder.pos_encoding(embedded, offset=3), embedded)
    assert (encoder.train().pos_encoding(embedded) == 0).float().mean() > 0.4


@pytest.mark.parametrize("stack", [TransformerEncoder, TransformerDecoder])
def test_shared_tables_and_tables_of_their_own(stack: Callable[..., nn.Module]) -> None:
    def count(built: nn.Module) -> int:
        return sum(p.numel() for name, p in built.named_parameters() if "positions" in name)

    assert count(stack(*SIZES, 0.0, options=BlockOptions(positions=T5RelativeBias(HEADS, 8, 6)))) == 8 * HEADS
    assert (
        count(stack(*SIZES, 0.0, options=BlockOptions(positions=lambda: T5RelativeBias(HEADS, 8, 6))))
        == BLOCKS * 8 * HEADS
    )


def test_the_other_line_of_words_has_no_positions_and_no_window() -> None:
    options = {"positions": ALiBi(), "window": 1, "softcap": 2.0, "num_key_heads": 1}
    block = TransformerDecoderBlock(WIDTH, FFN, HEADS, 0.0, options=BlockOptions(**options))
    assert type(block.attention2.positions) is PositionScheme
    assert (block.attention2.window, block.attention1.window) == (None, 1)
    assert block.attention2.softcap == 2.0
    assert block.attention2.W_k.out_features == WIDTH // HEADS


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


VIT: dict[str, Any] = {
    "img_size": 12,
    "patch_size": 4,
    "num_hiddens": 16,
    "mlp_num_hiddens": 24,
    "num_heads": 2,
    "num_blks": 2,
    "emb_dropout": 0.0,
    "blk_dropout": 0.0,
}


def test_a_vision_transformer_with_options() -> None:
    plain = ViT(**VIT).eval()
    shaken(plain)
    X = torch.randn(2, 3, 12, 12)
    for options in ({"positions": Rotary()}, {"positions": ALiBi}, {"window": 2}, {"softcap": 0.2}):
        changed = ViT(**VIT, options=BlockOptions(**options)).eval()
        changed.load_state_dict(plain.state_dict(), strict=True)
        assert not torch.allclose(changed(X), plain(X), atol=1e-3)
    grouped = ViT(**VIT, options=BlockOptions(num_key_heads=1))
    with record() as trace:
        grouped(X)
    assert (trace["encoder.1.self"].num_heads, trace["encoder.1.self"].num_keys) == (2, 10)
    alone = torch.eye(10, dtype=torch.bool)[None, None]
    bias = torch.zeros(10, 10).masked_fill(~alone[0, 0], -torch.inf)[None, None]
    torch.testing.assert_close(plain(X, mask=alone), plain(X, bias=bias))
    # No token sees another, so the class token's answer is one for all pictures.
    torch.testing.assert_close(plain(X, mask=alone)[0], plain(X, mask=alone)[1])


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
