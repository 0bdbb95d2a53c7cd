"""The shipped tokenizers as JSON for static_site/web/tokenizer.js and byte_tokenizer.js."""

from __future__ import annotations

import json

from tokenizers import Tokenizer

from static_site.site_files import SiteFiles
from viz_core.runtime.assets import ASSETS


def tokenizer_json(tokenizer: Tokenizer) -> str:
    """Vocabulary, merges and the pattern of pieces of a byte-pair tokenizer as `viz_core.pretrained` trains it.

    Raises:
        ValueError: if it works in a way that the script does not know.
    """
    content = json.loads(tokenizer.to_str())
    model, steps = content["model"], content["pre_tokenizer"].get("pretokenizers", [])
    kinds = [content["normalizer"]["type"], model["type"], *(step["type"] for step in steps)]
    if kinds != ["NFKC", "BPE", "Metaspace", "Split"] or not model["byte_fallback"]:
        raise ValueError(f"tokenizer: expected NFKC, Metaspace, Split and BPE with bytes, got {', '.join(kinds)}")
    vocab = sorted(model["vocab"], key=model["vocab"].__getitem__)
    pattern = steps[1]["pattern"]["Regex"].removeprefix("(?i)")
    return json.dumps({"vocab": vocab, "merges": model["merges"], "pieces": pattern}, ensure_ascii=False)


def byte_tokenizer_json(tokenizer: Tokenizer) -> str:
    """Vocabulary, merges, what is split off first and special tokens of a byte-level tokenizer, as the writer has it.

    Raises:
        ValueError: if it works in a way that the script does not know.
    """
    content = json.loads(tokenizer.to_str())
    model, normal = content["model"], content["normalizer"]["normalizers"]
    split, level = content["pre_tokenizer"]["pretokenizers"]
    kinds = [*(step["type"] for step in normal), model["type"], split["type"], level["type"]]
    plain = level["use_regex"] and not level["add_prefix_space"] and split["behavior"] == "Isolated"
    if kinds != ["NFKC", "Prepend", "BPE", "Split", "ByteLevel"] or normal[1]["prepend"] != " " or not plain:
        raise ValueError(f"tokenizer: expected NFKC, Prepend, BPE, Split and ByteLevel, got {', '.join(kinds)}")
    vocab = sorted(model["vocab"], key=model["vocab"].__getitem__)
    special = [token["content"] for token in content["added_tokens"]]
    parts = {"vocab": vocab, "merges": model["merges"], "split": split["pattern"]["Regex"], "special": special}
    return json.dumps(parts, ensure_ascii=False)


def add_text_tokenizer(files: SiteFiles, model: str) -> dict[str, object]:
    """Add the tokenizer of a model of assets/hub; writer and reader have the same, in one file."""
    tokenizer = Tokenizer.from_file(str(ASSETS / "hub" / model / "tokenizer.json"))
    return files.add("models/byte-tokenizer.json", byte_tokenizer_json(tokenizer))
