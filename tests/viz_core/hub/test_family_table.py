"""The register of families: each is made small, run with and without the inspector, and compared; a row each.

`python -m tests.viz_core.hub.test_family_table` writes the first two parts of docs/architectures.md (`make families`),
and the tests compare a part of the table with the models. Nothing is downloaded. Sizes are recognised by the names of a
config's attributes, in nested configs too; what a family needs beyond that is in `OWN`.
"""

import contextlib
import datetime
import inspect
import re
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

from tests.viz_core.hub.families import HYBRIDS
from viz_core.hub import coverage, instrument, verify
from viz_core.trace import Trace, record, site_of
from viz_core.trace.coverage import describe_uncovered
from viz_core.trace.outputs import pooled
from viz_core.trace.sites import projections

TABLE = Path(__file__).resolve().parents[3] / "docs" / "architectures.md"
SECONDS, ERRORS = 60, range(6, 10)  # for a family; columns
WIDTH, HEADS, VOCABULARY, TOKENS, MAX_PARAMETERS = 32, 4, 96, 12, 4_000_000
IMAGE, PATCH = 32, 8

# The first pattern that a name matches in full gives the size.
_SIZES: tuple[tuple[int, str], ...] = (
    (VOCABULARY, r".*(?:vocab_size|vocab_size_per_layer_input|vocabulary_size)"),
    (2, r"(?:num_key_value_heads|num_kv_heads|.*_key_value_heads|n_kv_heads|num_key_value_groups|.*_kv_heads)"),
    (4, r"linear_num_key_heads|linear_num_value_heads"),
    (HEADS, r".*(?:num_attention_heads|attention_heads|num_heads|n_head|n_heads|num_head)"),
    (16, r".*lora_rank"),
    (WIDTH // HEADS, r".*(?:head_dim|d_kv|kv_channels|head_size|head_width)"),
    (16, r"(?:moe|expert|shared_expert|shared)_?.*(?:intermediate_size|ffn_dim|_size)"),
    (48, r".*(?:intermediate_size|ffn_dim|d_ff|ffn_hidden_size|mlp_dim|n_inner|feedforward|intermediate_dim|ff_dim)"),
    (2, r".*(?:experts_per_tok|experts_per_token|experts_top_k|moe_topk|moe_k|top_k_experts|num_selected_experts)"),
    (4, r".*(?:num_experts|num_local_experts|n_routed_experts)"),
    (1, r"n_group|topk_group|moe_num_shared_experts|n_shared_experts|first_k_dense_replace|num_dense_layers"),
    (2, r".*(?:_layers|n_layer|depth|num_blocks|num_hidden_groups)"),
    (WIDTH, r".*(?:hidden_size|d_model|n_embd|embed_dim|hidden_dim|embedding_size|projection_dim|proj_dim|width)"),
    (WIDTH // HEADS, r"rotary_dim"),
    (WIDTH, r"dim|.*(?:proj_size|output_dim|out_dim|hidden_channels|emb_dim|embedding_dim|bottleneck_dim|d_cond)"),
    (128, r".*(?:max_position_embeddings|n_positions|max_.*positions|max_seq_len|max_sequence_length|n_ctx)"),
)
# These number what is listed elsewhere.
_UNCHANGED = ("num_feat_extract_layers", "num_conv_layers", "num_adapter_layers")
_MROPE = re.compile(r"qwen2(_5)?_vl|glm4v|glm46v|glm_ocr|glm_image|glmga|paddleocr")
KINDS = {"past_values": "series", "decoder_input_ids": "words", "input_ids": "words", "input_values": "sound"}
KINDS |= {"input_features": "sound", "grid_thw": "patches", "pixel_values": "pictures"}
_SERIES = {"prediction_length": 8, "context_length": 16, "lags_sequence": [1, 2], "num_time_features": 1}
# Options that a family needs beside its sizes.
OWN: dict[str, dict[str, Any]] = {
    **{family: HYBRIDS[family][2] for family in ("bamba", "granitemoehybrid", "mamba2", "nemotron_h", "xlstm")},
    **dict.fromkeys(("autoformer", "informer", "time_series_transformer"), _SERIES),
    "deepseek_v2": {"num_experts_per_tok": 2},
    "esm": {"vocab_size": 33, "pad_token_id": 1, "mask_token_id": 32},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "layoutlmv3": {"coordinate_size": 6, "shape_size": 4},
    "lilt": {"hidden_size": 24 * 2, "num_attention_heads": 4},
    "reformer": {"axial_pos_embds_dim": [16, 16], "axial_pos_shape": [4, 16], "attention_head_size": 8},
}


def small_model(family: str) -> nn.Module:
    config_class = transformers.CONFIG_MAPPING[family]
    options = {**_options(config_class()), **OWN.get(family, {})}
    model_class = transformers.MODEL_MAPPING[config_class]
    model_class = model_class[0] if isinstance(model_class, tuple) else model_class
    with torch.device("meta"):
        count = sum(each.numel() for each in model_class(config_class(**options)).parameters())
    if count > MAX_PARAMETERS:
        raise ValueError(f"{count / 1e6:.0f} million parameters are left")
    with torch.random.fork_rng():
        torch.manual_seed(11)
        model = model_class(config_class(**options)).eval()
        for name, each in model.named_parameters():
            if each.dim() == 2 and each.is_floating_point() and "conv" not in name and "A_log" not in name:
                nn.init.normal_(each, std=0.15)
    return model.requires_grad_(False)


def _options(config: Any) -> dict[str, Any]:
    found = dict[str, Any]()
    accepted = set(inspect.signature(type(config).__init__).parameters) | set(config.to_dict())
    counts = (getattr(config, name, None) for name in ("num_attention_heads", "n_head", "num_heads"))
    heads = next((each for each in counts if isinstance(each, int)), None)
    for name, value in list(vars(config).items()):
        public = name.removeprefix("_")
        if isinstance(value, transformers.PreTrainedConfig):
            found[name] = {**_options(value), "model_type": value.model_type}
        elif name.startswith("_") or name not in accepted or isinstance(value, bool) or name in _UNCHANGED:
            continue
        elif value is None and name in ("head_dim", "num_key_value_heads"):
            found[name] = WIDTH // HEADS if name == "head_dim" else HEADS
        elif name == "rope_parameters" and ("mrope_section" in (value or {}) or _MROPE.match(config.model_type)):
            found[name] = {**(value or {}), "mrope_section": [2, 1, 1], "partial_rotary_factor": 1.0}
        elif isinstance(value, int):
            size = next((size for size, pattern in _SIZES if re.fullmatch(pattern, public)), None)
            if re.fullmatch(r".*(token_id|token_index|_id)", public):
                found[name] = _token(public, value)
            elif size is not None and value > 0:
                found[name] = min(value, size) if public.endswith(("layers", "layer")) else size
                if (size == 2 and "kv" in public) or "key_value" in public:
                    found[name] = 1 if value == 1 else HEADS if value == heads else 2
            elif "image_size" in public:
                found[name] = 2 * IMAGE if hasattr(config, "depths") else IMAGE
            elif public == "patch_size":
                found[name] = PATCH if value > 4 else value
            elif public in ("sliding_window", "window_size", "attention_window_size"):
                found[name] = 2 if hasattr(config, "depths") else 4
        elif isinstance(value, list | tuple) and value and all(type(each) is int for each in value):
            if re.fullmatch(r".*token_ids?", public):
                found[name] = [_token(public, each) for each in value]
            elif "image_size" in public:
                found[name] = type(value)(IMAGE for _ in value)
            elif re.fullmatch(r"depths?|layers|num_layers|num_blocks", public):
                found[name] = type(value)(min(each, 1 + (place == 1)) for place, each in enumerate(value))
            elif re.fullmatch(r".*conv_dim|.*(?:hidden_sizes|embed_dims?|dims?|channels)", public):
                found[name] = type(value)(max(8, 16 * each // min(value)) for each in value)
    kinds = getattr(config, "layer_types", None) or getattr(config, "layers_block_type", None)
    stages = getattr(config, "num_heads", None)
    if isinstance(stages, list | tuple) and "embed_dim" in found and type(stages[0]) is int:
        found["embed_dim"] = 8 * stages[0]
    for name in ("num_hidden_layers", "n_layer", "num_layers"):
        if kinds and name in found:
            found[name] = next(n for n in range(2, len(kinds) + 1) if {*kinds[:n]} == {*kinds} or n >= 8)
    return found


def _token(name: str, value: int) -> int:
    return value if value < 10 else VOCABULARY - 2 - sum(map(ord, name)) % 60


def inputs_of(model: nn.Module) -> list[dict[str, Tensor]]:
    config, taken = model.config, inspect.signature(model.forward).parameters
    draw = torch.Generator().manual_seed(8)
    real = torch.arange(TOKENS) < torch.tensor([TOKENS, TOKENS - 4])[:, None]
    words = {"input_ids": torch.randint(10, 33, (2, TOKENS), generator=draw)}
    if "attention_mask" in taken:
        words["attention_mask"] = real.long()
    other = {"decoder_input_ids": torch.randint(10, 33, (2, 7), generator=draw)} if "decoder_input_ids" in taken else {}
    size = _deep(config, "image_size", "img_size") or IMAGE
    size = (size, size) if isinstance(size, int) else (*size,)[:2]
    channels = int(_deep(config, "num_channels", "in_channels", "in_chans") or 3)
    picture = {"pixel_values": torch.randn(2, channels, *size, generator=draw)}
    frames = picture["pixel_values"][:, None].expand(-1, 4, -1, -1, -1).contiguous()
    mels = int(_deep(config, "num_mel_bins", "feature_size", "input_feat_per_channel", "num_mels", "n_mels") or 80)
    features, sound = torch.randn(2, mels, 64, generator=draw), torch.randn(2, 3200, generator=draw)
    if "past_values" in taken:
        return [_series(config, taken, draw)]
    if "grid_thw" in taken:
        volume = 3 * (getattr(config, "temporal_patch_size", 1) or 1) * config.patch_size**2
        patches = torch.randn(16, volume, generator=draw)
        return [{next(iter(taken)): patches, "grid_thw": torch.tensor([[1, 4, 4]])}]
    if "input_ids" in taken:
        return [*([{**words, **picture}] if "pixel_values" in taken else []), {**words, **other}]
    if "pixel_values" in taken:
        return [picture, {"pixel_values": frames}]
    if "pixel_values_videos" in taken:
        return [{"pixel_values_videos": frames}]
    if "input_features" in taken:
        longer = [torch.randn(2, mels, 2 * n, generator=draw) for n in (64, 128)]
        return [{"input_features": each, **other} for each in (features, features.mT.contiguous(), *longer)]
    if "input_values" in taken:
        return [
            {"input_values": sound, **other},
            *({"input_values": x} for x in (sound[:, None], features.mT.contiguous())),
        ]
    return []


def _series(config: Any, taken: Any, draw: torch.Generator) -> dict[str, Tensor]:
    if "future_values" not in taken or not hasattr(config, "lags_sequence"):
        length, channels = config.context_length, getattr(config, "num_input_channels", 1)
        return {"past_values": torch.randn(2, length, channels, generator=draw)}
    lengths = {"past": config.context_length + max(config.lags_sequence), "future": config.prediction_length}
    found = {f"{when}_values": torch.randn(2, n, generator=draw) for when, n in lengths.items()}
    for when, n in lengths.items():
        found[f"{when}_time_features"] = torch.randn(2, n, config.num_time_features, generator=draw)
    return {**found, "past_observed_mask": torch.ones(2, lengths["past"])}


def _deep(config: Any, *names: str) -> Any:
    nested = (value for value in vars(config).values() if isinstance(value, transformers.PreTrainedConfig))
    values = (getattr(each, name, None) for each in (config, *nested) for name in names)
    return next((value for value in values if isinstance(value, int | list | tuple)), None)


class NotRunError(Exception):
    """A family that cannot be made small, or whose inputs are not known."""


@torch.no_grad()
def measure(family: str) -> list[str]:
    """Run a family and return the cells of its row; those of errors are empty where nothing was compared.

    Raises:
        NotRunError: if it cannot be made small, or no inputs fit.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = small_model(family)
        except Exception as error:
            raise NotRunError(_why(error)) from error
        inputs = _fitting(model)
        rows = coverage(model)
        layers = {(each.stack, each.layer) for each in rows if each.layer is not None}
        mapped = {(each.stack, each.layer) for each in rows if each.site and each.layer is not None}
        kinds = ", ".join(dict.fromkeys(KINDS[name] for name in inputs if name in KINDS)) or next(iter(inputs))
        start = [family, kinds, str(len(layers)), str(len(mapped))]
        if not mapped:
            return [*start, "", "0", *[""] * 4, describe_uncovered(rows)]
        found = verify(model, **inputs)
        instrument(model, verify=False)
        with record(values=True, states=True) as trace, _projected(model, trace) as used:
            model(**inputs)
        rules = ", ".join(dict.fromkeys(call.rule for call in trace))
        errors = (found.output_error, found.map_error, found.value_error, max(used.values(), default=None))
        shown = ("" if each is None else f"{each:.0e}" for each in errors)
        return [*start, rules, str(len(trace.states)), *shown, describe_uncovered(rows)]


def _fitting(model: nn.Module) -> dict[str, Tensor]:
    why = "its inputs are not known here"
    for number, inputs in enumerate(inputs_of(model)):
        try:
            result = model(**inputs)
        except Exception as error:
            why = why if number else f"its inputs are not known here: {_why(error)}"
            continue
        tensors = [each for each in result.values() if isinstance(each, Tensor) and each.is_floating_point()]
        if not tensors or not all(bool(each.isfinite().all()) for each in tensors):
            raise NotRunError("its output is not all numbers with random weights")
        return inputs
    raise NotRunError(why)


def _why(error: Exception) -> str:
    text = re.sub(r"[\s|]+", " ", str(error)).strip()
    missing = re.search(r"requires the (\w+) library", text)
    return f"needs {missing[1]}" if missing else f"{type(error).__name__}: {text.split('. ')[0][:90]}"


@contextlib.contextmanager
def _projected(model: nn.Module, trace: Trace) -> Iterator[dict[str, float]]:
    """Compare what output projections read with weights times values, relative to the largest number read."""
    parts, used = dict(model.named_modules()), dict[str, float]()

    def read(site: str, inputs: tuple[Any, ...]) -> None:
        call = next((each for each in trace if each.site == site), None)
        given = inputs[0] if inputs and isinstance(inputs[0], Tensor) else None
        if call is None or given is None or site in used or "softmax" not in call.rule:
            return
        with contextlib.suppress(ValueError):  # a layer with code of its own records no values
            written = pooled(call.weights(), call.values.float().cpu(), 0.0).transpose(1, 2).flatten(2)
            if given.dim() == 3 and given.shape[:2] == written.shape[1::-1]:  # not batch first
                given = given.transpose(0, 1)
            if given.numel() == written.numel():
                given = given.reshape(written.shape).float()
                used[site] = float((given - written).abs().max() / given.abs().max().clamp(min=1e-30))

    with contextlib.ExitStack() as hooks:
        for path, module in parts.items():
            if site := site_of(module):
                for part in list(projections(parts, path))[:1]:
                    hook = part.register_forward_pre_hook(lambda _part, given, site=site: read(site, given))
                    hooks.callback(hook.remove)
        yield used


def main() -> None:
    def stop(*_: Any) -> None:
        raise NotRunError(f"takes more than {SECONDS} seconds")

    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, stop)
    rows, missed = list[list[str]](), dict[str, list[str]]()
    for family in sorted(MODEL_MAPPING_NAMES):
        signal.alarm(SECONDS)
        try:
            rows.append(measure(family))
        except NotRunError as error:
            kind = "its sizes depend on one another in ways not known here"
            kind = "still large" if "million parameters" in str(error) else kind
            kind = "its inputs are not made here" if str(error).startswith("its inputs") else kind
            missed.setdefault(str(error) if str(error).startswith("needs ") else kind, []).append(family)
        except Exception as error:
            missed.setdefault(f"a fault of ours: {_why(error)}", []).append(family)
        signal.alarm(0)
    attending = [each for each in rows if int(each[3])]
    whole = sum(each[2] == each[3] and bool(each[4]) for each in attending)
    changes = {
        r"transformers \S+ as": f"transformers {transformers.__version__} as",
        r"`make families`, \S+\)": f"`make families`, {datetime.date.today()})",
        r"\d+ of \d+ families run; \d+ of them have attention, and every layer of \d+": f"{len(rows)} of "
        f"{len(MODEL_MAPPING_NAMES)} families run; {len(attending)} of them have attention, and every layer of {whole}",
        r"(?<=--- \|\n)(?:\| .*\n)+": "".join(f"| {' | '.join(each)} |\n" for each in rows),
        r"(?<=\| reason \| families \|\n\| --- \| --- \|\n)(?:\|.*\n)+": "".join(
            f"| {kind} | {len(names)}: {', '.join(names)} |\n" for kind, names in sorted(missed.items())
        ),
    }
    page = TABLE.read_text(encoding="utf-8")
    for old, new in changes.items():
        page = re.sub(old, lambda _, new=new: new, page, count=1)
    TABLE.write_text(page, encoding="utf-8")


WRITTEN = {
    found[1]: [each.strip() for each in found[0].split("|")[1:-1]]
    for found in re.finditer(r"^\| (\S+) \|.*$", TABLE.read_text(encoding="utf-8").partition("\n## ")[0], re.MULTILINE)
    if found[1] not in ("family", "---")
}


def test_at_least_200_families_run_unchanged() -> None:
    outputs = [float(cells[6]) for cells in WRITTEN.values() if cells[6]]
    assert len(outputs) >= 200
    assert max(outputs) < 1e-5


@pytest.mark.parametrize("family", sorted({*sorted(WRITTEN)[::6], "informer", "xlstm"}))
def test_a_family_gives_what_the_table_says(family: str) -> None:
    for place, (own, table) in enumerate(zip(measure(family), WRITTEN[family], strict=True)):
        if place in ERRORS and own and table:
            assert float(own) < 1e-4 if float(table) < 1e-5 else float(table) / 2 < float(own) < 2 * float(table)
        else:
            assert own == table


if __name__ == "__main__":
    main()
