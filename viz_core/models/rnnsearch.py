"""The decoder of RNNsearch, the model of Bahdanau, Cho and Bengio (2015)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from viz_core.attention.projection import check_width
from viz_core.models.seq2seq import AttentionState, Encoded, Seq2SeqAttentionDecoder, init_seq2seq


class RNNSearchDecoder(Seq2SeqAttentionDecoder):
    """The decoder of the paper's RNNsearch (Bahdanau 2015, sections 3.1 and 3.2, appendix A.2).

    Keys and values are the states of a bidirectional encoder, [forward; backward], 2 num_hiddens wide. The rest differs
    from the book's decoder in two places: s_0 = tanh(W_s h_1), with h_1 the encoder's backward state at the first word;
    and the word y_t is chosen from s_t, y_(t-1) and c_t (equation 4), by a layer of maxout as in appendix A.2.2:
    max(z_2k, z_2k+1) for z = W_o [s_t; y_(t-1); c_t].

    Args:
        attend_to_end: whether the last valid position of the source, where a sentence has its end mark, is a key as in
            the paper; without it, each step has to look at words.
    """

    def __init__(
        self,
        vocab_size: int,
        embed_size: int,
        num_hiddens: int,
        num_layers: int,
        dropout: float = 0.0,
        embed_scale: float = 1.0,
        attend_to_end: bool = True,
    ) -> None:
        super().__init__(vocab_size, embed_size, num_hiddens, num_layers, dropout, embed_scale, 2 * num_hiddens)
        self.attend_to_end = attend_to_end
        self.W_s = nn.Linear(num_hiddens, num_hiddens)
        self.W_o = nn.Linear(3 * num_hiddens + embed_size, 2 * embed_size)
        self.dropout = nn.Dropout(dropout)
        self.dense = nn.Linear(embed_size, vocab_size)
        self.apply(init_seq2seq)

    def init_state(
        self, enc_outputs: Encoded | tuple[Tensor, Tensor], enc_valid_lens: Int[Tensor, " batch"] | None = None
    ) -> AttentionState:
        """Return the state before the first step; its valid lengths are one less if the end is not a key.

        Raises:
            ValueError: if enc_outputs are not those of a bidirectional encoder of the same layers and width.
        """
        if isinstance(enc_outputs, tuple) and enc_outputs:
            check_width("enc_outputs", enc_outputs[0], self.attention.W_k)
        state = super().init_state(enc_outputs, enc_valid_lens)
        if self.attend_to_end:
            return state
        batch, keys, _ = state.enc_outputs.shape
        lens = torch.full((batch,), keys, device=state.enc_outputs.device) if enc_valid_lens is None else enc_valid_lens
        return state._replace(enc_valid_lens=torch.where(lens > 1, lens - 1, lens))

    def first_state(
        self, states: Float[Tensor, "layers batch num_hiddens"]
    ) -> Float[Tensor, "layers batch num_hiddens"]:
        """Return tanh(W_s h_1) for each layer, of the encoder's backward states."""
        return torch.tanh(self.W_s(states))

    def output(
        self,
        states: Float[Tensor, "batch n num_hiddens"],
        embedded: Float[Tensor, "batch n embed"],
        contexts: Float[Tensor, "batch n key_size"],
    ) -> Float[Tensor, "batch n embed"]:
        """Return the maxout layer's values: max(z_2k, z_2k+1) for z = W_o [s_t; y_(t-1); c_t]."""
        z = self.W_o(self.dropout(torch.cat([states, embedded, contexts], dim=-1)))
        return self.dropout(z.unflatten(-1, (-1, 2)).amax(dim=-1))
