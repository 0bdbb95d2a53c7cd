"""What is known of a pass: calls of layers that share their weights, and texts that share a row."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.viz_core.hub.families import in_memory
from viz_core.hub import coverage, instrument, restore
from viz_core.maps.fingerprints import measure_layer
from viz_core.trace import intervene, knock_out, load_trace, off, record, save_trace, sharpen, window, zero

LAYERS, HEADS, WIDTH = 12, 4, 4
SITES = tuple(f"encoder.{i}.self" for i in range(LAYERS))


def albert(groups: int = 1, inner: int = 1, layers: int = LAYERS, dtype: torch.dtype = torch.float32) -> Any:
    options = {"num_hidden_groups": groups, "inner_group_num": inner, "num_hidden_layers": layers, "vocab_size": 40}
    return in_memory("albert", hidden_size=HEADS * WIDTH, **options).to(dtype)


def padded() -> dict[str, Tensor]:
    ids = torch.randint(0, 40, (2, 6), generator=torch.Generator().manual_seed(1))
    return {"input_ids": ids, "attention_mask": torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]])}


def albert_layers(model: Any) -> list[Any]:
    return [layer for group in model.encoder.albert_layer_groups for layer in group.albert_layers]


@torch.no_grad()
@pytest.mark.parametrize(("groups", "dtype"), [(1, torch.float16), (3, torch.float32)])
def test_a_head_is_off_in_one_call_alone(groups: int, dtype: torch.dtype) -> None:
    """As where a hook cuts the input of one call's projection in a model that is not recorded."""
    model, inputs = albert(groups, dtype=dtype), padded()
    real, calls = inputs["attention_mask"].bool(), iter([False] * 10 + [True, False] + [False] * 24)

    def cut(_projection: nn.Module, given: tuple[Tensor]) -> tuple[Tensor]:
        others = torch.arange(HEADS * WIDTH) // WIDTH != 1
        return (given[0] * others if next(calls) else given[0],)

    handles = [layer.attention.dense.register_forward_pre_hook(cut) for layer in albert_layers(model)]
    expected = model(**inputs).last_hidden_state
    whole = model(**inputs).last_hidden_state
    for handle in handles:
        handle.remove()
    assert instrument(model) == SITES
    with record() as before:
        assert torch.equal(model(**inputs).last_hidden_state[real], whole[real])
    with record() as trace, intervene({"encoder.10.self": off(1)}):
        output = model(**inputs).last_hidden_state
    assert before.sites == trace.sites == SITES
    assert torch.equal(output[real], expected[real])
    assert not torch.equal(output[real], whole[real])
    assert all(torch.equal(trace[site].weights(), before[site].weights()) for site in SITES[:10])


@torch.no_grad()
def test_coverage_and_states_have_the_same_names() -> None:
    for groups, inner in ((3, 1), (2, 2)):
        model, inputs = albert(groups, inner), padded()
        rows = coverage(model)
        assert set(instrument(model)) == {row.site for row in rows}
        assert {row.layer for row in rows} == set(range(LAYERS))
        with record(states=True) as trace:
            hidden = model(**inputs, output_hidden_states=True).hidden_states
        assert set(trace.sites) == {row.site for row in rows}
        last = [name for name in trace.states if name.endswith(".residual")]
        assert len(last) == LAYERS * inner
        for name, state in zip(["encoder.embedding", *last], hidden, strict=True):
            assert torch.equal(trace.states[name], state)
        with record(states=True) as edited, intervene({last[3]: zero()}):
            model(**inputs)
        assert [torch.equal(edited.states[name], trace.states[name]) for name in last[:5]] == [True] * 3 + [False] * 2
        assert not edited.states[last[3]].any()


@torch.no_grad()
def test_a_pass_that_fails_ends() -> None:
    model, inputs = albert(layers=3), padded()
    instrument(model)

    second = iter((False, True))

    def fail(_layer: nn.Module, _args: Any) -> None:
        if next(second):
            raise RuntimeError("stopped")

    handle = albert_layers(model)[0].ffn.register_forward_pre_hook(fail)
    with pytest.raises(RuntimeError, match="stopped"), intervene({SITES[2]: off(0)}):
        model(**inputs)
    handle.remove()
    with record() as trace:
        model(**inputs)
        model(**inputs)
    assert trace.sites == (*SITES[:3], *(f"{site}@2" for site in SITES[:3]))
    restore(model)
    assert not any(part._forward_pre_hooks or part._forward_hooks for part in model.modules())


@torch.no_grad()
def test_threads_that_share_a_model_count_for_themselves() -> None:
    model, inputs = albert(), padded()
    instrument(model)
    with record() as trace:
        whole = model(**inputs).last_hidden_state
    waits = Barrier(4)

    def wait(_layer: nn.Module, _args: Any) -> None:
        waits.wait(60)

    albert_layers(model)[0].ffn.register_forward_pre_hook(wait)

    def work(site: str | None) -> tuple[tuple[str, ...], Tensor]:
        with torch.no_grad(), record() as own, intervene({} if site is None else {site: off(1)}):
            output = model(**inputs).last_hidden_state
            return own.sites, output

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, [None, SITES[3], SITES[10], None]))
    assert all(sites == trace.sites for sites, _ in found)
    assert torch.equal(found[0][1], whole)
    assert torch.equal(found[3][1], whole)
    assert not torch.equal(found[1][1], found[2][1])


@torch.no_grad()
@pytest.mark.parametrize("family", ["llama", "mistral"])
def test_texts_in_one_row_are_measured_and_edited_each_for_itself(family: str, tmp_path: Path) -> None:
    model = in_memory(family)
    instrument(model)
    texts, positions = [[5, 6, 7, 8], [9, 8, 7, 6, 5, 4, 9]], [[*range(4), *range(7)]]
    packed = {"input_ids": torch.tensor([[*texts[0], *texts[1]]]), "position_ids": torch.tensor(positions)}
    edits = {"decoder.0.self": [knock_out(1, query=3, key=0), window(2, 2, first=1)], "decoder.1.self": sharpen(0, 0.5)}
    for edited in ({}, edits):
        with record(states=True) as trace, intervene(edited):
            model(**packed, use_cache=False)
        with pytest.raises(ValueError, match=r"decoder.0.self': expected one text, got 2 in row 0: give a part"):
            measure_layer(trace["decoder.0.self"])
        with pytest.raises(IndexError, match="part"):
            trace.text(0, part=2)
        save_trace(trace, tmp_path / "trace.safetensors")
        for number, text in enumerate(texts):
            with record(states=True) as alone, intervene(edited):
                model(torch.tensor([text]))
            for whole in (trace, load_trace(tmp_path / "trace.safetensors")):
                found = whole.text(0, part=number)
                for call in alone:
                    torch.testing.assert_close(found[call.site].weights(), call.weights(), atol=1e-5, rtol=1e-5)
            for name, state in alone.states.items():
                if not name.endswith("output"):
                    torch.testing.assert_close(trace.text(0, part=number).states[name], state, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_texts_that_attend_to_one_another_are_not_taken_apart() -> None:
    """With a cache transformers hides no text from the next, whatever its positions."""
    model = in_memory("llama")
    instrument(model)
    left = {"attention_mask": torch.tensor([[0, 0, 1, 1]]), "position_ids": torch.tensor([[1, 1, 0, 1]])}
    with record() as padded:
        model(torch.tensor([[0, 0, 5, 6]]), **left)
    assert padded.text(0)["decoder.0.self"].num_keys == 2  # positions of padding say nothing
    with record() as trace:
        model(torch.tensor([[5, 6, 7, 8]]), None, torch.tensor([[0, 1, 0, 1]]))
    with pytest.raises(ValueError, match="expected texts that do not attend to one another in row 0"):
        trace.text(0, part=1)
