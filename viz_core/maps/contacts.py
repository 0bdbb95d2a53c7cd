"""Contacts of a protein from attention: one sparse logistic regression over the heads of all layers (Rao 2021)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from viz_core.runtime.hooks import may_end
from viz_core.trace import Trace
from viz_core.trace.arguments import check_positive_number, check_whole

HeadMaps: TypeAlias = Float[Tensor, "heads n n"]


@dataclass(frozen=True, eq=False)
class ContactRegression:
    """Probabilities of contacts, sigmoid(sum_h w_h F_h + bias), with a weight for each head, layer after layer."""

    weights: Float[Tensor, " heads"]
    bias: float

    def probabilities(self, features: HeadMaps) -> Float[Tensor, "n n"]:
        """Return the probability that each two residues are in contact; symmetric."""
        return (torch.einsum("h,hij->ij", self.weights.to(features), features) + self.bias).sigmoid()


def contact_features(trace: Trace, row: int = 0, residues: slice = slice(1, -1)) -> HeadMaps:
    """Return the maps of all self-attention heads between residues, A + A^T, corrected by their average product.

    Args:
        row: of the batch; its padding is left out.
        residues: tokens that are residues; ESM has one special token before them and one after.

    Raises:
        ValueError: if no self-attention between residues was recorded.
    """
    maps = [call.text(row).weights()[0][:, residues, residues] for call in trace if call.kind == "self"]
    if not maps or not maps[0].numel():
        raise ValueError("trace: expected self-attention between residues, got none")
    return average_product_correction(torch.cat([each + each.mT for each in maps]))


def average_product_correction(maps: Float[Tensor, "*batch n n"]) -> Float[Tensor, "*batch n n"]:
    """Return F_ij - F_i F_j / F, with the sums F_i of a row, F_j of a column and F of all (APC; Dunn 2008)."""
    rows, columns = maps.sum(dim=-1, keepdim=True), maps.sum(dim=-2, keepdim=True)
    return maps - rows * columns / rows.sum(dim=-2, keepdim=True)


def fit_contacts(
    features: Sequence[HeadMaps], contacts: Sequence[Bool[Tensor, "n n"]], *, penalty: float, separation: int = 6
) -> ContactRegression:
    """Fit the regression: minimise the cross-entropy summed over pairs + penalty * sum_h |w_h|; the bias is free.

    Args:
        features: of each protein, from `contact_features`.
        contacts: usually pairs with less than 8 Angstrom between their C-beta atoms.
        separation: pairs nearer in the sequence are left out.

    Raises:
        ValueError: if shapes differ, penalty is not positive, all pairs are alike, or 20,000 steps are not enough.
    """
    check_positive_number(penalty=penalty)
    check_whole(separation=separation)
    if not features or [each.shape for each in features] != [(len(features[0]), *each.shape) for each in contacts]:
        raise ValueError("contacts: expected a map of the residues of each protein's features")
    pairs = [torch.ones(each.shape).triu(separation).bool() for each in contacts]
    X = torch.cat([each[:, pair].T for each, pair in zip(features, pairs, strict=True)]).double()
    y = torch.cat([each[pair] for each, pair in zip(contacts, pairs, strict=True)]).double()
    if not 0 < y.sum() < len(y):
        raise ValueError(f"contacts: expected some pairs in contact and some not, got {int(y.sum())} of {len(y)}")
    mean, std = X.mean(dim=0), X.std(dim=0).clamp_min(1e-12)
    Z = torch.cat([torch.ones(len(X), 1).to(X), (X - mean) / std], dim=1)
    step = 4 / torch.linalg.matrix_norm(Z, ord=2) ** 2
    shrink = step * torch.cat([torch.zeros(1).to(X), penalty / std])
    found, ahead, pace = *[torch.zeros(Z.shape[1]).to(X)] * 2, 1.0
    for _ in range(20_000):  # accelerated proximal gradient descent (FISTA; Beck & Teboulle 2009)
        may_end()
        descended = ahead - step * (Z.T @ ((Z @ ahead).sigmoid() - y))
        new, next_pace = descended.sign() * (descended.abs() - shrink).clamp_min(0), (1 + (1 + 4 * pace**2) ** 0.5) / 2
        ahead = new + (pace - 1) / next_pace * (new - found)
        change, found, pace = float((new - found).abs().max()), new, next_pace
        if change < 1e-9:
            return ContactRegression(found[1:] / std, float(found[0] - (found[1:] / std) @ mean))
    raise ValueError(f"penalty: expected one at which 20,000 steps are enough, got {penalty:g}")
