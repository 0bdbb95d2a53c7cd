"""Keys of one length: a Gaussian of distances is a softmax of products."""

import torch
from torch.nn.functional import normalize

from viz_core.attention.kernel_pooling import kernel_weights
from viz_core.attention.kernels import gaussian
from viz_core.trace import attention_weights


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
