"""The runs that the learning chapter opens on: python -m recipes learning --out DIR.

A film of each, three seeds, what every position scheme gets right by length, and the weights of a model of two heads. A
run that is there already is not made again, so the command goes on where it was stopped.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from recipes.files import ship_weights, write_json
from viz_core.pretrained.checkpoint import load_weights
from viz_core.tasks.film import EXAMPLES, FILMS, LENGTHS, SEEDS, TWO_HEADS, Film, accuracy_by_length, load_film
from viz_core.tasks.generating import MODULUS
from viz_core.tasks.model import POSITIONS, Shape
from viz_core.tasks.run import Plan, TaskRun

WEIGHTS = "two-heads"
NAMES = (*FILMS, *POSITIONS, WEIGHTS)

EXTRAPOLATION = Plan(
    "repeat", Shape(2), steps=1200, shortest=2, longest=20, batch_size=32, learning_rate=5e-3, every=1200
)
"""The run of every position scheme, with lengths up to 20."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 with the reason on stderr."""
    parser = argparse.ArgumentParser(prog="python -m recipes learning", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the films, extrapolation.json and the card")
    parser.add_argument("--steps", type=int, help="updates of every run, instead of its own, for a first look")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS, help="three unless given")
    parser.add_argument("--only", nargs="+", default=NAMES, metavar="NAME", help="films, schemes, two-heads")
    chosen = parser.parse_args(arguments)
    if unknown := [name for name in chosen.only if name not in NAMES]:
        parser.error(f"--only: expected some of {', '.join(NAMES)}, got {', '.join(unknown)}")
    try:
        chosen.out.mkdir(parents=True, exist_ok=True)
        for name, plan in ((name, FILMS[name]) for name in FILMS if name in chosen.only):
            for seed in chosen.seeds:
                _film(chosen.out / f"{name}-{seed}.npz", _cut(replace(plan, seed=seed), chosen.steps))
        for positions in (name for name in POSITIONS if name in chosen.only):
            for seed in chosen.seeds:
                plan = replace(EXTRAPOLATION, shape=replace(EXTRAPOLATION.shape, positions=positions), seed=seed)
                _by_length(chosen.out / "extrapolation.json", _cut(plan, chosen.steps))
        if WEIGHTS in chosen.only:
            _weights(chosen.out / f"{WEIGHTS}.safetensors", _cut(TWO_HEADS, chosen.steps))
        (chosen.out / "card.md").write_text(_card(chosen.out), encoding="utf-8")
    except (ValueError, OSError) as error:
        print(f"cannot record: {error}", file=sys.stderr)
        return 1
    return 0


def _cut(plan: Plan, steps: int | None) -> Plan:
    return plan if steps is None else replace(plan, steps=steps, every=min(plan.every, steps))


def _trained(plan: Plan, what: str) -> TaskRun:
    print(f"{what}, seed {plan.seed}: {plan.steps:,} updates", flush=True)
    run = TaskRun(plan)
    for _ in run.advance():
        pass
    return run


def _film(path: Path, plan: Plan) -> None:
    if not path.exists():
        Film.of(_trained(plan, path.stem)).save(path)


def _weights(path: Path, plan: Plan) -> None:
    if not path.exists():
        ship_weights(_trained(plan, path.stem).model, path)


def _by_length(path: Path, plan: Plan) -> None:
    """Written after each run, so that a stop loses one at most."""
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else _empty(plan)
    rows: dict[str, dict[str, list[float]]] = found["accuracy"]
    scheme = rows.setdefault(plan.shape.positions, {})
    if str(plan.seed) not in scheme:
        scheme[str(plan.seed)] = accuracy_by_length(_trained(plan, f"{plan.task}, {plan.shape.positions}"))
        write_json(path, found)


def _empty(plan: Plan) -> dict[str, Any]:
    settings = {name: value for name, value in asdict(plan).items() if name != "seed"}
    return {"plan": settings, "examples": EXAMPLES, "lengths": list(LENGTHS), "accuracy": {}}


def _card(folder: Path) -> str:
    """What was recorded, how, and what came out."""
    films = [_row(name, sorted(folder.glob(f"{name}-*.npz"))) for name in FILMS]
    films.append(_weights_row(folder / f"{WEIGHTS}.safetensors"))
    path = folder / "extrapolation.json"
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else _empty(EXTRAPOLATION)
    longest, schemes = found["plan"]["longest"], found["accuracy"]
    past = [place for place, length in enumerate(found["lengths"]) if length > longest]
    reaches = [_reach(name, list(seeds.values()), past) for name, seeds in schemes.items()]
    return _CARD.format(
        films="\n".join(filter(None, films)),
        task=found["plan"]["task"],
        steps=found["plan"]["steps"],
        longest=longest,
        last=found["lengths"][-1],
        reaches="\n".join(reaches),
        modulus=MODULUS,
    )


def _row(name: str, paths: Sequence[Path]) -> str:
    """A recorded run: its size and updates, and what its seeds get right at the end."""
    if not paths:
        return ""
    films = [load_film(path) for path in paths]
    return _sizes(name, films[0].plan, [float(film.held_out[-1]) for film in films])


def _weights_row(path: Path) -> str:
    """The model whose weights ship, and what they get right."""
    if not path.exists():
        return ""
    run = TaskRun(TWO_HEADS)
    load_weights(run.model, path)
    return _sizes(path.stem, TWO_HEADS, [run.accuracy()])


def _sizes(name: str, plan: Plan, accuracies: Sequence[float]) -> str:
    right = ", ".join(f"{accuracy:.1%}" for accuracy in accuracies)
    kind = "decoder" if plan.shape.causal else "encoder"
    sizes = f"{plan.shape.num_layers} x {plan.shape.num_heads} heads, {plan.shape.num_hiddens} wide, {kind}"
    return f"| {name} | {sizes}, {plan.shape.positions} | {plan.steps:,} | {right} |"


def _reach(name: str, seeds: Sequence[Sequence[float]], past: Sequence[int]) -> str:
    """A scheme: accuracy past the trained length, seed by seed."""
    means = (sum(seed[place] for place in past) / len(past) for seed in seeds)
    return f"| {name} | {', '.join(f'{mean:.1%}' for mean in means)} |"


_CARD = """# The recorded runs of "Watch attention learn"

Made by one command, which goes on where it was stopped (about a quarter of an hour on one processor core):

```sh
python -m recipes learning --out assets/learning
```

Every example is drawn by a rule from a seed: there is no data set. Of each run there is a file for each of three seeds
with its curve and, at every snapshot, each head's map of one example and the lengths of what its keys would add, in
float16; no weights. `two-heads.safetensors` has the weights, in float16, of a model of attention alone with one head a
layer; its plan is `TWO_HEADS` in `viz_core/tasks/film.py`, its seed 0. Two runs of one plan are the same to the last
bit on one machine; another machine may round otherwise, and end a little elsewhere.

| run | model | updates | right of what it was never trained on, seed by seed |
| --- | --- | ---: | --- |
{films}

Modular addition is modulo {modulus}, with half of all pairs trained on (Nanda 2023: 113, and 30%).

## Past the trained length

`extrapolation.json`: {task}, {steps:,} updates up to length {longest}, tested up to {last}.
Mean accuracy past length {longest}, seed by seed:

| scheme | right |
| --- | --- |
{reaches}
"""
