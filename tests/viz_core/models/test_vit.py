"""The ViT written out with the names of the book's classes, and the steps and parameters of a Transformer."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from viz_core.models import EncoderDecoder, TransformerDecoder, TransformerEncoder, share_embeddings
from viz_core.models.anatomy import Step, encoder_steps, mean_norms, parameters_by_part, step_names
from viz_core.models.vit import ViT, interpolate_positions

SIZES = {
    "img_size": 12,
    "patch_size": 4,
    "num_hiddens": 16,
    "mlp_num_hiddens": 24,
    "num_heads": 2,
    "num_blks": 2,
    "emb_dropout": 0.1,
    "blk_dropout": 0.1,
}


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
    ours = ViT(**SIZES, use_bias=use_bias, num_channels=channels).eval()  # type: ignore[arg-type]
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))  # no zeros and ones that would hide a mix-up
    X = torch.randn(3, channels, 12, 12)
    torch.testing.assert_close(ours(X), by_formula(ours.state_dict(), X), atol=2e-6, rtol=1e-5)


# Positions


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


def test_another_size_is_answered_and_its_gradient_reaches_every_position() -> None:
    model = ViT(**SIZES)  # type: ignore[arg-type]
    for size in ((8, 8), (16, 12), (4, 20)):
        model.zero_grad()
        out = model(torch.randn(2, 3, *size))
        assert out.shape == (2, 10)
        out.square().sum().backward()
        assert model.pos_embedding.grad is not None
        assert (model.pos_embedding.grad.abs().sum(dim=-1) > 0).sum() > 1
    with pytest.raises(ValueError, match="expected 1 \\+ 3 x 3 positions, got 9"):
        interpolate_positions(torch.zeros(1, 9, 2), (3, 3), (2, 2))


VOCAB, WIDTH, FFN, HEADS, BLOCKS = 11, 8, 12, 2, 2
STACK_SIZES = (VOCAB, WIDTH, FFN, HEADS, BLOCKS, 0.4)


@pytest.mark.parametrize("lengths", [None, [5, 2]])
def test_steps_are_the_way_through_the_encoder(lengths: list[int] | None) -> None:
    encoder = TransformerEncoder(*STACK_SIZES).eval()
    ids = torch.randint(0, VOCAB, (2, 5))
    valid_lens = None if lengths is None else torch.tensor(lengths)
    seen: dict[str, torch.Tensor] = {}
    for i, block in enumerate(encoder.blocks):
        for part in ("attention", "addnorm1", "ffn", "addnorm2"):
            module = block.get_submodule(part)
            module.register_forward_hook(lambda _, __, output, key=f"{part}{i}": seen.update({key: output}))
    steps = encoder_steps(encoder, ids, valid_lens)
    in_steps = dict(seen)
    output = encoder(ids, valid_lens)

    parts = ["attention", "addnorm1", "ffn", "addnorm2"]
    names = [("embedding", None), ("scaled", None), ("positioned", None), *((p, i) for i in range(2) for p in parts)]
    assert [(step.name, step.block) for step in steps] == list(step_names(encoder)) == names
    embedded, scaled, positioned = (step.output for step in steps[:3])
    assert torch.equal(embedded, encoder.embedding.weight[ids])
    torch.testing.assert_close(scaled, embedded * math.sqrt(WIDTH))
    torch.testing.assert_close(positioned, scaled + encoder.pos_encoding.P[:, :5])
    for step in steps[3:]:
        key = f"{step.name}{step.block}"
        assert torch.equal(step.output, in_steps[key])
        torch.testing.assert_close(step.output, seen[key])  # what the encoder computes when it runs by itself
    torch.testing.assert_close(steps[-1].output, output)


def test_mean_norms_by_hand() -> None:
    steps = (
        Step("embedding", None, torch.tensor([[[3.0, 4.0], [0.0, 1.0]]])),
        Step("ffn", 0, torch.tensor([[[6.0, 8.0], [0.0, 0.0]]])),
    )
    assert mean_norms(steps) == pytest.approx([3.0, 5.0])


@pytest.mark.parametrize("use_bias", [False, True])
def test_parameters_by_formula(use_bias: bool) -> None:
    encoder, decoder = TransformerEncoder(*STACK_SIZES, use_bias), TransformerDecoder(*STACK_SIZES, use_bias)
    model = share_embeddings(EncoderDecoder(encoder, decoder))
    attention = BLOCKS * 4 * (WIDTH * WIDTH + use_bias * WIDTH)
    ffn = BLOCKS * (WIDTH * FFN + FFN + FFN * WIDTH + WIDTH)
    counts = parameters_by_part(model)
    assert counts == {
        "embedding": VOCAB * WIDTH,
        "encoder.attention": attention,
        "encoder.ffn": ffn,
        "decoder.self": attention,
        "decoder.cross": attention,
        "decoder.ffn": ffn,
        "norms": BLOCKS * (2 + 3) * 2 * WIDTH,
        "output": VOCAB,
    }
    assert sum(counts.values()) == sum(p.numel() for p in model.parameters())
