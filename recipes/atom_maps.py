"""Scores of all heads of the reaction model against atom maps made by hand: python -m recipes atom-maps --golden FILE.

FILE is golden.rdf.gz or .rdf, reactions in MDL's RDF format with atom map numbers (Lin et al. 2021, "Atom-to-atom
Mapping: A Benchmarking Study of Popular Mapping Algorithms and Consensus Strategies", doi 10.1002/minf.202100138). It
is read where it is and never copied; OUT gets figures only. Without FILE only the twenty reactions of the page are
written. Needs the extra "chemistry" (RDKit), to read and draw molecules.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from recipes.files import write_json
from viz_core.hub import HubError, HubModel, load_hub
from viz_core.lab.atom_maps import (
    MODEL,
    Reaction,
    ReactionError,
    hidden_atoms,
    map_with_neighbours,
    measure_reaction,
    read_reaction,
    strongest_atoms,
)
from viz_core.lab.molecules import draw_molecules
from viz_core.runtime.assets import ASSETS

SOURCE = (
    "golden data set of Lin et al. 2021, doi 10.1002/minf.202100138, from the repository "
    "Laboratoire-de-Chemoinformatique/Reaction_Data_Cleaning at 793475e (LGPL 2.1), without a random part"
)
SAMPLES = 2000  # of the bootstrap
KINDS = ("leaving-group", "reagent", "other-atom", "none")

# Each map follows from one rule: an atom keeps every bond that the reaction, by its name, does not break.
TWENTY = {
    "esterification": "[CH3:1][C:2](=[O:3])O.[CH3:4][CH2:5][OH:6]>>[CH3:1][C:2](=[O:3])[O:6][CH2:5][CH3:4]",
    "amide": "[cH:1]1[cH:2][cH:3][cH:4][cH:5][c:6]1[C:7](=[O:8])O.[CH3:9][NH2:10]>>"
    "[cH:1]1[cH:2][cH:3][cH:4][cH:5][c:6]1[C:7](=[O:8])[NH:10][CH3:9]",
    "suzuki": "Br[c:1]1[cH:2][cH:3][c:4]([CH3:5])[cH:6][cH:7]1.OB(O)[c:8]1[cH:9][cH:10][cH:11][cH:12][cH:13]1>>"
    "[c:1]1(-[c:8]2[cH:9][cH:10][cH:11][cH:12][cH:13]2)[cH:2][cH:3][c:4]([CH3:5])[cH:6][cH:7]1",
    "sn2": "[CH3:1][CH2:2]Br.[O-:3][CH3:4].[Na+]>>[CH3:1][CH2:2][O:3][CH3:4]",
    "snar": "[CH3:1][CH:2]([CH3:3])[SH:4].F[c:5]1[n:6][cH:7][cH:8][cH:9][c:10]1[F:11].O=C([O-])[O-].[K+].[K+]>>"
    "[CH3:1][CH:2]([CH3:3])[S:4][c:5]1[n:6][cH:7][cH:8][cH:9][c:10]1[F:11]",
    "acetylation": "CC(=O)O[C:11]([CH3:12])=[O:13].[OH:1][c:2]1[cH:3][cH:4][cH:5][cH:6][c:7]1[C:8](=[O:9])[OH:10]>>"
    "[CH3:12][C:11](=[O:13])[O:1][c:2]1[cH:3][cH:4][cH:5][cH:6][c:7]1[C:8](=[O:9])[OH:10]",
    "hydrolysis": "[CH3:1][CH2:2][C:3](=[O:4])OCC.[OH-:5].[Na+]>>[CH3:1][CH2:2][C:3](=[O:4])[OH:5]",
    "grignard": "[CH3:1][CH2:2][Mg]Br.[O:3]=[CH:4][c:5]1[cH:6][cH:7][cH:8][cH:9][cH:10]1>>"
    "[CH3:1][CH2:2][CH:4]([OH:3])[c:5]1[cH:6][cH:7][cH:8][cH:9][cH:10]1",
    "wittig": "[CH2:1]=P(c1ccccc1)(c1ccccc1)c1ccccc1.O=[CH:2][c:3]1[cH:4][cH:5][cH:6][cH:7][cH:8]1>>"
    "[CH2:1]=[CH:2][c:3]1[cH:4][cH:5][cH:6][cH:7][cH:8]1",
    "diels-alder": "[CH2:1]=[CH:2][CH:3]=[CH2:4].[CH2:5]=[CH:6][CH:7]=[O:8]>>"
    "[CH2:1]1[CH:2]=[CH:3][CH2:4][CH:6]([CH:7]=[O:8])[CH2:5]1",
    "reduction": "[CH3:1][C:2](=[O:3])[CH2:4][CH3:5].[BH4-].[Na+]>>[CH3:1][CH:2]([OH:3])[CH2:4][CH3:5]",
    "oxidation": "[CH3:1][CH2:2][CH2:3][CH2:4][OH:5].O=[Cr](=O)([O-])Cl.c1cc[nH+]cc1>>"
    "[CH3:1][CH2:2][CH2:3][CH:4]=[O:5]",
    "nitration": "[CH3:1][c:2]1[cH:3][cH:4][cH:5][cH:6][cH:7]1.O[N+:8](=[O:9])[O-:10].O=S(=O)(O)O>>"
    "[CH3:1][c:2]1[cH:3][cH:4][c:5]([N+:8](=[O:9])[O-:10])[cH:6][cH:7]1",
    "acylation": "[CH3:1][C:2](=[O:3])Cl.[cH:4]1[cH:5][cH:6][cH:7][cH:8][cH:9]1.Cl[Al](Cl)Cl>>"
    "[CH3:1][C:2](=[O:3])[c:4]1[cH:5][cH:6][cH:7][cH:8][cH:9]1",
    "deprotection": "CC(C)(C)OC(=O)[NH:1][CH2:2][c:3]1[cH:4][cH:5][cH:6][cH:7][cH:8]1.O=C(O)C(F)(F)F>>"
    "[NH2:1][CH2:2][c:3]1[cH:4][cH:5][cH:6][cH:7][cH:8]1",
    "amination": "O=[CH:1][c:2]1[cH:3][cH:4][cH:5][cH:6][cH:7]1.[CH3:8][NH2:9].[BH3-]C#N.[Na+]>>"
    "[CH2:1]([c:2]1[cH:3][cH:4][cH:5][cH:6][cH:7]1)[NH:9][CH3:8]",
    "bromination": "[CH3:1][CH:2]=[CH2:3].[Br:4][Br:5]>>[CH3:1][CH:2]([Br:4])[CH2:3][Br:5]",
    "heck": "I[c:1]1[cH:2][cH:3][cH:4][cH:5][cH:6]1.[CH2:7]=[CH:8][C:9](=[O:10])[O:11][CH3:12].CCN(CC)CC>>"
    "[CH:7](=[CH:8][C:9](=[O:10])[O:11][CH3:12])[c:1]1[cH:2][cH:3][cH:4][cH:5][cH:6]1",
    "sonogashira": "I[c:1]1[cH:2][cH:3][cH:4][cH:5][cH:6]1.[CH:7]#[C:8][CH2:9][OH:10].CCN(CC)CC>>"
    "[C:7](#[C:8][CH2:9][OH:10])[c:1]1[cH:2][cH:3][cH:4][cH:5][cH:6]1",
    "click": "[CH3:1][CH2:2][N:3]=[N+:4]=[N-:5].[CH:6]#[C:7][c:8]1[cH:9][cH:10][cH:11][cH:12][cH:13]1>>"
    "[CH3:1][CH2:2][n:3]1[n:4][n:5][c:7](-[c:8]2[cH:9][cH:10][cH:11][cH:12][cH:13]2)[cH:6]1",
}


@dataclass(frozen=True, eq=False)
class MappedReaction:
    """A reaction as the model reads it, with its true map.

    Attributes:
        truth: the reactant atom of each product atom, -1 where the map names none.
        equivalent: which reactant atoms count as right: the true one, and those that symmetry cannot tell from it.
        goes_on: whether each reactant atom is in a product, by the map.
        takes_part: whether a reactant atom's molecule has such an atom; the others are reagents.
    """

    smiles: str
    reaction: Reaction
    truth: Int[np.ndarray, " products"]
    equivalent: Bool[np.ndarray, "products reactants"]
    goes_on: Bool[np.ndarray, " reactants"]
    takes_part: Bool[np.ndarray, " reactants"]


def spell(molecules: Sequence[tuple[Any, bool]], seed: int | None = None) -> MappedReaction:
    """Return a mapped reaction in the spelling of RXNMapper: canonical molecules in the order of the alphabet.

    Args:
        molecules: of RDKit, with map numbers, each with whether it is a product.
        seed: of another spelling: atoms in random order, reactants from the last to the first.

    Raises:
        ReactionError: if nothing is mapped, or two atoms of a side share a number.
    """
    from rdkit import Chem

    sides: dict[bool, list[tuple[str, list[int], list[tuple[str, int]]]]] = {False: [], True: []}
    for molecule, is_product in molecules:
        numbers = [atom.GetAtomMapNum() for atom in molecule.GetAtoms()]
        bare = Chem.Mol(molecule)
        for atom in bare.GetAtoms():
            atom.SetAtomMapNum(0)
        bare = Chem.MolFromSmiles(Chem.MolToSmiles(bare)) if not any(numbers) else bare
        ranks = list(Chem.CanonicalRankAtoms(bare, breakTies=False))
        name = smiles = Chem.MolToSmiles(bare)
        if seed is not None:
            shuffled = np.random.default_rng(seed).permutation(len(ranks)).tolist()
            bare = Chem.RenumberAtoms(bare, shuffled)
            numbers, ranks = [numbers[i] for i in shuffled], [ranks[i] for i in shuffled]
            smiles = Chem.MolToSmiles(bare, canonical=False)
        order = list(bare.GetPropsAsDict(includePrivate=True, includeComputed=True)["_smilesAtomOutputOrder"])
        numbered = numbers if len(numbers) == len(order) else [0] * len(order)
        sides[is_product].append((smiles, [numbered[i] for i in order], [(name, ranks[i]) for i in order]))
    before, behind = (
        sorted(sides[side], key=lambda each: each[2][0], reverse=seed is not None) for side in (False, True)
    )
    smiles = ">>".join(".".join(each[0] for each in side) for side in (before, behind))
    reaction = read_reaction(smiles)
    (from_numbers, from_kinds), (to_numbers, to_kinds) = (_atoms(side) for side in (before, behind))
    if len(from_numbers) != reaction.num_reactants or len(to_numbers) != reaction.num_products:
        raise ReactionError("{text} is no atom or bond in SMILES.", text=smiles[:60])
    for side in (from_numbers, to_numbers):
        if any(count > 1 for number, count in Counter(side).items() if number):
            raise ReactionError("Two atoms share a map number.")
    place = {number: i for i, number in enumerate(from_numbers) if number}
    truth = np.array([place.get(number, -1) for number in to_numbers])
    if (truth < 0).all():
        raise ReactionError("No atom of the product is mapped.")
    equivalent = np.zeros((len(to_numbers), len(from_numbers)), dtype=bool)
    for i, kind in enumerate(to_kinds):
        right = {from_kinds[truth[j]] for j, other in enumerate(to_kinds) if other == kind and truth[j] >= 0}
        equivalent[i] = [each in right for each in from_kinds] if truth[i] >= 0 else False
    goes_on = np.isin(np.arange(len(from_numbers)), truth)
    owners = np.array(reaction.molecules[: reaction.num_reactants])
    return MappedReaction(smiles, reaction, truth, equivalent, goes_on, np.isin(owners, owners[goes_on]))


def _atoms(
    side: Sequence[tuple[str, list[int], list[tuple[str, int]]]],
) -> tuple[list[int], list[tuple[str, int]]]:
    """Map numbers and symmetry classes of a side's atoms; the same molecule twice has the same classes."""
    return [number for _, own, _ in side for number in own], [kind for *_, own in side for kind in own]


def molecules_of(text: str) -> list[tuple[Any, bool]]:
    """Return the molecules of mapped SMILES for `spell`."""
    from rdkit import Chem

    sides = [side.split(".") for side in text.split(">>")]
    return [(Chem.MolFromSmiles(part), bool(i)) for i, side in enumerate(sides) for part in side]


def without_a_reactant(molecules: Sequence[tuple[Any, bool]]) -> list[tuple[Any, bool]] | None:
    """Return the molecules without the reactant that gives the fewest atoms; None where only one gives any."""
    product = {atom.GetAtomMapNum() for molecule, behind in molecules if behind for atom in molecule.GetAtoms()} - {0}
    given = [0 if behind else sum(a.GetAtomMapNum() in product for a in m.GetAtoms()) for m, behind in molecules]
    if sum(count > 0 for count in given) < 2:
        return None
    left_out = given.index(min(filter(None, given)))
    return [each for i, each in enumerate(molecules) if i != left_out]


def golden_reactions(path: Path) -> Iterator[MappedReaction | str]:
    """Each reaction of an RDF file in its order, or why it cannot be used."""
    from rdkit import Chem, RDLogger

    RDLogger.DisableLog("rdApp.*")
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="latin-1") as file:
        blocks = file.read().split("$RXN")[1:]
    for block in blocks:
        head, *parts = block.split("$DTYPE")[0].split("$RFMT")[0].split("$MOL\n")
        num_reactants = int(head.strip().splitlines()[-1][:3])
        molecules = [(Chem.MolFromMolBlock(part), i >= num_reactants) for i, part in enumerate(parts)]
        if any(molecule is None for molecule, _ in molecules):
            yield "RDKit refuses a molecule"
            continue
        try:
            yield spell(molecules)
        except ReactionError as error:
            yield error.sentence


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
