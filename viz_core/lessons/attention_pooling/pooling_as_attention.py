"""Gaussian pooling as dot-product attention: with a bias for each key, or keys of one length."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from viz_core.attention.kernel_pooling import gaussian, kernel_weights
from viz_core.trace import attend, attention_weights


def gaussian_pooling_as_attention(
    x_train: Float[Tensor, " train"],
    y_train: Float[Tensor, " train"],
    x_val: Float[Tensor, " val"],
    sigma: float,
    key_term: bool = True,
) -> Float[Tensor, " val"]:
    """The fit of `nadaraya_watson` with a Gaussian kernel, from scores q k and a bias for each key.

    -(q - k)^2 / (2 sigma^2) = q k / sigma^2 - k^2 / (2 sigma^2) - q^2 / (2 sigma^2), and the last
    term is the same for every key of a query, so softmax does not see it.

    Args:
        key_term: False leaves out -k^2 / (2 sigma^2): large keys win.
    """
    queries, keys, values = (x[None, None, :, None] / s for x, s in ((x_val, sigma), (x_train, sigma), (y_train, 1)))
    bias = -0.5 * (x_train / sigma).square()[None, None, None] if key_term else None
    return attend(queries, keys, values, bias=bias, scale=1.0, site="pooling.attention")[0, 0, :, 0]


def sphere_errors(num_keys: int = 7, d: int = 3, seed: int = 0) -> tuple[float, float]:
    """max |a - softmax(q . k)| and max |a - 1/m| of a Gaussian's weights a on m random keys with |k| = 1.

    -|q - k|^2 / 2 = q . k - |q|^2 / 2 - 1/2: only the product differs from key to key (Dive into Deep Learning,
    section 11.2, exercise 3).
    """
    generator = torch.Generator().manual_seed(seed)
    query, keys = (torch.randn(n, d, generator=generator, dtype=torch.float64) for n in (1, num_keys))
    keys = normalize(keys, dim=1)
    by_distance = kernel_weights(torch.cdist(query, keys), gaussian())
    product = attention_weights(query[None, None], keys[None, None], scale=1.0)[0, 0]
    return float((by_distance - product).abs().max()), float((by_distance - 1 / num_keys).abs().max())
