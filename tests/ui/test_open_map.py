"""The open map of an attention view: the library's numbers and tokens."""

import torch

from tests.viz_core.view.attention_groups import make_group
from ui.widgets.view_link import open_map, open_tokens
from viz_core.view.state import ViewState


def test_an_opened_map_is_the_librarys() -> None:
    groups, view = (make_group(3, 3, "self"), make_group(4, 5)), ViewState("cross", 1, 2)
    torch.testing.assert_close(open_map(groups, view), groups[1].calls[1].weights(head=2)[0])
    assert open_tokens(groups, view) == {"rows": groups[1].query_tokens, "columns": groups[1].key_tokens}
