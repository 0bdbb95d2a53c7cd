from tests.viz_core.view.attention_groups import make_group
from ui.widgets.view_link import Cell, read_cell


def test_a_cell_that_was_clicked_is_read():
    groups = (make_group(4, 5),)
    cell = {"id": "a.1", "group": "cross", "query": 3, "key": 4}
    assert read_cell({"group": "cross", "cell": cell}, groups) == Cell("a.1", "cross", 3, 4)
    hostile = [{"query": 4}, {"key": 5}, {"key": -1}, {"key": True}, {"id": 3}, {"group": "self"}, {"group": ["cross"]}]
    for message in (None, [], {}, {"cell": None}, {"cell": "q3"}, *({"cell": cell | each} for each in hostile)):
        assert read_cell(message, groups) is None
