#!/usr/bin/env bash
# RDKit: a slash in the SMILES decides whether a written hydrogen becomes an atom.
#
# Version: rdkit 2025.9.1. Run 2026-11-28.
# Guess: MolFromSmiles turns every plain [H] that has one neighbour into a count on that neighbour.
# Seen: it keeps the hydrogen as an atom where the slash at it alone says which side of the double bond is meant. The same
# molecule without slashes has one atom less, and where both ends of the bond have another neighbour the hydrogens go
# although they bear the slashes. Atom i of the molecule is hence not the ith atom that is no [H] in the SMILES.
# Output (atoms): [H]C=CF C C F; [H]/C=C/F H C C F; C/C=N/[H] C C N H; [H]/C(F)=C(/[H])F C F C F.
source "$(dirname "$0")/environment.bash"
in_environment rdkit==2025.9.1 numpy==2.4.6 <<'PY'
from rdkit import Chem

expected = {"[H]C=CF": "C C F", "[H]/C=C/F": "H C C F", "C/C=N/[H]": "C C N H", "[H]/C(F)=C(/[H])F": "C F C F"}
for smiles, atoms in expected.items():
    found = " ".join(atom.GetSymbol() for atom in Chem.MolFromSmiles(smiles).GetAtoms())
    print(smiles, "atoms", found)
    assert found == atoms
PY
