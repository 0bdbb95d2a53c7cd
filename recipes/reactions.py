"""Chemical reactions with their true atom maps: twenty by rule, and those of an RDF file.

Needs the extra "chemistry" (RDKit), to read molecules.
"""

import gzip
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from viz_core.lab.atom_maps import Reaction, ReactionError, read_reaction

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
    """A reaction as the model reads it, with its true map."""

    smiles: str
    reaction: Reaction
    truth: Int[np.ndarray, " products"]  # the reactant atom of each product atom, -1 where the map names none
    # which reactant atoms count as right: the true one, and those that symmetry cannot tell from it
    equivalent: Bool[np.ndarray, "products reactants"]
    goes_on: Bool[np.ndarray, " reactants"]  # whether each reactant atom is in a product, by the map
    # whether a reactant atom's molecule has such an atom; the others are reagents
    takes_part: Bool[np.ndarray, " reactants"]


def spell(molecules: Sequence[tuple[Any, bool]], seed: int | None = None) -> MappedReaction:
    """Return a mapped reaction in the spelling of RXNMapper: canonical molecules in the order of the alphabet.

    Args:
        molecules: of RDKit, with map numbers, each with whether it is a product.
        seed: of another spelling: atoms in random order, reactants from the last to the first.
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


def _atoms(side: Sequence[tuple[str, list[int], list[tuple[str, int]]]]) -> tuple[list[int], list[tuple[str, int]]]:
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
