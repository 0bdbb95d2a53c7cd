"""Which queries and keys of a call are tokens and which are padding, and positions counted without padding."""

from collections.abc import Mapping
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from viz_core.trace.arguments import check_axes, described, with_four_axes
from viz_core.trace.weights import Bias, Mask, is_masked

TokenMask: TypeAlias = Bool[Tensor, "batch _"]
"""True where there is a token, False at padding."""


def allowed_keys(mask: Mask | None, bias: Bias | None, batch: int, num_keys: int) -> TokenMask | None:
    """Return True from the first to the last key of each text that some query may attend to; the rest is padding.

    None where there is neither a mask nor a bias that masks: every key is a token.
    """
    allowed = None if mask is None else _over_keys(mask)
    if bias is not None:
        unmasked = _over_keys(~is_masked(bias if mask is None else torch.where(mask, bias, -torch.inf)))
        allowed = unmasked if allowed is None else unmasked & allowed
    if allowed is None:
        return None
    begun, unfinished = allowed.cumsum(dim=-1) > 0, allowed.flip(-1).cumsum(dim=-1).flip(-1) > 0
    return (begun & unfinished).expand(batch, num_keys)


def text_positions(tokens: TokenMask | None, n: int, device: torch.device | None = None) -> Int[Tensor, "#batch n"]:
    """Return positions counted from the first token of each text; -1 at padding before it."""
    positions = torch.arange(n, device=device)[None]
    return positions if tokens is None else (positions - first_tokens(tokens)[:, None]).clamp_min(-1)


def first_tokens(tokens: TokenMask) -> Int[Tensor, " batch"]:
    """Return the index of the first token of each text; 0 where there is none."""
    return tokens.long().argmax(dim=-1) if tokens.shape[-1] else tokens.new_zeros(len(tokens), dtype=torch.long)


def without_padding_before(
    rows: Float[Tensor, "batch heads n v"], tokens: Bool[Tensor, "batch n"]
) -> Float[Tensor, "batch heads n v"]:
    """Return the rows of each text from its first token on; what stood before it comes last."""
    first = first_tokens(tokens).tolist()
    return torch.stack([text.roll(-start, dims=1) if start else text for text, start in zip(rows, first, strict=True)])


def check_token_mask(given: object) -> dict[str | None, TokenMask]:
    """Return token masks by stack ("encoder", "decoder"); one mask alone, for all stacks, is under None.

    ValueError unless it is a boolean tensor (batch, n), or several by stack.
    """
    named: Mapping[str | None, object] = given if isinstance(given, Mapping) else {None: given}
    for tokens in named.values():
        if not isinstance(tokens, Tensor) or tokens.dtype != torch.bool:
            raise ValueError(f"token_mask: expected booleans, True where there is a token, got {described(tokens)}")
        check_axes("batch n", token_mask=tokens)
        if bool((tokens[:, 1:] > tokens[:, :-1]).sum(dim=-1).add(tokens[:, :1].sum(dim=-1)).gt(1).any()):
            raise ValueError("token_mask: expected padding before or after the tokens of a text, got some between them")
    return dict(named)  # type: ignore[arg-type]


def _over_keys(allowed: Bool[Tensor, "*shape"]) -> Bool[Tensor, "batch keys"]:
    """Return whether any head and query of a text allows each key, from a mask that broadcasts to four axes."""
    return with_four_axes(allowed).any(dim=1).any(dim=1)
