"""A small translator in the shipped format, made by the library alone: untrained, but complete to the last file."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import torch
from tokenizers import Tokenizer

from tests.checkpoint_files import write_weights
from viz_core.pretrained import build_translation_model
from viz_core.pretrained.familiarity import COUNTS, FEW, words_of

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
