"""A layer and its tokens: random weights on a sentence or on noise, or a trained layer."""

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.attention import MultiHeadAttention
from viz_core.pretrained import Translator
from viz_core.pretrained.token_vectors import Tokens
from viz_core.trace import name_site, record

# From one seed, tokens and weights would be the same random numbers, and scores would show that.
_LAYER_SEEDS, _TOKEN_SEEDS, _WIDTH_SEED = 1_000_000, 2_000_000, 3_000_000


def fresh_layer(num_hiddens: int, num_heads: int, sharpness: float = 1.0, seed: int = 0) -> MultiHeadAttention:
    """A layer whose scores have standard deviation `sharpness` on tokens of unit variance, whatever its size.

    Entries are N(0, 1/d), so that projections keep the variance; W_q is multiplied by the sharpness.
    """
    generator = torch.Generator().manual_seed(_LAYER_SEEDS + seed)
    layer = MultiHeadAttention(num_hiddens, num_heads)
    with torch.no_grad():
        for linear in (layer.W_q, layer.W_k, layer.W_v, layer.W_o):
            linear.weight.normal_(std=num_hiddens**-0.5, generator=generator)
        layer.W_q.weight.mul_(sharpness)
    return layer.eval().requires_grad_(False)


def random_tokens(num_tokens: int, num_hiddens: int, seed: int = 0) -> Tokens:
    """Random tokens: vectors from N(0, I), named by their numbers."""
    X = torch.randn(num_tokens, num_hiddens, generator=torch.Generator().manual_seed(_TOKEN_SEEDS + seed))
    return Tokens(tuple(map(str, range(num_tokens))), X, 1, num_tokens, num_tokens)


def resize_width(X: Float[Tensor, "n d"], num_hiddens: int) -> Float[Tensor, "n num_hiddens"]:
    """Vectors in another width through one fixed random matrix with entries N(0, 1/d); unchanged where they fit.

    Products between vectors keep their expected value (Johnson and Lindenstrauss 1984): words that are alike stay so.
    """
    d = X.shape[1]
    if d == num_hiddens:
        return X
    return X @ torch.randn(d, num_hiddens, generator=torch.Generator().manual_seed(_WIDTH_SEED)) * d**-0.5


@torch.inference_mode()
def trained_input(translator: Translator, text: str, block: int, max_tokens: int) -> Tokens:
    """The input of one encoder block's self-attention for a text: tokens with positions after the blocks before."""
    encoder = translator.model.encoder
    ids = translator.encode(text)
    used = ids[:max_tokens]
    with record(states=True) as trace:
        encoder(torch.tensor([used], device=translator.device))
    X = trace.states[f"encoder.{block - 1}.residual" if block else "encoder.embedding"]
    return Tokens(translator.readable_tokens(used), X[0].float().cpu(), 1, len(used), len(ids))


def trained_layer(translator: Translator, block: int, num_heads: int) -> MultiHeadAttention:
    """The self-attention of an encoder block, its matrices cut into any number of heads that divides their width."""
    trained = translator.model.encoder.blocks[block].attention
    layer = MultiHeadAttention(trained.W_q.out_features, num_heads, bias=trained.W_q.bias is not None)
    layer.load_state_dict({name: tensor.float().cpu() for name, tensor in trained.state_dict().items()})
    name_site(layer, f"encoder.{block}.self")  # so that its maps carry its own number
    return layer.eval().requires_grad_(False)
