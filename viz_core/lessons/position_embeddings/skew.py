"""Where each score is at each stage of the skew from scores by offset to scores by key."""

import numpy as np
import torch
from jaxtyping import Float, Int

from viz_core.positional import relative_to_absolute_steps

STAGES = ("scores", "padded", "flattened", "extended", "reshaped", "result")


def skew_stages(num_tokens: int) -> dict[str, Int[np.ndarray, "rows columns"]]:
    """Where each entry of the n x (2n - 1) scores is at each stage: i (2n - 1) + c + 1, and 0 for padding."""
    entries = torch.arange(1, num_tokens * (2 * num_tokens - 1) + 1).reshape(num_tokens, -1).float()
    tensors = (entries, *relative_to_absolute_steps(entries))
    return {name: np.atleast_2d(t.numpy()).astype(np.int64) for name, t in zip(STAGES, tensors, strict=True)}


def offsets_of(entries: Int[np.ndarray, "rows columns"], num_tokens: int) -> Float[np.ndarray, "rows columns"]:
    """The offset c - (n - 1) that each entry stands for; NaN for padding."""
    columns = (entries - 1) % (2 * num_tokens - 1)
    return np.where(entries > 0, columns - (num_tokens - 1), np.nan).astype(np.float32)
