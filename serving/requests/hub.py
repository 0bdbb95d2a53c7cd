"""Models and requests of the model lab, and folders of models as users type them."""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from serving.requests.models import ModelAdapter, ModelSpec, Progress
from serving.requests.request import RunRequest, with_heads_off
from serving.settings import settings
from viz_core.hub import HubError, HubModel, HubRun, HubVision, load_hub
from viz_core.hub.load import import_transformers
from viz_core.hub.runs.run import RunInputs
from viz_core.hub.shipped import ShippedHubModel, shipped_names
from viz_core.hub.store import shown
from viz_core.hub.store.convert import convert, pickled_weights
from viz_core.hub.store.files import SAFETENSORS, SAFETENSORS_INDEX
from viz_core.pretrained import ImageClassifier
from viz_core.pretrained.classifier import PictureModel
from viz_core.runtime.device import return_freed_memory
from viz_core.trace import HeadsOff, intervene, switched_off
from viz_core.view.hub import hub_groups
from viz_core.view.map_group import MapGroup
from viz_core.view.save import RunSource

__all__ = ["HubModelSpec", "HubRequest", "HubVisionSpec", "OwnModelSpec", "RunInputs", "bring_libraries"]


def find_folder(typed: str, allowed: Iterable[Path]) -> Path:
    """The folder that a user typed, if it lies within one that the host allows."""
    roots = [root.resolve() for root in allowed]
    text = typed.strip()
    if text and "\0" not in text:
        for root in roots:
            try:
                folder = (root / text).resolve()  # an absolute path stays what it is
                found = any(folder.is_relative_to(root) for root in roots) and folder.is_dir()
            except (OSError, RuntimeError):  # a name too long, or links in a circle
                continue
            if found:
                return folder
    raise HubError("{typed} is not among the folders that this host allows.", typed=shown(typed))


def own_folder(typed: str) -> Path:
    """The folder that a user typed, anywhere on their own computer; `~` is their home."""
    text = typed.strip()
    try:
        folder = Path(text).expanduser().resolve()
        if text and "\0" not in text and folder.is_dir():
            return folder
    except (OSError, RuntimeError, ValueError):  # a name too long, no such user, links in a circle
        pass
    raise HubError("{typed} is not a folder on this computer. Check the path.", typed=shown(typed))


def is_at_home() -> bool:
    """Whether this server is its user's own: any folder may be opened, and written to after a click."""
    return not settings().restricted and not settings().model_folders


def convert_folder(_no_model: None, typed: str) -> None:
    """Write the pytorch_model.bin of a folder as safetensors beside it.

    HubError if that cannot be done, or not on this server.
    """
    convert(own_folder(typed) if is_at_home() else find_folder(typed, ()))


def is_convertible(_no_model: None, typed: str) -> bool:
    """Whether a folder has weights only as pytorch_model.bin, and may be converted on this server."""
    if not is_at_home():
        return False
    with suppress(HubError):
        folder = own_folder(typed)
        names = {file.name for file in folder.iterdir()}
        return bool(pickled_weights(folder)) and not names & {SAFETENSORS, SAFETENSORS_INDEX}
    return False


def _compiled(pattern: str) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern) if pattern else None
    except (re.error, OverflowError, RecursionError) as error:
        raise HubError(
            "{pattern} is not a regular expression: {detail}", pattern=shown(pattern), detail=error
        ) from None


def bring_libraries() -> None:
    """Import the libraries that a first load needs."""
    import_transformers()


@dataclass(frozen=True)
class HubModelSpec(ModelSpec[HubModel]):
    """Which model: a name with a revision ("" for the newest), or a folder; `offline`: ask nobody for it.

    With a folder: `pattern`, a regular expression whose matches are the tokens, in place of the folder's tokenizer.
    """

    name: str
    revision: str = ""
    folder: str = ""
    pattern: str = ""
    offline: bool = field(default=False, compare=False)
    max_loaded = 2

    @property
    def affinity(self) -> str:
        return f"{self.folder or self.name}@{self.revision}{self.pattern}"

    def load(self, progress: Progress | None) -> HubModel:
        """The model, as far as the settings of this machine allow.

        Raises:
            HubError: if it cannot be had or run here.
            ValueError: if ATLAS_DEVICE names a device that is not here.
        """
        return_freed_memory()
        allowed = settings()
        if self.folder:
            # At home any folder may be opened, unless the owner names some; visitors of a host never choose.
            own = is_at_home()
            folder = own_folder(self.folder) if own else find_folder(self.folder, allowed.model_folders)
            return load_hub(
                folder, memory_budget=allowed.model_memory, tokenizer=_compiled(self.pattern if own else "")
            )
        # Whoever runs this at home may use their own access to private models; visitors of a host may not.
        token = False if allowed.restricted else None
        return load_hub(
            self.name,
            self.revision or None,
            folders=allowed.model_folders,
            memory_budget=allowed.model_memory,
            offline=self.offline,
            token=token,
            progress=progress,
        )

    def run_source(self) -> RunSource:
        if self.folder:
            tokenizer = f", tokenizer=re.compile({self.pattern!r})" if self.pattern else ""
            return RunSource(
                f"{'import re' * bool(self.pattern)}\nfrom pathlib import Path\n\n".lstrip()
                + f"from viz_core import load_hub, view\n\nmodel = load_hub(Path({self.folder!r}){tokenizer})",
                ("model",),
            )
        revision = f", revision={self.revision!r}" if self.revision else ""
        return RunSource(f"from viz_core import load_hub, view\n\nmodel = load_hub({self.name!r}{revision})")


@dataclass(frozen=True)
class OwnModelSpec(HubModelSpec):
    """A shipped model for the page's own figures, cached apart from those that readers load."""

    max_loaded = 3


@dataclass(frozen=True)
class HubVisionSpec(ModelAdapter[PictureModel]):
    """A vision model of the lab with the interface of the shipped classifiers."""

    hub: HubModelSpec

    @property
    def adapted(self) -> HubModelSpec:
        return self.hub

    def adapt(self, loaded: HubModel) -> PictureModel:
        if isinstance(loaded, ShippedHubModel) and isinstance(loaded.shipped, ImageClassifier):
            return loaded.shipped
        return HubVision(loaded)

    def run_source(self) -> RunSource:
        if self.hub.name in shipped_names():
            return self.hub.run_source().then("model = model.shipped")
        return self.hub.run_source().then("from viz_core.hub import HubVision\n\nmodel = HubVision(model)")


_MEDIA = ("image", "video", "sound")


@dataclass(frozen=True)
class HubRequest(RunRequest[HubModel, HubRun]):
    """A run of a model of the lab: its inputs, with handles of pictures, videos and sounds, and heads switched off."""

    model: HubModelSpec
    inputs: RunInputs
    off: HeadsOff = ()

    @property
    def without_payload(self) -> "HubRequest":
        digests = {name: handle.without_payload for name, handle in self._media().items()}
        return replace(self, inputs=replace(self.inputs, **digests))

    def run(self, model: HubModel) -> HubRun:
        """One recorded run.

        HubError if this is not an input for this model, or longer than the settings of this machine allow.
        PayloadMissingError if the picture, video or sound is not here.
        """
        allowed, inputs = settings(), self.inputs
        longest = max(len(text or "") for text in (inputs.text, inputs.text_pair, inputs.target))
        if allowed.max_characters is not None and longest > allowed.max_characters:
            raise HubError(
                "This text has {count:,} characters; at most {most:,} are allowed here. Shorten it.",
                count=longest,
                most=allowed.max_characters,
            )
        opened = {name: handle.open() for name, handle in self._media().items()}
        inputs = replace(inputs, **opened, max_tokens=allowed.max_tokens, max_seconds=allowed.max_seconds)
        with intervene(switched_off(self.off)):
            return model.run_inputs(inputs)

    def groups(self, run: HubRun, labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
        return hub_groups(run, labels)

    def run_source(self) -> RunSource:
        """Code that runs it in a notebook."""
        lines, needs, arguments = [], [], []
        for handle in self._media().values():
            opened = handle.run_source()
            lines.append(opened.code)
            needs += opened.needs
        for each in fields(RunInputs):
            value = getattr(self.inputs, each.name)
            if each.name == "sampling" and value != each.default:
                lines.append("from viz_core.hub import Sampling\n")
            if value != each.default:
                written = each.name if each.name in _MEDIA else repr(value)
                arguments.append(written if each.name == "text" else f"{each.name}={written}")
        lines.append(with_heads_off(self.off, f"run = model.run({', '.join(arguments)})"))
        return self.model.run_source().then("\n".join(lines), tuple(needs))

    def for_transfer(self, run: HubRun) -> HubRun:
        """Return the run with the shape of its logits only, and without the inputs of its pass."""
        return replace(run, output=run.output.to("meta"), inputs={})

    def _media(self) -> dict[str, Any]:
        """Return the handles of the picture, video or sound by their fields."""
        return {name: handle for name in _MEDIA if (handle := getattr(self.inputs, name)) is not None}
