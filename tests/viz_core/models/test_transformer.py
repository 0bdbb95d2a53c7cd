"""The Transformer: the equations, the book’s names and sizes, and a decoder step by step."""

import math
from collections.abc import Mapping

import pytest
import torch
from torch import Tensor, nn

from viz_core.models import AddNorm, EncoderDecoder, TransformerDecoder, TransformerEncoder
from viz_core.trace import record

VOCAB, WIDTH, FFN, HEADS, BLOCKS = 19, 12, 20, 3, 2


SIZES = (VOCAB, WIDTH, FFN, HEADS, BLOCKS)


def shaken(module: nn.Module) -> nn.Module:
    """Every parameter random, also the gains and biases that start as ones and zeros."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(std=0.4)
    return module


def random_model(dropout: float = 0.0, use_bias: bool = False) -> EncoderDecoder:
    model = EncoderDecoder(TransformerEncoder(*SIZES, dropout, use_bias), TransformerDecoder(*SIZES, dropout, use_bias))
    shaken(model)
    return model.eval()


def random_ids(batch: int = 2, n: int = 6) -> Tensor:
    return torch.randint(0, VOCAB, (batch, n))


class Parameters(dict[str, Tensor]):
    """A state dict in float64, and which of its names were used."""

    def __init__(self, state: Mapping[str, Tensor]) -> None:
        super().__init__({name: tensor.double() for name, tensor in state.items()})
        self.used: set[str] = set()

    def __getitem__(self, name: str) -> Tensor:
        self.used.add(name)
        return super().__getitem__(name)


class Reference:
    """A Transformer without modules: the paper's equations on a state dict with the names of the book's classes."""

    def __init__(self, state: Mapping[str, Tensor], heads: int = HEADS) -> None:
        self.state = Parameters(state)
        self.heads = heads

    def linear(self, name: str, X: Tensor) -> Tensor:
        Y, bias = X @ self.state[f"{name}.weight"].T, f"{name}.bias"
        return Y + self.state[bias] if bias in self.state else Y

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

    def encode(self, ids: Tensor, allowed: Tensor) -> Tensor:
        H = self.embed("encoder.", ids)
        for i in range(BLOCKS):
            H = self.encoder_block(f"encoder.blks.block{i}.", H, allowed)
        return H

    def logits(self, source: Tensor, target: Tensor, allowed: Tensor) -> Tensor:
        memory, H = self.encode(source, allowed), self.embed("decoder.", target)
        for i in range(BLOCKS):
            H = self.decoder_block(f"decoder.blks.block{i}.", H, memory, allowed)
        return self.linear("decoder.dense", H)


@pytest.mark.parametrize("use_bias", [False, True])
@pytest.mark.parametrize("lengths", [None, [6, 3, 1]])
def test_whole_model_equals_the_equations(use_bias: bool, lengths: list[int] | None) -> None:
    model = random_model(use_bias=use_bias)
    source, target = random_ids(3, 6), random_ids(3, 4)
    valid_lens = None if lengths is None else torch.tensor(lengths)
    reference, allowed = Reference(model.state_dict()), torch.ones(1, 1, 6).double()
    if valid_lens is not None:
        allowed = (torch.arange(6) < valid_lens[:, None, None]).double()
    encoded = model.encoder(source, valid_lens)
    torch.testing.assert_close(encoded.double(), reference.encode(source, allowed), atol=2e-5, rtol=0)
    logits = model(source, target, valid_lens)
    torch.testing.assert_close(logits.double(), reference.logits(source, target, allowed), atol=5e-5, rtol=0)
    assert reference.state.used == set(model.state_dict()), "the book's classes have these names and no others"


def copy_attention(ours: nn.Module, theirs: nn.MultiheadAttention) -> None:
    """Queries, keys, values and output; biases that ours has not are zeros."""
    projections = [ours.get_submodule(name) for name in ("W_q", "W_k", "W_v", "W_o")]
    biases = [torch.zeros(theirs.embed_dim) if p.bias is None else p.bias for p in projections]
    theirs.in_proj_weight.copy_(torch.cat([p.weight for p in projections[:3]]))
    theirs.in_proj_bias.copy_(torch.cat(biases[:3]))
    theirs.out_proj.weight.copy_(projections[3].weight)
    theirs.out_proj.bias.copy_(biases[3])


def copy_rest(ours: nn.Module, theirs: nn.Module, norms: int) -> None:
    """The feed-forward net and the norms."""
    theirs.linear1.load_state_dict(ours.ffn.dense1.state_dict())
    theirs.linear2.load_state_dict(ours.ffn.dense2.state_dict())
    for i in range(1, norms + 1):
        theirs.get_submodule(f"norm{i}").load_state_dict(ours.get_submodule(f"addnorm{i}").ln.state_dict())


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


@pytest.mark.parametrize("with_lengths", [False, True])
def test_select_keeps_and_repeats_rows(with_lengths: bool) -> None:
    model = random_model()
    source, target = random_ids(3, 5), random_ids(3, 4)
    lengths = torch.tensor([5, 2, 4]) if with_lengths else None
    rows = torch.tensor([2, 0, 0])
    state = model.decoder.init_state(model.encoder(source, lengths), lengths)
    _, state = model.decoder(target[:, :3], state)
    logits, _ = model.decoder(target[rows, 3:], state.select(rows))
    picked = None if lengths is None else lengths[rows]
    expected = model(source[rows], target[rows], picked)[:, 3:]
    torch.testing.assert_close(logits, expected, atol=2e-5, rtol=0)


def test_add_norm_drops_the_branch_and_not_the_residual() -> None:
    layer, X = AddNorm(4, 0.5), torch.randn(100, 4)
    torch.testing.assert_close(layer(X, torch.zeros(100, 4)), nn.functional.layer_norm(X, (4,)))
    assert not torch.equal(layer(X, X), layer(X, X))
