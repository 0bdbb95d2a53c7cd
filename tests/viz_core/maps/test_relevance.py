"""Gradient relevance held against finite differences through a forward pass written out by hand."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from viz_core.maps.rollout import gradient_relevance, relevance_maps
from viz_core.models.vit import ViT
from viz_core.trace import record


def forward_with(
    model: ViT, X: torch.Tensor, changed: dict[int, torch.Tensor]
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Logits by plain formulas in float64, each layer's weights moved by what is given, and those weights."""
    H = model.embed(X)
    used = []
    for layer, block in enumerate(model.blocks):
        a, Z = block.attention, block.ln1(H)
        q, k, v = (W(Z).reshape(1, 5, 2, 4).transpose(1, 2) for W in (a.W_q, a.W_k, a.W_v))
        weights = (q @ k.transpose(2, 3) / 2).softmax(dim=-1) + changed.get(layer, 0.0)
        used.append(weights)
        H = H + a.W_o((weights @ v).transpose(1, 2).reshape(1, 5, 8))
        H = H + block.mlp.dense2(F.gelu(block.mlp.dense1(block.ln2(H))))
    return model.head(H[:, 0]), used


@pytest.fixture
def double(model: ViT) -> ViT:
    return model.double().requires_grad_(False)


def test_against_finite_differences_of_a_two_layer_model(double: ViT, picture: torch.Tensor) -> None:
    X, target, step = picture.double(), 1, 1e-5
    _, weights = forward_with(double, X, {})
    gradients = []
    for layer in range(2):
        gradient = torch.zeros(2, 5, 5, dtype=torch.float64)
        for place in torch.cartesian_prod(torch.arange(2), torch.arange(5), torch.arange(5)).tolist():
            nudge = torch.zeros(1, 2, 5, 5, dtype=torch.float64)
            nudge[(0, *place)] = step
            up, down = (forward_with(double, X, {layer: sign * nudge})[0][0, target] for sign in (1, -1))
            gradient[tuple(place)] = (up - down) / (2 * step)
        gradients.append(gradient)
    relevance = torch.eye(5, dtype=torch.float64)
    for layer in range(2):
        fused = torch.zeros(5, 5, dtype=torch.float64)
        for head in range(2):
            fused += (gradients[layer][head] * weights[layer][0, head]).clamp_min(0) / 2
        relevance = relevance + fused @ relevance

    with record(differentiable=True) as trace:
        logits = double(X)
    found = relevance_maps(trace, logits[0, target])
    torch.testing.assert_close(found.double(), relevance, atol=1e-6, rtol=1e-5)
    assert (relevance - torch.eye(5)).max() > 1e-3  # there is something to find


def test_recording_in_the_graph_changes_no_answer_and_no_weight(model: ViT, picture: torch.Tensor) -> None:
    for frozen in (False, True):
        model.requires_grad_(not frozen)
        with record(differentiable=True) as trace:
            logits = model(picture)
        with torch.no_grad(), record() as plain:
            expected = model(picture)
        torch.testing.assert_close(logits, expected, atol=1e-5, rtol=1e-5)
        assert trace.sites == plain.sites
        for call in trace:
            torch.testing.assert_close(call.weights(), plain[call.site].weights(), atol=1e-6, rtol=0)
            assert call.graph_weights.requires_grad
            assert not call.weights().requires_grad


def test_by_hand() -> None:
    """One layer, one head: R = I + (g w)^+; then a second layer on top of it."""
    w, g = torch.tensor([[[0.25, 0.75], [0.5, 0.5]]]), torch.tensor([[[4.0, -1.0], [2.0, 0.0]]])
    first = torch.tensor([[2.0, 0.0], [1.0, 1.0]])
    torch.testing.assert_close(gradient_relevance([w], [g]), first)
    torch.testing.assert_close(gradient_relevance([w, w], [g, g]), first + torch.tensor([[2.0, 0.0], [2.0, 0.0]]))


def test_a_trace_without_a_graph_is_refused(model: ViT, picture: torch.Tensor) -> None:
    with record() as trace:
        logits = model(picture)
    with pytest.raises(ValueError, match="'encoder.0.self': expected a call recorded by record"):
        relevance_maps(trace, logits[0, 0])
    with torch.no_grad(), record(differentiable=True) as trace:
        logits = model(picture)
    with pytest.raises(ValueError, match="expected a call recorded by"):
        relevance_maps(trace, logits[0, 0])


def test_other_refusals(model: ViT, picture: torch.Tensor) -> None:
    with record(differentiable=True) as trace:
        logits = model(picture.expand(2, -1, -1, -1))
    with pytest.raises(ValueError, match="expected a batch of one, got 2"):
        relevance_maps(trace, logits[0, 0])
    with pytest.raises(ValueError, match="expected weights and gradients of one or more layers"):
        gradient_relevance([], [])
    with pytest.raises(ValueError, match="expected weights and gradients"):
        gradient_relevance([torch.zeros(1, 2, 2)], [])
