"""Gated recurrent units over the valid steps of each row."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def init_seq2seq(module: nn.Module) -> None:
    """Weights of linear and recurrent layers from U(-a, a), a = sqrt(6 / (n_in + n_out)), as in the book.

    (Glorot and Bengio 2010, equation 16.)
    """
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
    if isinstance(module, nn.GRU):
        for name, parameter in module.named_parameters():
            if "weight" in name:
                nn.init.xavier_uniform_(parameter)


class GRU(nn.Module):
    """Gated recurrent units in layers (Cho 2014, section 2.3), over the valid steps of each row only.

    r = sigmoid(W_r x + U_r h), z = sigmoid(W_z x + U_z h), n = tanh(W x + r * (U h)), h' = (1 - z) * n + z * h,
    with biases, in the form that torch and its kernels have.
    """

    def __init__(
        self, num_inputs: int, num_hiddens: int, num_layers: int, dropout: float = 0.0, bidirectional: bool = False
    ) -> None:
        super().__init__()
        self.rnn = make_gru(num_inputs, num_hiddens, num_layers, dropout, bidirectional)

    def forward(
        self,
        inputs: Float[Tensor, "batch n d_in"],
        hidden_state: Float[Tensor, "states batch num_hiddens"] | None = None,
        valid_lens: Int[Tensor, " batch"] | None = None,
    ) -> tuple[Float[Tensor, "batch n d_out"], Float[Tensor, "states batch num_hiddens"]]:
        """States of the last layer at every step, and of every layer after each row's last valid step.

        Read in both directions, outputs are [forward; backward], and the states of each layer are its forward state
        after the last valid step and its backward state after the first (Bahdanau 2015, section 3.2). A row with a
        valid length of 0 has outputs of 0 and the state it began with.
        """
        if valid_lens is None:
            return self.rnn(inputs, hidden_state)
        packed = pack_padded_sequence(
            inputs, valid_lens.flatten().cpu().clamp(min=1), batch_first=True, enforce_sorted=False
        )
        outputs, last = self.rnn(packed, hidden_state)
        outputs = pad_packed_sequence(outputs, batch_first=True, total_length=inputs.shape[1])[0]
        empty = (valid_lens == 0)[:, None].to(inputs.device)  # torch packs no empty row: of it, nothing was read
        first = torch.zeros_like(last) if hidden_state is None else hidden_state
        return outputs.masked_fill(empty[..., None], 0.0), torch.where(empty, first, last)


def make_gru(num_inputs: int, num_hiddens: int, num_layers: int, dropout: float, bidirectional: bool = False) -> nn.GRU:
    """Return a GRU with dropout between layers; a single layer has none, and torch would warn."""
    sizes = int(num_inputs), int(num_hiddens), int(num_layers)  # torch takes no numbers of numpy here
    rate = dropout if num_layers > 1 else 0.0
    return nn.GRU(*sizes, dropout=rate, batch_first=True, bidirectional=bidirectional)
