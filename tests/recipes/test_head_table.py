"""What each head of a translator does, and what rests on its marks."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from recipes.head_table import mark_shares, table
from recipes.marks import sample_maps, value_lengths
from viz_core.pretrained import load_translator
from viz_core.pretrained.samples import held_out
from viz_core.trace import record


def test_the_table_counts_heads_and_leaves_out_roles_of_marks() -> None:
    shares = {"encoder-self": np.array([[0.9, 0.6], [0.1, 0.2]]), "decoder-self": np.array([[0.4, 0.7], [0.0, 0.3]])}
    roles = {
        "encoder-self": [["separator", ""], ["previous", "previous"]],
        "decoder-self": [["", "first"], ["separator", "next"]],
    }
    first, second, *_, last = table(shares, roles).splitlines()[2:]
    assert first == "| encoder-self 1 | 0.75 | 2 of 2 | separator 1 |"
    assert second == "| encoder-self 2 | 0.15 | 0 of 2 | previous 2 |"
    assert last == "| all | 0.35 | 3 of 8 | 4 heads with another role than their mark's |"


def test_shares_are_means_over_the_queries_of_sentences_of_6_to_12_words() -> None:
    translator = load_translator("transformer-en-fr", "cpu")
    sample = next(each for each in held_out() if len(each.english.split()) in range(6, 13))
    short = next(each for each in held_out() if len(each.english.split()) < 6)
    ids = [translator.tokenizer.encode(text).ids for text in (sample.english, sample.references[0])]
    with record() as trace:
        translator.model(*translator.teacher_forced(*([*each, translator.special.eos] for each in ids)))
    found = mark_shares(translator, [short, sample])
    end, start = trace["encoder.1.self"].weights()[0], trace["decoder.2.self"].weights()[0]
    assert found["encoder-self"][1].tolist() == pytest.approx(end[..., -1].mean(-1).tolist(), abs=1e-6)
    after_the_first = torch.stack([start[:, i, 0] for i in range(1, start.shape[1])]).mean(0)
    assert found["decoder-self"][2].tolist() == pytest.approx(after_the_first.tolist(), abs=1e-6)


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
