"""Vision models of Hugging Face behind the shipped classifiers' face: the same numbers as transformers gives."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from PIL import Image

from viz_core.hub import HubError, HubModel, HubVision
from viz_core.lessons.vision_transformer.patches import patchify, permutation_test, random_order
from viz_core.maps.relevance import gradient_relevance

Models = Callable[[str], HubModel]
FAMILIES = {"vit": 1, "deit": 2, "dinov2": 1, "registers": 5}


@pytest.fixture
def picture() -> Image.Image:
    """Not square, so that any step the processor takes shows."""
    pixels = torch.randint(0, 256, (20, 30, 3), generator=torch.Generator().manual_seed(2), dtype=torch.uint8)
    return Image.fromarray(pixels.numpy())


@pytest.mark.parametrize(("family", "special"), FAMILIES.items())
def test_what_it_sees_is_what_the_lab_sees(tiny_model: Models, family: str, special: int, picture: Image.Image) -> None:
    model = HubVision(tiny_model(family))
    found = model.classify_prepared(model.prepare(picture))
    run = tiny_model(family).run(image=picture)
    assert (found.grid, found.num_special) == ((4, 4), special)
    for call, other in zip(found.trace, run.trace, strict=True):
        assert torch.equal(call.weights(), other.weights())
    assert list(found.prepared.seen.tobytes()) == list(run.image.tobytes())  # type: ignore[union-attr]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_filters_make_the_tokens(tiny_model: Models, family: str, picture: Image.Image) -> None:
    model = HubVision(tiny_model(family))
    pixels = model.prepare(picture).pixels
    vectors = patchify(pixels, model.patch_size) @ model.filters.flatten(start_dim=1).T + model.filter_bias
    embeddings = next(
        m for m in tiny_model(family).engine.model.modules() if type(m).__name__.endswith("PatchEmbeddings")
    )
    with torch.no_grad():
        torch.testing.assert_close(vectors, embeddings(pixels), atol=1e-5, rtol=1e-5)


def test_probabilities_are_the_models_own(tiny_model: Models, picture: Image.Image) -> None:
    model = HubVision(tiny_model("vit"))
    prepared = model.prepare(picture)
    with torch.no_grad():
        expected = tiny_model("vit").engine.model(pixel_values=prepared.pixels).logits.softmax(dim=-1)
    torch.testing.assert_close(model.predict(prepared.pixels), expected, atol=1e-6, rtol=0)
    found = model.classify_prepared(prepared)
    assert found.label == model.labels[int(expected.argmax())]
    assert [found.probabilities[label] for label in model.labels] == pytest.approx(expected[0].tolist(), abs=1e-6)


def test_without_positions_order_means_nothing(tiny_model: Models, picture: Image.Image) -> None:
    model = HubVision(tiny_model("vit"))
    before = {name: p.clone() for name, p in tiny_model("vit").engine.model.named_parameters()}
    pixels = model.prepare(picture).pixels
    test = permutation_test(model.predict, pixels, model.patch_size, random_order(16, 3))
    assert test.residual < 1e-6
    assert test.change > 1e-3
    for name, parameter in tiny_model("vit").engine.model.named_parameters():
        assert torch.equal(parameter, before[name]), "the shared model is as it was"


def test_relevance_by_finite_weights(tiny_model: Models, picture: Image.Image) -> None:
    """Against transformers' own eager attention: its maps, kept in the graph, and their gradients."""
    import transformers

    model = HubVision(tiny_model("vit"))
    prepared = model.prepare(picture)
    found = model.relevance(prepared, model.labels[2])
    engine = tiny_model("vit").engine.model
    eager = transformers.ViTForImageClassification(copy.deepcopy(engine.config))
    eager.load_state_dict(engine.state_dict())
    eager.set_attn_implementation("eager")
    eager.eval()
    result = eager(pixel_values=prepared.pixels, output_attentions=True)
    gradients = torch.autograd.grad(result.logits[0, 2], result.attentions)
    expected = gradient_relevance([w[0].detach() for w in result.attentions], [g[0] for g in gradients])
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(("family", "special"), [("vit", 1), ("deit", 2), ("dinov2", 1), ("registers", 1)])
def test_positions_on_the_models_own_grid_are_its_table(tiny_model: Models, family: str, special: int) -> None:
    """Registers have tokens but no positions."""
    model = HubVision(tiny_model(family))
    table, larger = model.position_table((4, 4)), model.position_table((6, 5))
    own = next(p for p in tiny_model(family).positions if p.scheme == "learned").values
    assert table is not None
    assert larger is not None
    assert torch.equal(table[0], own[special:])
    assert larger.shape == (1, 30, 32)


def test_what_is_refused(tiny_model: Models, picture: Image.Image) -> None:
    with pytest.raises(HubError, match="takes a text"):
        HubVision(tiny_model("bert"))
    model = HubVision(tiny_model("dinov2"))
    assert model.labels == ()
    assert model.classify_prepared(model.prepare(picture)).probabilities == {}
    with pytest.raises(HubError, match="names no classes"):
        model.predict(model.prepare(picture).pixels)
    with pytest.raises(HubError, match="no label 'cat'"):
        HubVision(tiny_model("vit")).relevance(model.prepare(picture), "cat")
