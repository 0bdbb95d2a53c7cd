"""Tasks of TransformerLens' main demo, done there and here on one GPT-2.

`python -m tests.viz_core.circuits.peer_tasks`, with .venv/lens on the path, prints for each task, as JSON, the lines of
code of both and the largest difference of their results, divided by the largest result. Each function takes the model
as that library has it, a clean and a corrupted text, and a function of the logits.
"""

import copy
import inspect
import json
import tempfile
from typing import Any

import torch
import transformers
from torch import Tensor

from viz_core.circuits import logit_attribution, ov_circuit, patch_sweep, path_patch
from viz_core.hub import instrument
from viz_core.trace import intervene, off, record


def there_maps(bridge: Any, clean: Tensor, *_: Any) -> Tensor:
    _, cache = bridge.run_with_cache(clean)
    return torch.stack([cache["pattern", layer][0] for layer in range(3)])


def here_maps(model: Any, clean: Tensor, *_: Any) -> Tensor:
    with record() as trace:
        model(clean)
    return torch.cat([call.weights() for call in trace])


def there_stream(bridge: Any, clean: Tensor, *_: Any) -> Tensor:
    _, cache = bridge.run_with_cache(clean)
    return torch.stack([cache["resid_post", layer][0] for layer in range(3)])


def here_stream(model: Any, clean: Tensor, *_: Any) -> Tensor:
    with record(states=True) as trace:
        model(clean)
    return torch.cat([trace.states[f"decoder.{layer}.residual"] for layer in range(3)])


def there_ablated(bridge: Any, clean: Tensor, *_: Any) -> Tensor:
    def zero(z: Tensor, hook: Any) -> Tensor:
        z[:, :, 2] = 0
        return z

    return bridge.run_with_hooks(clean, fwd_hooks=[("blocks.1.attn.hook_z", zero)])


def here_ablated(model: Any, clean: Tensor, *_: Any) -> Tensor:
    with intervene({"decoder.1.self": off(2)}):
        return model(clean).logits


def there_attributed(bridge: Any, clean: Tensor, *_: Any) -> Tensor:
    _, cache = bridge.run_with_cache(clean)
    heads = cache.stack_head_results(layer=-1, pos_slice=-1)
    heads = cache.apply_ln_to_stack(heads, layer=-1, pos_slice=-1)
    direction = (bridge.W_U[:, 5] - bridge.W_U[:, 6]) * bridge.ln_final.weight
    return (heads[:, 0] - heads[:, 0].mean(dim=-1, keepdim=True)) @ direction


def here_attributed(model: Any, clean: Tensor, *_: Any) -> Tensor:
    with record(values=True, states=True) as trace:
        model(clean)
    return torch.tensor([part.value for part in logit_attribution(model, trace, 5, against=6) if part.name == "self"])


def there_swept(bridge: Any, clean: Tensor, corrupted: Tensor, metric: Any) -> Tensor:
    _, cache = bridge.run_with_cache(clean)
    return patching.get_act_patch_mlp_out(bridge, corrupted, cache, metric)


def here_swept(model: Any, clean: Tensor, corrupted: Tensor, metric: Any) -> Tensor:
    return patch_sweep(model, {"input_ids": clean}, {"input_ids": corrupted}, metric, "mlp")


def there_swept_heads(bridge: Any, clean: Tensor, corrupted: Tensor, metric: Any) -> Tensor:
    _, cache = bridge.run_with_cache(clean)
    return patching.get_act_patch_attn_head_out_all_pos(bridge, corrupted, cache, metric)


def here_swept_heads(model: Any, clean: Tensor, corrupted: Tensor, metric: Any) -> Tensor:
    return patch_sweep(model, {"input_ids": clean}, {"input_ids": corrupted}, metric, "heads")


def there_path(bridge: Any, clean: Tensor, corrupted: Tensor, metric: Any) -> Tensor:
    (_, cache), (_, other) = bridge.run_with_cache(clean), bridge.run_with_cache(corrupted)
    return patching.get_act_patch_direct_path(bridge, corrupted, cache, other, metric, 0, 1, "k", verbose=False)[2, 3]


def here_path(model: Any, clean: Tensor, corrupted: Tensor, metric: Any) -> Tensor:
    inputs = {"input_ids": clean}, {"input_ids": corrupted}
    return path_patch(model, *inputs, metric, ("decoder.0.self", 1), ("decoder.2.self", 3), "keys")


def there_ov(bridge: Any, *_: Any) -> Tensor:
    bridge.enable_compatibility_mode(center_writing_weights=False)  # folds the norms
    return bridge.OV[1, 2].svd()[1]


def here_ov(model: Any, *_: Any) -> Tensor:
    return ov_circuit(model, "decoder.1.self", 2).singular_values


TASKS = {
    "maps of all heads": (there_maps, here_maps),
    "residual stream after each layer": (there_stream, here_stream),
    "logits with a head switched off": (there_ablated, here_ablated),
    "logit difference by heads": (there_attributed, here_attributed),
    "patch sweep: feed-forward nets by positions": (there_swept, here_swept),
    "patch sweep: layers by heads": (there_swept_heads, here_swept_heads),
    "path from a head to the keys of another": (there_path, here_path),
    "singular values of a head's OV circuit": (there_ov, here_ov),
}


def lines(function: Any) -> int:
    """The lines of a function's body, without empty ones."""
    return sum(bool(line.strip()) for line in inspect.getsource(function).splitlines()[1:])


@torch.no_grad()
def compare() -> dict[str, dict[str, float]]:
    torch.manual_seed(2)
    sizes = {"n_layer": 3, "n_head": 4, "n_embd": 32, "vocab_size": 50, "n_positions": 16}
    plain = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, bos_token_id=1, eos_token_id=1)).eval()
    for parameter in plain.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    model = copy.deepcopy(plain)
    instrument(model)
    plain.set_attn_implementation("eager")
    words = transformers.PreTrainedTokenizerFast.from_pretrained("assets/hub/writer-en")
    with tempfile.TemporaryDirectory() as folder:
        plain.save_pretrained(folder)
        bridge = TransformerBridge.boot_transformers(folder, hf_model=plain, device="cpu", tokenizer=words)
    clean, corrupted = torch.randint(3, 50, (2, 1, 8))
    inputs = clean, corrupted, lambda logits: logits[0, -1, 5] - logits[0, -1, 6]
    found = {}
    for task, (there, here) in TASKS.items():
        expected, own = there(bridge, *inputs), here(model, *inputs)
        difference = float((expected.float() - own.float()).abs().max() / expected.abs().max())
        found[task] = {"there": lines(there), "here": lines(here), "difference": difference}
    return found


if __name__ == "__main__":
    from transformer_lens import patching
    from transformer_lens.model_bridge import TransformerBridge

    print(json.dumps(compare()))
