"""A small view with pieces of words and strangers among its tokens."""

import pytest
from playwright.sync_api import Page

from tests.browser.attention_view.live_view import KEYS, QUERIES, START, TEXT, LiveView
from tests.viz_core.view.attention_groups import make_group
from viz_core.runtime.assets import Provenance
from viz_core.view.components import view_words
from viz_core.view.map_group import MapGroup
from viz_core.view.payload import View


@pytest.fixture(scope="module")
def cross() -> MapGroup:
    words = {"query_words": (0, 1, 2, 3, 3, 4), "key_words": (0, 1, 2, 2, 3, 4, 5)}
    made = Provenance("some-model", "1a2b", TEXT)
    return make_group(6, 7, query_tokens=QUERIES, key_tokens=KEYS, provenance=made, **words)


@pytest.fixture
def live(page: Page, cross: MapGroup) -> LiveView:
    return LiveView(page, View([make_group(5, 5, "self"), cross], view_words()), START)
