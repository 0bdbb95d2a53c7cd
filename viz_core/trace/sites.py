"""Names of attention layers, set once, when a model is built or loaded, and which layers a recording covers.

A layer does not know its model. The code that builds a model calls `states.name_sites`, for models of this library and
of Hugging Face alike; a layer without a name is "attention.N" in a trace.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

from torch import nn

from viz_core.trace.arguments import described
from viz_core.trace.passes import every_site, number_in_path

# MLA: DeepSeek's multi-head latent attention. Talking heads mix the result of their softmax; PatchTSMixer's "gated
# attention" is a gate.
_ATTENTION = re.compile(
    r"(?<!MixerGated)attention(?!Output|Residual|\w*Projection)|"
    r"(?<!TalkingHead)attn(?!Adapter|Block)|(M[HS]+A|SH[MS]A|XCA|MLA)$",
    re.IGNORECASE,
)
LINEAR = re.compile(
    "GatedDeltaNet|(KimiLinear|BailingHybrid)DeltaAttention|Glm5NextTextLinear|LightningAttention|Mamba2Mixer|BambaMixer|FalconH1Mixer|GraniteMoeHybridMambaLayer|Zamba2MambaMixer"
)
_PROJECTIONS = ("W_o", "o_proj", "out_proj", "c_proj", "o", "proj", "dense", "projection_layer")
_CROSS = re.compile(r"cross|encoder_attn|encdec|attention2|multihead_attn", re.IGNORECASE)


def find_sites(model: nn.Module, stack: str | None = None) -> dict[nn.Module, str]:
    """Return the site of each attention layer of a model, in the order of its modules, without setting it.

    Layer and kind follow from the module's path ("decoder.block.2.layer.1.EncDecAttention"); attention layers within
    one another share a name, whichever makes the call. Different layers have different names ("encoder.2.5.self" for
    block 5 of stage 2). torch's own decoders, and classes called Decoder, are recognised.

    Args:
        stack: as in `states.name_sites`.

    Raises:
        ValueError: if model is not an nn.Module.
    """
    if not isinstance(model, nn.Module):
        raise ValueError(f"model: expected an nn.Module, got {described(model)}")
    places: "dict[str, _Place]" = {}
    decoders: list[str] = []
    modules = dict(model.named_modules())
    for path, module in modules.items():
        is_decoder = type(module).__name__ == "Decoder"  # of x-transformers
        if is_decoder or isinstance(module, nn.TransformerDecoder | nn.TransformerDecoderLayer):
            decoders.append(path and path + ".")
        if is_attention(module) and any(map(number_in_path, path.split("."))):
            known = stack or ("decoder" if any(path.startswith(prefix) for prefix in decoders) else None)
            places[path] = _Place.of(path, stack_of(path, known))
    inner = {path: [other for other in places if other.startswith(path + ".")] for path in places}
    named = _distinct_sites({path: place for path, place in places.items() if not inner[path]})
    sites: dict[nn.Module, str] = {}
    for path in places:
        names = {named[leaf] for leaf in inner[path] or [path] if leaf in named}
        if len(names) == 1:  # else a block that holds several attention layers
            sites[modules[path]] = names.pop()
    return sites


def projections(parts: Mapping[str, nn.Module], layer: str) -> Iterator[nn.Module]:
    """Yield what may be the output projection of the layer at a path: within it, or, as in BERT, beside it."""
    paths, above = [f"{layer}.{name}" for name in _PROJECTIONS], layer.rpartition(".")[0]
    if above in parts and is_attention(parts[above]):  # else what lies beside belongs to a feed-forward net
        paths.append(f"{above}.output.dense")
    return (parts[path] for path in paths if path in parts)


def is_attention(module: nn.Module) -> bool:
    """Return whether a module is an attention layer, judged by the name of its class."""
    return _ATTENTION.search(type(module).__name__) is not None or is_linear_attention(module)


def is_linear_attention(module: nn.Module) -> bool:
    """Return whether a module is linear attention with heads, judged by the name of its class."""
    return LINEAR.search(type(module).__name__) is not None


class _Place(NamedTuple):
    """Where an attention layer is: its stack, its numbers in lists, the other parts of its path, and its kind."""

    stack: str
    numbers: tuple[str, ...]
    names: tuple[str, ...]
    kind: str

    @classmethod
    def of(cls, path: str, stack: str) -> "_Place":
        parts = path.split(".")
        numbers = {part: found for part in parts if (found := number_in_path(part))}
        return cls(
            stack,
            tuple(numbers[part] for part in parts if part in numbers),
            tuple(part for part in parts if part not in numbers),
            "cross" if _CROSS.search(path) else "self",
        )

    def site(self, depth: int, without: AbstractSet[str] | None = None) -> str:
        """Return the site with so many numbers, and with the names that it does not share if some are given."""
        names = () if without is None else (name for name in self.names if name not in without)
        return ".".join((self.stack, *self.numbers[:depth], *names, self.kind))


def _distinct_sites(places: Mapping[str, _Place]) -> dict[str, str]:
    """Return a site for each path, each its own: "encoder.2.self", or "encoder.2.5.self" for block 5 of stage 2.

    Layers whose paths differ in numbers alone are alike. If two of them share their first number, all have all of
    theirs; where different ones would still share a site, all of both have the parts of their paths that differ.
    """
    alike: dict[tuple[str, ...], list[str]] = {}
    for path, place in places.items():
        alike.setdefault((place.stack, place.kind, *place.names), []).append(path)
    depths: dict[str, int | None] = {}
    for paths in alike.values():
        first = {places[path].numbers[0] for path in paths}
        depths |= dict.fromkeys(paths, 1 if len(first) == len(paths) else None)
    sites = {path: place.site(depths[path] or len(place.numbers)) for path, place in places.items()}
    for group in _groups_that_share(list(alike.values()), sites):
        shared = frozenset.intersection(*(frozenset(places[path].names) for path in group))
        for path in group:
            sites[path] = places[path].site(depths[path] or len(places[path].numbers), shared)
    return sites


def _groups_that_share(groups: list[list[str]], sites: Mapping[str, str]) -> list[list[str]]:
    """Return the groups of paths that share sites with others, merged."""
    merged: list[list[list[str]]] = []
    for group in groups:
        names = {sites[path] for path in group}
        touched = [each for each in merged if any(sites[path] in names for other in each for path in other)]
        merged = [each for each in merged if each not in touched]
        merged.append([group, *(other for each in touched for other in each)])
    return [[path for group in each for path in group] for each in merged if len(each) > 1]


def stack_of(path: str, stack: str | None = None) -> str:
    """Return the stack of a module by its path: "encoder", "decoder" or "vision".

    Args:
        stack: the name of a model's only stack beside a vision tower; None for an encoder and a decoder.
    """
    parts = path.split(".")
    if "vision" in path or "visual" in parts:  # the image encoder of a vision-language model
        return "vision"
    # A language model within another is a decoder, unless it has an encoder of its own.
    is_decoder = "decoder" in parts or ("language_model" in parts and "encoder" not in parts)
    return stack or ("decoder" if is_decoder else "encoder")


_MIXER = re.compile(
    r"Mamba|SSM|Mixer(?!Block|Output)|DeltaNet|ShortConv|RecurrentBlock|Rglru|Lightning|LinearAttention|Retention"
    r"|TimeMix|Rwkv|RWKV|xLSTM|FourierTransform|Hyena|TalkingHeadAttn|GPSA|HSMSSD|FocalModulation|LambdaLayer"
    r"|^(MixerBlock|ResBlock|SpatialGatingBlock|Sequencer2dBlock|GatedConvBlock)$"
)
"""Classes that mix tokens without a softmax over keys, or change its weights after it."""

_CHANNELS = re.compile(r"MambaMixer|Rglru|RecurrentBlock|ShortConv|^Rwkv")
"""Classes whose weights of earlier tokens differ from channel to channel."""

_REASONS = {
    "parts": "{module} weighs parts of the keys in code of its own, or none.",
    "mixer": "{module} mixes tokens by a rule of its own; it has no map that is recorded.",
    "channels": "{module} weighs earlier tokens separately in each channel, so a head has no single map.",
    "none": "No attention is known in {module}.",
    "outside": "{module} is in none of the lists of layers.",
}


@dataclass(frozen=True)
class LayerCoverage:
    """One layer of a model, or one of several parts of it that mix tokens.

    Attributes:
        stack: the path of its list of layers, "language_model.layers".
        layer: its number within its stack, from 0; None outside all lists.
        site: the name under which it is recorded; None where it is not.
        module: the class of what mixes tokens, or of the layer if nothing known does.
        code: "" where it is recorded, else the reason: "parts", "mixer", "channels", "none" or
            "outside".
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
    rows, known = list[LayerCoverage](), {part for layer in sites for part in layer.modules()}
    calls: dict[str | None, tuple[str, ...]] = {sites[part]: own for part, own in every_site(model, sites).items()}
    for path, layers in _stacks(model, "", sites):
        for number, layer in enumerate(layers):
            for site, *what in _covered(layer, sites, hidden):
                own = calls.get(site, (site,))
                places = [number] if len(own) == 1 else [int(str(each).split(".")[1]) for each in own]
                rows += (LayerCoverage(path, i, each, *what) for i, each in zip(places, own, strict=True))
            known |= set(layer.modules())
    for path, module in model.named_modules():
        if module not in known and path and is_attention(module):
            known |= set(module.modules())
            rows.append(LayerCoverage("", None, None, f"{type(module).__name__} at {path}", "outside"))
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
