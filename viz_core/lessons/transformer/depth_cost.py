"""What a deeper Transformer costs: parameters, and multiplications of one update."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TransformerSizes:
    """The book's Transformer (section 11.7) unless said otherwise, on pairs of so many source and target tokens."""

    num_hiddens: int = 256
    ffn_num_hiddens: int = 64
    source_words: int = 194
    target_words: int = 214
    tokens: int = 9


def depth_cost(depth: int, sizes: TransformerSizes) -> tuple[int, int]:
    """Parameters of a Transformer with so many blocks on each side, and multiplications of an update for one pair.

    A block of the encoder has 4 d^2 + 2 d f weights, one of the decoder 8 d^2 + 2 d f, each multiplied with every
    token; attention adds 2 n^2 d, once and twice; biases and norms are counted among parameters. What is done forward
    is done twice more backward (Kaplan 2020, section 2.1).
    """
    d, f, n = sizes.num_hiddens, sizes.ffn_num_hiddens, sizes.tokens
    feed_forward, vectors = 2 * d * f, f + d  # the vectors are the feed-forward net's biases
    weights = depth * (12 * d * d + 2 * feed_forward)
    beside = depth * (2 * vectors + 10 * d)  # five norms, each with a scale and a shift
    embeddings = d * (sizes.source_words + sizes.target_words)
    output = d * sizes.target_words
    forward = n * (weights + output) + depth * 3 * 2 * n * n * d
    return weights + beside + embeddings + output + sizes.target_words, 3 * forward
