"""The Fourier spectrum of an embedding of numbers modulo p."""

import torch
from jaxtyping import Float
from torch import Tensor


def embedding_spectrum(embedding: Float[Tensor, "p d"]) -> Float[Tensor, " frequencies"]:
    """The share of each frequency k = 1 to floor(p/2) in the rows of an embedding, in all dimensions together.

    s_k = sum_d |F_kd|^2 / sum_k' sum_d |F_k'd|^2, with F_kd = sum_a E_ad e^(-2 pi i k a / p); what is the same for all
    numbers, k = 0, is left out. They sum to 1 (Nanda 2023, section 4.2).
    """
    power = torch.fft.rfft(embedding.double(), dim=0).abs().square().sum(dim=1)[1:]
    return (power / power.sum()).to(embedding.dtype)
