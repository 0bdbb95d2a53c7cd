"""Tiny random models of every family, in memory, or in folders as on the Hub; and what they give eagerly."""

import copy
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch import Tensor

from viz_core.trace import site_of

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
PICTURE = {**SIZES, "image_size": 16, "patch_size": 4}
CODER = {"d_model": 32, "max_position_embeddings": 64}
for _stack in ("encoder", "decoder"):
    CODER |= {f"{_stack}_layers": 2, f"{_stack}_attention_heads": 4, f"{_stack}_ffn_dim": 48}
GROUPED = {**SIZES, "num_key_value_heads": 2}
_LOCAL = {**GROUPED, "head_dim": 8, "sliding_window": 5}
LATENT = {**SIZES, "num_key_value_heads": 4, "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8}
LATENT |= {"qk_nope_head_dim": 8, "v_head_dim": 8, "first_k_dense_replace": 2}
SPECIAL = ["<pad>", "<bos>", "<eos>", "<unk>"]
WORDPIECE_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

# Family: model class, sizes, tokenizer.
FAMILIES: dict[str, tuple[str, dict[str, Any], str]] = {
    "bert": ("BertModel", {**SIZES, "max_position_embeddings": 64}, "wordpiece"),
    "roberta": ("RobertaModel", {**SIZES, "max_position_embeddings": 64}, "bytes"),
    "albert": ("AlbertModel", {**SIZES, "num_hidden_layers": 3, "embedding_size": 16}, "wordpiece"),
    "bert-fills": ("BertForMaskedLM", {**SIZES, "max_position_embeddings": 64}, "wordpiece"),
    "roberta-fills": ("RobertaForMaskedLM", {**SIZES, "max_position_embeddings": 64}, "bytes"),
    "sorter": ("BertForSequenceClassification", {**SIZES, "num_labels": 3}, "wordpiece"),
    "gpt2": ("GPT2LMHeadModel", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}, "bytes"),
    "llama": ("LlamaForCausalLM", GROUPED, "bytes"),
    "qwen3": ("Qwen3ForCausalLM", {**GROUPED, "head_dim": 8}, "bytes"),
    "mistral": ("MistralForCausalLM", {**GROUPED, "sliding_window": 5}, "metaspace"),
    "gemma": ("GemmaForCausalLM", {**SIZES, "num_key_value_heads": 1, "head_dim": 8}, "metaspace"),
    "gemma2": ("Gemma2ForCausalLM", _LOCAL | {"attn_logit_softcapping": 0.7}, "metaspace"),
    "gpt-oss": ("GptOssForCausalLM", _LOCAL | {"num_local_experts": 2, "num_experts_per_tok": 1}, "bytes"),
    "bloom": ("BloomForCausalLM", {"hidden_size": 32, "n_layer": 2, "n_head": 4}, "bytes"),
    "marian": ("MarianMTModel", CODER, "metaspace"),
    "bart": ("BartForConditionalGeneration", CODER, "bytes"),
    "t5": (
        "T5ForConditionalGeneration",
        {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "relative_attention_num_buckets": 8},
        "metaspace",
    ),
    "vit": ("ViTForImageClassification", {**PICTURE, "num_labels": 5}, "picture"),
    "deit": ("DeiTModel", PICTURE, "picture"),
    "dinov2": ("Dinov2Model", PICTURE, "picture"),
    "registers": ("Dinov2WithRegistersModel", PICTURE, "picture"),
}
# More that are built in memory alone: decoders that say nothing of their own, some with attention in code of their own.
FAMILIES_IN_MEMORY: dict[str, tuple[str, dict[str, Any], str]] = {
    "cohere": ("CohereForCausalLM", GROUPED, ""),
    "deberta": ("DebertaV2Model", {**SIZES, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]}, ""),
    "deepseek_v2": ("DeepseekV2ForCausalLM", LATENT, ""),
    "deepseek_v3": ("DeepseekV3ForCausalLM", LATENT, ""),
    "diffllama": ("DiffLlamaForCausalLM", {**SIZES, "num_key_value_heads": 4}, ""),
    "falcon": ("FalconForCausalLM", {**SIZES, "ffn_hidden_size": 48}, ""),
    "fsmt": ("FSMTModel", {**CODER, "src_vocab_size": 400, "tgt_vocab_size": 400}, ""),
    "gpt_neox": ("GPTNeoXForCausalLM", SIZES, ""),
    "granite": ("GraniteForCausalLM", {**GROUPED, "residual_multiplier": 0.5}, ""),
    "mixtral": ("MixtralForCausalLM", {**GROUPED, "num_local_experts": 4}, ""),
    "olmo2": ("Olmo2ForCausalLM", GROUPED, ""),
    "opt": ("OPTForCausalLM", {**SIZES, "ffn_dim": 48, "word_embed_proj_dim": 32}, ""),
    "phi": ("PhiForCausalLM", GROUPED, ""),
    "qwen2": ("Qwen2ForCausalLM", GROUPED, ""),
    "xglm": ("XGLMModel", {"d_model": 32, "ffn_dim": 48, "num_layers": 2, "attention_heads": 4}, ""),
}
CORPUS = [
    "The cat sat on the mat and looked at the unbelievable dog.",
    "She believes that nobody can read her old letters in the house.",
    "Where is the house of the cat? In the old town, near the river.",
    "He reads a letter, she reads a book; the dog looks at the cat.",
]


def train(kind: str) -> Tokenizer:
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
    name, sizes, tokenizer = (FAMILIES | FAMILIES_IN_MEMORY)[family]
    words = {} if tokenizer == "picture" else {"vocab_size": 400, "pad_token_id": 0, "eos_token_id": 2}
    if tokenizer not in ("picture", "wordpiece"):
        words["bos_token_id"] = 1
    if family in ("marian", "t5"):
        words["decoder_start_token_id"] = 0
    model_class = getattr(transformers, name)
    return drawn(model_class, model_class.config_class(**{**sizes, **words, **options}), excluded="sin")


def drawn(model_class: Any, config: Any, excluded: str) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(11)
        model = model_class(config).eval()
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1 and parameter.requires_grad and excluded not in name:
                torch.nn.init.normal_(parameter, std=0.15)
    return model


def image_processor(name: str) -> Any:
    """Return the class of an image processor that needs no torchvision, whose name in transformers 5 ends in "Pil"."""
    return getattr(transformers, f"{name}Pil", None) or getattr(transformers, name)


def build(family: str, path: Path) -> None:
    from tests.viz_core.hub import tiny_talkers

    if family in (*tiny_talkers.FAMILIES, *tiny_talkers.TWO_TOWERS, "whisper"):
        tiny_talkers.build(family, path)
        return
    if family in HYBRIDS:
        hybrid(family).save_pretrained(path)
        save_tokenizer("bytes", path, ends=False)
        return
    tokenizer = FAMILIES[family][2]
    random_model(family).save_pretrained(path)
    if tokenizer == "picture":
        image_processor("ViTImageProcessor")(size={"height": 16, "width": 16}).save_pretrained(path)
    else:
        save_tokenizer(tokenizer, path, ends=family in ("marian", "bart", "t5"))
    (path / "README.md").write_text("---\nlicense: cc0-1.0\n---\n# A tiny random model\n", encoding="utf-8")


def build_all(families: Iterable[str], root: Path) -> Path:
    for family in families:
        (root / family).mkdir()
        build(family, root / family)
    return root


_BASE = {**GROUPED, "num_hidden_layers": 4, "vocab_size": 400, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
_TYPES = ["linear_attention", "linear_attention", "full_attention", "linear_attention"]
_DELTA = {**_BASE, "head_dim": 8, "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8}
_DELTA |= {"linear_value_head_dim": 8, "layer_types": _TYPES}
_MAMBA = {**_BASE, "mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 16, "mamba_n_groups": 2}
_MAMBA["mamba_chunk_size"] = 16
_EXPERTS = {"num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 16}

# Family: model class, the rule of its layers without a softmax, sizes.
HYBRIDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "qwen3_next": ("Qwen3Next", "gated delta rule", _DELTA | _EXPERTS | {"shared_expert_intermediate_size": 16}),
    "qwen3_5_text": ("Qwen3_5", "gated delta rule", _DELTA),
    "olmo_hybrid": ("OlmoHybrid", "gated delta rule", _DELTA | {"linear_num_key_heads": 4}),
    "kimi_linear": (
        *("KimiLinear", "Kimi delta rule"),
        {**LATENT, **_BASE, "layer_types": _TYPES, "num_key_value_heads": 4, "mlp_layer_types": ["dense"] * 4}
        | {"linear_head_dim": 8, "linear_num_heads": 4},
    ),
    "minimax": (
        *("MiniMax", "lightning attention"),
        {**_BASE, "head_dim": 8, "block_size": 16, "num_local_experts": 2, "layer_types": _TYPES},
    ),
    "mamba2": (
        *("Mamba2", "state-space duality"),
        {name: size for name, size in _BASE.items() if "attention" not in name and "key" not in name}
        | {"num_heads": 8, "head_dim": 8, "state_size": 16, "n_groups": 2, "chunk_size": 16},
    ),
    "bamba": ("Bamba", "state-space duality", _MAMBA | {"attn_layer_indices": [2]}),
    "falcon_h1": ("FalconH1", "state-space duality", _MAMBA | {"mamba_d_ssm": 64}),
    "nemotron_h": (
        *("NemotronH", "state-space duality"),
        {**_BASE, "mamba_num_heads": 8, "mamba_head_dim": 8, "ssm_state_size": 16, "n_groups": 2, "chunk_size": 16}
        | {"layers_block_type": ["mamba", "attention", "mamba", "moe"]},
    ),
    "granitemoehybrid": (
        *("GraniteMoeHybrid", "state-space duality"),
        {**_MAMBA, "num_local_experts": 2, "shared_intermediate_size": 16}
        | {"layer_types": ["mamba", "mamba", "attention", "mamba"]},
    ),
    "xlstm": (
        *("xLSTM", "mLSTM"),
        {"vocab_size": 400, "hidden_size": 128, "embedding_dim": 128, "num_hidden_layers": 2, "num_blocks": 2}
        | {"num_heads": 4, "chunk_size": 16},
    ),
}


def hybrid(family: str) -> Any:
    """A model in memory with random weights, large enough that maps are far from 0."""
    name, _, options = HYBRIDS[family]
    model_class = getattr(transformers, f"{name}ForCausalLM")
    model = drawn(model_class, transformers.CONFIG_MAPPING[family](**options), excluded="conv")
    for layer in model.modules():
        if hasattr(layer, "igate_preact"):  # sums of a third of the rows are above 1
            torch.nn.init.constant_(layer.igate_preact.bias, -3.0)
    return model


IN_MEMORY = ["gpt2", "bert", "t5", "llama", "gemma2", "vit", "marian", "dinov2", "bart"]
NO_DROPOUT = dict.fromkeys(
    "resid_pdrop embd_pdrop attn_pdrop hidden_dropout_prob attention_probs_dropout_prob dropout dropout_rate "
    "attention_dropout activation_dropout drop_path_rate".split(),
    0.0,
)


def in_memory(family: str, **options: Any) -> Any:
    """The same without dropout, so that training gives what evaluation gives."""
    return random_model(family, **{**NO_DROPOUT, **options})


def inputs_of(model: Any) -> dict[str, Tensor]:
    draw = torch.Generator().manual_seed(8)
    if model.main_input_name == "pixel_values":
        return {"pixel_values": torch.randn(2, 3, 16, 16, generator=draw)}
    real = torch.arange(9) < torch.tensor([9, 5])[:, None]
    inputs = {"input_ids": torch.randint(4, 390, (2, 9), generator=draw).where(real, 0), "attention_mask": real.long()}
    if model.config.model_type == "bert":
        inputs["input_ids"] %= 200
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = torch.randint(4, 390, (2, 7), generator=draw)
    return inputs


def maps_of(result: Any, stack: str) -> dict[str, Tensor]:
    kinds = {
        "attentions": f"{stack}.{{}}.self",
        "encoder_attentions": "encoder.{}.self",
        "decoder_attentions": "decoder.{}.self",
        "cross_attentions": "decoder.{}.cross",
    }
    found = {}
    for name, site in kinds.items():
        for layer, weights in enumerate(getattr(result, name, None) or ()):
            found[site.format(layer)] = weights
    return found


def eager_twin(model: Any) -> Any:
    twin = copy.deepcopy(model)
    twin.set_attn_implementation("eager")
    return twin


def output_of(result: Any) -> Tensor:
    return result.logits if "logits" in result else result.last_hidden_state


def implementations(model: Any) -> list[str | None]:
    configs = [module.config for module in model.modules() if hasattr(module, "config")]
    return [config._attn_implementation for config in configs]


def hooks(model: Any) -> int:
    return sum(len(part._forward_hooks) + len(part._forward_pre_hooks) for part in model.modules())


@torch.no_grad()
def zero_head(model: Any, site: str, head: int) -> None:
    """Set the columns of a head, of four, in its layer's output projection to zero."""
    projection = projection_of(model, site)
    columns = projection.weight.T if type(projection).__name__ == "Conv1D" else projection.weight
    width = columns.shape[1] // 4
    columns[:, head * width : (head + 1) * width] = 0


def projection_of(model: Any, site: str) -> Any:
    layer = next(module for module in model.modules() if site_of(module) == site)
    names = ("o_proj", "out_proj", "c_proj", "o", "dense")
    inner = [module for name, module in layer.named_modules() if name.rsplit(".", 1)[-1] in names]
    outer = [m for name, m in model.named_modules() if name.endswith(("attention.output.dense", "attention.o_proj"))]
    return inner[0] if inner else outer[int(site.split(".")[1])]
