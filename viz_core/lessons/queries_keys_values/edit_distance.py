"""How far apart two words are: the fewest letters to insert, delete or replace."""


def edit_table(query: str, key: str) -> list[list[int]]:
    """table[i][j] is the fewest edits from the query's first i letters to the key's first j (Wagner and Fischer 1974).

    table[i][j] = min(table[i-1][j] + 1                         delete query[i-1]
                      table[i][j-1] + 1                         insert key[j-1]
                      table[i-1][j-1] + (query[i-1] != key[j-1]))  replace or keep

    The corner is the distance of the whole words; the smallest entry of the last row is the
    distance to the best beginning of the key (Sellers 1980).
    """
    table = [list(range(len(key) + 1))]
    for i, letter in enumerate(query, start=1):
        row = [i]
        for j, other in enumerate(key, start=1):
            row.append(min(table[i - 1][j] + 1, row[j - 1] + 1, table[i - 1][j - 1] + (letter != other)))
        table.append(row)
    return table


def edit_distance(query: str, key: str) -> int:
    """The fewest single-letter edits that make the key of the query (Levenshtein 1966)."""
    return edit_table(query, key)[-1][-1]


def beginning_distance(query: str, key: str) -> int:
    """The fewest edits that make some beginning of the key of the query: 0 where the key starts with it."""
    return min(edit_table(query, key)[-1])
