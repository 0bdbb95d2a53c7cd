"""Scores of all heads of the reaction model against atom maps made by hand: python -m recipes atom-maps --golden FILE.

FILE is golden.rdf.gz or .rdf, reactions in MDL's RDF format with atom map numbers (Lin et al. 2021, "Atom-to-atom
Mapping: A Benchmarking Study of Popular Mapping Algorithms and Consensus Strategies", doi 10.1002/minf.202100138). It
is read where it is and never copied; OUT gets figures only. Without FILE only the twenty reactions of the page are
written. Needs the extra "chemistry" (RDKit), to read and draw molecules.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from recipes.files import write_json
from recipes.reactions import TWENTY, MappedReaction, golden_reactions, molecules_of, spell, without_a_reactant
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
KINDS = ("symmetry", "leaving-group", "reagent", "other-atom", "none")
"""What an atom other than the true one is; the first counts as right."""


@dataclass(frozen=True, eq=False)
class Marks:
    """Product atoms of one reaction without their true atom, by `KINDS`: of each head, and of what is compared."""

    atoms: int  # mapped product atoms
    heads: Int[np.ndarray, "layers heads kinds"]
    others: dict[str, Float[np.ndarray, " kinds"]]


def mark(found: MappedReaction, forward: Any, backward: Any, head: tuple[int, int]) -> Marks:
    """Compare the maps of a reaction with the truth.

    Args:
        forward: of `measure_reaction`.
        backward: likewise.
        head: the one that RXNMapper's procedure is given.
    """
    known, allowed = found.truth >= 0, found.reaction.same_element
    true = np.arange(allowed.shape[1]) == found.truth[:, None]
    wrong = ~found.equivalent
    kinds = [found.equivalent & ~true, wrong & found.takes_part & ~found.goes_on, wrong & ~found.takes_part]
    table = np.stack([*kinds, wrong & found.goes_on, np.zeros_like(wrong)], axis=-1)  # of a pair
    table = np.concatenate([table, np.broadcast_to(np.eye(5, dtype=bool)[4], (len(known), 1, 5))], axis=1)
    table &= known[:, None, None]

    def count(atoms: Int[np.ndarray, "*heads products"]) -> Int[np.ndarray, "*heads kinds"]:
        return table[np.arange(len(known)), atoms].sum(axis=-2)  # -1, no atom, is the last column

    candidates = np.column_stack([allowed, ~allowed.any(axis=1)])
    drawn = (table * candidates[..., None]).sum(axis=1) / candidates.sum(axis=1, keepdims=True)
    others = {
        "chance": drawn.sum(axis=0),  # on average
        "both-directions": count(strongest_atoms(forward[head] + backward[head], found.reaction)),
        "procedure": count(map_with_neighbours(forward[head], backward[head], found.reaction)),
    }
    return Marks(int(known.sum()), count(strongest_atoms(forward, found.reaction)), others)


def interval(right: Float[np.ndarray, "reactions ..."], atoms: Int[np.ndarray, " reactions"]) -> dict[str, Any]:
    """Return the share of right atoms with its 95% interval, from a bootstrap over reactions, for each column."""
    right = np.asarray(right, dtype=float)
    draws = np.random.default_rng(0).multinomial(len(atoms), np.full(len(atoms), 1 / len(atoms)), SAMPLES)
    shares = np.tensordot(draws, right, axes=1) / (draws @ atoms).reshape(-1, *[1] * (right.ndim - 1))
    low, high = np.quantile(shares, (0.025, 0.975), axis=0)
    mean = right.sum(axis=0) / atoms.sum()
    return {name: np.round(value, 4).tolist() for name, value in (("mean", mean), ("low", low), ("high", high))}


def score(marks: Sequence[Marks], head: tuple[int, int]) -> dict[str, Any]:
    """Return accuracies of all heads and of what is beside them, by atom, whole reaction and kind, with intervals.

    Args:
        head: the one that RXNMapper reads.
    """
    atoms = np.array([each.atoms for each in marks])
    kinds = np.stack([each.heads for each in marks])
    heads = atoms[:, None, None] - kinds[..., 1:].sum(axis=-1)
    sums, num_heads = heads.sum(axis=0), heads.shape[2]
    best, *rest = (divmod(i, num_heads) for i in np.argsort(-sums.ravel(), kind="stable").tolist())
    places = {"read": head, "best": best, "next": rest[0]}
    places["other-head"] = next(place for place in rest if place[1] != best[1])  # of the shared layer
    columns = {name: kinds[:, *place].astype(float) for name, place in places.items()}
    columns |= {name: np.array([each.others[name] for each in marks], dtype=float) for name in marks[0].others}
    table = {}
    for name, column in columns.items():
        right = atoms - column[:, 1:].sum(axis=1)
        by_kind = {kind: interval(column[:, i], atoms) for i, kind in enumerate(KINDS)}
        table[name] = {"atoms": interval(right, atoms), **by_kind}
        if name != "chance":
            table[name]["reactions"] = interval(right == atoms, np.ones(len(marks), dtype=int))
    return {
        "reactions": len(marks),
        "atoms": int(atoms.sum()),
        "heads": interval(heads, atoms),
        "exact": interval(heads - kinds[..., 0], atoms),
        "places": {name: list(place) for name, place in places.items()},
        "best_minus_next": interval(heads[:, *best] - heads[:, *rest[0]], atoms),
        "table": table,
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


def heads_off(model: HubModel, reactions: Iterable[str], head: tuple[int, int], other: int) -> dict[str, Any]:
    """Return the mean probability of the right token at each product atom, hidden alone, by heads off.

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
    for smiles in reactions:
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
        scores = score([marks for _, marks in found.values()], head)
        canonical = [shown["canonical"]["smiles"] for shown, _ in found.values()]
        content = {
            "head": list(head),
            "off": heads_off(model, canonical, head, scores["places"]["other-head"][1]),
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
    return {"source": SOURCE, "model": MODEL, "left_out": dict(left_out), **score(marks, head)}
