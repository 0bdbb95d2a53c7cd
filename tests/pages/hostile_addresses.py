"""What nobody should find in an address, chapter by chapter: what it asks for, and each note that tells so."""

from __future__ import annotations

import json

Row = tuple[dict[str, str], list[str]]

NOT_HERE = "The address names a head, token or option that does not exist here. This is the default view."


def _rows(**params: list[tuple[str, str]]) -> list[Row]:
    """_rows(a_n=[("1", "Tokens n")]): a-n=1 in the address is told as "Tokens n = 1"."""
    return [
        ({name.replace("_", "-"): value}, [f"{label} = {value}"])
        for name, values in params.items()
        for value, label in values
    ]


def _within(where: dict[str, str], rows: list[Row]) -> list[Row]:
    """The same in some other place of the chapter."""
    return [({**where, **params}, notes) for params, notes in rows]


def _table(rows: int, row: list[str]) -> str:
    return json.dumps([row] * rows)


HOSTILE: dict[str, list[Row]] = {
    "architectures": _rows(
        a_n=[("1", "Tokens n"), ("1e99", "Tokens n")],
        a_d=[("0", "Width d")],
        a_k=[("0", "Kernel k"), ("nan", "Kernel k")],
        a_r=[("-3", "Window r")],
        a_from=[("0", "From token")],
        a_to=[("99", "To token")],
        a_show=[("<script>", "What to compare")],
    ),
    "attention-pooling": [
        *_rows(
            ap_kernel=[("cosine", "Kernel")],
            ap_width=[("-1", "Width"), ("nan", "Width"), ("99", "Width")],
            ap_query=[("7", "Query x")],
            ap_n=[("1", "Points n"), ("1e9", "Points n")],
            ap_noise=[("-2", "Noise")],
            ap_seed=[("inf", "Seed"), ("-3", "Seed")],
        ),
        ({"ap-section": "nowhere"}, []),
        ({"ap-guess-sphere": "nowhere"}, []),
        *(({"tour": value}, [f"step {value} of the tour"]) for value in ("0", "<script>", "1")),  # it begins elsewhere
    ],
    "bahdanau": _rows(
        b_step=[(value, "Step of the decoder") for value in ("0", "-3", "999", "nan", "1e999", "<script>", "")]
    ),
    "learning": [
        *_rows(
            l_run=[("<script>", "Recorded run"), ("../../etc/passwd", "Recorded run")],
            l_beside=[("everything", "Compare with")],
            l_step=[("-10", "Updates so far"), ("1e99", "Updates so far")],
            l_measure=[("99", "Measure of each head")],
            l_player=[("3", "Layer of your head")],
            l_play_seed=[("1e9", "Sequence")],
            l_play_2=[("zz", "Your keys in layer 2"), ("<script>", "Your keys in layer 2")],
            l_circuit_seed=[("nan", "Sequence")],
            l_first_pattern=[("trained", "Pattern in layer 1")],
            l_second_pattern=[("<b>", "Pattern in layer 2")],
            l_circuit_1=[("617", "Your keys in layer 1")],
        ),
        ({"l-source": "nowhere", "l-section": "nowhere"}, ["Watch = nowhere"]),
        ({"head": "self.9.9", "pin": "q99"}, [NOT_HERE]),
    ],
    "heads": [
        *_rows(
            hs_model=[("<script>", "Model"), ("../../etc", "Model")],
            hs_x=[("nan", "Across")],
            hs_y=[("<script>", "Up")],
            hs_texts=[("7", "Data")],
            hs_percentile=[("1e9", "Example at percentile")],
        ),
        ({"hs-model": "lab", "hs-lab": "../../etc"}, ["Model of the lab = ../../etc"]),
        ({"head": "decoder-self.9.9"}, [NOT_HERE]),
        ({"head": "<script>"}, [NOT_HERE]),
    ],
    "linear-attention": _rows(
        la_time=[("0", "Token t"), ("17", "Token t"), ("nan", "Token t"), ("<script>", "Token t")],
        la_rule=[("<script>", "Rule"), ("softmax", "Rule")],
        la_decay=[("0", "Decay a"), ("1.5", "Decay a"), ("nan", "Decay a")],
        la_seed=[("-1", "Seed"), ("1e9", "Seed"), ("inf", "Seed")],
        la_width=[("0", "Width d")],
        la_size=[("9", "Width d of the state")],
        la_writes=[("7", "Each key is written")],
        la_pairs=[("3", "Pairs")],
        la_steps=[("1000000", "Updates")],
        la_train_seed=[("-1", "Training seed"), ("10", "Training seed")],
    ),
    "model-lab": [
        (
            {"ml-source": "<script>", "ml-section": "nowhere", "ml-new": "99999999"},
            ["Source = <script>", "New tokens, at most = 99999999"],
        ),
        (
            {"ml-model": "../../etc/passwd", "ml-temperature": "nan"},
            ["Model = ../../etc/passwd", "Sampling temperature = nan"],
        ),
        (
            {"ml-model": "gpt2", "ml-seed": "inf", "ml-place": "-5", "ml-topp": "0"},
            ["Seed = inf", "After token = -5", "Top-p = 0"],
        ),
        ({"head": "cross.99.99", "pin": "q99", "look": "mode-<b>"}, [NOT_HERE]),
    ],
    "multi-head": [
        *_within(
            {"mh-source": "Fresh weights"},
            _rows(
                mh_width=[("513", "Width d"), ("-1", "Width d"), ("inf", "Width d")],
                mh_seed=[("1e9", "Seed")],
                mh_sharpness=[("nan", "Sharpness of fresh weights")],
            ),
        ),
        *_rows(
            mh_heads=[("65", "Heads h"), ("many", "Heads h")],
            mh_source=[("<script>", "Tokens and weights")],
            mh_stage=[("masks", "Tensor to inspect")],
        ),
        ({"mh-head": "cross.9.99", "mh-pin": "q999"}, [NOT_HERE]),
    ],
    "position-embeddings": [
        *_rows(
            pe_head=[("99", "Head")],
            pe_heads=[("3", "Heads")],
            pe_show=[("<script>", "Show")],
            pe_source=[("nowhere", "Tokens for all sections")],
            pe_seed=[("-1", "Seed of the random tables")],
        ),
        *_within(
            {"pe-section": "One scheme, closer"},
            [
                *_rows(
                    pe_scheme=[("psychic", "Scheme")],
                    pe_skew_n=[("13", "Tokens n")],
                    pe_step=[("-1", "Step of the skew")],
                ),
                *_within({"pe-scheme": "Clipped (Shaw)"}, _rows(pe_k=[("1e9", "Clipping distance k")])),
                *_within(
                    {"pe-scheme": "Relative, 2-D"},
                    _rows(pe_grid_width=[("0", "Columns")], pe_row=[("9", "Query in row")]),
                ),
                *_within({"pe-scheme": "Rotary"}, _rows(pe_d=[("7", "Width d of a head")], pe_base=[("nan", "Base")])),
                *_within({"pe-scheme": "ALiBi"}, _rows(pe_alibi_head=[("12", "Opened head")])),
                *_within({"pe-scheme": "T5 buckets"}, _rows(pe_buckets=[("31", "Buckets")])),
            ],
        ),
        *_within({"pe-section": "Cost and reach"}, _rows(pe_n=[("999999999", "Tokens n")])),
        *_rows(pe_order=[("21", "Shuffle")]),
        *_within({"pe-source": "picture"}, _rows(pe_height=[("1000", "Patches down")])),
    ],
    "queries-keys-values": [
        *_rows(
            qkv_edits=[("99", "Edits allowed"), ("nan", "Edits allowed")],
            qkv_compare=[("sideways", "Compare the query with")],
            qkv_temperature=[("0", "Temperature"), ("<b>", "Temperature")],
            qkv_case=[("magic", "The weights must be")],
        ),
        *(({"qkv-values": value}, ["Values and weights = "]) for value in ("[[1,2,3]]", _table(9, ["1", "2", "3"]))),
        *(
            ({"qkv-names": value}, ["Names = "])
            for value in ("nonsense", "[[1,2]]", '[["a"]]', '{"a":1}', _table(25, ["k", "v"]), "[" * 5000)
        ),
    ],
    "relative-projection": [
        *_rows(
            rp_offset=[("1e9", "Offset δ"), ("nan", "Offset δ")],
            rp_position=[("-4", "Position i")],
            rp_pair=[("99", "Pair j")],
            # odd: the last sine has no cosine
            rp_width=[("33", "Encoding dimension d"), ("<script>", "Encoding dimension d")],
            rp_base=[("0", "Base"), ("inf", "Base")],
            rp_type=[("int8", "Number type")],
        ),
        ({"rp-section": "nowhere"}, []),
    ],
    "scoring-functions": [
        (
            {
                "sf-section": "Why 1/√d",
                "sf-key": "99",
                "sf-row": "inf",
                "sf-scale": "×7",
                "sf-d": "63",
                "sf-keys": "1e9",
                "sf-seed": "-3",
            },
            [
                "Key of the gradient = 99",
                "Row of scores = inf",
                "Multiply the scores by = ×7",
                "Width d = 63",
                "Keys per query = 1e9",
                "Seed of the vectors = -3",
            ],
        ),
        (
            {
                "sf-section": "The Gaussian, taken apart",
                "sf-key": "nan",
                "sf-row": "-1",
                "sf-x": "5",
                "sf-y": "nan",
                "sf-count": "0",
                "sf-lengths-of-keys": "none",
            },
            [
                "Key of the gradient = nan",
                "Row of scores = -1",
                "Query, first coordinate = 5",
                "Query, second coordinate = nan",
                "Number of keys = 0",
                "Norms of the keys = none",
            ],
        ),
        (
            {
                "sf-section": "Four scores",
                "sf-scene": "<script>",
                "sf-show": "all",
                "sf-steps": "100000",
                "sf-hidden": "0",
                "sf-draw": "1.5e9",
            },
            [
                "Queries and keys = <script>",
                "Show = all",
                "Training steps = 100000",
                "Hidden units h = 0",
                "Seed = 1.5e9",
            ],
        ),
    ],
    "sinusoidal-encoding": [
        *(
            ({f"se-{name}": value}, [f"{label} = {value}, which cannot be shown here; {shown}."])
            for name, label, shown, values in (
                ("n", "Positions n", "use 1 to 2,000. This is 60", ("2001", "0", "")),
                ("d", "Dimensions d", "use 2 to 512. This is 32", ("5000", "1", "<script>")),
                ("base", "Base", "use 1 to 1,000,000. This is 10,000", ("0", "1e99", "nan")),
                ("columns", "Columns", "this is 6, 7, 8, 9", ("512", "-1")),
            )
            for value in values
        ),
        ({"se-section": "nowhere"}, []),
        ({"se-guess-similar": "x"}, []),
    ],
    "transformer": [
        ({"t-search": "<script>"}, ["Search = <script>"]),
        ({"t-section": "nowhere"}, []),
        ({"t-step": "99"}, ["Step of the encoder = 99"]),
        ({"t-without": "cross-9.9"}, ["Heads switched off: kind, layer, number = cross-9.9"]),
        ({"t-section": "Through the layers", "t-word": "99"}, ["Word of the translation = 99"]),
        ({"t-section": "What heads are worth", "t-measure": "luck"}, ["What is measured = luck"]),
        ({"t-guess-shape": "yes"}, []),
        ({"head": "cross.99.99"}, [NOT_HERE]),
        ({"head": "../../etc/passwd"}, [NOT_HERE]),
        ({"pin": "q999999999999"}, [NOT_HERE]),
        ({"head": "cross.-1.0", "pin": "k-1"}, [NOT_HERE]),
        ({"head": "\x00", "pin": "'; drop table"}, [NOT_HERE]),
    ],
    "vision-transformer": [
        *_rows(
            vt_model=[("../../etc", "Model")],
            vt_source=[("disk", "Picture")],
            vt_sample=[("<b>", "Sample")],
            vt_fusion=[("median", "Combine heads by")],
            vt_discard=[("7", "Discard the smallest weights")],
            vt_label=[("unicorn", "Relevance for")],
        ),
        *_within({"vt-section": "Shuffle test"}, _rows(vt_order=[("-4", "Shuffle seed")])),
        ({"pin": "q999"}, [NOT_HERE]),
        ({"head": "encoder-self.99.0"}, [NOT_HERE]),
        ({"look": "patches-blurred"}, [NOT_HERE]),
    ],
}


def together(rows: list[Row]) -> list[Row]:
    """As few addresses as ask for all of it: what disagrees, or is answered by the same note, is asked for apart."""
    addresses: list[Row] = []
    for params, notes in rows:
        for wanted, answers in addresses:
            agree = all(wanted.get(name, value) == value for name, value in params.items())
            if agree and not set(notes) & set(answers):
                wanted.update(params)
                answers.extend(notes)
                break
        else:
            addresses.append((dict(params), list(notes)))
    return addresses
