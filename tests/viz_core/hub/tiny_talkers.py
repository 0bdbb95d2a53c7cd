"""Tiny random models that read pictures or sounds beside words, written to disk with all that a real one has."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import transformers
from packaging.version import Version
from tokenizers import Tokenizer

from tests.viz_core.hub.families import image_processor, save_tokenizer, train

WORDS = {"vocab_size": 420, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
WORDS |= {"num_attention_heads": 4, "num_key_value_heads": 2, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
EYES = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}
EYES |= {"image_size": 16, "patch_size": 4}
LLAVA_TOKENS = ["<image>"]
TILE_TOKENS = ["<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>"] + [
    f"<row_{i}_col_{j}>" for i in range(1, 4) for j in range(1, 4)
]
INTERN_TOKENS = ["<IMG_CONTEXT>", "<img>", "</img>", "<video>"]
QWEN_TOKENS = ["<|image_pad|>", "<|vision_start|>", "<|vision_end|>", "<|video_pad|>"]
ROPE = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [1, 1, 2]}
SQUARES = {"patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 2}
PIXELS = {"patch_size": 4, "merge_size": 2, "size": {"shortest_edge": 256, "longest_edge": 1024}}
PINPOINTS = [[16, 32], [32, 16], [32, 32]]
TILES = {"size": {"longest_edge": 48}, "max_image_size": {"longest_edge": 16}}

TWO_TOWERS = ("clip", "siglip")

SQUARE: dict[str, Any] = {"size": {"height": 16, "width": 16}}
CROPPED: dict[str, Any] = {"size": {"shortest_edge": 18}, "crop_size": SQUARE["size"]}
POINTS: dict[str, Any] = {"image_grid_pinpoints": PINPOINTS}
PACKED = {"depth": 2, "num_heads": 2, **SQUARES}
NARROW = {**PACKED, "hidden_size": 16, "out_hidden_size": 32, "intermediate_size": 24}
GEMMA = {"text_config": {"model_type": "gemma", "head_dim": 8, **WORDS}, "projection_dim": 32, "hidden_size": 32}


def eyes(kind: str, **sizes: Any) -> dict[str, Any]:
    return {"vision_config": {"model_type": kind, **EYES}, **sizes}


# Family: model class, tokens of its own, sizes beside the text's, image processor and its options.
FAMILIES: dict[str, tuple[str, list[str], dict[str, Any], str, dict[str, Any]]] = {
    "llava": ("Llava", LLAVA_TOKENS, eyes("clip_vision_model"), "CLIP", CROPPED),
    "llava_next": (
        *("LlavaNext", LLAVA_TOKENS, eyes("clip_vision_model", **POINTS), "LlavaNext"),
        {**CROPPED, "size": {"shortest_edge": 16}, **POINTS},
    ),
    "idefics3": ("Idefics3", TILE_TOKENS, eyes("idefics3_vision", scale_factor=2), "Idefics3", TILES),
    "smolvlm": ("SmolVLM", TILE_TOKENS, eyes("smolvlm_vision", scale_factor=2), "SmolVLM", TILES),
    "qwen2_vl": (
        *("Qwen2VL", QWEN_TOKENS),
        {"vision_config": {**PACKED, "embed_dim": 16, "hidden_size": 32, "mlp_ratio": 2}},
        *("Qwen2VL", PIXELS),
    ),
    "qwen2_5_vl": (
        *("Qwen2_5_VL", QWEN_TOKENS),
        {"vision_config": {**NARROW, "window_size": 16, "fullatt_block_indexes": [1]}},
        *("Qwen2VL", PIXELS),
    ),
    "qwen3_vl": (
        *("Qwen3VL", QWEN_TOKENS),
        {"vision_config": {**NARROW, "num_position_embeddings": 16, "deepstack_visual_indexes": [0]}},
        *("Qwen2VL", PIXELS),
    ),
    "internvl": (
        *("InternVL", INTERN_TOKENS, eyes("internvl_vision", image_seq_length=4), "GotOcr2"),
        {**SQUARE, "max_patches": 6},
    ),
    "paligemma": (
        *("PaliGemma", LLAVA_TOKENS),
        {"vision_config": {"model_type": "siglip_vision_model", "vision_use_head": False, **EYES}, **GEMMA},
        *("Siglip", SQUARE),
    ),
}


ALIGNING = [[0, 1], [1, 2]]
SECONDS = 3
WHISPER_SPECIAL = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|fr|>", "<|translate|>", "<|transcribe|>"]
WHISPER_SPECIAL += ["<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"]


def build(family: str, path: Path) -> None:
    (path / "README.md").write_text("---\nlicense: cc0-1.0\n---\n# A tiny random model\n", encoding="utf-8")
    if family == "whisper":
        _build_whisper(path)
        return
    if family in TWO_TOWERS:
        _build_two_towers(family, path)
        return
    name, own, sizes, processor, options = FAMILIES[family]
    model_class = getattr(transformers, f"{name}ForConditionalGeneration")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=train("bytes"), pad_token="<pad>", bos_token="<bos>", eos_token="<eos>", unk_token="<unk>"
    )
    tokenizer.add_special_tokens({"additional_special_tokens": own})
    words = {**WORDS, "rope_parameters": ROPE, "head_dim": 8} if "qwen" in family else {**WORDS, "model_type": "llama"}
    config = model_class.config_class(**{"text_config": words, **sizes})
    config.image_token_id = tokenizer.convert_tokens_to_ids(own[0])
    if "qwen" in family:
        config.vision_start_token_id, config.vision_end_token_id, config.video_token_id = (
            tokenizer.convert_tokens_to_ids(token) for token in own[1:]
        )
    _save(model_class, config, path)
    tokenizer.save_pretrained(path)
    image_processor(f"{processor}ImageProcessor")(**options).save_pretrained(path)
    if family == "qwen3_vl":  # its limits are those of all frames together
        size = {"shortest_edge": 1024, "longest_edge": 4096}
        (path / "video_preprocessor_config.json").write_text(json.dumps({"size": size}), encoding="utf-8")


def _build_two_towers(family: str, path: Path) -> None:
    words = {**WORDS, "vocab_size": 400, "max_position_embeddings": 24}
    del words["num_key_value_heads"]
    if family == "clip":
        clip = transformers.CLIPConfig(text_config=words, vision_config=EYES, projection_dim=12)
        _save(transformers.CLIPModel, clip, path)
        image_processor("CLIPImageProcessor")(**CROPPED).save_pretrained(path)
    else:
        words["projection_size"] = EYES["hidden_size"]
        _save(transformers.SiglipModel, transformers.SiglipConfig(text_config=words, vision_config=EYES), path)
        image_processor("SiglipImageProcessor")(**SQUARE).save_pretrained(path)
    save_tokenizer("bytes", path, ends=True)


def _save(model_class: Any, config: Any, path: Path) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(11)
        model = model_class(config).eval()
        for parameter in model.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.2)
    model.save_pretrained(path)


def _build_whisper(path: Path) -> None:
    tokenizer = _whisper_tokenizer(train("bytes"))
    tokenizer.save_pretrained(path)
    ids = {name: tokenizer.convert_tokens_to_ids(name) for name in WHISPER_SPECIAL}
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


def _whisper_tokenizer(trained: Tokenizer) -> transformers.WhisperTokenizer:
    bpe = json.loads(trained.to_str())["model"]
    merges = [tuple(pair) for pair in bpe["merges"]]
    if Version(transformers.__version__).major >= 5:
        tokenizer = transformers.WhisperTokenizer(vocab=bpe["vocab"], merges=merges)
    else:  # from files alone
        with TemporaryDirectory() as folder:
            vocabulary, lines = Path(folder) / "vocab.json", Path(folder) / "merges.txt"
            vocabulary.write_text(json.dumps(bpe["vocab"]), "utf-8")
            lines.write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges), "utf-8")
            tokenizer = transformers.WhisperTokenizer(str(vocabulary), str(lines))
    tokenizer.add_special_tokens({"additional_special_tokens": WHISPER_SPECIAL[1:]})
    return tokenizer
