"""A small translator and small Vision Transformers in the shipped format: untrained, but complete to the last file."""

import hashlib
import json
import shutil
from collections import Counter
from pathlib import Path

import torch
from safetensors.torch import save
from tokenizers import Tokenizer
from torch import nn

from viz_core.pretrained import build_classification_model, build_translation_model
from viz_core.pretrained.familiarity import COUNTS, FEW, words_of


def write_weights(model: nn.Module, path: Path) -> str:
    """Write every parameter once, in float16; return the file's SHA-256."""
    weights = save({name: p.detach().half().contiguous() for name, p in model.named_parameters()})
    path.write_bytes(weights)
    return hashlib.sha256(weights).hexdigest()


TINY = "tiny-en-fr"
TINY_MODEL = {
    "architecture": "transformer",
    "num_hiddens": 32,
    "ffn_num_hiddens": 48,
    "num_heads": 4,
    "num_blks": 2,
    "dropout": 0.1,
}

_CORPUS = """
Go.|Va !
I lost.|J'ai perdu.
He's calm.|Il est calme.
I'm home.|Je suis chez moi.
I don't know.|Je ne sais pas.
Where is the cat?|Où est le chat ?
The cat is on the bed.|Le chat est sur le lit.
The dog is in the house.|Le chien est dans la maison.
She reads a book.|Elle lit un livre.
He reads the letter.|Il lit la lettre.
We are at home.|Nous sommes à la maison.
They are happy.|Ils sont heureux.
What time is it?|Quelle heure est-il ?
It's raining today.|Il pleut aujourd'hui.
I have two brothers.|J'ai deux frères.
She has a red car.|Elle a une voiture rouge.
Do you speak French?|Parlez-vous français ?
I like coffee.|J'aime le café.
He drinks cold water.|Il boit de l'eau froide.
We eat bread and cheese.|Nous mangeons du pain et du fromage.
Open the door, please.|Ouvre la porte, s'il te plaît.
Close the window.|Ferme la fenêtre.
My father works here.|Mon père travaille ici.
Her mother sings well.|Sa mère chante bien.
You aren't alone.|Tu n'es pas seul.
That is too expensive.|C'est trop cher.
I bought 3 apples.|J'ai acheté 3 pommes.
The children play outside.|Les enfants jouent dehors.
Nobody came yesterday.|Personne n'est venu hier.
See you tomorrow!|À demain !
The train is late again.|Le train est encore en retard.
We will wait for you.|Nous vous attendrons.
"""

CORPUS = tuple(tuple(line.split("|")) for line in _CORPUS.strip().splitlines())
"""32 short English sentences, each with a French translation."""

TOKENIZER = Path(__file__).with_name("tiny_tokenizer.json")
"""Of a vocabulary for `CORPUS`, as the recipe trains it."""


def write_tiny_translator(folder: Path) -> None:
    """Write the checkpoint `TINY` into `folder`."""
    out = folder / TINY
    out.mkdir()
    shutil.copy(TOKENIZER, out / "tokenizer.json")
    tokenizer = Tokenizer.from_file(str(TOKENIZER))
    config = {"vocab_size": tokenizer.get_vocab_size(), **TINY_MODEL}
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = build_translation_model(config)
    published = {
        "title": "A tiny Transformer",
        "task": "translation",
        "licence": "none",
        "sha256": write_weights(model, out / "model.safetensors"),
        "scores": {"bleu_greedy": 1.5, "bleu_beam_4": 2.5, "bleu_lower_case": 0.5},
        "parameters": sum(p.numel() for p in model.parameters()),
        "model": config,
    }
    training = {
        "curve": [{"epoch": 1.0, "train_loss": 3.5, "validation_loss": 3.25, "validation_bleu": 0.5}],
        "bleu_by_length": [{"from": 1, "to": 8, "sentences": 20, "bleu": 2.0}],
        "updates": 12,
        "seconds": 3723,
        "device": "CPU",
    }
    (out / "config.json").write_text(json.dumps(published), encoding="utf-8")
    (out / "training.json").write_text(json.dumps(training), encoding="utf-8")
    (out / "card.md").write_text("# A tiny Transformer\n\n## Data\n\nNone.\n", encoding="utf-8")
    counts = Counter(word for english, _ in CORPUS for word in set(words_of(english)))
    words = {str(n): " ".join(word for word, own in counts.items() if min(FEW, own) == n) for n in range(1, FEW + 1)}
    (out / COUNTS).write_text(json.dumps({"sentences": len(CORPUS), "words": words}), encoding="utf-8")


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
