"""Folders without a tokenizer, and where pictures and videos stand in a prompt."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from safetensors.torch import load_file, save_file

from tests.viz_core.hub.conftest import Tiny, TinyModel, noise
from viz_core.hub import HubError, PatchGrid, load_hub
from viz_core.hub.runs.layouts import number_words, tiled
from viz_core.hub.runs.pictures import box_seen
from viz_core.images.open_image import Video
from viz_core.runtime.limited_process import Limits

TEXT = "The cat <image> sat on the mat"


PROCESSORS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "llava": ("LlavaProcessor", (4, "default")),
    "llava_next": ("LlavaNextProcessor", (4, "default")),
    "idefics3": ("Idefics3Processor", (4,)),
    "paligemma": ("PaliGemmaProcessor", ()),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("family", PROCESSORS)
def test_prompts_are_those_of_transformers_own_processors(
    family: str, tiny: Tiny, tiny_model: TinyModel, picture: Image.Image
) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny(family))
    images = transformers.AutoImageProcessor.from_pretrained(tiny(family), backend="pil")
    images.image_seq_length = 16
    name, args = PROCESSORS[family]
    options = {"num_additional_image_tokens": 1} if "llava" in family else {}
    processor = getattr(transformers, name)(images, tokenizer, *args, **options)
    expected = processor(images=picture, text=TEXT, return_tensors="pt")
    ours = tiny_model(family).engine.prompt.prepare(TEXT, picture).inputs
    assert ours["input_ids"].tolist() == expected["input_ids"].tolist()
    assert torch.equal(ours["pixel_values"], expected["pixel_values"])


def test_numbers_in_words() -> None:
    words = {0: "zero", 8: "eight", 19: "nineteen", 20: "twenty", 21: "twenty-one", 64: "sixty-four", 100: "100"}
    assert {number: number_words(number) for number in words} == words


def test_a_border_and_a_cut_in_pixels_of_the_picture() -> None:
    """100 x 60 to a shortest edge of 30 is 50 x 30, whose middle 30 x 30 are columns 10 to 40: 20 to 80 before."""
    cut = SimpleNamespace(size={"shortest_edge": 30}, do_center_crop=True, crop_size={"height": 30, "width": 30})
    assert box_seen(cut, 100, 60) == (20, 0, 80, 60)
    padded = SimpleNamespace(do_pad=True, size={"shortest_edge": 30}, do_center_crop=False)
    assert box_seen(padded, 100, 60) == (0, -20, 100, 80)
    both = SimpleNamespace(**{**vars(cut), "do_pad": True})
    assert box_seen(both, 60, 100) == (-20, 0, 80, 100)
    assert box_seen(SimpleNamespace(do_center_crop=False), 7, 5) == (0, 0, 7, 5)
    grid = PatchGrid((20, 0, 80, 60), np.arange(6).reshape(2, 3))
    assert grid.box_of(1, 2) == (60, 30, 80, 60)
    assert grid.over(np.arange(6.0)).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_border_as_wide_as_a_patch_is_left_out() -> None:
    """20 x 30 fits into 32 x 32 as 22 x 32 from column 5 on: of 8 columns of 4 the first, 0 to 4, and the last hold
    nothing, and the six left lie from 4 to 28, which is (4 - 5) 20 / 22 to (28 - 5) 20 / 22 of the picture."""
    standing, lying = tiled(30, 20, [[16, 32], [32, 16], [32, 32]], 4), tiled(20, 30, [[32, 32]], 4)
    assert standing == ((8, 6), pytest.approx((-10 / 11, 0, 230 / 11, 30)))
    assert lying == ((6, 8), pytest.approx((0, -10 / 11, 30, 230 / 11)))


def test_prompts_of_videos_are_those_of_transformers_own_processors(
    tiny_model: TinyModel, video: Video, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their own functions for the text, on what the image processor made; and of a picture, where they need more."""
    from transformers.models.internvl.processing_internvl import InternVLProcessor
    from transformers.models.qwen2_vl.processing_qwen2_vl import Qwen2VLProcessor
    from transformers.models.qwen3_vl.processing_qwen3_vl import Qwen3VLProcessor
    from transformers.models.smolvlm import processing_smolvlm
    from transformers.video_utils import VideoMetadata

    def shown(family: str, picture: Image.Image | None = None) -> Any:
        prompt = tiny_model(family).engine.prompt
        encode = prompt.layout.encode_video if picture is None else prompt.layout.encode
        return encode(prompt.context, video if picture is None else picture)

    metadata = [VideoMetadata(total_num_frames=3, fps=2.0, duration=1.5, frames_indices=[0, 1, 2]) for _ in range(2)]
    start, end = "<|vision_start|>", "<|vision_end|>"
    merging = SimpleNamespace(merge_size=2, temporal_patch_size=2)
    qwen = SimpleNamespace(video_token="<|video_pad|>", video_processor=merging, image_processor=merging)
    qwen.image_token, qwen.vision_start_token, qwen.vision_end_token = "<|image_pad|>", start, end
    qwen._calculate_timestamps = lambda *args: Qwen3VLProcessor._calculate_timestamps(qwen, *args)
    still = shown("qwen2_vl", noise(2))
    assert still.prompt == f"{start}{Qwen2VLProcessor.replace_image_token(qwen, still.inputs, 0)}{end}"
    for family in ("qwen2_vl", "qwen2_5_vl"):
        expected = Qwen2VLProcessor.replace_video_token(qwen, shown(family).inputs, 0)
        assert shown(family).prompt == f"{start}{expected}{end}"
    assert shown("qwen2_5_vl").inputs["second_per_grid_ts"].tolist() == [2 / metadata[0].sampled_fps]
    given = {**shown("qwen3_vl").inputs, "video_metadata": metadata[:1]}
    assert shown("qwen3_vl").prompt == Qwen3VLProcessor.replace_video_token(qwen, given, 0)

    monkeypatch.setattr(processing_smolvlm, "num2words", {3: "three"}.get)
    tokens = ("<fake_token_around_image>", "<image>", "<global-img>")
    side = dict(zip(("fake_image_token", "image_token", "global_image_token"), tokens, strict=True))
    smol = SimpleNamespace(image_seq_len=4, **side)
    given = {"pixel_values": shown("smolvlm").inputs["pixel_values"], "video_metadata": metadata[1:]}
    assert shown("smolvlm").prompt == f" {processing_smolvlm.SmolVLMProcessor.replace_video_token(smol, given, 0)}"
    for size, rows, columns in (((20, 30), 3, 2), ((48, 16), 1, 3)):
        expected = processing_smolvlm.get_image_prompt_string(rows, columns, 4, *tokens)
        assert shown("smolvlm", noise(0).resize(size)).prompt == expected

    ends = {"start_image_token": "<img>", "end_image_token": "</img>", "image_token": "<IMG_CONTEXT>"}
    intern = SimpleNamespace(image_seq_length=4, **ends)
    given = {"pixel_values_videos": [shown("internvl").inputs["pixel_values"]]}
    assert shown("internvl").prompt == InternVLProcessor.replace_video_token(intern, given, 0)
    for size, tiles in (((48, 16), 4), ((20, 30), 7), ((16, 16), 1)):
        expected = InternVLProcessor.replace_image_token(intern, {"num_patches": [tiles]}, 0)
        assert shown("internvl", noise(0).resize(size)).prompt == expected


NAMES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "C", "O", "(", ")", "Cl", "=", ">>", "."]
SMILES = re.compile(r"Cl|[CO().=]|>>")


@pytest.fixture
def folder(copy: Tiny) -> Path:
    path = copy("bert")
    for file in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        (path / file).unlink(missing_ok=True)
    (path / "vocab.txt").write_text("\n".join(NAMES) + "\n")
    return path


def test_a_pattern_finds_the_tokens(folder: Path) -> None:
    model = load_hub(folder, device="cpu", tokenizer=SMILES)
    run = model.run("ClC(=O)O>>C")
    labels = ["[CLS]", "Cl", "C", "(", "=", "O", ")", "O", ">>", "C", "[SEP]"]
    assert [token.label for token in run.tokens] == labels
    assert [token.id for token in run.tokens] == [NAMES.index(label) for label in labels]
    assert [token.special for token in run.tokens] == [True, *[False] * 9, True]
    assert (model.card.tokenizer, model.card.vocabulary_size) == ("pattern", len(NAMES))
    assert run.num_unknown == 0
    with pytest.raises(HubError, match=r"matches no token at “NBr”"):
        model.run("CNBr")
    with pytest.raises(HubError, match="takes one text, not a pair"):
        model.run("C", text_pair="O")


def test_a_function_gives_tokens_or_ids(folder: Path) -> None:
    with pytest.warns(UserWarning, match="bert: 2 of 5 tokens are not in its vocabulary"):
        by_names = load_hub(folder, device="cpu", tokenizer=str.split).run("C N Br")
    assert [token.text for token in by_names.tokens] == ["[CLS]", "C", "[UNK]", "[UNK]", "[SEP]"]
    assert by_names.num_unknown == 2
    by_ids = load_hub(folder, device="cpu", tokenizer=lambda text: [4] * len(text)).run("abc")
    assert [token.id for token in by_ids.tokens] == [4, 4, 4], "nothing is added to ids"
    for function, message in {str.upper: "got str", lambda _: ["C", 4]: "got both"}.items():
        with pytest.raises(ValueError, match=message):
            load_hub(folder, device="cpu", tokenizer=function).run("C")
    (folder / "special_tokens_map.json").write_text('{"cls_token": {"content": "="}, "sep_token": "."}')
    run = load_hub(folder, device="cpu", tokenizer=list).run("CO.")
    assert [token.text for token in run.tokens] == ["=", "C", "O", "."], "an end that is there is not doubled"
    (folder / "vocab.txt").write_text("C\nO\n")
    with pytest.raises(HubError, match="vocabulary of bert lacks 'N'"):
        load_hub(folder, device="cpu", tokenizer=list).run("CN")


def test_a_tokenizer_of_transformers_is_used_as_it_is(folder: Path, tiny: Tiny, tiny_model: TinyModel) -> None:
    own = transformers.AutoTokenizer.from_pretrained(tiny("bert"))
    run = load_hub(folder, device="cpu", tokenizer=own).run("The cat sat.")
    assert run.tokens == tiny_model("bert").run("The cat sat.").tokens


@pytest.mark.parametrize("family", ["bert", "gpt2", "marian"])
def test_token_ids_in_place_of_a_text(family: str, tiny_model: TinyModel) -> None:
    model = tiny_model(family)
    expected = model.run("The cat sat.", max_new_tokens=3)
    ids = [token.id for token in expected.tokens[: expected.num_prompt_tokens]]
    run = model.run(token_ids=torch.tensor(ids), max_new_tokens=3)
    assert (run.tokens, run.text) == (expected.tokens, expected.text)
    assert torch.equal(run.output, expected.output)
    assert run.made.text == " ".join(map(str, ids))
    with pytest.raises(HubError, match=r"numbers from 0 to [\d,]+; 1000000 is none"):
        model.run(token_ids=[1, 1000000])


def test_a_folder_without_a_tokenizer_takes_ids(copy: Tiny) -> None:
    path = copy("gpt2")
    for file in ("tokenizer.json", "tokenizer_config.json"):
        (path / file).unlink(missing_ok=True)
    model = load_hub(path, device="cpu")
    run = model.run("5, 6 7", max_new_tokens=0)
    assert [(token.id, token.label) for token in run.tokens] == [(5, "#5"), (6, "#6"), (7, "#7")]
    with pytest.raises(HubError, match="lacks its tokenizer. Type token ids"):
        model.run("The cat")


@pytest.mark.attack("models")
def test_a_pattern_that_takes_too_long_is_not_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("viz_core.hub.runs.tokenizers._LIMITS", Limits(cpu_seconds=1, memory=2**31))
    with pytest.raises(HubError, match="takes too long on some texts"):
        load_hub(folder, device="cpu", tokenizer=re.compile(r"(a+)+b"))


def test_heads_of_another_architecture_are_named(copy: Tiny) -> None:
    path = copy("bert")
    tensors = load_file(path / "model.safetensors")
    extra = {f"species.{name}": torch.ones(2, 2) for name in ("dense.weight", "dense.bias")}
    save_file(tensors | extra | {"chain.weight": torch.ones(2)}, path / "model.safetensors", metadata={"format": "pt"})
    with pytest.warns(UserWarning, match=r"BertModel has no place for the weights of chain, species.dense"):
        model = load_hub(path, device="cpu")
    assert model.card.unused == ("chain", "species.dense")
