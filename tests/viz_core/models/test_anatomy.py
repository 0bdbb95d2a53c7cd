"""The steps inside a Transformer are those it takes, and its parameters are counted once each."""

import math

import pytest
import torch

from viz_core.models import EncoderDecoder, TransformerDecoder, TransformerEncoder, share_embeddings
from viz_core.models.anatomy import Step, encoder_steps, mean_norms, parameters_by_part, step_names

VOCAB, WIDTH, FFN, HEADS, BLOCKS = 11, 8, 12, 2, 2
SIZES = (VOCAB, WIDTH, FFN, HEADS, BLOCKS, 0.4)


@pytest.mark.parametrize("lengths", [None, [5, 2]])
def test_steps_are_the_way_through_the_encoder(lengths: list[int] | None) -> None:
    encoder = TransformerEncoder(*SIZES).eval()
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
    encoder, decoder = TransformerEncoder(*SIZES, use_bias), TransformerDecoder(*SIZES, use_bias)
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


def test_matrices_that_are_not_shared_count_each() -> None:
    model = EncoderDecoder(TransformerEncoder(*SIZES), TransformerDecoder(*SIZES))
    counts = parameters_by_part(model)
    assert counts["embedding"] == 2 * VOCAB * WIDTH
    assert counts["output"] == VOCAB * WIDTH + VOCAB
