"""Tasks of BertViz' notebooks, done there and here on the same models.

`python -m tests.viz_core.view.bertviz_tasks`, with .venv/lens on the path, prints the same as
`tests.viz_core.circuits.peer_tasks`: what is compared are the numbers that either draws, read from what it shows. Each
function takes the model as that library has it, its inputs and their tokens.
"""

import base64
import contextlib
import copy
import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers
from torch import Tensor

from benchmarks.view_bytes import decode_view
from tests.viz_core.circuits.peer_tasks import lines
from viz_core import view
from viz_core.hub import instrument
from viz_core.maps.score_products import score_products
from viz_core.trace import record

SENTENCES = "The cat sat on the mat.", "The cat lay on the rug."


def there_maps(model: Any, inputs: Any, tokens: Any) -> Any:
    attention = model(**inputs, output_attentions=True).attentions
    return head_view(attention, tokens, html_action="return").data


def there_model(model: Any, inputs: Any, tokens: Any) -> Any:
    attention = model(**inputs, output_attentions=True).attentions
    return model_view(attention, tokens, html_action="return").data


def here_maps(model: Any, inputs: Any, tokens: Any) -> Any:
    with record() as trace:
        model(**inputs)
    return view(trace, tokens).page()


def there_head(model: Any, inputs: Any, tokens: Any) -> Any:
    attention = model(**inputs, output_attentions=True).attentions
    return head_view(attention, tokens, layer=2, heads=[3], html_action="return").data


def here_head(model: Any, inputs: Any, tokens: Any) -> Any:
    with record() as trace:
        model(**inputs)
    shown = view(trace, tokens)
    shown.site, shown.head = "encoder.2.self", 3
    return shown.page()


def there_some(model: Any, inputs: Any, tokens: Any) -> Any:
    attention = model(**inputs, output_attentions=True).attentions
    return model_view(attention, tokens, include_layers=[0, 2], include_heads=[1, 3], html_action="return").data


def here_some(model: Any, inputs: Any, tokens: Any) -> Any:
    with record() as trace:
        model(**inputs)
    return view([trace[layer].weights()[:, [1, 3]] for layer in (0, 2)], tokens).page()


def there_pair(model: Any, inputs: Any, tokens: Any) -> Any:
    attention, start = model(**inputs, output_attentions=True).attentions, int((inputs["token_type_ids"] == 0).sum())
    return head_view(attention, tokens, start, html_action="return").data


def here_pair(model: Any, inputs: Any, tokens: Any) -> Any:
    with record() as trace:
        model(**inputs)
    shown, start, n = view(trace, tokens), int((inputs["token_type_ids"] == 0).sum()), len(tokens)
    shown.display = {"zoom": f"0.{start}.{start}.{n - start}"}  # queries of the first sentence, keys of the second
    return shown.page()


def there_neurons(model: Any, *_: Any) -> Any:
    return neuron_view.show(model, "bert", WORDS, *SENTENCES, layer=1, head=2, html_action="return").data


def here_neurons(model: Any, inputs: Any, *_: Any) -> Any:
    with record() as trace:
        model(**inputs)
    return score_products(trace["encoder.1.self"], head=2, query=3, key=5)


def there_coder(model: Any, inputs: Any, tokens: Any) -> Any:
    found = model(**inputs, output_attentions=True)
    maps = {"encoder_attention": found.encoder_attentions, "decoder_attention": found.decoder_attentions}
    names = {"encoder_tokens": tokens["encoder"], "decoder_tokens": tokens["decoder"]}
    return head_view(**maps, cross_attention=found.cross_attentions, **names, html_action="return").data


def there_coder_model(model: Any, inputs: Any, tokens: Any) -> Any:
    found = model(**inputs, output_attentions=True)
    maps = {"encoder_attention": found.encoder_attentions, "decoder_attention": found.decoder_attentions}
    names = {"encoder_tokens": tokens["encoder"], "decoder_tokens": tokens["decoder"]}
    return model_view(**maps, cross_attention=found.cross_attentions, **names, html_action="return").data


def there_file(model: Any, inputs: Any, tokens: Any) -> Any:
    attention = model(**inputs, output_attentions=True).attentions
    html = head_view(attention, tokens, html_action="return")
    with open("there.html", "w") as file:
        file.write(html.data)


def here_file(model: Any, inputs: Any, tokens: Any) -> Any:
    with record() as trace:
        model(**inputs)
    view(trace, tokens).save("here.html")


class Task(NamedTuple):
    there: Callable[..., Any]
    here: Callable[..., Any]
    model: str = "bert"
    drawn: str = "all"  # of what the page holds: all maps, the open head, the second half of a pair, or neurons


TASKS = {
    "head view": Task(there_maps, here_maps),
    "head view of a decoder": Task(there_maps, here_maps, "gpt2"),
    "head view, opened at a layer and a head": Task(there_head, here_head, drawn="open"),
    "head view of two sentences: from the first to the second": Task(there_pair, here_pair, "pair", "pair"),
    "model view": Task(there_model, here_maps),
    "model view of some layers and heads": Task(there_some, here_some),
    "neuron view: query, key and their products": Task(there_neurons, here_neurons, "neurons", "neurons"),
    "head view of an encoder-decoder": Task(there_coder, here_maps, "marian"),
    "model view of an encoder-decoder": Task(there_coder_model, here_maps, "marian"),
    "head view as an HTML file": Task(there_file, here_file),
}


def params(html: str) -> Any:
    """What BertViz hands to its script."""
    return json.JSONDecoder().raw_decode(html, re.search(r"params = (?=\{)", html).end())[0]


def drawn_there(html: str, drawn: str) -> list[Tensor]:
    """The numbers of BertViz' page: maps (layers, heads, queries, keys)."""
    found = params(html)
    if drawn == "neurons":
        of = found["attention"]["all"]
        queries, keys = (torch.tensor(of[name])[found["layer"], found["head"]] for name in ("queries", "keys"))
        return [queries[3], keys[5], queries[3] * keys[5]]
    maps = {each["name"]: torch.tensor(each["attn"]) for each in found["attention"]}
    if drawn == "open":
        return [maps[None][found["layer"], found["heads"]]]
    return [maps["Sentence A -> Sentence B"]] if drawn == "pair" else [*maps.values()]


def drawn_here(shown: Any, drawn: str) -> list[Tensor]:
    """The same numbers of our page."""
    if drawn == "neurons":
        pair = torch.tensor(shown.query), torch.tensor(shown.key)
        return [*pair, torch.tensor(shown.products) / shown.scale]
    page = decode_view(base64.b64decode(re.search(r'id="data">([^<]*)<', shown)[1]))
    state = page.header["state"]
    maps = [
        torch.stack(
            [
                torch.stack([page.parts[f"map 0.{group['id']}:{i}.{j}:mean:tokens"] for j in range(layer["heads"])])
                for i, layer in enumerate(group["layers"])
            ]
        )
        for group in page.header["base"]["groups"][0]
    ]
    if drawn == "open":
        return [maps[0][state["layer"], state["head"]][None]]
    if drawn == "pair":
        row, column, height, width = map(int, state["display"]["zoom"].split("."))
        return [maps[0][..., row : row + height, column : column + width]]
    return maps


def models() -> dict[str, tuple[Any, Any, Any, Any]]:
    """By name: a plain model that returns its maps, the same with instruments, inputs, and tokens."""
    torch.manual_seed(2)
    reader = transformers.BertModel.from_pretrained(
        "assets/hub/reader-en", dtype=torch.float32, add_pooling_layer=False
    )
    sizes = {"n_layer": 2, "n_head": 4, "n_embd": 32, "vocab_size": len(WORDS), "bos_token_id": 1, "eos_token_id": 2}
    coder = {"d_model": 32, "decoder_start_token_id": 0, "pad_token_id": 0, "vocab_size": len(WORDS)}
    for side in ("encoder", "decoder"):
        coder |= {f"{side}_layers": 2, f"{side}_attention_heads": 4, f"{side}_ffn_dim": 48}
    plain = {
        "bert": reader,
        "gpt2": transformers.GPT2Model(transformers.GPT2Config(**sizes)),
        "marian": transformers.MarianMTModel(transformers.MarianConfig(**coder)),
    }
    found = {}
    for name, model in plain.items():
        own = copy.deepcopy(model.eval())
        instrument(own)
        model.set_attn_implementation("eager")
        inputs = WORDS(SENTENCES[0], return_tensors="pt", return_token_type_ids=name == "bert")
        tokens: Any = inputs.tokens()
        if name == "marian":
            written = WORDS(SENTENCES[1], return_tensors="pt")
            inputs["decoder_input_ids"], tokens = written["input_ids"], {"encoder": tokens, "decoder": written.tokens()}
        found[name] = model, own, inputs, tokens
    pair = WORDS(*SENTENCES, return_tensors="pt")
    found["pair"] = *found["bert"][:2], pair, pair.tokens()
    vig = transformers_neuron_view.BertModel(transformers_neuron_view.BertConfig.from_dict(reader.config.to_dict()))
    vig.load_state_dict(reader.state_dict(), strict=False)
    found["neurons"] = vig, *found["pair"][1:]
    return found


@torch.no_grad()
def compare() -> dict[str, dict[str, float]]:
    made, found = models(), {}
    for name, task in TASKS.items():
        plain, own, inputs, tokens = made[task.model]
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            there, here = task.there(plain, inputs, tokens), task.here(own, inputs, tokens)
            there, here = (
                Path(f"{side}.html").read_text("utf-8") if shown is None else shown
                for side, shown in (("there", there), ("here", here))
            )
        expected, numbers = drawn_there(there, task.drawn), drawn_here(here, task.drawn)
        assert [each.shape for each in expected] == [each.shape for each in numbers], name
        largest = max(float(each.abs().max()) for each in expected)
        differences = [float((a - b).abs().max()) for a, b in zip(expected, numbers, strict=True)]
        found[name] = {"there": lines(task.there), "here": lines(task.here), "difference": max(differences) / largest}
    return found


if __name__ == "__main__":
    from bertviz import head_view, model_view, neuron_view, transformers_neuron_view

    WORDS = transformers.PreTrainedTokenizerFast.from_pretrained("assets/hub/reader-en")
    print(json.dumps(compare()))
