"""Which layers of a model a recording covers, and why others have no map."""

import re
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from torch import nn

from viz_core.trace.passes import every_site, number_in_path
from viz_core.trace.sites import LINEAR, is_attention

_MIXER = re.compile(
    r"Mamba|SSM|Mixer(?!Block|Output)|DeltaNet|ShortConv|RecurrentBlock|Rglru|Lightning|LinearAttention|Retention"
    r"|TimeMix|Rwkv|RWKV|xLSTM(?!FeedForward)|FourierTransform|Hyena|TalkingHeadAttn|GPSA|HSMSSD|FocalModulation|LambdaLayer"
    r"|^(MixerBlock|ResBlock|SpatialGatingBlock|Sequencer2dBlock|GatedConvBlock)$"
)
"""Classes that mix tokens without a softmax over keys, or change its weights after it."""

_CHANNELS = re.compile(r"MambaMixer|Rglru|RecurrentBlock|ShortConv|^Rwkv")
"""Classes whose weights of earlier tokens differ from channel to channel."""

_REASONS = {
    "parts": "{module} computes no softmax over all keys in code that is known here.",
    "windows": "{module} weighs a window or a block of keys at a time, in code of its own.",
    "lags": "{module} weighs lags of the whole series, not keys (auto-correlation).",
    "hashes": "{module} weighs the keys that hashes choose, not all of them.",
    "landmarks": "{module} approximates the softmax by landmarks or blocks of several sizes.",
    "groups": "{module} weighs groups or all queries at once, so a query has no row of keys.",
    "difference": "{module} subtracts softmaxes in code of its own.",
    "points": "{module} weighs points sampled between the places of a feature map, not keys.",
    "mixer": "{module} mixes tokens by a rule of its own; it has no map that is recorded.",
    "channels": "{module} weighs earlier tokens separately in each channel, so a head has no single map.",
    "none": "No attention is known in {module}.",
    "outside": "{module} is in none of the lists of layers.",
}


_WEIGHED = {
    "windows": r"Longformer|LEDEncoder|LongT5|GlobalLocal|BlockSparse|Gemma\w+Audio|MaskUnit|HaloAttn|^LocalSelfAtt",
    "lags": "Autoformer",
    "hashes": "^LSH|Yoso",
    "landmarks": "Nystrom|Mra",
    "groups": "Assign|EfficientAdditive",
    "difference": "DiffLlama",
    "points": "Deformable",
}
"""Classes whose weights are of something else than all keys of a query, by the code of the reason."""


@dataclass(frozen=True)
class LayerCoverage:
    """One layer of a model, or one of several parts of it that mix tokens.

    Attributes:
        stack: the path of its list of layers, "language_model.layers".
        layer: its number within its stack, from 0; None outside all lists.
        site: the name under which it is recorded; None where it is not.
        module: the class of what mixes tokens, or of the layer if nothing known does.
        code: "" where it is recorded, else the reason: "windows", "lags", "hashes", "landmarks", "groups", "points",
            "difference", "parts" for others with attention, "mixer", "channels", "none" or "outside".
    """

    stack: str
    layer: int | None
    site: str | None
    module: str
    code: str = ""

    @property
    def reason(self) -> str:
        """Why it is not recorded, a sentence; empty where it is."""
        return _REASONS[self.code].format(module=self.module) if self.code else ""


def cover_layers(
    model: nn.Module, sites: Mapping[nn.Module, str], hidden: AbstractSet[str]
) -> tuple[LayerCoverage, ...]:
    """Return a row for each layer of a model, and for each part of it that mixes tokens: its site, or the reason.

    A stack is a list of modules of which some attend or mix tokens otherwise, or a list of such lists (the stages of
    hierarchical models). Attention outside all stacks, as that of a pooling head, has a row of its own.

    Args:
        sites: of its attention layers.
        hidden: those that cannot be recorded, or were not.
    """
    rows, known = list[LayerCoverage](), set[nn.Module]()
    calls: dict[str | None, tuple[str, ...]] = {sites[part]: own for part, own in every_site(model, sites).items()}
    for path, layers in _stacks(model, "", sites):
        for number, layer in enumerate(layers):
            for site, *what in _covered(layer, sites, hidden):
                own = calls.get(site, (site,))
                places = [number] if len(own) == 1 else [int(str(each).split(".")[1]) for each in own]
                rows += (LayerCoverage(path, i, each, *what) for i, each in zip(places, own, strict=True))
            known |= set(layer.modules())
    for path, module in model.named_modules():
        if module in known or not path or not is_attention(module) or any(map(number_in_path, path.split("."))):
            continue
        known |= set(module.modules())
        site, name = sites.get(module), f"{type(module).__name__} at {path}"
        code = "outside" if site is None else _code_of(type(module).__name__, "parts") if site in hidden else ""
        rows.append(LayerCoverage("", None, None if code else site, name, code))
    return tuple(rows)


def group_uncovered(rows: Iterable[LayerCoverage]) -> dict[LayerCoverage, list[int]]:
    """Return the numbers of the layers that have no map for the same reason, by the first row of each reason."""
    groups: dict[tuple[str, str], tuple[LayerCoverage, list[int]]] = {}
    for row in rows:
        if row.code:
            _, numbers = groups.setdefault((row.stack, row.reason), (row, []))
            numbers += [] if row.layer is None else [row.layer]
    return dict(groups.values())


def describe_uncovered(rows: Iterable[LayerCoverage]) -> str:
    """Return what is not recorded as one text: the layers of each stack with the same reason together."""
    found = []
    for row, numbers in group_uncovered(rows).items():
        where = f"layers {ranges(numbers)} of {row.stack or 'the list'}: " if numbers else ""
        found.append(where + row.reason.rstrip("."))
    return "; ".join(found)


def _covered(
    layer: nn.Module, sites: Mapping[nn.Module, str], hidden: AbstractSet[str]
) -> Iterator[tuple[str | None, str, str]]:
    """Yield site, class and code of each part of a layer that mixes tokens; one row for a layer without any."""
    found = {sites[module]: type(module).__name__ for module in layer.modules() if module in sites}
    for site, attention in found.items():
        yield (None, attention, _code_of(attention, "parts")) if site in hidden else (site, attention, "")
    mixers = dict.fromkeys(type(module).__name__ for module in _mixers(layer, sites))
    for mixer in mixers:
        yield None, mixer, _code_of(mixer, "mixer")
    if not found and not mixers:
        yield None, type(layer).__name__, "none"


def _code_of(module: str, other: str) -> str:
    if other == "parts":
        other = next((code for code, classes in _WEIGHED.items() if re.search(classes, module)), other)
    return "channels" if _CHANNELS.search(module) else "mixer" if LINEAR.search(module) else other


def _mixers(module: nn.Module, sites: Mapping[nn.Module, str]) -> list[nn.Module]:
    """Return the innermost modules that mix tokens in another way than attention."""
    if module in sites:
        return []
    found = [mixer for child in module.children() for mixer in _mixers(child, sites)]
    return found or ([module] if _is_mixer(module) and not any(part in sites for part in module.modules()) else [])


def _is_mixer(module: nn.Module) -> bool:
    name = type(module).__name__
    return _MIXER.search(name) is not None and "Norm" not in name and not isinstance(module, nn.ModuleList)


def _stacks(module: nn.Module, path: str, sites: Mapping[nn.Module, str]) -> Iterator[tuple[str, list[nn.Module]]]:
    """Yield the outermost lists of layers with their paths; the blocks of all stages as one list."""
    if module in sites or not _mixes(module, sites):
        return
    if not isinstance(module, nn.ModuleList | nn.Sequential):
        for name, child in module.named_children():
            yield from _stacks(child, f"{path}.{name}" if path else name, sites)
        return
    entries = list(module.children())
    blocks = [] if any(entry in sites for entry in entries) else [_blocks(entry, sites) for entry in entries]
    if any(blocks):
        entries = [block for entry, own in zip(entries, blocks, strict=True) for block in own or [entry]]
    yield path, entries


def _mixes(module: nn.Module, sites: Mapping[nn.Module, str]) -> bool:
    return any(part in sites or _is_mixer(part) for part in module.modules())


def _blocks(stage: nn.Module, sites: Mapping[nn.Module, str]) -> list[nn.Module]:
    """Return the blocks of a stage, those of its lists and what else in it mixes tokens; none if it has no lists."""
    parts = [stage] if isinstance(stage, nn.ModuleList | nn.Sequential) else list(stage.children())
    blocks, has_lists = list[nn.Module](), False
    for part in parts:
        entries = list(part.children()) if isinstance(part, nn.ModuleList | nn.Sequential) else []
        if any(_mixes(entry, sites) for entry in entries) and not any(entry in sites for entry in entries):
            blocks, has_lists = blocks + entries, True
        elif _mixes(part, sites):
            blocks.append(part)
    return blocks if has_lists else []


def ranges(numbers: Iterable[int]) -> str:
    """Return numbers as ranges: "0 to 2, 4"."""
    ranges: list[list[int]] = []
    for number in dict.fromkeys(numbers):
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1].append(number)
        else:
            ranges.append([number])
    return ", ".join(f"{each[0]} to {each[-1]}" if len(each) > 1 else f"{each[0]}" for each in ranges)
