"""Tiny models of every family, each written and loaded once."""

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from tests.viz_core.hostile import bounded
from tests.viz_core.hub.families import build, drawn
from viz_core.hub import HubError, HubModel, load_hub
from viz_core.hub.load import import_transformers
from viz_core.images.open_image import Video

Tiny = Callable[[str], Path]
TinyModel = Callable[[str], HubModel]
Refused = Callable[..., str]


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a tiny model of a family; made when first asked for. Read only."""

    @cache
    def folder(family: str) -> Path:
        path = tmp_path_factory.mktemp("hub") / family
        path.mkdir()
        build(family, path)
        return path

    return folder


@pytest.fixture(scope="session")
def tiny_model(tiny: Callable[[str], Path]) -> Callable[[str], HubModel]:
    @cache
    def model(family: str) -> HubModel:
        return load_hub(tiny(family), device="cpu")

    return model


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


def noise(seed: int) -> Image.Image:
    """Not square, so that any step a processor takes shows."""
    pixels = torch.randint(0, 256, (30, 20, 3), generator=torch.Generator().manual_seed(seed), dtype=torch.uint8)
    return Image.fromarray(pixels.numpy())


@pytest.fixture
def picture() -> Image.Image:
    return noise(2)


@pytest.fixture
def video() -> Video:
    """Three frames, which two cannot share evenly, half a second apart."""
    return Video.of([noise(seed) for seed in range(3)], fps=2)


@pytest.fixture
def copy(tiny: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    return lambda family: Path(shutil.copytree(tiny(family), tmp_path / family))


@pytest.fixture
def refused() -> Callable[..., str]:
    """Return the sentence that a model is refused with; it takes little memory and names no folder of this machine."""
    import_transformers()  # what a first load brings along counts for no file

    def load(path: Path | str, why: str = "", **options: Any) -> str:
        with bounded(), pytest.raises(HubError, match=why) as error:
            load_hub(path, device="cpu", **options)
        message = str(error.value)
        assert "\n" not in message
        assert not isinstance(path, Path) or str(path.parent) not in message
        return message

    return load


def deepseek_v4(model_class: str = "DeepseekV4Model", rate: int = 4, **options: Any) -> Any:
    """A tiny random model of layers that attend to tokens nearby, and to blocks of `rate` or of 4 tokens."""
    import transformers

    sizes = {"vocab_size": 120, "hidden_size": 32, "moe_intermediate_size": 16, "num_hidden_layers": 3}
    sizes |= {"num_attention_heads": 4, "head_dim": 16, "q_lora_rank": 16, "n_routed_experts": 4, "o_groups": 2}
    sizes |= {"num_experts_per_tok": 2, "o_lora_rank": 8, "index_n_heads": 2, "index_head_dim": 16, "index_topk": 2}
    sizes |= {"sliding_window": 4, "hc_mult": 2, "partial_rotary_factor": 0.5, "pad_token_id": 0}
    layers = ["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"]
    rates = {"compressed_sparse_attention": rate, "heavily_compressed_attention": 4}
    kinds = {"layer_types": layers, "compress_rates": rates, "mlp_layer_types": ["moe"] * 3}
    config = transformers.DeepseekV4Config(**{**sizes, **kinds, **options})
    return drawn(getattr(transformers, model_class), config, excluded="norm")


def change(file: Path, **fields: object) -> Path:
    file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))
    return file.parent
