"""The model of reactions that ships: its tokens, and its maps against transformers and against its own package."""

from __future__ import annotations

import pytest
import torch

from viz_core.hub import HubModel, load_hub
from viz_core.hub.store.files import SHIPPED_FOLDER

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


def test_maps_of_the_12_passes_equal_eager_attention(mapper: HubModel) -> None:
    from transformers import AlbertModel

    run = mapper.run(REACTION)
    eager = AlbertModel.from_pretrained(
        SHIPPED_FOLDER / "rxnmapper", attn_implementation="eager", dtype=torch.float32, add_pooling_layer=False
    ).eval()
    ids = torch.tensor([[token.id for token in run.tokens]])
    with torch.inference_mode():
        maps = eager(input_ids=ids, output_attentions=True).attentions
    assert run.trace.sites == tuple(f"encoder.{i}.self" for i in range(12))
    for site, expected in zip(run.trace.sites, maps, strict=True):
        torch.testing.assert_close(run.trace[site].weights(), expected, atol=1e-5, rtol=0)


def test_maps_are_those_of_the_package(mapper: HubModel) -> None:
    """Where rxnmapper is installed: its weights are float32, ours rounded to float16."""
    package = pytest.importorskip("rxnmapper").RXNMapper()
    own = package.convert_batch_to_attns([REACTION])[0]
    run = mapper.run(REACTION)
    assert [token.text for token in run.tokens] == package.tokenize_for_model(REACTION)
    torch.testing.assert_close(run.trace["encoder.10.self"].weights(head=5)[0].squeeze(), own.cpu(), atol=0.01, rtol=0)
