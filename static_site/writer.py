"""The page of the shipped writer, a small Llama, and its ONNX graph, which also returns queries and keys.

    writer    tokens (1, t), gates, keys and values so far -> logits, log p, and of each layer the queries, and keys and
              values with these t steps

Queries and keys are returned after their rotation (Su 2021), so that q k^T / sqrt(d) is the score. Each key head serves
heads / key heads neighbouring heads of queries (Ainslie 2023).
"""

from __future__ import annotations

from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.export import Dim

from static_site.files import SiteFiles, add_model
from static_site.model_files import WeightStore, export_graph, tokenizer_json
from static_site.pages import Words, model_data
from static_site.translator import gated, outputs
from viz_core.hub import HubModel, load_hub
from viz_core.hub.runs.token_text import token_words
from viz_core.pretrained.samples import default_beginning
from viz_core.runtime.assets import ASSETS
from viz_core.trace import Trace


class WriterGraph(nn.Module):
    """A Llama with its cache as inputs and outputs."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, tokens: Tensor, gates: Tensor, past: list[Tensor]) -> dict[str, Tensor]:
        """Return logits and log p (1, t, vocab), and each layer's queries (1, heads, t, d), keys and values.

        Args:
            gates: (layers, heads): 1 leaves a head, 0 switches it off.
            past: keys and values (1, key heads, p, d) of each layer so far; those returned are of n = p + t.
        """
        from transformers import DynamicCache
        from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

        layers = {f"decoder.{i}.self": block.self_attn for i, block in enumerate(self.network.model.layers)}
        projected = {f"{site}.queries": layer.q_proj for site, layer in layers.items()}
        cache = DynamicCache()
        for i in range(len(layers)):
            cache.update(past[2 * i], past[2 * i + 1], i)
        steps = past[0].shape[2] + torch.arange(tokens.shape[1])[None]
        gates_on = gated([layer.o_proj for layer in layers.values()], gates)
        with gates_on, outputs(projected, self.network.config.head_dim) as found:
            logits = self.network(tokens, position_ids=steps, past_key_values=cache).logits
        cos, sin = self.network.model.rotary_emb(logits, steps)
        for site, cached in zip(layers, cache.layers, strict=True):
            queries, _ = apply_rotary_pos_emb(found[f"{site}.queries"], found[f"{site}.queries"], cos, sin)
            found |= {f"{site}.queries": queries, f"{site}.keys": cached.keys, f"{site}.values": cached.values}
        return {"logits": logits, "log_p": logits.log_softmax(dim=-1), **found}


def export_writer(network: Any) -> tuple[dict[str, bytes], WeightStore]:
    """Return the graph "writer" of a Llama and its weights."""
    config = network.config
    layers, heads, key_heads = config.num_hidden_layers, config.num_attention_heads, config.num_key_value_heads
    store = WeightStore()
    past = [f"past.{i}.{part}" for i in range(layers) for part in ("keys", "values")]
    free = Dim.DYNAMIC
    graph = export_graph(
        WriterGraph(network),
        (
            torch.arange(4, 7)[None],
            torch.ones(layers, heads),
            [torch.randn(1, key_heads, 5, config.head_dim) for _ in past],
        ),
        ({1: free}, None, [{2: free}] * len(past)),
        ["tokens", "gates", *past],
        store,
    )
    return {"writer": graph}, store


NAME = "writer-en"
GROUP = "decoder-self"
PROBLEMS = {
    "empty": "There is nothing to read yet: type a text.",
    "too-many": "This text has {count:,} tokens; the model takes at most {most:,}. Shorten it.",
}
NUMBERS = {"new": (0, 100, 1, 12), "temperature": (0, 2, 0.05, 0), "topk": (0, 200, 1, 0), "seed": (0, 9999, 1, 0)}
"""The controls with a number, as in the model lab: least, most, step and first value."""


def load_model() -> HubModel:
    """The writer on the CPU."""
    return load_hub(NAME, device="cpu", offline=True)


def add_files(files: SiteFiles, writer: HubModel) -> dict[str, Any]:
    """Add the writer's graph and weights, and the tokenizer."""
    tokenizer = Tokenizer.from_file(str(ASSETS / "hub" / NAME / "tokenizer.json"))
    return add_model(files, NAME, *export_writer(writer.network), tokenizer=tokenizer_json(tokenizer))


def page(words: Words) -> dict[str, Any]:
    """The writer's parts of the page."""
    return {
        "name": "writer",
        "chapter": "model-lab",
        "title": words("walk")("option.writer"),
        "definition": words("site")("definition.writer"),
        "text": words("model-lab").label("start"),
        "numbers": {name: (words("model-lab").label(name), numbers) for name, numbers in NUMBERS.items()},
        "button": words("site")("write"),
        "examples": [default_beginning(), words("model-lab")("start.decoder")],
        "lang": "en",
    }


def recorded(_words: Words, writer: HubModel) -> tuple[dict[str, Any], Trace]:
    """The continued example, as `run` of writer.js returns it."""
    run = writer.run(default_beginning(), max_new_tokens=NUMBERS["new"][-1])
    ids, given = run.inputs["input_ids"][0], run.num_prompt_tokens
    chosen = run.output.log_softmax(dim=-1)[range(given - 1, len(ids) - 1), ids[given:]]
    return {
        "text": run.text,
        "ids": ids.tolist(),
        "numPrompt": given,
        "tokens": [token.label for token in run.tokens],
        "words": token_words(run.tokens),
        "joins": any(not (token.starts_word or token.special) for token in run.tokens[given : given + 1]),
        "logProbability": float(chosen.sum()),
        "isComplete": run.complete,
    }, run.trace


def data(words: Words, writer: HubModel) -> dict[str, Any]:
    """What the writer's script reads."""
    config = writer.network.config
    heads = {GROUP: (config.num_hidden_layers, config.num_attention_heads)}
    names = (("translation", "measured"), ("model-lab", "incomplete"))
    return model_data(words, "model-lab", heads, PROBLEMS, *names) | {
        "room": config.max_position_embeddings,
        "model": writer.card.name,
        "revision": writer.card.revision,
        "example": default_beginning(),
    }
