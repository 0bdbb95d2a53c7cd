"""Estimates of a patch sweep from gradients, against the derivative of the sweep itself and plain hooks."""

import pytest
import torch
from torch import Tensor

from tests.viz_core.circuits.hooked import WIDTH, first, hooks, layers, made, metric, seen
from viz_core.circuits import attribution_patch, patch_sweep
from viz_core.hub import instrument, restore
from viz_core.trace import intervene, off

POSITIONS = torch.tensor([[0, 1, 2, 3, 4, 5], [0, 1, 2, 3, -1, -1]])
FAMILIES = ["ours", "gpt2", "llama", "bert-fills"]


def by_hooks(plain: object, clean: object, corrupted: object, what: str) -> Tensor:
    """m + (clean - corrupted) . dm/da, with a caught by plain hooks and caught in the graph."""
    at = {"attention": "attention", "mlp": "mlp", "heads": "out"}[what]
    places = [(getattr(layer, at), "in" if what == "heads" else "out") for layer in layers(plain)]
    with torch.no_grad():
        new, old = seen(plain, clean, places), seen(plain, corrupted, places)
    caught: dict[object, Tensor] = {}

    def keep(place: object, x: Tensor) -> Tensor:
        caught[place] = x + torch.zeros_like(x, requires_grad=True)
        caught[place].retain_grad()
        return caught[place]

    with hooks({place: lambda x, place=place: keep(place, x) for place in places}):
        value = metric(first(plain(**corrupted)))  # type: ignore[operator]
    value.backward()
    rows = []
    for place in places:
        change = (new[place] - old[place]) * caught[place].grad
        if what == "heads":
            rows.append(change.unflatten(-1, (-1, WIDTH)).sum(dim=(0, 1, 3)))
        else:
            each = change.sum(dim=-1)
            rows.append(torch.stack([each[i == POSITIONS].sum() for i in range(6)]))
    return (value + torch.stack(rows)).detach().float()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("what", ["attention", "mlp", "heads"])
def test_an_estimate_is_that_of_plain_hooks(family: str, what: str) -> None:
    model, plain, clean, corrupted, _ = made(family)
    found = attribution_patch(model, clean, corrupted, metric, what)
    torch.testing.assert_close(found.grid, by_hooks(plain, clean, corrupted, what), atol=2e-5, rtol=1e-4)
    assert found.grid.std() > 1e-3
    assert found[1:] == (None, None, None)


@pytest.mark.parametrize("family", FAMILIES)
def test_an_estimate_with_a_head_off_and_in_half_precision(family: str) -> None:
    model, plain, clean, corrupted, stack = made(family)
    out = layers(plain)[0].out
    weight = out.weight.data if family == "gpt2" else out.weight.data.T
    weight[2 * WIDTH : 3 * WIDTH] = 0
    with intervene({f"{stack}.0.self": off(2)}):
        found = attribution_patch(model, clean, corrupted, metric, "mlp")
    torch.testing.assert_close(found.grid, by_hooks(plain, clean, corrupted, "mlp"), atol=2e-5, rtol=1e-4)
    model, plain, clean, corrupted, _ = made(family, torch.bfloat16)
    found = attribution_patch(model, clean, corrupted, metric, "mlp")
    torch.testing.assert_close(found.grid, by_hooks(plain, clean, corrupted, "mlp"), atol=0.1, rtol=0.1)


@pytest.mark.parametrize("family", ["ours", "gpt2"])
@pytest.mark.parametrize("what", ["residual", "heads"])
def test_an_estimate_is_compared_with_the_true_sweep(family: str, what: str) -> None:
    model, _, clean, corrupted, _ = made(family)
    found = attribution_patch(model, clean, corrupted, metric, what, check=True)
    sweep = patch_sweep(model, clean, corrupted, metric, what)
    assert torch.equal(found.sweep, sweep)
    ranks = [values.flatten().argsort().argsort().float() for values in (sweep, found.grid)]
    if len(sweep.unique()) == sweep.numel() and len(found.grid.unique()) == sweep.numel():
        assert found.rank_correlation == pytest.approx(float(torch.corrcoef(torch.stack(ranks))[0, 1]), abs=1e-5)
    assert found.error == pytest.approx(float((sweep - found.grid).square().mean().sqrt()))
    assert found.rank_correlation > 0.3


def test_the_last_residual_is_estimated_exactly_where_the_metric_is_linear_in_it() -> None:
    """By definition: our encoder's states are its output, and this metric a sum of them."""
    model, _, clean, corrupted, _ = made("ours")
    model.norm = torch.nn.Identity().eval()
    found = attribution_patch(model, clean, corrupted, metric, check=True)
    torch.testing.assert_close(found.grid[-1], found.sweep[-1], atol=1e-5, rtol=1e-4)


def test_a_metric_without_a_gradient_is_refused() -> None:
    model, _, clean, corrupted, _ = made("gpt2")
    with pytest.raises(ValueError, match="metric: expected a differentiable number"):
        attribution_patch(model, clean, corrupted, lambda logits: logits.argmax().float())
    restore(model)
    with pytest.raises(ValueError, match="what: expected 'heads', 'cross-heads' or one of none"):
        attribution_patch(model, clean, corrupted, metric)
    instrument(model)
