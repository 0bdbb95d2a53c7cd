"""The attention view: its groups of maps, its state, its bytes, its page; in the app, in a file, in a notebook.

The folder itself can be called, so that `viz_core.view` shows maps whoever imported what before:

>>> from viz_core import load, view
>>> view(load("transformer-en-fr").translate("He is calm."))

What a view needs is imported when one is made.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from PIL.Image import Image

    from viz_core.view.grouping import Names, Tokens
    from viz_core.view.notebook import ViewHandle


class _Callable(ModuleType):
    """This package as a callable module."""

    def __call__(
        self,
        what: object,
        tokens: "Tokens | None" = None,
        keys: "Tokens | None" = None,
        *,
        row: int | None = None,
        language: str = "en",
        labels: "Names | None" = None,
        picture: "Image | None" = None,
    ) -> "ViewHandle":
        """Show every head of what was recorded in a notebook cell.

        With the extra "notebook" it is a widget: what the reader opens and pins is read from its traits `site`, `head`,
        `pins` and `display`, and set by them. Without, it is a frame that shows the same and tells nothing back. Both
        write themselves to a file: `view(...).save("attention.html")`.

        Layers and heads are counted from 0 here, as everywhere in Python, and from 1 in the picture, as people count:
        `head=3` is called "head 4" there.

        Args:
            what: a Trace, one of its calls, a Translation, a Classification, a HubRun, or weights as they are: a tensor
                (batch, heads, queries, keys) of each layer, such as the tuple that `output_attentions=True` returns, or
                one tensor of two to four axes.
            tokens: names of the queries, and of keys that are the same sequence; of a Trace with several stacks, by the
                name of the stack ("encoder", "decoder"). Texts, ids as a list or tensor, or what a fast tokenizer made
                of a text. Positions are shown unless given.
            keys: names of the keys where they are another sequence than the queries: a sequence, or by the name of the
                stack what its self-attention reads (a decoder reads "<bos>" and all but the last word it writes).
            row: which row of the batch, the first unless given. An array of four axes by itself needs it: its first
                axis may be layers.
            language: of the words around the maps, as a BCP 47 tag.
            labels: names of one's own for the tokens of a HubRun, one for each of `run.tokens`; or by the names of its
                fields, {"tokens": [...], "target_tokens": [...]}.
            picture: what a detector saw, as its model was given it: over it lie the points that deformable attention
                reads, by query, feature map and head.

        Raises:
            ValueError: if that is nothing that can be shown, it holds no attention, or the tokens are not as many as
                the maps have rows and columns.
        """
        from viz_core.view.show import show

        return show(what, tokens, keys, row, language, labels, picture)


sys.modules[__name__].__class__ = _Callable
view = cast(_Callable, sys.modules[__name__])
"""What `from viz_core.view import view` takes: the folder itself."""
