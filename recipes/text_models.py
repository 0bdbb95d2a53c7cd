"""The models of English that ship: one that writes, in Llama's format, and one that fills gaps, in BERT's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from recipes.export_text_model import export_text_model
from recipes.loop import RunOptions
from recipes.sentence_pairs import Pair, load_pairs, split_pairs
from recipes.text_loop import TextModelSpec, Texts, filling_loss, train_text_model, writing_loss
from recipes.text_rows import SPECIAL

LIMIT = 128  # tokens that a text may have
_PLAIN = "eager"  # rows of ten tokens: fused attention takes twice as long on a CPU
_IDS = {"pad_token_id": SPECIAL["<pad>"], "bos_token_id": SPECIAL["<s>"], "eos_token_id": SPECIAL["</s>"]}


def writer(architecture: dict[str, Any]) -> nn.Module:
    """A causal decoder with rotary positions and grouped queries (transformers' LlamaForCausalLM)."""
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(LlamaConfig(**architecture, **_IDS, attn_implementation=_PLAIN))


def reader(architecture: dict[str, Any]) -> nn.Module:
    """An encoder with learned positions (transformers' BertForMaskedLM)."""
    from transformers import BertConfig, BertForMaskedLM

    return BertForMaskedLM(BertConfig(**architecture, **_IDS, attn_implementation=_PLAIN))


TEXT_MODELS = {
    "writer-en": TextModelSpec(
        "Writer, English",
        "a decoder with rotary positions and grouped queries in the format of Llama (Touvron et al. 2023)",
        writer,
        {
            "hidden_size": 128,
            "intermediate_size": 352,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": LIMIT,
            "tie_word_embeddings": True,
        },
        writing_loss,
        lambda model: [
            model.model.embed_tokens,
            *(part for layer in model.model.layers for part in (layer.self_attn.o_proj, layer.mlp.down_proj)),
        ],
        ends=False,
    ),
    "reader-en": TextModelSpec(
        "Reader, English",
        "a masked encoder with learned positions in the format of BERT (Devlin et al. 2019), whole words hidden",
        reader,
        {
            "hidden_size": 128,
            "intermediate_size": 512,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "max_position_embeddings": LIMIT,
            "type_vocab_size": 2,
            "hidden_dropout_prob": 0.0,  # the loop's takes its place
            "attention_probs_dropout_prob": 0.0,
        },
        filling_loss,
        lambda model: [
            model.bert.embeddings,
            *(
                part
                for layer in model.bert.encoder.layer
                for part in (layer.attention.output.dense, layer.output.dense)
            ),
        ],
        ends=True,
    ),
}


def train(name: str, data: Path, run: RunOptions, epochs: int | None) -> None:
    """Train one of TEXT_MODELS on the English of the sentence pairs, measure it and write its folder."""
    spec = TEXT_MODELS[name]
    config = spec.config if epochs is None else replace(spec.config, epochs=epochs)
    parts = [english(part) for part in split_pairs(load_pairs(data))]
    model, tokenizer, state = train_text_model(
        lambda size: spec.build({"vocab_size": size, **spec.architecture}),
        spec.loss,
        spec.added,
        Texts(*parts[:2]),
        config,
        run,
        stop_between=spec.ends,
    )
    export_text_model(name, spec, model, tokenizer, parts, state, config, run.out, run.device)


def english(pairs: Sequence[Pair]) -> list[str]:
    """Each English sentence once, however many translations it has."""
    return list(dict.fromkeys(pair.english for pair in pairs))
