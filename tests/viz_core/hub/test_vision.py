"""Vision models of Hugging Face behind the shipped classifiers' face: the same numbers as transformers gives."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from PIL import Image

from tests.viz_core.hub.conftest import Tiny, TinyModel
from tests.viz_core.hub.families import image_processor
from tests.viz_core.hub.test_families import eager
from tests.viz_core.hub.tiny_talkers import TWO_TOWERS
from viz_core.hub import HubError, HubVision, coverage, instrument, load_hub
from viz_core.lab.heads_off import switchable
from viz_core.lessons.vision_transformer import patchify, permutation_test, random_order
from viz_core.maps.rollout import gradient_relevance
from viz_core.view import view

FAMILIES = {"vit": 1, "deit": 2, "dinov2": 1, "registers": 5}


@pytest.mark.parametrize(("family", "special"), FAMILIES.items())
def test_what_it_sees_is_what_the_lab_sees(
    tiny_model: TinyModel, family: str, special: int, picture: Image.Image
) -> None:
    model = HubVision(tiny_model(family))
    found = model.classify_prepared(model.prepare(picture))
    run = tiny_model(family).run(image=picture)
    assert (found.grid, found.num_special) == ((4, 4), special)
    for call, other in zip(found.trace, run.trace, strict=True):
        assert torch.equal(call.weights(), other.weights())
    if family == "vit":
        torch.testing.assert_close(model.predict(found.prepared.pixels)[0], run.output.softmax(dim=-1))
        assert found.probabilities == pytest.approx({each.text: each.probability for each in run.labels})
    assert list(found.prepared.seen.tobytes()) == list(run.image.tobytes())  # type: ignore[union-attr]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_filters_make_the_tokens(tiny_model: TinyModel, family: str, picture: Image.Image) -> None:
    model = HubVision(tiny_model(family))
    pixels = model.prepare(picture).pixels
    vectors = patchify(pixels, model.patch_size) @ model.filters.flatten(start_dim=1).T + model.filter_bias
    embeddings = next(
        m for m in tiny_model(family).engine.model.modules() if type(m).__name__.endswith("PatchEmbeddings")
    )
    with torch.no_grad():
        torch.testing.assert_close(vectors, embeddings(pixels), atol=1e-5, rtol=1e-5)


def test_without_positions_order_means_nothing(tiny_model: TinyModel, picture: Image.Image) -> None:
    model = HubVision(tiny_model("vit"))
    before = {name: p.clone() for name, p in tiny_model("vit").engine.model.named_parameters()}
    pixels = model.prepare(picture).pixels
    test = permutation_test(model.predict, pixels, model.patch_size, random_order(16, 3))
    assert test.residual < 1e-6
    assert test.change > 1e-3
    for name, parameter in tiny_model("vit").engine.model.named_parameters():
        assert torch.equal(parameter, before[name]), "the shared model is as it was"


def test_relevance_by_finite_weights(tiny: Tiny, tiny_model: TinyModel, picture: Image.Image) -> None:
    """Against transformers' own eager attention: its maps, kept in the graph, and their gradients."""
    model = HubVision(tiny_model("vit"))
    prepared = model.prepare(picture)
    found = model.relevance(prepared, model.labels[2])
    result = eager(tiny_model("vit"), tiny("vit"))(pixel_values=prepared.pixels, output_attentions=True)
    gradients = torch.autograd.grad(result.logits[0, 2], result.attentions)
    expected = gradient_relevance([w[0].detach() for w in result.attentions], [g[0] for g in gradients])
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(("family", "special"), [("vit", 1), ("deit", 2), ("dinov2", 1), ("registers", 1)])
def test_positions_on_the_models_own_grid_are_its_table(tiny_model: TinyModel, family: str, special: int) -> None:
    """Registers have tokens but no positions."""
    model = HubVision(tiny_model(family))
    table, larger = model.position_table((4, 4)), model.position_table((6, 5))
    own = next(p for p in tiny_model(family).positions if p.scheme == "learned").values
    assert table is not None
    assert larger is not None
    assert torch.equal(table[0], own[special:])
    assert larger.shape == (1, 30, 32)


def test_what_is_refused(tiny_model: TinyModel, picture: Image.Image) -> None:
    for family, why in (("bert", "takes a text"), ("clip", "a picture and a text"), ("llava", "a picture and a text")):
        with pytest.raises(HubError, match=why):
            HubVision(tiny_model(family))
    model = HubVision(tiny_model("dinov2"))
    assert model.labels == ()
    assert model.classify_prepared(model.prepare(picture)).probabilities == {}
    with pytest.raises(HubError, match="names no classes"):
        model.predict(model.prepare(picture).pixels)
    with pytest.raises(HubError, match="no label 'cat'"):
        HubVision(tiny_model("vit")).relevance(model.prepare(picture), "cat")


TEXT = "a cat on the mat"


def inputs_of(path: Path, picture: Image.Image) -> Any:
    """By transformers' own processor, and as SigLIP's page has it: padded to the longest."""
    images = transformers.AutoImageProcessor.from_pretrained(path, backend="pil")
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    options: dict[str, Any] = {"return_tensors": "pt", "return_token_type_ids": False}
    if path.name == "clip":
        return transformers.CLIPProcessor(images, tokenizer)(images=picture, text=TEXT, **options)
    options |= {"padding": "max_length", "max_length": 24, "return_attention_mask": False}
    return transformers.SiglipProcessor(images, tokenizer)(images=picture, text=TEXT, **options)


@pytest.mark.parametrize("family", TWO_TOWERS)
def test_the_cosine_of_both_towers(family: str, tiny: Tiny, tiny_model: TinyModel, picture: Image.Image) -> None:
    model = tiny_model(family)
    run = model.run(TEXT, image=picture)
    inputs, plain = inputs_of(tiny(family), picture), eager(model, tiny(family))
    assert [token.id for token in run.tokens] == inputs["input_ids"][0].tolist()
    with torch.no_grad():
        expected = plain(**inputs)
    assert run.output.shape == (17,)
    logit = float((expected.logits_per_image - getattr(plain, "logit_bias", 0)).detach())
    assert float(run.output[0]) * plain.logit_scale.exp().item() == pytest.approx(logit, abs=1e-4)
    torch.testing.assert_close(model.rerun(run), run.output)


def test_a_patch_is_read_as_the_class_token_is(tiny: Tiny, tiny_model: TinyModel, picture: Image.Image) -> None:
    """Put in the class token's place, a patch's last state gives its cosine as the model's own logit."""
    run = tiny_model("clip").run(TEXT, image=picture)
    inputs, plain = inputs_of(tiny("clip"), picture), eager(tiny_model("clip"), tiny("clip"))
    for token in (3, 16):

        def in_its_place(_module: Any, _inputs: Any, output: Any, token: int = token) -> None:
            output.last_hidden_state[:, 0] = output.last_hidden_state[:, token].clone()

        hook = plain.vision_model.encoder.register_forward_hook(in_its_place)
        with torch.no_grad():
            logit = float(plain(**inputs).logits_per_image)
        hook.remove()
        assert float(run.output[token]) * plain.logit_scale.exp().item() == pytest.approx(logit, abs=1e-4)


def test_a_patch_is_pooled_as_the_only_one(tiny: Tiny, tiny_model: TinyModel, picture: Image.Image) -> None:
    """Of a SigLIP: where the pooling is let see one patch alone, that patch's cosine is the model's own logit."""
    model, path = tiny_model("siglip"), tiny("siglip")
    run, inputs, plain = model.run(TEXT, image=picture), inputs_of(path, picture), eager(model, path)
    pooling = plain.vision_model.head.attention
    pooled = pooling.forward
    for patch in (0, 9):
        others = torch.arange(16)[None] != patch
        with pytest.MonkeyPatch.context() as hidden, torch.no_grad():
            hidden.setattr(pooling, "forward", partial(pooled, key_padding_mask=others))
            logit = float(plain(**inputs).logits_per_image - plain.logit_bias)
        assert float(run.output[1 + patch]) * plain.logit_scale.exp().item() == pytest.approx(logit, abs=1e-4)


def test_what_each_head_of_the_pooling_looks_at(tiny: Tiny, tiny_model: TinyModel, picture: Image.Image) -> None:
    """softmax(q k / sqrt(d)) by hand, from the halves of torch's one matrix for queries, keys and values."""
    model = tiny_model("siglip")
    run = model.run(TEXT, image=picture)
    assert run.frame is not None
    assert (run.frame.grid, len(run.frame.tokens), len(run.tokens)) == ((4, 4), 16, 24)
    assert [token.label for token in run.tokens[-3:]] == ["<pad>"] * 3
    weights = run.trace["vision.head.cross"].weights()[0, :, 0]
    states = eager(model, tiny("siglip")).vision_model(inputs_of(tiny("siglip"), picture)["pixel_values"])
    head = model.engine.model.vision_model.head
    (query, key, _), (of_query, of_key, _) = (
        head.attention.in_proj_weight.chunk(3),
        head.attention.in_proj_bias.chunk(3),
    )
    q = (head.probe[0] @ query.T + of_query).reshape(2, 1, 8)
    k = (states.last_hidden_state[0] @ key.T + of_key).reshape(16, 2, 8).transpose(0, 1)
    by_hand = (q @ k.mT / 8**0.5).softmax(dim=-1)[:, 0]
    torch.testing.assert_close(weights, by_hand.detach(), atol=1e-6, rtol=0)
    plain = eager(model, tiny("siglip"))
    assert set(instrument(plain)) == set(run.trace.sites) == {row.site for row in coverage(model.network, "encoder")}
    pooled = next(maps for maps in run.maps if maps.id == "vision-head-cross")
    assert (pooled.id, pooled.query_tokens[0].label, pooled.key_tokens) == (
        "vision-head-cross",
        "head",
        run.frame.tokens,
    )
    group = next(group for group in view(run).groups if group.id == "vision-head-cross")
    assert group.image is not None
    assert (group.image.of_queries, len(group.query_tokens), group.label) == (False, 1, "vision.head.cross")
    assert view(run).state.group != group.id


def test_what_a_run_holds(tiny_model: TinyModel, picture: Image.Image) -> None:
    model = tiny_model("clip")
    run = model.run(TEXT, image=picture)
    frame = run.frame
    assert frame is not None
    assert (frame.grid, frame.image.size, len(frame.tokens)) == ((4, 4), (16, 16), 17)
    assert {maps.id for maps in run.maps} == {"vision-self", "encoder-self"}
    assert model.card.kind == "dual-encoder"
    assert model.card.max_tokens == 24, "the picture's table of 17 positions is no limit of the text"
    assert switchable(model, run) == ()
    words = next(maps for maps in run.maps if maps.id == "encoder-self")
    assert all(float(call.weights().triu(diagonal=1).max()) == 0 for call in words.calls), "CLIP reads left to right"


def test_its_eyes_stand_alone_too(tiny: Tiny, tiny_model: TinyModel, picture: Image.Image, tmp_path: Path) -> None:
    """A CLIP vision model by itself is a vision model like any other, with the same maps."""
    whole = tiny_model("clip").run(TEXT, image=picture)
    transformers.CLIPVisionModel.from_pretrained(tiny("clip")).save_pretrained(tmp_path / "eyes")
    image_processor("CLIPImageProcessor").from_pretrained(tiny("clip")).save_pretrained(tmp_path / "eyes")
    model = load_hub(tmp_path / "eyes", device="cpu")
    run = model.run(image=picture)
    for layer in range(2):
        assert torch.equal(run.trace[f"encoder.{layer}.self"].weights(), whole.trace[f"vision.{layer}.self"].weights())
    table = HubVision(model).position_table((4, 4))
    assert table is not None
    assert table.shape == (1, 16, 16)
