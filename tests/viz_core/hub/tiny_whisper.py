"""A tiny Whisper with random weights, written to disk as the real ones are: it knows no language."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer

ALIGNING = [[0, 1], [1, 2]]
SECONDS = 3
SPECIAL = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|fr|>", "<|translate|>", "<|transcribe|>"]
SPECIAL += ["<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"]


def build_whisper(path: Path, bytes_tokenizer: Callable[[], Tokenizer]) -> None:
    """Two layers of width 16 on each side, and everything else that a folder of a real one has. It writes whole words.

    Args:
        bytes_tokenizer: makes a byte-level tokenizer of some hundred tokens.
    """
    tokenizer = _tokenizer(bytes_tokenizer())
    tokenizer.save_pretrained(path)
    ids = {name: tokenizer.convert_tokens_to_ids(name) for name in SPECIAL}
    end, start = ids["<|endoftext|>"], ids["<|startoftranscript|>"]
    marks = {f"{name}_token_id": end for name in ("pad", "bos", "eos")}
    config = transformers.WhisperConfig(
        vocab_size=len(tokenizer),
        d_model=16,
        num_mel_bins=20,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        max_source_positions=50 * SECONDS,
        max_target_positions=64,
        decoder_start_token_id=start,
        begin_suppress_tokens=None,
        **marks,
    )
    with torch.random.fork_rng():
        torch.manual_seed(4)
        model = transformers.WhisperForConditionalGeneration(config).eval()
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1 and parameter.requires_grad:
                torch.nn.init.normal_(parameter, std=0.05 if "embed_tokens" in name else 0.5)
    languages = {name: ids[name] for name in ("<|en|>", "<|fr|>")}
    tasks = {name: ids[f"<|{name}|>"] for name in ("translate", "transcribe")}
    fields = {
        "suppress_tokens": [id_ for name, id_ in tokenizer.get_vocab().items() if not name.startswith("Ġ")],
        "alignment_heads": ALIGNING,
        "no_timestamps_token_id": ids["<|notimestamps|>"],
        "is_multilingual": True,
        "lang_to_id": languages,
        "task_to_id": tasks,
        "task": "transcribe",
        "decoder_start_token_id": start,
        **marks,
    }
    model.generation_config = transformers.GenerationConfig(**fields)
    model.save_pretrained(path)
    transformers.WhisperFeatureExtractor(feature_size=20, chunk_length=SECONDS).save_pretrained(path)
    (path / "README.md").write_text("---\nlicense: cc0-1.0\n---\n# A tiny random model\n", encoding="utf-8")


def _tokenizer(trained: Tokenizer) -> transformers.WhisperTokenizer:
    bpe = json.loads(trained.to_str())["model"]
    merges = [tuple(pair) for pair in bpe["merges"]]
    tokenizer = transformers.WhisperTokenizer(vocab=bpe["vocab"], merges=merges)
    tokenizer.add_special_tokens({"additional_special_tokens": SPECIAL[1:]})
    return tokenizer
