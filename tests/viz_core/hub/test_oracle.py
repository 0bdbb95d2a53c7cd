"""Maps against a third source: the model's own kernel, run on slices of the identity as values, hands out its weights.

As attnread does: O = A V, so V = I gives A, a few columns at a time, whatever computes it.
"""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.viz_core.hub.families import in_memory, inputs_of
from viz_core.hub import instrument
from viz_core.trace import record

KERNEL = F.scaled_dot_product_attention


def weights_of_kernel(query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
    """Return the weights of a call of torch's kernel, from as many outputs as slices of the identity need."""
    columns = torch.eye(key.shape[-2]).expand(*value.shape[:-1], -1).split(value.shape[-1], dim=-1)
    return torch.cat([KERNEL(query, key, part.to(value), **options) for part in columns], dim=-1)


@torch.no_grad()
@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("bert", {}),
        ("gpt2", {}),
        ("llama", {}),
        ("mistral", {}),
        ("gpt2", {"reorder_and_upcast_attn": False, "scale_attn_by_inverse_layer_idx": True}),
        ("qwen3", {}),
        ("albert", {}),
        ("bart", {}),
    ],
)
def test_recorded_maps_are_what_the_models_own_kernel_hands_out(
    family: str, options: dict[str, Any], side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = in_memory(family, **options, attn_implementation="sdpa")
    inputs = inputs_of(model)
    if side == "left":
        inputs = {name: each.flip(-1) for name, each in inputs.items()}
    found = list[Tensor]()

    def kernel(*given: Tensor, **settings: Any) -> Tensor:
        named = dict(zip(("query", "key", "value"), given, strict=False)) | settings
        found.append(weights_of_kernel(**named))
        return KERNEL(*given, **settings)

    with monkeypatch.context() as patched:
        patched.setattr(F, "scaled_dot_product_attention", kernel)
        model(**inputs)
    instrument(model, verify=False)
    with record() as trace:
        model(**inputs)
    assert len(trace) == len(found) > 1
    for call, expected in zip(trace, found, strict=True):
        rows = call.query_mask[:, None, :, None]
        assert float(((call.weights() - expected) * rows).abs().max()) < 2e-6, call.site
        assert (~call.chosen | (expected > 0) | ~rows).all()
        assert not (expected * rows)[~call.chosen].any()
