"""Recurrent sequence to sequence, with and without attention, by the book's names and state-dict keys."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from viz_core.attention.additive import AdditiveAttention
from viz_core.attention.masking import length_mask, valid_keys
from viz_core.models.encoder_decoder import Decoder, TokenReader
from viz_core.trace import name_site, record_weights, site_of
from viz_core.trace.arguments import check_number, check_whole, described


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


class Encoded(NamedTuple):
    """Outputs of a recurrent encoder."""

    outputs: Float[Tensor, "batch keys d_out"]  # the last layer at every step: keys and values
    hidden_state: Float[Tensor, "layers batch num_hiddens"]  # every layer after the last step: where a decoder starts


class Seq2SeqEncoder(TokenReader):
    """Embedding, then layers of GRU from left to right (Sutskever 2014; Cho 2014).

    If bidirectional, each layer has a second GRU that reads from right to left, and the output at a word is
    [forward; backward], 2 num_hiddens wide: h_j = [h_j forward; h_j backward], so that each word's state knows the
    words on both sides of it (Bahdanau 2015, section 3.2). The state for the decoder is then the backward one, which
    ends at the first word.

    Here and in the decoders, embeddings are multiplied by embed_scale: 1 as in the book, or sqrt(embed_size) if the
    matrix is shared with the output layer and initialised that much smaller.

    Raises:
        ValueError: if a size is not a positive whole number, or dropout not from 0 to 1.
    """

    def __init__(
        self,
        vocab_size: int,
        embed_size: int,
        num_hiddens: int,
        num_layers: int,
        dropout: float = 0.0,
        embed_scale: float = 1.0,
        bidirectional: bool = False,
    ) -> None:
        super().__init__(vocab_size, embed_size, embed_scale)
        check_whole(num_hiddens=num_hiddens, num_layers=num_layers)
        check_number(0, 1, dropout=dropout)
        self.bidirectional = bidirectional
        self.rnn = GRU(embed_size, num_hiddens, num_layers, dropout, bidirectional)
        self.apply(init_seq2seq)

    def forward(self, X: Int[Tensor, "batch keys"], valid_lens: Int[Tensor, " batch"] | None = None) -> Encoded:
        """h_t = GRU(E[x_t], h_(t-1)) for each step (Cho 2014, section 2.3).

        Padding past a row's valid length does not change its final state.
        """
        embedded = self.embed(X)
        if valid_lens is not None:
            length_mask(valid_lens, X.shape[0], 1, X.shape[1])  # checks valid_lens
        outputs, states = self.rnn(embedded, valid_lens=valid_lens)
        # torch has states in turn: forward, backward, forward, ...
        return Encoded(outputs, states[1::2] if self.bidirectional else states)


class PlainState(NamedTuple):
    """State of the decoder without attention: one fixed summary of the source, and its hidden state."""

    context: Float[Tensor, "batch num_hiddens"]
    hidden_state: Float[Tensor, "layers batch num_hiddens"]

    def select(self, rows: Int[Tensor, " rows"]) -> "PlainState":
        """Return the state of these batch rows, in this order, as beam search selects them."""
        return PlainState(self.context[rows], self.hidden_state[:, rows])


class Seq2SeqDecoder(Decoder):
    """GRU decoder whose only input from the source is the encoder's last state c, the same at every step.

    s_t = GRU([E[y_(t-1)]; c], s_(t-1)) (Cho 2014, section 2.2).

    Raises:
        ValueError: if a size is not a positive whole number, or dropout not from 0 to 1.
    """

    def __init__(
        self,
        vocab_size: int,
        embed_size: int,
        num_hiddens: int,
        num_layers: int,
        dropout: float = 0.0,
        embed_scale: float = 1.0,
    ) -> None:
        super().__init__(vocab_size, embed_size, embed_scale)
        check_whole(num_hiddens=num_hiddens, num_layers=num_layers)
        check_number(0, 1, dropout=dropout)
        self.rnn = GRU(embed_size + num_hiddens, num_hiddens, num_layers, dropout)
        self.dense = nn.Linear(num_hiddens, vocab_size)
        self.apply(init_seq2seq)

    def init_state(
        self,
        enc_outputs: Encoded | tuple[Tensor, Tensor],
        enc_valid_lens: Int[Tensor, " batch"] | None = None,  # noqa: ARG002, every decoder takes it
    ) -> PlainState:
        """Return the state before the first step; valid lengths are part of the encoder's last state.

        Raises:
            ValueError: if enc_outputs are not those of an encoder of the same layers and width.
        """
        _, hidden_state = _encoded(enc_outputs, self.rnn.rnn.num_layers, self.rnn.rnn.hidden_size)
        return PlainState(hidden_state[-1], hidden_state)

    def hidden(
        self, X: Int[Tensor, "batch n"], state: PlainState
    ) -> tuple[Float[Tensor, "batch n num_hiddens"], PlainState]:
        """Return the last layer's hidden state after each of these n tokens, and the state after them.

        Raises:
            ValueError: if X are not token ids of the vocabulary, or state is not that of as many batch rows.
        """
        _check_state(state, PlainState, X)
        context = state.context[:, None].expand(-1, X.shape[1], -1)
        outputs, hidden_state = self.rnn(torch.cat([self.embed(X), context], dim=-1), state.hidden_state)
        return outputs, PlainState(state.context, hidden_state)


class AttentionState(NamedTuple):
    """State of the attention decoder: every state of the source, and its hidden state."""

    enc_outputs: Float[Tensor, "batch keys key_size"]
    hidden_state: Float[Tensor, "layers batch num_hiddens"]
    enc_valid_lens: Int[Tensor, " batch"] | None
    projected: Float[Tensor, "batch keys num_hiddens"]  # W_k enc_outputs, the same at every step

    def select(self, rows: Int[Tensor, " rows"]) -> "AttentionState":
        """Return the state of these batch rows, in this order, as beam search selects them."""
        lens = None if self.enc_valid_lens is None else self.enc_valid_lens[rows]
        return AttentionState(self.enc_outputs[rows], self.hidden_state[:, rows], lens, self.projected[rows])


class Seq2SeqAttentionDecoder(Decoder):
    """GRU decoder that attends to all source states before each word (Bahdanau 2015, section 3.1).

    At step t the query is the last layer's state s_(t-1), keys and values are the encoder's states h_j:
    a_t = softmax_j(w_v^T tanh(W_q s_(t-1) + W_k h_j)), c_t = sum_j a_tj h_j, s_t = GRU([c_t; y_(t-1)], s_(t-1)).

    Raises:
        ValueError: if a size is not a positive whole number, or dropout not from 0 to 1.
    """

    def __init__(
        self,
        vocab_size: int,
        embed_size: int,
        num_hiddens: int,
        num_layers: int,
        dropout: float = 0.0,
        embed_scale: float = 1.0,
        key_size: int | None = None,
    ) -> None:
        super().__init__(vocab_size, embed_size, embed_scale)
        check_whole(num_hiddens=num_hiddens, num_layers=num_layers)
        check_number(0, 1, dropout=dropout)
        key_size = num_hiddens if key_size is None else key_size
        self.attention = AdditiveAttention(num_hiddens, key_size, num_hiddens, dropout)
        name_site(self.attention, "decoder.0.cross")  # in no numbered block, so by its name
        self.rnn = make_gru(embed_size + key_size, num_hiddens, num_layers, dropout)
        self.dense = nn.Linear(num_hiddens, vocab_size)
        self.apply(init_seq2seq)

    def init_state(
        self, enc_outputs: Encoded | tuple[Tensor, Tensor], enc_valid_lens: Int[Tensor, " batch"] | None = None
    ) -> AttentionState:
        """Return the state before the first step; the keys are projected here, once for all steps.

        Raises:
            ValueError: if enc_outputs are not those of an encoder of the same layers and width.
        """
        outputs, hidden_state = _encoded(enc_outputs, self.rnn.num_layers, self.rnn.hidden_size)
        return AttentionState(outputs, self.first_state(hidden_state), enc_valid_lens, self.attention.W_k(outputs))

    def first_state(
        self, states: Float[Tensor, "layers batch num_hiddens"]
    ) -> Float[Tensor, "layers batch num_hiddens"]:
        """Return s_0 from the encoder's last states: those states themselves."""
        return states

    def hidden(
        self, X: Int[Tensor, "batch n"], state: AttentionState
    ) -> tuple[Float[Tensor, "batch n num_hiddens"], AttentionState]:
        """Return the last layer's hidden state after each of these n tokens, and the state after them.

        Step by step, as each query is the hidden state of the step before; the weights of the n steps are
        recorded together, as one map.

        Raises:
            ValueError: if X are not token ids of the vocabulary, or state is not that of as many batch rows.
        """
        _check_state(state, AttentionState, X)
        enc_outputs, hidden_state, enc_valid_lens, projected = state
        states, contexts, maps = [], [], []
        embedded = self.embed(X)
        for token in embedded.split(1, dim=1):  # (batch, 1, embed)
            query = hidden_state[-1][:, None]
            weights = self.attention.weigh(query, projected, enc_valid_lens)  # (batch, 1, keys)
            context = self.attention.pool(weights, enc_outputs)
            output, hidden_state = self.rnn(torch.cat([context, token], dim=-1), hidden_state)
            states.append(output)
            contexts.append(context)
            maps.append(weights.detach())
        tokens = valid_keys(enc_valid_lens, enc_outputs.shape[1])
        record_weights(torch.cat(maps, dim=1)[:, None], site_of(self.attention), enc_outputs[:, None], tokens)
        outputs = self.output(torch.cat(states, dim=1), embedded, torch.cat(contexts, dim=1))
        return outputs, AttentionState(enc_outputs, hidden_state, enc_valid_lens, projected)

    def output(
        self,
        states: Float[Tensor, "batch n num_hiddens"],
        embedded: Float[Tensor, "batch n embed"],  # noqa: ARG002, the paper's decoder reads them again
        contexts: Float[Tensor, "batch n key_size"],  # noqa: ARG002
    ) -> Float[Tensor, "batch n num_hiddens"]:
        """Return what `dense` reads: the last layer's states s_t."""
        return states


def _encoded(given: object, num_layers: int, num_hiddens: int) -> tuple[Tensor, Tensor]:
    """Return an encoder's outputs and states, checked for a decoder of these layers."""
    expected = f"expected outputs (batch, keys, d) and states ({num_layers}, batch, {num_hiddens}) of an encoder"
    if not isinstance(given, tuple) or len(given) != 2 or not all(isinstance(part, Tensor) for part in given):
        raise ValueError(f"enc_outputs: {expected}, got {described(given)}")
    outputs, states = given
    if outputs.dim() != 3 or states.shape != (num_layers, outputs.shape[0], num_hiddens):
        raise ValueError(f"enc_outputs: {expected}, got shapes {tuple(outputs.shape)} and {tuple(states.shape)}")
    return outputs, states


def _check_state(state: object, kind: type[PlainState] | type[AttentionState], X: Tensor) -> None:
    if not isinstance(state, kind):
        raise ValueError(f"state: expected that of init_state or of a step before, got {described(state)}")
    rows = state.hidden_state.shape[1]
    if not isinstance(X, Tensor) or X.dim() != 2 or X.shape[0] != rows or not X.shape[1]:
        raise ValueError(f"X: expected token ids of {rows} batch rows and at least one step, got {described(X)}")
