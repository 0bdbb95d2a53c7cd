"""A layout that is put together first says what one says that is told bit by bit."""

from __future__ import annotations

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from ui.widgets.figure_style import lay_out


def test_as_if_told_bit_by_bit() -> None:
    figure = go.Figure(go.Bar(y=[1, 2]))
    figure.add_annotation(x=0, y=1, text="here")
    figure_labels = go.Figure(figure)
    lay_out(
        figure,
        "x",
        "y",
        300,
        xaxis={"type": "log", "title": {"standoff": 4}},
        yaxis={"range": [0, 1]},
        margin={"t": 8},
        legend={"y": 1.12},
    )
    figure_labels.update_layout(
        height=300,
        margin={"l": 10, "r": 10, "t": 8, "b": 10},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.12, "x": 0},
        hoverlabel={"namelength": -1},
    )
    ticks = {"automargin": True, "exponentformat": "none", "separatethousands": True}
    figure_labels.update_xaxes(title="x", type="log", title_standoff=4, **ticks)
    figure_labels.update_yaxes(title="y", range=[0, 1], **ticks)
    assert figure.to_dict() == figure_labels.to_dict()


def test_all_axes_of_subplots_keep_their_places() -> None:
    figure = make_subplots(cols=2)
    places = [figure.layout.xaxis.domain, figure.layout.xaxis2.domain]
    lay_out(figure, "across", "up", yaxis={"dtick": 1})
    assert [figure.layout.xaxis.domain, figure.layout.xaxis2.domain] == places
    for axis in (figure.layout.xaxis, figure.layout.xaxis2):
        assert (axis.title.text, axis.automargin) == ("across", True)
    for axis in (figure.layout.yaxis, figure.layout.yaxis2):
        assert (axis.title.text, axis.dtick) == ("up", 1)
    figure.add_scatter(y=[1], row=1, col=2)  # it still knows its panels
    assert figure.data[0].xaxis == "x2"


def test_what_it_is_told_stays_as_it_was() -> None:
    label = {"title": {"standoff": 4}}
    lay_out(go.Figure(), "x", "y", xaxis=label)
    assert label == {"title": {"standoff": 4}}
