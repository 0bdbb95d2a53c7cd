"""Models of a size, with random weights: how long they take does not depend on what they have learned."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from viz_core.hub import ATTENTION_IMPLEMENTATION, register
from viz_core.models.encoder_decoder import EncoderDecoder
from viz_core.pretrained import build_translation_model
from viz_core.trace import Trace, attend, name_sites, record

# How a forward pass is run: ours, transformers' fused attention, and transformers' attention that gives its maps.
WAYS = {"record": ATTENTION_IMPLEMENTATION, "fused": "sdpa", "eager": "eager"}

TRANSLATOR = {"vocab_size": 8000, "num_hiddens": 256, "ffn_num_hiddens": 1024, "num_heads": 8, "num_blks": 3}
PAD, BOS = 0, 1


def bert(way: str, device: str = "cpu", *, layers: int = 6, width: int = 384, heads: int = 12) -> Any:
    """A BERT for up to 16,384 tokens, the same weights whichever way its attention runs."""
    from transformers import AutoModel, BertConfig

    register()
    torch.manual_seed(0)
    config = BertConfig(
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        max_position_embeddings=16384,
    )
    model = AutoModel.from_config(config, attn_implementation=WAYS[way]).eval().requires_grad_(False).to(device)
    name_sites(model, "encoder")
    return model


def save_bert(folder: Path, words: Sequence[str] = ()) -> None:
    """The same on disk in hub layout, with a tokenizer that takes every word for one token; it knows these."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    folder.mkdir(parents=True)
    bert("record").save_pretrained(folder)
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    known = {name: place for place, name in enumerate((*names, *words))}
    tokenizer = Tokenizer(models.WordLevel(known, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    special = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token"), names, strict=True))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)


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


def random_tokens(n: int, device: str = "cpu", vocabulary: int = 8000) -> Tensor:
    """(1, n) token ids, none of them special."""
    return torch.randint(3, vocabulary, (1, n), generator=torch.Generator().manual_seed(n)).to(device)


@torch.inference_mode()
def random_trace(n: int, *, layers: int = 12, heads: int = 12, width: int = 64) -> Trace:
    """What a model of so many heads leaves behind: random queries and keys, recorded by `attend`."""
    generator = torch.Generator().manual_seed(n)
    with record() as trace:
        for layer in range(layers):
            queries, keys = torch.randn(2, 1, heads, n, width, generator=generator)
            attend(queries, keys, keys, site=f"encoder.{layer}.self")
    return trace


def our_translator(device: str = "cpu") -> EncoderDecoder:
    torch.manual_seed(0)
    model = build_translation_model({"architecture": "transformer", "dropout": 0.0, **TRANSLATOR})
    return model.eval().requires_grad_(False).to(device)


def marian(device: str = "cpu") -> Any:
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
    return MarianMTModel(config).eval().requires_grad_(False).to(device)
