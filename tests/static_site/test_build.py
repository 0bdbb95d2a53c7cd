"""Graphs give what PyTorch gives at any length, and what comes from elsewhere is checked."""

import base64
import hashlib
import json
import re
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from onnx import helper
from onnx.numpy_helper import from_array

from static_site.build import VENDOR
from static_site.files import LANGUAGES
from static_site.model_files import WeightStore, with_shared_weights
from static_site.pages import PAGES, Words, whole_page
from static_site.recorded_pages import component_page, record_chapter
from static_site.translator import DecoderGraph, EncoderGraph, export_translator
from static_site.writer import WriterGraph, export_writer
from tests.pages.reading import components, decode_chart
from tests.visits import open_chapter
from ui.chapter.contents import all_chapters, chapter_entries
from ui.chapter.exercises import NUMBERS
from ui.chapter.exercises import _question as question_of
from ui.text.words import load_words
from viz_core.hub import load_hub
from viz_core.pretrained import Translator


def test_graphs_give_what_torch_gives_at_any_length(
    translator: Translator, tmp_path: Path, shapes_unchecked: None
) -> None:
    model = translator.model
    graphs, store = export_translator(model)
    sessions = open_sessions(graphs, store, tmp_path)
    blocks = model.encoder.blocks
    layers, heads, size = len(blocks), blocks[0].attention.num_heads, blocks[0].attention.head_dim
    vocab = model.decoder.dense.out_features
    for keys, batch, steps, past in ((1, 1, 1, 0), (9, 1, 6, 0), (4, 3, 1, 5), (20, 2, 4, 7)):
        gates, rows = (torch.ones(layers, heads), torch.ones(2, layers, heads)), torch.randint(batch + 1, (batch,))
        gates[0][0, 0] = gates[1][1, layers - 1, heads - 1] = 0.0
        source, tokens = torch.randint(4, vocab, (1, keys)), torch.randint(4, vocab, (batch, steps))
        with torch.inference_mode():
            encoded = EncoderGraph(model)(source, gates[0])
            cached = [torch.randn(batch + 1, heads, past, size) for _ in range(2 * layers)]
            crossed = [encoded[f"decoder.{i}.cross.{part}"] for i in range(layers) for part in ("keys", "values")]
            decoded = DecoderGraph(model)(tokens, gates[1], rows, cached, crossed)
        expect_equal(sessions["encoder"], (source, gates[0]), encoded)
        expect_equal(sessions["decoder"], (tokens, gates[1], rows, *cached, *crossed), decoded)


def open_sessions(
    graphs: dict[str, bytes], store: WeightStore, folder: Path
) -> dict[str, onnxruntime.InferenceSession]:
    """Sessions of graphs whose weights lie in a folder."""
    (folder / "weights").write_bytes(store.content)
    for name, graph in graphs.items():
        assert str(Path.cwd()).encode() not in graph
        (folder / name).write_bytes(graph)
    return {name: onnxruntime.InferenceSession(folder / name) for name in graphs}


def test_the_writers_graph_gives_what_torch_gives_at_any_length(tmp_path: Path, shapes_unchecked: None) -> None:
    network = load_hub("writer-en", device="cpu", offline=True).network
    graphs, store = export_writer(network)
    session = open_sessions(graphs, store, tmp_path)["writer"]
    config = network.config
    gates = torch.ones(config.num_hidden_layers, config.num_attention_heads)
    past_shape = 2 * config.num_hidden_layers, 1, config.num_key_value_heads
    for past, steps in ((0, 1), (0, 9), (6, 1), (4, 3)):
        tokens = torch.randint(4, config.vocab_size, (1, steps))
        cached = list(torch.randn(*past_shape, past, config.head_dim))
        with torch.inference_mode():
            expected = WriterGraph(network)(tokens, gates, cached)
        expect_equal(session, (tokens, gates, *cached), expected)
    with torch.inference_mode():
        whole = network(tokens).logits
        logits = WriterGraph(network)(tokens, gates, list(torch.zeros(*past_shape, 0, config.head_dim)))["logits"]
    assert (whole - logits).abs().max() < 1e-4


def test_the_runtime_gives_weights_back_bit_for_bit(tmp_path: Path) -> None:
    """Matrices on a grid, by rows or by columns, and others; what is equal lies in the file once."""
    numbers = np.random.default_rng(0)
    rows = numbers.integers(-127, 128, (20, 30)) * 2.0 ** numbers.integers(-24, 8, (20, 1))
    rows[[4, 11]] = 0
    off_grid = rows.copy()
    off_grid[3, 5] = 0.1
    named = {"first": rows[:9], "turned": rows.T, "vector": numbers.normal(size=300), "off": off_grid, "second": rows}
    tensors = {name: each.astype(np.float16).astype(np.float32) for name, each in named.items()}
    store = WeightStore()
    outputs = [helper.make_tensor_value_info(f"{name}.out", 1, value.shape) for name, value in tensors.items()]
    nodes = [helper.make_node("Identity", [name], [f"{name}.out"]) for name in tensors]
    graph = helper.make_graph(nodes, "weights", [], outputs, [from_array(each, name) for name, each in tensors.items()])
    model = with_shared_weights(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), store
    )
    (session,) = open_sessions({"graph": model.SerializeToString()}, store, tmp_path).values()
    for found, expected in zip(session.run(None, {}), tensors.values(), strict=True):
        assert np.array_equal(found, expected)
    assert len(store.content) == 9 * 30 + 9 * 2 + 20 * 30 + 20 * 2 + 2 * 300 + 2 * 600
    with pytest.raises(ValueError, match="expected numbers that float16 has"):
        list(store.unpacked("third", np.full((2, 2), 1 / 3, np.float32)))


def expect_equal(
    session: onnxruntime.InferenceSession, inputs: tuple[torch.Tensor, ...], expected: dict[str, torch.Tensor]
) -> None:
    names = [each.name for each in session.get_inputs()]
    found = session.run(None, {name: value.numpy() for name, value in zip(names, inputs, strict=True)})
    assert [each.name for each in session.get_outputs()] == list(expected)
    for own, (name, other) in zip(found, expected.items(), strict=True):
        assert own.shape == tuple(other.shape)
        # Sums of 1,024 products, some near 1,000: there float32 rounds by more than 1e-4.
        allowed = 1e-5 * float(other.abs().max()) if name.endswith(".ffn") else 1e-4
        assert np.abs(own - other.numpy()).max() < allowed


def test_vendored_files_are_those_of_their_packages() -> None:
    listed = dict(re.findall(r"^    ([0-9a-f]{64})  (\S+)$", (VENDOR / "README.md").read_text("utf-8"), re.MULTILINE))
    files = {path for path in VENDOR.glob("*/*") if path.name != "LICENSE"}
    assert {hashlib.sha256(path.read_bytes()).hexdigest(): str(path.relative_to(VENDOR)) for path in files} == listed
    assert all((path.parent / "LICENSE").is_file() for path in files)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_review_asks_what_the_app_asks(language: str) -> None:
    page = component_page(Words(language), "review", "review")
    (data,) = re.findall(r'id="data">(.*?)</script>', page)
    shown = json.loads(data)["shown"]
    words = load_words("review", language)
    assert {chapter["name"] for chapter in shown["chapters"]} == set(all_chapters()[1:]) - {"model-lab"}
    for chapter in shown["chapters"]:
        assert chapter["questions"] == [question_of(words, f"{chapter['name']}.{number}") for number in NUMBERS]
        assert chapter["href"] == f"{PAGES.get(chapter['name'], chapter['name'])}.html"
    assert shown["words"] == words.group("view")


def test_every_chapter_is_computed_or_recorded_and_nothing_twice() -> None:
    recorded = {name: entry.site for name, entry in chapter_entries().items() if entry.site}
    assert {*PAGES, *recorded} == set(all_chapters()[1:])
    assert not PAGES.keys() & recorded.keys()
    for control in (control for site in recorded.values() for control in site):
        assert control["start"] in control["values"]


def test_a_recording_holds_what_the_page_draws_at_each_value() -> None:
    site = {"control": "qkv-temperature", "values": ["0.05", "2.0"], "start": "0.05"}
    recording = record_chapter("queries-keys-values", [site], "pt-BR")
    assert (recording.labels, recording.shown, recording.exercise) == (["Temperatura"], [["0.05", "2.0"]], "warm")
    weights = []
    for frame, value in zip(recording.frames, site["values"], strict=True):
        (chart,) = (part for part in frame if "component" in part)
        opened = open_chapter("queries-keys-values", **{"qkv-temperature": value, "lang": "pt-BR", "open-all": "false"})
        (drawn,) = components(opened, "chart")
        assert base64.b64decode(recording.data[chart["data"]]) == drawn.bytes
        weights.append(decode_chart(drawn.bytes)["data"][0]["x"])
        (checks,) = (part["parts"][1]["parts"] for part in frame if part.get("tag") == "details")
        assert len(checks) == 3
        assert not any(":material/" in part["html"] or ":green[" in part["html"] for part in checks)
    assert weights[0].max() > 0.9 > 0.5 > weights[1].max()


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_to_remember_has_no_link_into_the_app(language: str) -> None:
    page = whole_page(Words(language), "transformer", {}, chapter="transformer")
    (remembered,) = re.findall(r'<div class="takeaways">(.*?)</div>', page, re.DOTALL)
    assert remembered.count("<li>") == 3
    assert "href" not in remembered
    assert not re.search(r"\]|\(#", remembered)
