"""Models made to harm: numbers nobody can have meant, headers that lie, links out of a folder, code and networks."""

from __future__ import annotations

import json
import shutil
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from tests.viz_core.bounded import bounded
from viz_core.hub import HubError, load_hub
from viz_core.hub.load import import_transformers
from viz_core.hub.runs.tokenizers import costly
from viz_core.hub.store.checks import check_sizes
from viz_core.hub.store.files import check_config, read_folder
from viz_core.runtime.limited_process import LimitError

pytestmark = pytest.mark.attack("models")
Tiny = Callable[[str], Path]
Refused = Callable[[Path], str]
MB = 2**20


@pytest.fixture
def copy(tiny: Tiny, tmp_path: Path) -> Callable[[str], Path]:
    return lambda family: Path(shutil.copytree(tiny(family), tmp_path / family))


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens a socket fails this test."""

    def refuse_network(*_args: object, **_options: object) -> None:
        pytest.fail("a network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse_network)
    monkeypatch.setattr(socket, "getaddrinfo", refuse_network)


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """What a first load brings along counts for no file."""
    import_transformers()


@pytest.fixture
def refused() -> Callable[[Path], str]:
    """The sentence that a model is refused with; little was held meanwhile, and no folder of this machine is told."""

    def load(path: Path) -> str:
        with bounded(), pytest.raises(HubError) as error:
            load_hub(path, device="cpu", memory_budget=200 * MB)
        message = str(error.value)
        assert "\n" not in message
        assert str(path.parent) not in message
        return message

    return load


def loads_or_says_why(path: Path) -> None:
    try:
        message = load_hub(path, device="cpu").card.name
    except HubError as error:
        message = str(error)
    assert "\n" not in message


def change(path: Path, **fields: object) -> Path:
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, **fields}))
    return path


BILLION = 10**9
TOO_MUCH = [
    ("bert", {"num_hidden_layers": BILLION}),
    ("bert", {"num_hidden_layers": 1e9}),
    ("bert", {"num_attention_heads": BILLION}),
    ("bert", {"num_labels": BILLION}),
    ("bert", {"vocab_size": BILLION}),
    ("bert", {"hidden_size": BILLION}),
    ("bert", {"intermediate_size": BILLION}),
    ("bert", {"max_position_embeddings": BILLION}),
    ("bert", {"type_vocab_size": BILLION}),
    ("gpt2", {"n_layer": BILLION}),
    ("gpt2", {"n_positions": BILLION}),
    ("gpt2", {"vocab_size": BILLION}),
    ("llama", {"num_hidden_layers": BILLION}),
    ("llama", {"vocab_size": BILLION}),
    ("llama", {"intermediate_size": BILLION}),
    ("llama", {"max_position_embeddings": BILLION}),
    ("marian", {"encoder_layers": BILLION}),
    ("marian", {"max_position_embeddings": BILLION}),
    ("t5", {"num_layers": BILLION}),
    ("t5", {"relative_attention_num_buckets": BILLION}),
    ("vit", {"image_size": 10**6}),
    ("vit", {"num_hidden_layers": BILLION}),
    ("vit", {"intermediate_size": BILLION}),
]


@pytest.mark.parametrize(("family", "fields"), TOO_MUCH, ids=[f"{family} {fields}" for family, fields in TOO_MUCH])
def test_a_config_that_asks_for_much(family: str, fields: dict[str, object], copy: Tiny, refused: Refused) -> None:
    refused(change(copy(family), **fields))


@pytest.mark.parametrize(
    "config",
    [
        {"text_config": {"num_hidden_layers": BILLION}},
        {"vision_config": {"encoder": {"depths": [2, 2, BILLION]}}},
        {"attention_types": [[["global", "local"], BILLION]]},
        {"num_local_experts": BILLION},
        {"block_groups": [1, [2, [10_001]]]},
    ],
    ids=str,
)
def test_however_deep_it_stands(config: dict[str, Any]) -> None:
    with pytest.raises(HubError, match="cannot be right"):
        check_config({"model_type": "bert", **config}, "x")


@pytest.mark.parametrize(
    "config",
    [
        {"rope_theta": 500_000_000, "vocab_size": 256_000, "max_position_embeddings": 10_485_760},
        {"num_hidden_layers": 126, "num_attention_heads": 128, "num_key_value_heads": 8, "num_experts": 512},
        {"id2label": {str(n): "x" for n in range(21_843)}, "num_labels": 21_843 // 3, "model_max_length": 1e30},
        {"layer_norm_eps": 1e-12, "eos_token_id": [1, 128_009], "depths": [2, 2, 18, 2], "use_cache": True},
    ],
    ids=str,
)
def test_what_real_models_say_passes(config: dict[str, Any]) -> None:
    check_sizes(config, "x")


def header(*tensors: tuple[str, list[int], tuple[int, int]], extra: bytes = b"") -> bytes:
    parts = [json.dumps(n) + ":" + json.dumps({"dtype": "F32", "shape": s, "data_offsets": o}) for n, s, o in tensors]
    text = ("{" + ",".join(parts) + "}").encode() + extra
    return struct.pack("<Q", len(text)) + text


WEIGHTS = {
    "nothing": b"",
    "seven bytes": b"\0" * 7,
    "a header of 2^63 bytes": struct.pack("<Q", 2**63) + b"{}",
    "a header of 2^64 - 1 bytes": struct.pack("<Q", 2**64 - 1) + b"{}",
    "a header of 90 MB that is not there": struct.pack("<Q", 90 * MB) + b"{}",
    "a header longer than the file": struct.pack("<Q", 1000) + b"{}",
    "a header that is no JSON": struct.pack("<Q", 4) + b"\xff\xfe{}",
    "a header of brackets": struct.pack("<Q", 100_000) + b"[" * 100_000,
    "a list for a header": struct.pack("<Q", 2) + b"[]",
    "overlapping tensors": header(("a", [2], (0, 8)), ("b", [2], (4, 12))) + bytes(12),
    "a hole between tensors": header(("a", [1], (0, 4)), ("b", [1], (8, 12))) + bytes(12),
    "the same name twice": header(("a", [1], (0, 4)), ("a", [1], (0, 4))) + bytes(4),
    "offsets that run backwards": header(("a", [1], (4, 0))) + bytes(4),
    "offsets beyond the file": header(("a", [2**40], (0, 2**42))) + bytes(4),
    "a shape that overflows": header(("a", [2**32, 2**32, 2], (0, 4))) + bytes(4),
    "a shape of less than nothing": header(("a", [-1], (0, 4))) + bytes(4),
    "a shape that is not its bytes": header(("a", [3], (0, 4))) + bytes(4),
    "bytes after the end": header(("a", [1], (0, 4))) + bytes(400),
    "a pickle by this name": b"\x80\x04\x95\x1a\0\0\0\0\0\0\0\x8c\x05posix\x94\x8c\x06system\x94\x93\x94.",
    "a zip by this name": b"PK\3\4" + bytes(100),
}


@pytest.mark.parametrize("what", WEIGHTS)
def test_weights_that_lie(what: str, copy: Tiny, refused: Refused) -> None:
    path = copy("bert")
    (path / "model.safetensors").write_bytes(WEIGHTS[what])
    refused(path)


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
def test_one_bit_turned_round_anywhere(file: str, copy: Tiny) -> None:
    """A model, or a sentence; never anything else."""
    path = copy("bert")
    content = (path / file).read_bytes()
    for place in torch.randint(0, 8 * min(len(content), 4000), (6,)).tolist():
        spoiled = bytearray(content)
        spoiled[place // 8] ^= 1 << (place % 8)
        (path / file).write_bytes(spoiled)
        loads_or_says_why(path)


@pytest.mark.parametrize("size", [0, 1, 100, 10_000])
@pytest.mark.parametrize("file", ["tokenizer.json", "tokenizer_config.json"])
def test_a_tokenizer_cut_short(file: str, size: int, copy: Tiny) -> None:
    path = copy("bert")
    content = (path / file).read_bytes()
    (path / file).write_bytes(content[: min(size, len(content) - 2)])
    loads_or_says_why(path)


FIELDS = {
    "a kernel from elsewhere": {"attn_implementation": "kernels-community/flash-attn"},
    "the same, within": {"_attn_implementation": "kernels-community/flash-attn"},
    "the same, as it was saved": {"_attn_implementation_internal": "kernels-community/flash-attn"},
    "a name that is an address": {"_name_or_path": "https://elsewhere.example/model"},
    "weights from elsewhere": {"transformers_weights": "https://elsewhere.example/model.safetensors"},
    "an adapter": {"adapter": "https://elsewhere.example", "base_model_name_or_path": "x/y"},
    "a tokenizer from elsewhere": {"tokenizer_class": "https://elsewhere.example/x.py"},
    "code of its own beside a known kind": {"auto_map": {"AutoModel": "elsewhere/repo--code.Model"}},
    "a plan for many machines": {"base_model_tp_plan": {"layers.*": "colwise"}},
    "a task that is none": {"task_specific_params": {"x": {"prefix": "{{ evil }}"}}},
}


@pytest.mark.usefixtures("nobody")
@pytest.mark.parametrize("what", FIELDS)
def test_no_field_of_a_config_asks_a_network(what: str, copy: Tiny) -> None:
    path = change(copy("bert"), **FIELDS[what])
    marker = path.parent / "ran"
    (path / "code.py").write_text(f"open({str(marker)!r}, 'w')")
    with suppress(HubError):
        load_hub(path, device="cpu")
    assert not marker.exists()


@pytest.mark.parametrize("file", ["model.safetensors", "config.json", "tokenizer.json"])
def test_a_link_out_of_the_folder(file: str, copy: Tiny, tmp_path: Path, refused: Refused) -> None:
    """It may lead to a model's file, as the Hub's own cache does; what is none is a sentence, and never shown."""
    path = copy("bert")
    (tmp_path / "secret").write_text("root:x:0:0")
    (path / file).unlink()
    (path / file).symlink_to(tmp_path / "secret")
    assert "root" not in refused(path)


def test_a_chat_template_is_text(copy: Tiny) -> None:
    path = copy("llama")
    evil = "{{ ''.__class__.__mro__[1].__subclasses__() }}{% for x in range(10**9) %}x{% endfor %}"
    config = json.loads((path / "tokenizer_config.json").read_text())
    (path / "tokenizer_config.json").write_text(json.dumps({**config, "chat_template": evil}))
    run = load_hub(path, device="cpu").run("hello", max_new_tokens=1)
    assert run.trace


PATTERNS = {
    "doubles with every letter": r"(a+)+$",
    "doubles with every word": r"(?:\w+\s?)+$",
    "doubles with what it names": r"(ß+)+$",
    "grows with the cube": r"a*a*a*[^a][^a]",
    "is no pattern": r"(",
}


def split_by(path: Path, part: str, pattern: str) -> Path:
    """The same model with a pattern of its own in its tokenizer."""
    tokenizer = json.loads((path / "tokenizer.json").read_text())
    kind = {"type": "Split", "behavior": "Isolated", "invert": False}
    if part == "normalizer":
        kind = {"type": "Replace", "content": ""}
    tokenizer[part] = kind | {"pattern": {"Regex": pattern}}
    (path / "tokenizer.json").write_text(json.dumps(tokenizer))
    return path


@pytest.mark.parametrize("what", PATTERNS)
def test_a_pattern_of_a_tokenizer(what: str, copy: Tiny, refused: Refused) -> None:
    assert (
        "takes too long" in refused(split_by(copy("bert"), "pre_tokenizer", PATTERNS[what])) or what == "is no pattern"
    )


def test_a_pattern_by_which_it_normalizes(copy: Tiny, refused: Refused) -> None:
    assert "takes too long" in refused(split_by(copy("bert"), "normalizer", r"(\d+)+$"))


def test_what_no_trial_found_is_a_sentence_all_the_same(copy: Tiny) -> None:
    """Greek letters, and those alone; the library gives up, and every thread goes on."""
    model = load_hub(split_by(copy("bert"), "pre_tokenizer", r"(\p{Greek}+)+$"), device="cpu")
    assert model.run("hello").tokens
    with pytest.raises(HubError, match="gives up on this text"):
        model.run("λ" * 40 + "!")


REAL = (
    r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""",  # GPT-2
    r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"""  # Llama 3
    r"""| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
    r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"""
    r"""|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+""",  # o200k
    r""" ?[^(\s|[.,!?…。，、।۔،])]+""",  # BLOOM
)


def test_patterns_of_real_tokenizers_pass() -> None:
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(p), "isolated") for p in REAL])
    assert not costly(SimpleNamespace(backend_tokenizer=backend))


@pytest.mark.parametrize("status", [None, -6, -9])
def test_a_limit_that_the_machine_may_have_met_is_tried_again(
    status: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(f"b{status}"), "isolated")

    def stopped(*_: object, **__: object) -> bytes:
        raise LimitError("try_patterns", status)

    with monkeypatch.context() as busy:
        busy.setattr("viz_core.hub.runs.tokenizers.run_limited", stopped)
        assert costly(SimpleNamespace(backend_tokenizer=backend))
    assert not costly(SimpleNamespace(backend_tokenizer=backend))


def test_the_parameters_that_are_counted_are_those_of_the_file(tiny: Tiny) -> None:
    path = tiny("bert")
    stored = sum(tensor.numel() for tensor in load_file(path / "model.safetensors").values())
    assert read_folder(path, "bert").num_parameters == stored
