"""Tiny random models of every family, written to disk in hub layout, with tokenizers of every kind."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from tests.viz_core.hub.tiny_whisper import build_whisper

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
PICTURE = {**SIZES, "image_size": 16, "patch_size": 4}
CODER = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
}
SPECIAL = ["<pad>", "<bos>", "<eos>", "<unk>"]
WORDPIECE_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

# Family: config class, model class, sizes, tokenizer.
FAMILIES: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "bert": ("BertConfig", "BertModel", {**SIZES, "max_position_embeddings": 64}, "wordpiece"),
    "roberta": ("RobertaConfig", "RobertaModel", {**SIZES, "max_position_embeddings": 64}, "bytes"),
    "albert": ("AlbertConfig", "AlbertModel", {**SIZES, "num_hidden_layers": 3, "embedding_size": 16}, "wordpiece"),
    "bert-fills": ("BertConfig", "BertForMaskedLM", {**SIZES, "max_position_embeddings": 64}, "wordpiece"),
    "roberta-fills": ("RobertaConfig", "RobertaForMaskedLM", {**SIZES, "max_position_embeddings": 64}, "bytes"),
    "sorter": ("BertConfig", "BertForSequenceClassification", {**SIZES, "num_labels": 3}, "wordpiece"),
    "gpt2": ("GPT2Config", "GPT2LMHeadModel", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}, "bytes"),
    "llama": ("LlamaConfig", "LlamaForCausalLM", {**SIZES, "num_key_value_heads": 2}, "bytes"),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", {**SIZES, "num_key_value_heads": 2, "head_dim": 8}, "bytes"),
    "mistral": (
        "MistralConfig",
        "MistralForCausalLM",
        {**SIZES, "num_key_value_heads": 2, "sliding_window": 5},
        "metaspace",
    ),
    "gemma": ("GemmaConfig", "GemmaForCausalLM", {**SIZES, "num_key_value_heads": 1, "head_dim": 8}, "metaspace"),
    "gemma2": (
        "Gemma2Config",
        "Gemma2ForCausalLM",
        {**SIZES, "num_key_value_heads": 2, "head_dim": 8, "sliding_window": 5, "attn_logit_softcapping": 0.7},
        "metaspace",
    ),
    "gpt-oss": (
        "GptOssConfig",
        "GptOssForCausalLM",
        {**SIZES, "num_key_value_heads": 2, "head_dim": 8, "sliding_window": 5}
        | {"num_local_experts": 2, "num_experts_per_tok": 1},
        "bytes",
    ),
    "bloom": ("BloomConfig", "BloomForCausalLM", {"hidden_size": 32, "n_layer": 2, "n_head": 4}, "bytes"),
    "marian": ("MarianConfig", "MarianMTModel", CODER, "metaspace"),
    "bart": ("BartConfig", "BartForConditionalGeneration", CODER, "bytes"),
    "t5": (
        "T5Config",
        "T5ForConditionalGeneration",
        {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "relative_attention_num_buckets": 8},
        "metaspace",
    ),
    "vit": ("ViTConfig", "ViTForImageClassification", {**PICTURE, "num_labels": 5}, "picture"),
    "deit": ("DeiTConfig", "DeiTModel", PICTURE, "picture"),
    "dinov2": ("Dinov2Config", "Dinov2Model", PICTURE, "picture"),
    "registers": ("Dinov2WithRegistersConfig", "Dinov2WithRegistersModel", PICTURE, "picture"),
}
CORPUS = [
    "The cat sat on the mat and looked at the unbelievable dog.",
    "She believes that nobody can read her old letters in the house.",
    "Where is the house of the cat? In the old town, near the river.",
    "He reads a letter, she reads a book; the dog looks at the cat.",
]


def train(kind: str) -> Tokenizer:
    """A tokenizer of 400 tokens at most, trained on a few sentences."""
    if kind == "wordpiece":
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer()
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.WordPiece()
        trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=WORDPIECE_SPECIAL)
        tokenizer.train_from_iterator(CORPUS, trainer)
        ends = [("[CLS]", 2), ("[SEP]", 3)]
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
        )
    elif kind == "bytes":
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=360, special_tokens=SPECIAL, initial_alphabet=alphabet)
        tokenizer.train_from_iterator(CORPUS, trainer)
    else:
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
        fallback = [f"<0x{byte:02X}>" for byte in range(256)]
        trainer = trainers.BpeTrainer(vocab_size=390, special_tokens=SPECIAL + fallback)
        tokenizer.train_from_iterator(CORPUS, trainer)
        # As in a real vocabulary the bytes are ordinary entries, not special tokens.
        content = json.loads(tokenizer.to_str())
        content["added_tokens"] = [token for token in content["added_tokens"] if token["content"] in SPECIAL]
        tokenizer = Tokenizer.from_str(json.dumps(content))
    return tokenizer


def save_tokenizer(kind: str, path: Path, ends: bool) -> None:
    tokenizer = train(kind)
    if ends:  # encoder-decoders end what they read
        tokenizer.post_processor = processors.TemplateProcessing(single="$A <eos>", special_tokens=[("<eos>", 2)])
    names = (
        {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
        if kind == "wordpiece"
        else {"pad_token": "<pad>", "bos_token": "<bos>", "eos_token": "<eos>", "unk_token": "<unk>"}
    )
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(path)


def random_model(family: str, **options: Any) -> Any:
    """A model in memory with random weights, large enough that attention is far from even; options of its config."""
    config_class, model_class, sizes, tokenizer = FAMILIES[family]
    words = {} if tokenizer == "picture" else {"vocab_size": 400, "pad_token_id": 0, "eos_token_id": 2}
    if tokenizer not in ("picture", "wordpiece"):
        words["bos_token_id"] = 1
    if family in ("marian", "t5"):
        words["decoder_start_token_id"] = 0
    config = getattr(transformers, config_class)(**{**sizes, **words, **options})
    with torch.random.fork_rng():
        torch.manual_seed(11)
        model = getattr(transformers, model_class)(config).eval()
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1 and parameter.requires_grad and "sin" not in name:
                torch.nn.init.normal_(parameter, std=0.15)
    return model


def build(family: str, path: Path) -> None:
    """Write a model with random weights."""
    from tests.viz_core.hub import tiny_hybrids, tiny_talkers

    if family == "whisper":
        build_whisper(path, lambda: train("bytes"))
        return
    if family in (*tiny_talkers.FAMILIES, *tiny_talkers.TWO_TOWERS):
        tiny_talkers.build(family, path)
        return
    if family in tiny_hybrids.FAMILIES:
        tiny_hybrids.hybrid(family).save_pretrained(path)
        save_tokenizer("bytes", path, ends=False)
        return
    tokenizer = FAMILIES[family][3]
    random_model(family).save_pretrained(path)
    if tokenizer == "picture":
        transformers.ViTImageProcessorPil(size={"height": 16, "width": 16}).save_pretrained(path)
    else:
        save_tokenizer(tokenizer, path, ends=family in ("marian", "bart", "t5"))
    (path / "README.md").write_text("---\nlicense: cc0-1.0\n---\n# A tiny random model\n", encoding="utf-8")


def build_all(families: Iterable[str], root: Path) -> Path:
    """One model of each of these families, each in a folder of its name: what a host may offer."""
    for family in families:
        (root / family).mkdir()
        build(family, root / family)
    return root
