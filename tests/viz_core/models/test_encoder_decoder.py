"""An encoder and a decoder joined: any pair with the right methods, and nothing added to what they say."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from viz_core.models import EncoderDecoder, TransformerDecoder, TransformerEncoder


class Memory(NamedTuple):
    outputs: Tensor
    valid_lens: Tensor | None


class Doubling(nn.Module):
    """An encoder that says twice what it hears."""

    def forward(self, source: Tensor, valid_lens: Tensor | None) -> Tensor:
        return 2.0 * source[..., None]


class Summing(nn.Module):
    """A decoder whose state at each step is the target token plus the sum of the valid outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(1, 3)

    def init_state(self, outputs: Tensor, valid_lens: Tensor | None) -> Memory:
        return Memory(outputs, valid_lens)

    def hidden(self, target: Tensor, state: Memory) -> tuple[Tensor, Memory]:
        n = state.outputs.shape[1]
        lengths = torch.full((len(target),), n) if state.valid_lens is None else state.valid_lens
        valid = torch.arange(n) < lengths[:, None]
        total = (state.outputs[..., 0] * valid).sum(1, keepdim=True)
        return (target + total)[..., None], state


def test_source_lengths_and_target_reach_their_places() -> None:
    model = EncoderDecoder(Doubling(), Summing())
    source, target = torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([[10, 20], [30, 40]])
    hidden = model.hidden(source, target, torch.tensor([2, 3]))
    assert hidden.tolist() == [[[16.0], [26.0]], [[60.0], [70.0]]]
    assert model.hidden(source, target).tolist() == [[[22.0], [32.0]], [[60.0], [70.0]]]
    dense = model.decoder.dense
    torch.testing.assert_close(model(source, target), model.hidden(source, target) * dense.weight[:, 0] + dense.bias)


def test_one_call_equals_encoding_then_decoding() -> None:
    sizes = (11, 8, 12, 2, 2, 0.0)
    model = EncoderDecoder(TransformerEncoder(*sizes), TransformerDecoder(*sizes)).eval()
    source, target, lengths = torch.randint(0, 11, (2, 4)), torch.randint(0, 11, (2, 3)), torch.tensor([4, 2])
    state = model.decoder.init_state(model.encoder(source, lengths), lengths)
    logits, _ = model.decoder(target, state)
    torch.testing.assert_close(model(source, target, lengths), logits)
    assert {name.split(".")[0] for name in model.state_dict()} == {"encoder", "decoder"}
