"""What rests on the marks: lengths of values against the layer's own products, maps that are those of the model."""

from __future__ import annotations

import pytest
import torch

from recipes.marks import sample_maps, value_lengths
from viz_core.pretrained import load_translator
from viz_core.pretrained.samples import held_out
from viz_core.trace import record


def test_lengths_are_those_of_the_values_that_the_layer_makes() -> None:
    translator = load_translator("transformer-en-fr", "cpu")
    sample = held_out()[0]
    ids = [
        [*translator.tokenizer.encode(t).ids, translator.special.eos] for t in (sample.english, sample.references[0])
    ]
    layer = translator.model.encoder.blocks[0].attention  # type: ignore[union-attr]
    seen: list[torch.Tensor] = []
    handle = layer.W_v.register_forward_hook(lambda _module, _inputs, output: seen.append(output.detach()))
    with torch.inference_mode():
        translator.model(*translator.teacher_forced(*ids))
    handle.remove()
    lengths = seen[0][0].unflatten(-1, (layer.num_heads, -1)).norm(dim=-1)  # (tokens, heads)
    wanted = lengths[-1] / lengths[:-1].mean(dim=0)
    assert value_lengths(translator, [sample])["encoder-self"][0].tolist() == pytest.approx(wanted.tolist(), rel=1e-4)


def test_maps_of_the_sample_are_the_models_with_a_name_for_each_row_and_column() -> None:
    translator = load_translator("transformer-en-fr", "cpu")
    english = held_out()[0].english
    found = sample_maps(translator, english)
    with record():
        trace = translator.translate(english).trace
    for kind, site in (("encoder-self", "encoder.2.self"), ("decoder-self", "decoder.1.self")):
        weights = trace[site].weights()[0]
        stored = torch.tensor(found[kind]["maps"][int(site.split(".")[1])]) / 255
        assert float((stored - weights).abs().max()) <= 0.5 / 255 + 1e-6
        assert (len(found[kind]["queries"]), len(found[kind]["keys"])) == tuple(weights.shape[1:])
