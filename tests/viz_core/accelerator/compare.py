"""Run every kind of computation on the CPU and on an accelerator and compare: `python -m ... DEVICE [CASE ...]`.

DEVICE is "standin", which needs no GPU (standin.py), or a real one such as "cuda". Prints a line for each case and ends
with status 1 if one differs or fails.
"""

import contextlib
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle
from typing import Any

import torch
from torch import Tensor, nn

DEVICE, CASES = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else ("standin", [])
if DEVICE == "standin":
    from tests.viz_core.accelerator.standin import MixedDevicesError, register

    register()

import viz_core.attention as layers  # noqa: E402
import viz_core.runtime.device  # noqa: E402  after the device is registered, which replaces inference_mode
import viz_core.trace as own  # noqa: E402
from benchmarks.view_bytes import decode_view  # noqa: E402
from tests.viz_core.hub.families import IN_MEMORY, in_memory, inputs_of, output_of  # noqa: E402
from tests.viz_core.positional.test_register import SIZES, Layer  # noqa: E402
from viz_core.attention.scores import FUNCTIONS  # noqa: E402
from viz_core.attention.scores.function import ScoreWidths  # noqa: E402
from viz_core.circuits import attribution_patch, direction_tokens, ov_circuit, patch_sweep, path_patch, qk_circuit  # noqa: E402
from viz_core.hub import instrument, load_hub  # noqa: E402
from viz_core.maps.contributions import contribution_norms, contribution_sum  # noqa: E402
from viz_core.maps.fingerprints import measure_layer  # noqa: E402
from viz_core.models import Seq2SeqAttentionDecoder, Seq2SeqEncoder, TransformerDecoder, TransformerEncoder, ViT  # noqa: E402
from viz_core.positional import SCHEMES  # noqa: E402
from viz_core.pretrained import available, load  # noqa: E402
from viz_core.pretrained.samples import drawn_picture  # noqa: E402
from viz_core.runtime.assets import ASSETS  # noqa: E402
from viz_core.tasks.generating import TASKS  # noqa: E402
from viz_core.tasks.model import POSITIONS, Shape, TaskTransformer  # noqa: E402
from viz_core.trace import intervene, off, record  # noqa: E402
from viz_core.view import view  # noqa: E402
from viz_core.view.components import view_words  # noqa: E402
from viz_core.view.payload import View, encode_view  # noqa: E402
from viz_core.view.state import ViewState  # noqa: E402

ATOL = 2e-5 if DEVICE == "standin" else 5e-4
Result = dict[str, Any]


def seeded(make: Callable[[], Any], device: str) -> Any:
    torch.manual_seed(0)
    made = make()
    return made.to(device).eval() if isinstance(made, nn.Module) else made.to(device)


def normal(*shape: int, device: str) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1)).to(device)


def words(device: str) -> tuple[Tensor, Tensor]:
    ids = torch.randint(0, 9, (2, 6), generator=torch.Generator().manual_seed(2))
    return ids.to(device), torch.tensor([4, 6]).to(device)


def maps_of(trace: Any, name: str = "") -> Result:
    pairs = zip(trace.sites, trace, strict=True)
    return {f"{name} map {site} {i}": call.weights() for i, (site, call) in enumerate(pairs)}


def shipped(name: str, device: str) -> Result:
    model = load(name, device)
    if hasattr(model, "classify"):
        found = model.classify(drawn_picture("airplane"))
        return {"label": found.label, "probabilities": found.probabilities, **maps_of(found.trace)}
    found = model.translate("He is calm.", beam=2)
    edits = {found.trace.sites[-1]: off(0)} if name.startswith("transformer") else {}
    with intervene(edits):
        edited = model.translate("I lost.")
    return {"text": found.text, "edited": edited.text, **maps_of(found.trace)}


def hub(name: str, device: str) -> Result:
    found = load_hub(ASSETS / "hub" / name, device=device).run(text="the letter was on the table .")
    return {"tokens": [token.label for token in found.tokens], **maps_of(found.trace)}


def family(name: str, device: str) -> Result:
    model = seeded(lambda: in_memory(name), device)
    instrument(model)
    inputs = {key: value.to(device) for key, value in inputs_of(model).items()}
    with torch.no_grad(), record(values=True) as trace:
        output = output_of(model(**inputs))
    measured = {site: measure_layer(trace[site]).fingerprints for site in trace.sites if site.endswith(".self")}
    return {"output": output, "measures": measured, **maps_of(trace)}


def positions(entry: Any, device: str) -> Result:
    layer = seeded(lambda: Layer(entry, SIZES["shared"]), device)
    X = normal(2, SIZES["shared"].num_tokens, SIZES["shared"].num_hiddens, device=device)
    with record() as trace:
        output = layer(X, torch.tensor([3, 6]).to(device))
    return {"output": output, **maps_of(trace)}


def attention_layers(device: str) -> Result:
    Q, K = normal(2, 3, 8, device=device), normal(2, 5, 8, device=device)
    lengths = torch.tensor([2, 5]).to(device)
    found: Result = {"masked softmax": layers.masked_softmax(normal(2, 3, 5, device=device), lengths)}
    modules: dict[str, Callable[[], nn.Module]] = {
        "dot": lambda: layers.DotProductAttention(0.0),
        "additive": lambda: layers.AdditiveAttention(8, 8, 4, 0.0),
        "heads": lambda: layers.MultiHeadAttention(8, 2, 0.0),
    }
    for name, make in modules.items():
        with record() as trace:
            found[name] = seeded(make, device)(Q, K, K, lengths)
        found |= maps_of(trace, name)
    x = torch.linspace(0, 5, 9).to(device)
    found["pooling"], found["pooling weights"] = layers.nadaraya_watson(x, x.sin(), x + 0.1, layers.gaussian(0.5))
    learned = {f.name: f.make(ScoreWidths(8, 8, 4), 0).to(device) for f in FUNCTIONS}
    return found | {f.name: f.scores(learned[f.name], Q, K) for f in FUNCTIONS}


def architectures(device: str) -> Result:
    source, lengths = words(device)
    encoder = seeded(lambda: TransformerEncoder(9, 8, 16, 2, 2, 0.0), device)
    decoder = seeded(lambda: TransformerDecoder(9, 8, 16, 2, 2, 0.0), device)
    with record(values=True) as trace:
        target, _state = decoder(source, decoder.init_state(encoder(source, lengths), lengths))
    recurrent = seeded(lambda: Seq2SeqEncoder(9, 8, 8, 2), device)
    attentive = seeded(lambda: Seq2SeqAttentionDecoder(9, 8, 8, 2), device)
    written, _state = attentive(source, attentive.init_state(recurrent(source, lengths), lengths))
    vit = seeded(lambda: ViT(16, 4, 8, 16, 2, 2, 0.0, 0.0), device)(normal(2, 3, 16, 16, device=device))
    return {"transformer": target, "seq2seq": written, "vit": vit, **maps_of(trace)}


def edits_contributions_views(device: str) -> Result:
    (source, lengths), site = words(device), "encoder.1.self"
    encoder = seeded(lambda: TransformerEncoder(9, 8, 16, 2, 2, 0.0), device)
    with record(values=True) as trace:
        encoder(source, lengths)
    call, W_o = trace[site], encoder.blks[1].attention.W_o
    encoded = encode_view(View(list(view(trace).groups), view_words()), ViewState("0-self", 0, 0))
    found: Result = {"norms": contribution_norms(call, W_o), "sum": contribution_sum(call, W_o)}
    found |= {"heads": own.head_outputs(call), "overview": call.overview(4), "view": decode_view(encoded).parts}
    edits = {
        "off": off(0),
        "gate": own.gate([0, 1], torch.tensor([0.5, 2.0]).to(device)),
        "mean": own.mean(1, own.mean_outputs(call)),
        "uniform": own.uniform(None),
        "sharpen": own.sharpen(0, 0.5),
        "first": own.pattern(None, "first"),
        "knock out": own.knock_out(1, key=0),
        "window": own.window(None, 2, first=1),
        "patch": own.patch(0, call),
        "patch some": own.patch(1, call, "output", queries=slice(0, 2)),
    }
    for name, edit in edits.items():
        with intervene({site: edit}), record() as edited:
            found[name] = encoder(source, lengths)
        found |= maps_of(edited, name)
    return found


def circuits(device: str) -> Result:
    model = seeded(lambda: in_memory("gpt2"), device)
    instrument(model)
    ids = torch.tensor([[5, 6, 7, 8]])
    clean, corrupted = ({"input_ids": each.to(device)} for each in (ids, ids.roll(1)))
    runs = model, clean, corrupted, lambda logits: logits[0, -1, 3] - logits[0, -1, 4]
    found: Result = {"sweep": patch_sweep(*runs), "estimate": attribution_patch(*runs).grid}
    found["path"] = path_patch(*runs, ("decoder.0.self", 1), ("decoder.1.self", 0))
    for make in (ov_circuit, qk_circuit):
        circuit = make(model, "decoder.1.self", 1)
        found[circuit.kind] = circuit.left @ circuit.right
        found[f"{circuit.kind} tokens"] = direction_tokens(model, circuit, 0)
    return found


def learning_tasks(device: str) -> Result:
    found: Result = {}
    for (name, task), places in zip(TASKS.items(), cycle(POSITIONS), strict=False):
        examples = task.draw(torch.Generator().manual_seed(3), 4, task.shortest + 1)
        model = seeded(partial(TaskTransformer, len(task.tokens), Shape(positions=places)), device)
        scores, right = model.predictions(*(part.to(device) for part in examples))
        nn.functional.cross_entropy(scores, right).backward()
        found |= {name: scores, f"{name} gradient": next(model.parameters()).grad}
    return found


CASES_BY_NAME: dict[str, Callable[[str], Result]] = {
    **{f"shipped {card.name}": partial(shipped, card.name) for card in available()},
    **{f"hub {path.name}": partial(hub, path.name) for path in sorted((ASSETS / "hub").iterdir())},
    **{f"family {name}": partial(family, name) for name in IN_MEMORY},
    **{f"positions {entry.name}": partial(positions, entry) for entry in SCHEMES},
    **{each.__name__: each for each in (attention_layers, architectures, edits_contributions_views, circuits)},
    "learning_tasks": learning_tasks,
}


def differences(expected: Any, found: Any, name: str = "") -> Iterator[str]:
    """Yield what differs between two results; tensors to `ATOL`, and only where they come from the right device."""
    if isinstance(expected, dict):
        for key in expected:
            yield from differences(expected[key], found[key], f"{name} {key}".strip())
    elif isinstance(expected, list | tuple):
        if len(expected) != len(found):
            yield f"{name}: {len(found)} instead of {len(expected)}"
        for a, b in zip(expected, found, strict=False):
            yield from differences(a, b, name)
    elif isinstance(expected, Tensor):
        a, b = expected.detach().cpu(), found.detach().cpu()
        if a.shape != b.shape:
            yield f"{name}: {tuple(b.shape)} instead of {tuple(a.shape)}"
        elif not torch.allclose(a.double(), b.double(), atol=ATOL, rtol=1e-4, equal_nan=True):
            yield f"{name}: differs by {(a.double() - b.double()).abs().max().item()}"
    elif isinstance(expected, float):
        if abs(expected - found) > ATOL and expected == expected:
            yield f"{name}: {found} instead of {expected}"
    elif expected != found:
        yield f"{name}: {str(found)[:80]!r} instead of {str(expected)[:80]!r}"


def main() -> None:
    here = viz_core.runtime.device.available_devices
    viz_core.runtime.device.available_devices = lambda: (DEVICE.partition(":")[0], *here())  # type: ignore[assignment]
    failed = 0
    if DEVICE == "standin":  # else it would not show what was left on the CPU
        with contextlib.suppress(MixedDevicesError):
            torch.ones(2, device=DEVICE) + torch.ones(2)
            raise SystemExit("a tensor on the CPU met one of the device")
    for name in CASES or CASES_BY_NAME:
        try:
            faults = list(differences(CASES_BY_NAME[name]("cpu"), CASES_BY_NAME[name](DEVICE)))
        except Exception:  # every case is reported
            faults = [traceback.format_exc(limit=-6)]
        failed += bool(faults)
        print(f"{name}: {'; '.join(faults) if faults else 'equal'}", flush=True)
    print(f"{len(CASES or CASES_BY_NAME)} cases, {failed} failed")
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
