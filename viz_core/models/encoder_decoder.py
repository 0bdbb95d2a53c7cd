"""Base classes of encoders and decoders, and the encoder-decoder made of both."""

from functools import partial
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor, nn

from viz_core.attention.projection import check_tokens
from viz_core.trace.arguments import check_number, check_whole
from viz_core.trace.states import after_model


class TokenReader(nn.Module):
    """A module that starts with an embedding of token ids, multiplied by embed_scale (Vaswani 2017, section 3.4).

    Raises:
        ValueError: if a size is not a positive whole number, or embed_scale not a number.
    """

    def __init__(self, vocab_size: int, embed_size: int, embed_scale: float) -> None:
        super().__init__()
        check_whole(vocab_size=vocab_size, embed_size=embed_size)
        check_number(embed_scale=embed_scale)
        self.embed_scale = embed_scale
        self.embedding = nn.Embedding(vocab_size, embed_size)

    def embed(self, X: Int[Tensor, "batch n"]) -> Float[Tensor, "batch n d"]:
        """embed_scale E[x]: the embedding of each token, scaled."""
        check_tokens(X, self.embedding)
        return self.embedding(X) * self.embed_scale


class Decoder(TokenReader):
    """A module that ends with `dense`, a linear layer to the vocabulary; subclasses define `hidden`."""

    dense: nn.Linear

    def hidden(self, X: Int[Tensor, "batch n"], state: Any) -> tuple[Float[Tensor, "batch n num_hiddens"], Any]:
        """Return the hidden states of these n tokens, inputs of `dense`, and the state after them."""
        raise NotImplementedError

    def forward(self, X: Int[Tensor, "batch n"], state: Any) -> tuple[Float[Tensor, "batch n vocab"], Any]:
        """Return W h + b, the logits of the token after each of these n, and the state after them."""
        outputs, state = self.hidden(X, state)
        return self.dense(outputs), state


class EncoderDecoder(nn.Module):
    """decoder(target, init_state(encoder(source)))."""

    encoder: Any  # maps (source, valid_lens) to its outputs
    decoder: Any  # has init_state, hidden and dense

    def __init__(self, encoder: nn.Module, decoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.register_forward_hook(partial(after_model, "decoder"))  # the logits, in a recording of states

    def hidden(
        self,
        source: Int[Tensor, "batch keys"],
        target: Int[Tensor, "batch queries"],
        valid_lens: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch queries d"]:
        """Return the decoder's hidden states, the inputs of `dense`."""
        state = self.decoder.init_state(self.encoder(source, valid_lens), valid_lens)
        states, _ = self.decoder.hidden(target, state)
        return states

    def forward(
        self,
        source: Int[Tensor, "batch keys"],
        target: Int[Tensor, "batch queries"],
        valid_lens: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch queries vocab"]:
        """Return the logits of the token after each target token, W h + b, by teacher forcing (Sutskever 2014)."""
        return self.decoder.dense(self.hidden(source, target, valid_lens))


def share_embeddings(model: EncoderDecoder) -> EncoderDecoder:
    """Use one matrix for source embedding, target embedding and output layer (Press and Wolf 2017).

    It is drawn from N(0, 1/d): an embedding times sqrt(d), as in the Transformer, and a logit have unit variance.

    Raises:
        ValueError: if the three are not of one shape.
    """
    shared = model.encoder.embedding.weight
    shapes = [
        tuple(layer.weight.shape) for layer in (model.encoder.embedding, model.decoder.embedding, model.decoder.dense)
    ]
    if len(set(shapes)) > 1:
        raise ValueError(f"expected embeddings and output layer of one shape, got {shapes}")
    nn.init.normal_(shared, std=shared.shape[1] ** -0.5)
    model.decoder.embedding.weight = shared
    model.decoder.dense.weight = shared
    return model
