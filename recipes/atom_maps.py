"""Scores of all heads of the reaction model against atom maps made by hand: python -m recipes atom-maps --golden FILE.

FILE is golden.rdf.gz or .rdf, reactions in MDL's RDF format with atom map numbers (Lin et al. 2021, "Atom-to-atom
Mapping: A Benchmarking Study of Popular Mapping Algorithms and Consensus Strategies", doi 10.1002/minf.202100138). It
is read where it is and never copied; OUT gets figures only. Without FILE only the twenty reactions of the page are
written. Needs the extra "chemistry" (RDKit), to read and draw molecules.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from recipes.files import write_json
from recipes.reactions import (
    TWENTY,
    MappedReaction,
    golden_reactions,
    molecules_of,
    spell,
    without_a_reactant,
)
from viz_core.hub import HubError, HubModel, load_hub
from viz_core.lab.atom_maps import (
    MODEL,
    hidden_atoms,
    map_with_neighbours,
    measure_reaction,
    read_reaction,
    strongest_atoms,
)
from viz_core.lab.fields.molecules import draw_molecules
from viz_core.runtime.assets import ASSETS

SOURCE = (
    "golden data set of Lin et al. 2021, doi 10.1002/minf.202100138, from the repository "
    "Laboratoire-de-Chemoinformatique/Reaction_Data_Cleaning at 793475e (LGPL 2.1), without a random part"
)
SAMPLES = 2000  # of the bootstrap
KINDS = ("leaving-group", "reagent", "other-atom", "none")


@dataclass(frozen=True, eq=False)
class Marks:
    """Right product atoms of one reaction: of each head, and of what else is compared."""

    atoms: int  # mapped product atoms
    chance: float  # of them right, on average, by drawing among reactant atoms of the element
    heads: Int[np.ndarray, "layers heads"]  # right up to symmetry
    exact: Int[np.ndarray, "layers heads"]
    others: dict[str, int]
    kinds: Counter[str]  # of errors of the procedure's head


def mark(found: MappedReaction, forward: Any, backward: Any, head: tuple[int, int]) -> Marks:
    """Compare the maps of a reaction with the truth.

    Args:
        forward: of `measure_reaction`.
        backward: likewise.
        head: the one whose errors are sorted, and that RXNMapper's procedure is given.
    """
    known = found.truth >= 0
    rows = np.arange(len(known))

    def right(atoms: Int[np.ndarray, "*heads products"]) -> Int[np.ndarray, "*heads"]:
        return (found.equivalent[rows, atoms] & (atoms >= 0) & known).sum(axis=-1)

    each = strongest_atoms(forward, found.reaction)
    own = each[head]
    kinds = Counter(symmetry=int((known & (own >= 0) & found.equivalent[rows, own] & (own != found.truth)).sum()))
    for atom in own[known & ((own < 0) | ~found.equivalent[rows, own])]:
        taken = "none" if atom < 0 else "reagent" if not found.takes_part[atom] else "other-atom"
        kinds["leaving-group" if taken == "other-atom" and not found.goes_on[atom] else taken] += 1
    allowed = found.reaction.same_element
    chances = (found.equivalent & allowed).sum(axis=1) / np.maximum(allowed.sum(axis=1), 1)
    others = {
        "both-directions": right(strongest_atoms(forward[head] + backward[head], found.reaction)),
        "procedure": right(map_with_neighbours(forward[head], backward[head], found.reaction)),
    }
    return Marks(
        int(known.sum()),
        float(chances[known].sum()),
        right(each),
        ((each == found.truth) & known).sum(axis=-1),
        {name: int(value) for name, value in others.items()},
        kinds,
    )


def interval(right: Float[np.ndarray, "reactions ..."], atoms: Int[np.ndarray, " reactions"]) -> dict[str, Any]:
    """Return the share of right atoms with its 95% interval, from a bootstrap over reactions, for each column."""
    right = np.asarray(right, dtype=float)
    draws = np.random.default_rng(0).multinomial(len(atoms), np.full(len(atoms), 1 / len(atoms)), SAMPLES)
    shares = np.tensordot(draws, right, axes=1) / (draws @ atoms).reshape(-1, *[1] * (right.ndim - 1))
    low, high = np.quantile(shares, (0.025, 0.975), axis=0)
    mean = right.sum(axis=0) / atoms.sum()
    return {name: np.round(value, 4).tolist() for name, value in (("mean", mean), ("low", low), ("high", high))}


def score(marks: Sequence[Marks]) -> dict[str, Any]:
    """Return accuracies of all heads and of what is beside them, by atom and by whole reaction, with intervals."""
    atoms = np.array([each.atoms for each in marks])
    heads = np.stack([each.heads for each in marks])
    flat = heads.reshape(len(marks), -1)
    best, *rest = np.argsort(-flat.sum(axis=0), kind="stable").tolist()
    num_heads = heads.shape[2]
    other = next(i for i in rest if i % num_heads != best % num_heads)  # of the shared layer
    columns = {
        "best": flat[:, best],
        "next": flat[:, rest[0]],
        "other-head": flat[:, other],
        "chance": np.array([each.chance for each in marks]),
        **{name: np.array([each.others[name] for each in marks]) for name in marks[0].others},
    }
    ones = np.ones(len(marks), dtype=int)
    table = {}
    for name, column in columns.items():
        table[name] = {"atoms": interval(column, atoms)}
        if name != "chance":
            table[name]["reactions"] = interval(column == atoms, ones)
    kinds = sum((each.kinds for each in marks), Counter())
    return {
        "reactions": len(marks),
        "atoms": int(atoms.sum()),
        "heads": interval(heads, atoms),
        "exact": interval(np.stack([each.exact for each in marks]), atoms),
        "best": list(divmod(best, num_heads)),
        "next": list(divmod(rest[0], num_heads)),
        "other_head": list(divmod(other, num_heads)),
        "best_minus_next": interval(flat[:, best] - flat[:, rest[0]], atoms),
        "table": table,
        "errors": {kind: kinds[kind] for kind in ("symmetry", *KINDS)},
    }


def page_reaction(model: HubModel, text: str, head: tuple[int, int]) -> tuple[dict[str, Any], Marks]:
    """Return what the page shows of one of its reactions, by version, and the marks of the first.

    The versions: "canonical"; "reordered", another spelling; and "missing", without a reactant, where two give atoms.
    """
    molecules = molecules_of(text)
    versions = {"canonical": spell(molecules), "reordered": spell(molecules, seed=1)}
    if rest := without_a_reactant(molecules):
        versions["missing"] = spell(rest)
    shown, marks = {}, None
    for name, found in versions.items():
        forward, backward = measure_reaction(model, found.smiles)
        marks = marks or mark(found, forward, backward, head)
        shown[name] = {
            "smiles": found.smiles,
            "truth": [np.flatnonzero(row).tolist() for row in found.equivalent],
            "molecules": draw_molecules(found.smiles),
            "weights": np.round(forward[head], 5).tolist(),
        }
    assert marks is not None
    return shown, marks


def heads_off(model: HubModel, head: tuple[int, int], other: int) -> dict[str, Any]:
    """Return the mean probability of the right token at each product atom of the twenty, hidden alone, by heads off.

    "own" is the head in its pass, "everywhere" in all passes, "other" another head in the same pass.
    """
    site = "encoder.{}.self"
    off = {
        "none": (),
        "own": ((site.format(head[0]), head[1]),),
        "everywhere": tuple((site.format(i), head[1]) for i in range(model.card.num_layers["encoder"])),
        "other": ((site.format(head[0]), other),),
    }
    found: dict[str, list[float]] = {name: [] for name in off}
    sizes = []
    for text in TWENTY.values():
        smiles = spell(molecules_of(text)).smiles
        sizes.append(read_reaction(smiles).num_products)
        for name, heads in off.items():
            found[name].append(float(hidden_atoms(model, smiles, heads).sum()))
    sums = np.array([found[name] for name in off]).T
    return {name: interval(column, np.array(sizes)) for name, column in zip(off, sums.T, strict=True)}


def main(arguments: Sequence[str]) -> int:
    """Write scores.json of the file, if one is given, and reactions.json of the page."""
    parser = argparse.ArgumentParser(prog="python -m recipes atom-maps", description=__doc__)
    parser.add_argument("--golden", type=Path, help="golden.rdf or golden.rdf.gz; without it scores.json stays")
    parser.add_argument("--out", type=Path, default=ASSETS / "atoms", help="folder of the results")
    parser.add_argument("--limit", type=int, help="only the first reactions of the file")
    chosen = parser.parse_args(arguments)
    try:
        model, head = load_hub(MODEL), (10, 5)
        if chosen.golden:
            write_json(chosen.out / "scores.json", _measure(model, chosen.golden, head, chosen.limit))
        found = {name: page_reaction(model, text, head) for name, text in TWENTY.items()}
        scores = score([marks for _, marks in found.values()])
        content = {
            "head": list(head),
            "off": heads_off(model, head, scores["other_head"][1]),
            "scores": scores,
            "reactions": {name: shown for name, (shown, _) in found.items()},
        }
        compact = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        (chosen.out / "reactions.json").write_text(compact + "\n", encoding="utf-8")
    except (ValueError, OSError, ImportError) as error:
        print(f"atom-maps: {error}", file=sys.stderr)
        return 1
    return 0


def _measure(model: HubModel, path: Path, head: tuple[int, int], limit: int | None) -> dict[str, Any]:
    marks, left_out = [], Counter[str]()
    for i, found in enumerate(golden_reactions(path)):
        if limit is not None and i >= limit:
            break
        if isinstance(found, str):
            left_out[found] += 1
            continue
        try:
            marks.append(mark(found, *measure_reaction(model, found.smiles), head))
        except HubError as error:
            left_out[error.sentence] += 1
        if i % 50 == 0:
            print(f"{i} reactions", flush=True)
    return {"source": SOURCE, "model": MODEL, "left_out": dict(left_out), **score(marks)}
