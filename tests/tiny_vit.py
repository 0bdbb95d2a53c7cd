"""A small Vision Transformer in the shipped format, the same everywhere: untrained, but no two of its heads alike."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from tests.checkpoint_files import write_weights
from viz_core.pretrained import build_classification_model

GREY, COLOUR = "tiny-garments", "tiny-scenes"
LABELS = ("boot", "bag", "<b>dress</b>")


def write_tiny_vit(folder: Path, name: str) -> None:
    """Write the checkpoint `name` into `folder`: 4 x 4 patches of 4 x 4 pixels, 3 blocks of 2 heads."""
    channels = 1 if name == GREY else 3
    sizes = {"img_size": 16, "patch_size": 4, "num_hiddens": 16, "mlp_num_hiddens": 24, "num_heads": 2, "num_blks": 3}
    config = {"architecture": "vit", **sizes, "emb_dropout": 0.0, "blk_dropout": 0.0, "use_bias": True}
    config |= {"num_classes": len(LABELS), "num_channels": channels}
    with torch.random.fork_rng():
        torch.manual_seed(7)
        model = build_classification_model(config).eval()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.35)
    out = folder / name
    out.mkdir(parents=True)
    published = {
        "title": name,
        "task": "classification",
        "licence": "none",
        "sha256": write_weights(model, out / "model.safetensors"),
        "scores": {"accuracy": 33.25},
        "parameters": sum(p.numel() for p in model.parameters()),
        "model": config,
        "labels": list(LABELS),
        "pixels": {
            "form": "garment" if channels == 1 else "photograph",
            "mean": [0.4] * channels,
            "std": [0.3] * channels,
        },
    }
    point = {"epoch": 1.0, "train_loss": 1.2, "validation_loss": 1.1, "validation_accuracy": 33.0}
    record = {
        "curve": [point, {**point, "epoch": 2.0, "validation_accuracy": 34.5}],
        "confusion": [[5, 1, 0], [0, 2, 7], [3, 0, 4]],
        "calibration": {
            "pictures": 22,
            "error": 0.1,
            "bins": [
                {"start": 0.3, "stop": 0.4, "pictures": 12, "confidence": 0.35, "accuracy": 0.4},
                {"start": 0.9, "stop": 1.0, "pictures": 10, "confidence": 0.95, "accuracy": 0.8},
            ],
        },
        "seconds": 120,
        "device": "CPU",
    }
    (out / "config.json").write_text(json.dumps(published), encoding="utf-8")
    (out / "training.json").write_text(json.dumps(record), encoding="utf-8")
    (out / "card.md").write_text(f"# {name}\n", encoding="utf-8")
