"""Numbers in English words, as a prompt of SmolVLM has them."""

_WORDS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen".split()
_WORDS += "seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety".split()


def number_words(number: int) -> str:
    """Return a number from 0 to 99 in words: "twenty-one"; larger ones in digits."""
    if number < 20 or number > 99:
        return _WORDS[number] if number < 20 else str(number)
    tens, ones = divmod(number, 10)
    return _WORDS[18 + tens] + (f"-{_WORDS[ones]}" if ones else "")
