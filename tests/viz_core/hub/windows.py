"""What a window setting of 4 shows in families of transformers; `python -m tests.viz_core.hub.windows` writes it.

Keys are those by which the output of a single layer at the query changes (its gradient), not those that a mask allows.
"""

import datetime
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers

from viz_core.hub import instrument
from viz_core.trace import record

PAGE = Path(__file__).resolve().parents[3] / "docs" / "conventions.md"
N, QUERY = 16, 8
START, END = "<!-- windows: written by a run -->\n", "<!-- end of windows -->\n"

SIZES = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 16}
SIZES |= {"vocab_size": 64, "intermediate_size": 32, "max_position_embeddings": 64, "pad_token_id": 0}
SIZES |= {"bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}
_LOCAL = {"layer_types": ["sliding_attention"]}
_SLIDING = {"sliding_window": 4}
_USED = {**_SLIDING, "use_sliding_window": True}
_EXPERTS = {"num_local_experts": 2, "num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 8}
_PICTURE = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
_PICTURE |= {"image_size": 28, "patch_size": 14}
_TEXT = {**SIZES, **_LOCAL, **_SLIDING, "query_pre_attn_scalar": 16}
_BOTH_WAYS = {"use_bidirectional_attention": True}
_IMAGE = {"image_token_index": 60}
_CHUNKS = {"attention_chunk_size": 4, "layer_types": ["chunked_attention"], "no_rope_layers": [1]}

# What of a case's options the table names, in this order.
_NAMED = ("use_sliding_window", "sliding_window", "max_window_layers", "use_bidirectional_attention", "window_size")
_NAMED += ("attention_window_size", "local_attention", "attention_window", "local_radius", "attention_chunk_size")
# Family, and what is set beside the sizes.
CASES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("mistral", _SLIDING),
    ("mixtral", _SLIDING | _EXPERTS),
    *((family, _SLIDING) for family in ("ministral", "phi3", "starcoder2")),
    *((family, _SLIDING | _LOCAL) for family in ("gemma2", "gemma3_text")),
    ("gemma3_text", _SLIDING | _LOCAL | _BOTH_WAYS),
    *((family, _SLIDING | _LOCAL) for family in ("vaultgemma", "cohere2", "exaone4", "olmo3")),
    ("gpt_oss", _SLIDING | _LOCAL | _EXPERTS),
    ("smollm3", _USED | _LOCAL),
    ("qwen2", _SLIDING),
    ("qwen2", _USED),
    *((family, _USED | {"max_window_layers": 0}) for family in ("qwen2", "qwen3")),
    ("gpt_neo", {"num_layers": 1, "num_heads": 2, "attention_types": [[["local"], 1]], "window_size": 4}),
    ("recurrent_gemma", {"attention_window_size": 4, "block_types": ["attention"], "lru_width": 32}),
    ("nemotron_h", _SLIDING | {"layers_block_type": ["attention"]}),
    ("jamba", _SLIDING | _EXPERTS | {"attn_layer_period": 1, "attn_layer_offset": 0}),
    ("moshi", _SLIDING | {"ffn_dim": 32}),
    *((family, _LOCAL | {"local_attention": 4}) for family in ("modernbert", "modernbert-decoder")),
    ("longformer", {"attention_window": 4}),
    ("longt5", {"d_model": 32, "d_kv": 16, "d_ff": 32, "num_layers": 1, "num_heads": 2, "local_radius": 4}),
    ("t5gemma", {"encoder": _TEXT, "decoder": _TEXT}),
    ("t5gemma2", {"encoder": {"text_config": _TEXT, "vision_config": _PICTURE}, "decoder": _TEXT} | _IMAGE),
    ("llama4_text", _EXPERTS | _CHUNKS),
)


def setting(options: dict[str, Any]) -> str:
    """Return what the table names of a case's options."""
    text = options.get("decoder", options)
    return ", ".join(f"`{name}={text[name]}`" for name in _NAMED if name in text)


class Seen(NamedTuple):
    """Keys before and after the query that reach the output there."""

    left: int
    right: int

    def __str__(self) -> str:
        return f"{self.left}, {self.right}"


def build(family: str, options: dict[str, Any]) -> Any:
    """Return a model of one layer with random weights."""
    config_class = transformers.CONFIG_MAPPING[family]
    own = {} if "encoder" in options or "d_model" in options else dict(SIZES)
    if family in ("nemotron_h", "gpt_neo"):
        own.pop("num_hidden_layers")
    if family in ("qwen2", "gpt_neo", "longformer", "starcoder2", "mixtral", "phi3"):
        own.pop("head_dim")
    config = config_class(**{**own, **options}, attn_implementation="eager")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return transformers.MODEL_MAPPING[config_class](config).eval().requires_grad_(False)


def part(model: Any) -> Any:
    """Return its encoder, or all of it."""
    return model.get_encoder() if model.config.is_encoder_decoder else model


def seen(model: Any, query: int = QUERY) -> Seen:
    """Return how many keys on each side reach the output at a query."""
    network, found = part(model), list[torch.Tensor]()
    embeddings = network.get_input_embeddings()
    hook = embeddings.register_forward_hook(lambda *given: found.append(given[2].requires_grad_()))
    result = network(**inputs())
    hook.remove()
    draw = torch.randn(result.last_hidden_state.shape[-1], generator=torch.Generator().manual_seed(1))
    with torch.enable_grad():
        (grads,) = torch.autograd.grad((result.last_hidden_state[0, query] * draw).sum(), found[0])
    keys = grads[0].abs().amax(dim=-1).nonzero().flatten()
    return Seen(query - int(keys.min()), int(keys.max()) - query)


def inputs() -> dict[str, torch.Tensor]:
    return {"input_ids": torch.arange(5, 5 + N)[None], "attention_mask": torch.ones(1, N, dtype=torch.long)}


def reloaded(model: Any) -> Any:
    """Return the model after saving and loading."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        return type(model).from_pretrained(folder, attn_implementation="eager").eval().requires_grad_(False)


def recorded(model: Any) -> Seen:
    """Return the keys that have a weight in the recorded map."""
    instrument(model, verify=False)
    with record() as trace:
        part(model)(**inputs())
    weights = trace["encoder.0.self" if "encoder.0.self" in trace.sites else trace.sites[0]].weights()
    keys = weights[0, :, QUERY, -N:].amax(dim=0).nonzero().flatten()
    return Seen(QUERY - int(keys.min()), int(keys.max()) - QUERY)


def rows() -> list[str]:
    """Return the lines of the table."""
    found = []
    for family, options in CASES:
        model = build(family, options)
        found.append(f"| {family} | {setting(options)} | {seen(model)} | {seen(reloaded(model))} |")
    return found


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    head = f"Run {datetime.date.today()} with transformers {transformers.__version__}.\n\n"
    head += "| family | setting | left, right | after saving and loading |\n| --- | --- | --- | --- |\n"
    table = START + "\n" + head + "\n".join(rows()) + "\n\n" + END
    PAGE.write_text(before + table + rest.partition(END)[2], encoding="utf-8")
