"""The model of reactions that ships: its tokens, and its maps against transformers and against its own package."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from viz_core.hub import HubModel, load_hub
from viz_core.lab.atom_maps import atom_weights, map_with_neighbours, read_reaction
from viz_core.runtime.assets import ASSETS

REACTION = "CC(C)S.CN(C)C=O.Fc1cccnc1F.O=C([O-])[O-].[K+].[K+]>>CC(C)Sc1ncccc1F"


@pytest.fixture(scope="module")
def mapper() -> HubModel:
    return load_hub("rxnmapper", device="cpu")


def test_tokens_are_those_of_smiles_and_nothing_is_dropped(mapper: HubModel) -> None:
    run = mapper.run("Cl[Na+]>>BrZz")
    assert [token.label for token in run.tokens] == ["[CLS]", "Cl", "[Na+]", ">>", "Br", "[UNK]", "[SEP]"]
    assert run.num_unknown == 1
    assert [token.id for token in run.tokens] == [12, 28, 46, 29, 37, 11, 13]
    assert (mapper.card.licence, mapper.card.source) == ("mit", "shipped")


PACKAGE = Path(sys.prefix) / "chemistry"
_PROGRAM = """
import json, sys, rxnmapper
reactions, mapper = json.load(sys.stdin), rxnmapper.RXNMapper()
found = mapper.get_attention_guided_atom_maps(reactions, canonicalize_rxns=False, detailed_output=True)
atoms = [list(map(int, each["pxr_mapping_vector"])) for each in found]
tokens = [each["tokens"] for each in found]
mapper.model.half().float()  # rounded as ours are
weights = [mapper.convert_batch_to_attns([each])[0].tolist() for each in reactions]
print(json.dumps([tokens, weights, atoms]))
"""


@pytest.mark.slow
def test_tokens_weights_and_atom_maps_are_those_of_the_package(mapper: HubModel) -> None:
    """Of the page's twenty reactions in each version; only for weights are those of the package rounded to float16."""
    if not (PACKAGE / "rxnmapper").is_dir():
        pytest.skip("rxnmapper is not in .venv/chemistry: `make test-chemistry` puts it there")
    recorded = json.loads((ASSETS / "atoms" / "reactions.json").read_text(encoding="utf-8"))
    layer, head = recorded["head"]
    smiles = [entry["smiles"] for versions in recorded["reactions"].values() for entry in versions.values()]
    found = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        input=json.dumps(smiles),
        capture_output=True,
        text=True,
        check=True,
    )
    for text, tokens, weights, atoms in zip(smiles, *json.loads(found.stdout.splitlines()[-1]), strict=True):
        run, reaction = mapper.run(text), read_reaction(text)
        assert [token.text for token in run.tokens] == tokens
        own = run.trace[f"encoder.{layer}.self"].weights(head=head)[0].squeeze()
        torch.testing.assert_close(own, torch.tensor(weights), atol=1e-5, rtol=0)
        forward, backward = (part[layer, head].numpy() for part in atom_weights(run.trace, reaction))
        assert map_with_neighbours(forward, backward, reaction).tolist() == atoms, text
