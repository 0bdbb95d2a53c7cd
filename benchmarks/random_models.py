"""Models of a size, with random weights: how long they take does not depend on what they have learned."""

from typing import Any

import torch
from torch import Tensor

from viz_core.hub import ATTENTION_IMPLEMENTATION, register
from viz_core.models.encoder_decoder import EncoderDecoder
from viz_core.pretrained import build_translation_model
from viz_core.trace import Trace, attend, name_sites, record

LAYERS, HEADS = 6, 12
# How a forward pass is run: ours, transformers' fused attention, and transformers' attention that gives its maps.
WAYS = {"record": ATTENTION_IMPLEMENTATION, "fused": "sdpa", "eager": "eager"}

TRANSLATOR = {"vocab_size": 8000, "num_hiddens": 256, "ffn_num_hiddens": 1024, "num_heads": 8, "num_blks": 3}
PAD, BOS = 0, 1


def bert(way: str) -> Any:
    """A BERT for up to 4,096 tokens, the same weights whichever way its attention runs."""
    from transformers import AutoModel, BertConfig

    register()
    torch.manual_seed(0)
    config = BertConfig(
        hidden_size=384,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=1536,
        max_position_embeddings=4096,
    )
    model = AutoModel.from_config(config, attn_implementation=WAYS[way]).eval().requires_grad_(False)
    name_sites(model, "encoder")
    return model


@torch.inference_mode()
def forward(way: str, model: Any, tokens: Tensor) -> Any:
    """One pass; its Trace, its tuple of maps, or only its output."""
    if way == "record":
        with record() as trace:
            model(tokens)
        return trace
    if way == "eager":
        return model(tokens, output_attentions=True).attentions
    return model(tokens).last_hidden_state


def random_tokens(n: int) -> Tensor:
    """(1, n) token ids, none of them special."""
    return torch.randint(3, 8000, (1, n), generator=torch.Generator().manual_seed(n))


@torch.inference_mode()
def random_trace(n: int) -> Trace:
    """What a model of 12 layers of 12 heads leaves behind: random queries and keys, recorded by `attend`."""
    generator = torch.Generator().manual_seed(n)
    with record() as trace:
        for layer in range(12):
            queries, keys = torch.randn(2, 1, 12, n, 64, generator=generator)
            attend(queries, keys, keys, site=f"encoder.{layer}.self")
    return trace


def our_translator() -> EncoderDecoder:
    """Return a Transformer of three blocks of 256 on each side, of numbers as they are stored: float16."""
    torch.manual_seed(0)
    model = build_translation_model({"architecture": "transformer", "dropout": 0.0, **TRANSLATOR})
    return model.half().float().eval().requires_grad_(False)


def marian() -> Any:
    """Marian in the size of our translator. No token ends its sentences, so that all have the length asked for."""
    from transformers import MarianConfig, MarianMTModel

    torch.manual_seed(0)
    sizes = TRANSLATOR
    config = MarianConfig(
        vocab_size=sizes["vocab_size"],
        d_model=sizes["num_hiddens"],
        encoder_layers=sizes["num_blks"],
        decoder_layers=sizes["num_blks"],
        encoder_attention_heads=sizes["num_heads"],
        decoder_attention_heads=sizes["num_heads"],
        encoder_ffn_dim=sizes["ffn_num_hiddens"],
        decoder_ffn_dim=sizes["ffn_num_hiddens"],
        max_position_embeddings=1000,
        activation_function="relu",
        scale_embedding=True,
        dropout=0.0,
        pad_token_id=PAD,
        bos_token_id=BOS,
        decoder_start_token_id=BOS,
        eos_token_id=None,
        forced_eos_token_id=None,
    )
    return MarianMTModel(config).half().float().eval().requires_grad_(False)
