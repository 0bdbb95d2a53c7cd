"""The bridge from kernels to the Transformer: Gaussian pooling is one call of dot-product attention."""

from jaxtyping import Float
from torch import Tensor

from viz_core.trace import attend


def gaussian_pooling_as_attention(
    x_train: Float[Tensor, " train"], y_train: Float[Tensor, " train"], x_val: Float[Tensor, " val"], sigma: float
) -> Float[Tensor, " val"]:
    """The fit of `nadaraya_watson` with a Gaussian kernel, from scores q k and a bias for each key.

    -(q - k)^2 / (2 sigma^2) = q k / sigma^2 - k^2 / (2 sigma^2) - q^2 / (2 sigma^2), and the last
    term is the same for every key of a query, so softmax does not see it.
    """
    queries, keys, values = (x[None, None, :, None] / s for x, s in ((x_val, sigma), (x_train, sigma), (y_train, 1)))
    bias = -0.5 * (x_train / sigma).square()[None, None, None]
    return attend(queries, keys, values, bias=bias, scale=1.0, site="pooling.attention")[0, 0, :, 0]
