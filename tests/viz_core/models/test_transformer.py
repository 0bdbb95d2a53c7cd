"""The Transformer against torch's own layers and against plain algebra, from the same parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
import torch
from torch import Tensor, nn

from viz_core.anatomy import batch_norm, layer_norm
from viz_core.models import (
    AddNorm,
    EncoderDecoder,
    PositionWiseFFN,
    TransformerDecoder,
    TransformerDecoderBlock,
    TransformerEncoder,
    TransformerEncoderBlock,
    share_embeddings,
)
from viz_core.models.transformer import DecoderState
from viz_core.trace import record

VOCAB, WIDTH, FFN, HEADS, BLOCKS = 19, 12, 20, 3, 2
SIZES = (VOCAB, WIDTH, FFN, HEADS, BLOCKS)

ATTENTION = ("W_q.weight", "W_k.weight", "W_v.weight", "W_o.weight")
ATTENTION_BIASES = ("W_q.bias", "W_k.bias", "W_v.bias", "W_o.bias")
NORM = ("ln.weight", "ln.bias")
FEED_FORWARD = ("dense1.weight", "dense1.bias", "dense2.weight", "dense2.bias")


def shaken(module: nn.Module) -> nn.Module:
    """Every parameter random, also the gains and biases that start as ones and zeros."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(std=0.4)
    return module


# Reference: equations on a dictionary of parameters, in float64


class Reference:
    """A Transformer without modules: the paper's equations on a state dict with the book's names."""

    def __init__(self, state: Mapping[str, Tensor], heads: int = HEADS) -> None:
        self.state = {name: tensor.double() for name, tensor in state.items()}
        self.heads = heads

    def linear(self, name: str, X: Tensor) -> Tensor:
        return X @ self.state[f"{name}.weight"].T + self.state.get(f"{name}.bias", torch.zeros(1))

    def norm(self, name: str, X: Tensor) -> Tensor:
        centred = X - X.mean(-1, keepdim=True)
        scaled = centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
        return scaled * self.state[f"{name}.ln.weight"] + self.state[f"{name}.ln.bias"]

    def attention(self, name: str, Q: Tensor, M: Tensor, allowed: Tensor) -> Tensor:
        q, k, v = self.linear(f"{name}.W_q", Q), self.linear(f"{name}.W_k", M), self.linear(f"{name}.W_v", M)
        d = q.shape[-1] // self.heads
        outputs = []
        for columns in torch.arange(q.shape[-1]).split(d):
            powers = torch.exp(q[..., columns] @ k[..., columns].mT / math.sqrt(d)) * allowed
            outputs.append(powers / powers.sum(-1, keepdim=True) @ v[..., columns])
        return self.linear(f"{name}.W_o", torch.cat(outputs, -1))

    def ffn(self, name: str, X: Tensor) -> Tensor:
        return self.linear(f"{name}.dense2", self.linear(f"{name}.dense1", X).clamp_min(0))

    def encoder_block(self, name: str, X: Tensor, allowed: Tensor) -> Tensor:
        Y = self.norm(f"{name}addnorm1", X + self.attention(f"{name}attention", X, X, allowed))
        return self.norm(f"{name}addnorm2", Y + self.ffn(f"{name}ffn", Y))

    def decoder_block(self, name: str, X: Tensor, M: Tensor, allowed: Tensor) -> Tensor:
        past = torch.ones(X.shape[1], X.shape[1]).tril()
        Y = self.norm(f"{name}addnorm1", X + self.attention(f"{name}attention1", X, X, past))
        Z = self.norm(f"{name}addnorm2", Y + self.attention(f"{name}attention2", Y, M, allowed))
        return self.norm(f"{name}addnorm3", Z + self.ffn(f"{name}ffn", Z))

    def embed(self, name: str, ids: Tensor) -> Tensor:
        E = self.state[f"{name}embedding.weight"]
        d = E.shape[1]
        H = E[ids] * math.sqrt(d)
        for i in range(ids.shape[1]):
            for c in range(d):
                phase = i / 10000 ** ((c - c % 2) / d)
                H[:, i, c] += math.cos(phase) if c % 2 else math.sin(phase)
        return H

    def encode(self, ids: Tensor, allowed: Tensor, blocks: int = BLOCKS) -> Tensor:
        H = self.embed("encoder.", ids)
        for i in range(blocks):
            H = self.encoder_block(f"encoder.blks.block{i}.", H, allowed)
        return H

    def logits(self, source: Tensor, target: Tensor, allowed: Tensor, blocks: int = BLOCKS) -> Tensor:
        memory, H = self.encode(source, allowed, blocks), self.embed("decoder.", target)
        for i in range(blocks):
            H = self.decoder_block(f"decoder.blks.block{i}.", H, memory, allowed)
        return self.linear("decoder.dense", H)


def allowed_keys(valid_lens: Tensor | None, n: int) -> Tensor:
    return torch.ones(1, 1, n) if valid_lens is None else (torch.arange(n) < valid_lens[:, None, None]).double()


def random_model(dropout: float = 0.0, use_bias: bool = False) -> EncoderDecoder:
    model = EncoderDecoder(TransformerEncoder(*SIZES, dropout, use_bias), TransformerDecoder(*SIZES, dropout, use_bias))
    shaken(model)
    return model.eval()


def random_ids(batch: int = 2, n: int = 6) -> Tensor:
    return torch.randint(0, VOCAB, (batch, n))


# Parts


def test_layer_norm_against_batch_norm() -> None:
    """The book's example: features of an example against examples of a feature."""
    X = torch.tensor([[1.0, 2.0], [2.0, 3.0]])
    torch.testing.assert_close(layer_norm(X), torch.tensor([[-1.0, 1], [-1, 1]]), atol=1e-4, rtol=0)
    torch.testing.assert_close(batch_norm(X), torch.tensor([[-1.0, -1], [1, 1]]), atol=1e-4, rtol=0)
    torch.testing.assert_close(AddNorm(2, 0.0)(X, torch.zeros(2, 2)), layer_norm(X))
    torch.testing.assert_close(batch_norm(X), nn.BatchNorm1d(2)(X))


def test_add_norm_by_hand() -> None:
    layer = AddNorm(4, 0.5)
    shaken(layer)
    layer.eval()
    X, Y = torch.randn(2, 3, 4), torch.randn(2, 3, 4)
    S = X + Y
    mean, std = S.mean(-1, keepdim=True), (S.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
    torch.testing.assert_close(layer(X, Y), (S - mean) / std * layer.ln.weight + layer.ln.bias)


def test_add_norm_drops_the_branch_and_not_the_residual() -> None:
    layer, X = AddNorm(4, 0.5), torch.randn(100, 4)
    torch.testing.assert_close(layer(X, torch.zeros(100, 4)), layer_norm(X))
    assert not torch.equal(layer(X, X), layer(X, X))


def test_add_norm_takes_the_books_list_of_sizes() -> None:
    X = torch.randn(2, 3, 4)
    layer = AddNorm([3, 4], 0.5).eval()
    torch.testing.assert_close(layer(X, X), nn.functional.layer_norm(2 * X, (3, 4)))


@pytest.mark.usefixtures("shapes_unchecked")
def test_add_norm_refuses_two_shapes() -> None:
    with pytest.raises(ValueError, match=r"expected X and Y of one shape, got \(2, 4\) and \(1, 4\)"):
        AddNorm(4, 0.0)(torch.zeros(2, 4), torch.zeros(1, 4))


def test_feed_forward_by_hand() -> None:
    ffn = PositionWiseFFN(2, 1, 2)
    ffn.load_state_dict(
        {
            "dense1.weight": torch.tensor([[1.0, 2.0], [-1.0, 0.5]]),
            "dense1.bias": torch.tensor([0.5, -1.0]),
            "dense2.weight": torch.tensor([[2.0, -3.0]]),
            "dense2.bias": torch.tensor([0.25]),
        }
    )
    # relu(1 - 2 + 0.5, -1 - 0.5 - 1) = (0, 0); relu(-4 + 2 + 0.5, 4 + 0.5 - 1) = (0, 3.5); relu(3.5, 0) = (3.5, 0)
    X = torch.tensor([[[1.0, -1.0], [-4.0, 1.0], [1.0, 1.0]]])
    torch.testing.assert_close(ffn(X), torch.tensor([[[0.25], [-10.25], [7.25]]]))


def test_feed_forward_is_the_same_at_every_position() -> None:
    """The book's example: 4 inputs, 8 outputs; equal inputs give equal outputs."""
    output = PositionWiseFFN(4, 8, 4)(torch.ones(2, 3, 4))
    assert output.shape == (2, 3, 8)
    torch.testing.assert_close(output, output[:1, :1].expand(2, 3, 8))
    assert PositionWiseFFN(5, 7).dense1.in_features == 7


# Blocks


@pytest.mark.parametrize("use_bias", [False, True])
def test_encoder_block_equals_torchs_layer(use_bias: bool) -> None:
    block = TransformerEncoderBlock(WIDTH, FFN, HEADS, 0.1, use_bias)
    shaken(block)
    block.eval()
    theirs = nn.TransformerEncoderLayer(WIDTH, HEADS, FFN, dropout=0.0, batch_first=True)
    with torch.no_grad():
        copy_attention(block.attention, theirs.self_attn)
    copy_rest(block, theirs, norms=2)
    X, lengths = torch.randn(3, 5, WIDTH), torch.tensor([5, 2, 4])
    padding = torch.arange(5) >= lengths[:, None]
    torch.testing.assert_close(block(X, lengths), theirs(X, src_key_padding_mask=padding), atol=2e-5, rtol=0)
    torch.testing.assert_close(block(X), theirs(X), atol=2e-5, rtol=0)


@pytest.mark.parametrize("use_bias", [False, True])
def test_decoder_block_equals_torchs_layer(use_bias: bool) -> None:
    block = TransformerDecoderBlock(WIDTH, FFN, HEADS, 0.1, use_bias=use_bias)
    shaken(block)
    block.eval()
    theirs = nn.TransformerDecoderLayer(WIDTH, HEADS, FFN, dropout=0.0, batch_first=True)
    with torch.no_grad():
        copy_attention(block.attention1, theirs.self_attn)
        copy_attention(block.attention2, theirs.multihead_attn)
    copy_rest(block, theirs, norms=3)
    X, memory, lengths = torch.randn(2, 4, WIDTH), torch.randn(2, 6, WIDTH), torch.tensor([3, 6])
    future = torch.ones(4, 4, dtype=torch.bool).triu(1)
    expected = theirs(X, memory, tgt_mask=future, memory_key_padding_mask=torch.arange(6) >= lengths[:, None])
    output, _ = block(X, DecoderState(memory, lengths, (None,)))
    torch.testing.assert_close(output, expected, atol=2e-5, rtol=0)


def copy_attention(ours: nn.Module, theirs: nn.MultiheadAttention) -> None:
    projections = [ours.get_submodule(name) for name in ("W_q", "W_k", "W_v")]
    theirs.in_proj_weight.copy_(torch.cat([p.weight for p in projections]))
    theirs.in_proj_bias.copy_(torch.cat([torch.zeros(WIDTH) if p.bias is None else p.bias for p in projections]))
    theirs.out_proj.weight.copy_(ours.W_o.weight)
    theirs.out_proj.bias.copy_(torch.zeros(WIDTH) if ours.W_o.bias is None else ours.W_o.bias)


def copy_rest(ours: nn.Module, theirs: nn.Module, norms: int) -> None:
    theirs.linear1.load_state_dict(ours.ffn.dense1.state_dict())
    theirs.linear2.load_state_dict(ours.ffn.dense2.state_dict())
    for i in range(1, norms + 1):
        theirs.get_submodule(f"norm{i}").load_state_dict(ours.get_submodule(f"addnorm{i}").ln.state_dict())


def test_published_shapes() -> None:
    X, lengths = torch.ones(2, 100, 24), torch.tensor([3, 2])
    assert TransformerEncoderBlock(24, 48, 8, 0.5).eval()(X, lengths).shape == (2, 100, 24)
    encoder = TransformerEncoder(200, 24, 48, 8, 2, 0.5)
    assert encoder(torch.ones(2, 100, dtype=torch.long), lengths).shape == (2, 100, 24)
    block = TransformerDecoderBlock(24, 48, 8, 0.5, 0)
    assert block(X, DecoderState(X, lengths, (None,)))[0].shape == (2, 100, 24)


# Encoder, decoder and both together


@pytest.mark.parametrize("use_bias", [False, True])
@pytest.mark.parametrize("lengths", [None, [6, 3, 1]])
def test_whole_model_equals_the_equations(use_bias: bool, lengths: list[int] | None) -> None:
    model = random_model(use_bias=use_bias)
    source, target = random_ids(3, 6), random_ids(3, 4)
    valid_lens = None if lengths is None else torch.tensor(lengths)
    reference, allowed = Reference(model.state_dict()), allowed_keys(valid_lens, 6)
    encoded = model.encoder(source, valid_lens)
    torch.testing.assert_close(encoded.double(), reference.encode(source, allowed), atol=2e-5, rtol=0)
    logits = model(source, target, valid_lens)
    torch.testing.assert_close(logits.double(), reference.logits(source, target, allowed), atol=5e-5, rtol=0)


def test_without_blocks_only_embedding_and_position_remain() -> None:
    encoder = TransformerEncoder(VOCAB, WIDTH, FFN, HEADS, 0, 0.5).eval()
    ids = random_ids(1, 4)
    expected = Reference({f"encoder.{k}": v for k, v in encoder.state_dict().items()}).embed("encoder.", ids)
    torch.testing.assert_close(encoder(ids).double(), expected, atol=1e-5, rtol=0)


def test_keys_past_the_valid_length_do_not_matter() -> None:
    model, target = random_model(), random_ids(2, 4)
    source, lengths = random_ids(2, 6), torch.tensor([4, 2])
    changed = torch.where(torch.arange(6) < lengths[:, None], source, (source + 5) % VOCAB)
    torch.testing.assert_close(model(source, target, lengths), model(changed, target, lengths), atol=1e-6, rtol=0)
    assert not torch.allclose(model(source, target), model(changed, target), atol=1e-3)


def test_order_of_words_matters() -> None:
    encoder, ids = random_model().encoder, random_ids(1, 5)
    assert not torch.allclose(encoder(ids).flip(1), encoder(ids.flip(1)), atol=1e-2)


def test_encoder_accepts_a_length_for_each_query() -> None:
    block = TransformerEncoderBlock(WIDTH, FFN, HEADS, 0.0).eval()
    X = torch.randn(1, 4, WIDTH)
    changed = X.clone()
    changed[:, 3] += 1
    steps = torch.arange(1, 5)[None]
    torch.testing.assert_close(block(X, steps)[:, :3], block(changed, steps)[:, :3])


def test_longer_than_the_table_of_positions_is_refused() -> None:
    encoder = TransformerEncoder(*SIZES, 0.0)
    with pytest.raises(ValueError, match="at most max_len=1000 positions, got 1001"):
        encoder(torch.zeros(1, 1001, dtype=torch.long))


# State dicts by the book's names


def block_keys(prefix: str, attentions: tuple[str, ...], norms: int, use_bias: bool) -> set[str]:
    attention = ATTENTION + (ATTENTION_BIASES if use_bias else ())
    keys = {f"{prefix}.{name}.{key}" for name in attentions for key in attention}
    keys |= {f"{prefix}.addnorm{i}.{key}" for i in range(1, norms + 1) for key in NORM}
    return keys | {f"{prefix}.ffn.{key}" for key in FEED_FORWARD}


@pytest.mark.parametrize("use_bias", [False, True])
def test_parameter_names_are_the_books(use_bias: bool) -> None:
    encoder = {"embedding.weight"}
    decoder = {"embedding.weight", "dense.weight", "dense.bias"}
    for i in range(BLOCKS):
        encoder |= block_keys(f"blks.block{i}", ("attention",), 2, use_bias)
        decoder |= block_keys(f"blks.block{i}", ("attention1", "attention2"), 3, use_bias)
    assert TransformerEncoder(*SIZES, 0.0, use_bias).state_dict().keys() == encoder
    assert TransformerDecoder(*SIZES, 0.0, use_bias).state_dict().keys() == decoder


def test_a_state_dict_saved_from_the_books_classes_loads() -> None:
    """Every name and shape of the book's encoder and decoder with one block, written out."""
    d, f = WIDTH, FFN
    attention = [(name, (d, d)) for name in ("W_q.weight", "W_k.weight", "W_v.weight", "W_o.weight")]
    shapes: dict[str, tuple[int, ...]] = {
        "encoder.embedding.weight": (VOCAB, d),
        **{f"encoder.blks.block0.attention.{name}": shape for name, shape in attention},
        "encoder.blks.block0.addnorm1.ln.weight": (d,),
        "encoder.blks.block0.addnorm1.ln.bias": (d,),
        "encoder.blks.block0.ffn.dense1.weight": (f, d),
        "encoder.blks.block0.ffn.dense1.bias": (f,),
        "encoder.blks.block0.ffn.dense2.weight": (d, f),
        "encoder.blks.block0.ffn.dense2.bias": (d,),
        "encoder.blks.block0.addnorm2.ln.weight": (d,),
        "encoder.blks.block0.addnorm2.ln.bias": (d,),
        "decoder.embedding.weight": (VOCAB, d),
        **{f"decoder.blks.block0.attention1.{name}": shape for name, shape in attention},
        "decoder.blks.block0.addnorm1.ln.weight": (d,),
        "decoder.blks.block0.addnorm1.ln.bias": (d,),
        **{f"decoder.blks.block0.attention2.{name}": shape for name, shape in attention},
        "decoder.blks.block0.addnorm2.ln.weight": (d,),
        "decoder.blks.block0.addnorm2.ln.bias": (d,),
        "decoder.blks.block0.ffn.dense1.weight": (f, d),
        "decoder.blks.block0.ffn.dense1.bias": (f,),
        "decoder.blks.block0.ffn.dense2.weight": (d, f),
        "decoder.blks.block0.ffn.dense2.bias": (d,),
        "decoder.blks.block0.addnorm3.ln.weight": (d,),
        "decoder.blks.block0.addnorm3.ln.bias": (d,),
        "decoder.dense.weight": (VOCAB, d),
        "decoder.dense.bias": (VOCAB,),
    }
    saved = {name: 0.4 * torch.randn(shape) for name, shape in shapes.items()}
    sizes = (VOCAB, d, f, HEADS, 1, 0.0)
    model = EncoderDecoder(TransformerEncoder(*sizes), TransformerDecoder(*sizes)).eval()
    model.load_state_dict(saved, strict=True)
    source, target, lengths = random_ids(2, 5), random_ids(2, 3), torch.tensor([5, 2])
    expected = Reference(saved).logits(source, target, allowed_keys(lengths, 5), blocks=1)
    torch.testing.assert_close(model(source, target, lengths).double(), expected, atol=5e-5, rtol=0)


def test_one_matrix_for_all_embeddings() -> None:
    encoder, decoder = TransformerEncoder(500, 64, 8, 2, 1, 0.0), TransformerDecoder(500, 64, 8, 2, 1, 0.0)
    model = share_embeddings(EncoderDecoder(encoder, decoder))
    assert encoder.embedding.weight is decoder.embedding.weight is decoder.dense.weight
    assert encoder.embedding.weight.std().item() == pytest.approx(64**-0.5, rel=0.02)
    names = [name for name, _ in model.named_parameters()]
    assert "encoder.embedding.weight" in names
    assert "decoder.embedding.weight" not in names
    assert "decoder.dense.weight" not in names
    assert "decoder.dense.bias" in names


# Causality and the cache


@pytest.mark.parametrize("training", [False, True])
def test_no_step_sees_a_later_one(training: bool) -> None:
    model = random_model().train(training)  # without dropout, training and evaluation must agree
    source, target, lengths = random_ids(2, 5), random_ids(2, 6), torch.tensor([5, 3])
    before = model(source, target, lengths)
    for step in range(6):
        changed = target.clone()
        changed[:, step] = (changed[:, step] + 1) % VOCAB
        after = model(source, changed, lengths)
        torch.testing.assert_close(after[:, :step], before[:, :step], atol=0, rtol=0)
        assert (after[:, step] - before[:, step]).abs().amax(-1).min() > 1e-4
    with record() as trace:
        model(source, target, lengths)
    for i in range(BLOCKS):
        assert trace[f"decoder.{i}.self"].weights().triu(1).abs().max() == 0


@pytest.mark.parametrize("chunks", [[1] * 7, [3, 4], [2, 1, 4], [6, 1], [1, 6]])
def test_cached_steps_equal_one_pass(chunks: list[int]) -> None:
    model = random_model()
    source, target, lengths = random_ids(2, 5), random_ids(2, 7), torch.tensor([5, 2])
    expected = model(source, target, lengths)
    state = model.decoder.init_state(model.encoder(source, lengths), lengths)
    parts, taken = [], 0
    for chunk in target.split(chunks, dim=1):
        assert state.num_steps == taken
        logits, state = model.decoder(chunk, state)
        parts.append(logits)
        taken += chunk.shape[1]
    assert state.num_steps == 7
    torch.testing.assert_close(torch.cat(parts, dim=1), expected, atol=2e-5, rtol=0)


def test_cached_steps_record_the_rows_of_the_whole_map() -> None:
    model = random_model()
    source, target = random_ids(1, 5), random_ids(1, 4)
    with record() as whole:
        model(source, target)
    state = model.decoder.init_state(model.encoder(source))
    with record() as steps:
        for i in range(4):
            _, state = model.decoder(target[:, i : i + 1], state)
    for kind in ("self", "cross"):
        full = whole[f"decoder.1.{kind}"].weights()
        for i in range(4):
            row = steps[f"decoder.1.{kind}" + (f"@{i + 1}" if i else "")].weights()
            torch.testing.assert_close(row, full[:, :, i : i + 1, : row.shape[-1]], atol=1e-5, rtol=0)


def test_positions_go_on_where_the_cache_ends() -> None:
    """A decoder whose blocks are silent shows its embedding and position alone."""
    decoder = TransformerDecoder(VOCAB, WIDTH, FFN, HEADS, 1, 0.0).eval()
    state = decoder.init_state(torch.randn(1, 3, WIDTH))
    token = torch.tensor([[4]])
    _, state = decoder(torch.tensor([[1, 2, 3]]), state)
    seen: list[Tensor] = []
    decoder.blks.block0.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    decoder(token, state)
    expected = decoder.embedding.weight[4] * math.sqrt(WIDTH) + decoder.pos_encoding.P[0, 3]
    torch.testing.assert_close(seen[0][0, 0], expected)


def test_a_state_is_not_changed_by_the_steps_taken_from_it() -> None:
    model = random_model()
    state = model.decoder.init_state(model.encoder(random_ids(2, 5)))
    _, first = model.decoder(random_ids(2, 2), state)
    kept = [t.clone() for cache in first.caches for pair in cache for t in pair]
    one, _ = model.decoder(torch.zeros(2, 1, dtype=torch.long), first)
    model.decoder(torch.ones(2, 3, dtype=torch.long), first)
    again, _ = model.decoder(torch.zeros(2, 1, dtype=torch.long), first)
    assert state.caches == (None, None)
    assert torch.equal(one, again)
    assert all(torch.equal(a, b) for a, b in zip(kept, [t for c in first.caches for p in c for t in p], strict=True))


@pytest.mark.parametrize("with_lengths", [False, True])
def test_select_keeps_and_repeats_rows(with_lengths: bool) -> None:
    model = random_model()
    source, target = random_ids(3, 5), random_ids(3, 4)
    lengths = torch.tensor([5, 2, 4]) if with_lengths else None
    rows = torch.tensor([2, 0, 0])
    state = model.decoder.init_state(model.encoder(source, lengths), lengths)
    fresh = state.select(rows)
    assert fresh.caches == (None, None)
    _, state = model.decoder(target[:, :3], state)
    logits, _ = model.decoder(target[rows, 3:], state.select(rows))
    picked = None if lengths is None else lengths[rows]
    expected = model(source[rows], target[rows], picked)[:, 3:]
    torch.testing.assert_close(logits, expected, atol=2e-5, rtol=0)
    from_fresh, _ = model.decoder(target[rows], fresh)
    torch.testing.assert_close(from_fresh[:, 3:], expected, atol=2e-5, rtol=0)


def test_a_decoder_without_blocks_has_no_steps() -> None:
    decoder = TransformerDecoder(VOCAB, WIDTH, FFN, HEADS, 0, 0.0)
    state = decoder.init_state(torch.zeros(1, 2, WIDTH))
    assert state.num_steps == 0


def test_more_steps_than_positions_are_refused() -> None:
    decoder = TransformerDecoder(VOCAB, 4, 4, 1, 1, 0.0).eval()
    state = decoder.init_state(torch.zeros(1, 2, 4))
    with torch.no_grad():
        _, state = decoder(torch.zeros(1, 999, dtype=torch.long), state)
        _, state = decoder(torch.zeros(1, 1, dtype=torch.long), state)
        with pytest.raises(ValueError, match="at most max_len=1000 positions, got 1001"):
            decoder(torch.zeros(1, 1, dtype=torch.long), state)


def test_hidden_states_come_before_the_output_layer() -> None:
    model = random_model()
    source, target, lengths = random_ids(2, 5), random_ids(2, 3), torch.tensor([5, 2])
    hidden = model.hidden(source, target, lengths)
    dense = model.decoder.dense
    torch.testing.assert_close(hidden @ dense.weight.T + dense.bias, model(source, target, lengths))
    states, state = model.decoder.hidden(target, model.decoder.init_state(model.encoder(source, lengths), lengths))
    assert torch.equal(states, hidden)
    assert state.num_steps == 3


def test_dropout_acts_in_training_only() -> None:
    model = random_model(dropout=0.3)
    source, target = random_ids(2, 5), random_ids(2, 3)
    assert torch.equal(model(source, target), model(source, target))
    model.train()
    assert not torch.equal(model(source, target), model(source, target))
