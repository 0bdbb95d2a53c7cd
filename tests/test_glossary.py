"""A term of the field is the same word wherever a language says it: as the sources of that language write it."""

from __future__ import annotations

import re

import pytest

import ui.text.words
from tests.due import is_due
from tests.english import prose
from ui.text.words import ENGLISH, TEXT, languages

FILES = sorted(path.stem for path in (TEXT / ENGLISH).glob("*.md"))
OTHERS = [name for name in languages() if name != ENGLISH]

# What English says, and what of a word Portuguese and Chinese then say, whatever its ending. Words that mean two things
# are left out: a row of a batch is no row of a map, and a score is a grade too.
TERMS = {
    r"quer(?:y|ies)": {"pt-BR": "consult", "zh-TW": "查詢"},
    r"values?": {"pt-BR": "valor", "zh-TW": "值"},
    r"weights?": {"pt-BR": "peso|pondera", "zh-TW": "權重|加權"},
    r"columns?": {"pt-BR": "coluna", "zh-TW": "欄"},
    r"tokens?": {"pt-BR": "token", "zh-TW": "詞元"},
    r"sequences?": {"pt-BR": "sequência", "zh-TW": "序列"},
    r"embeddings?": {"pt-BR": "embedding", "zh-TW": "嵌入"},
    r"encoders?": {"pt-BR": "codificador", "zh-TW": "編碼器"},
    r"decoders?": {"pt-BR": "decodificador", "zh-TW": "解碼器"},
    r"heads?": {"pt-BR": "cabeça", "zh-TW": "頭"},
    r"layers?": {"pt-BR": "camada", "zh-TW": "層"},
    r"patch(?:es)?": {"pt-BR": "patch", "zh-TW": "圖塊"},
    r"masks?|masked": {"pt-BR": "máscara|mascar", "zh-TW": "遮"},
    r"kernels?": {"pt-BR": "núcleo", "zh-TW": r"核|\{kernel\}"},
    r"offsets?": {"pt-BR": "deslocamento", "zh-TW": "偏移"},
    r"frequenc(?:y|ies)": {"pt-BR": "frequência", "zh-TW": "頻率"},
    r"sines?": {"pt-BR": r"\bseno", "zh-TW": "正弦"},
    r"cosines?": {"pt-BR": "cosseno", "zh-TW": "餘弦"},
    r"projections?": {"pt-BR": "projeç", "zh-TW": "投影"},
    r"padding": {"pt-BR": "preenchimento", "zh-TW": "填充"},
    r"vocabular(?:y|ies)": {"pt-BR": "vocabulário", "zh-TW": "詞表"},
    r"gradients?": {"pt-BR": "gradiente", "zh-TW": "梯度"},
    r"parameters?": {"pt-BR": "parâmetro", "zh-TW": "參數"},
    r"loss(?:es)?": {"pt-BR": "perda", "zh-TW": "損失"},
    r"dropout": {"pt-BR": "dropout", "zh-TW": "dropout"},
    r"training": {"pt-BR": "trein", "zh-TW": "訓練"},
    r"seeds?": {"pt-BR": "semente", "zh-TW": "種子"},
    r"perplexity": {"pt-BR": "perplexidade", "zh-TW": "困惑度"},
    r"beam": {"pt-BR": "feixe", "zh-TW": "束"},
    r"greedy": {"pt-BR": "gulos", "zh-TW": "貪婪"},
}


def read_texts(file: str, language: str) -> dict[str, str]:
    words = ui.text.words._read(file, language)
    return words.sections | {f"label {name}": str(label) for name, label in words.front.get("controls", {}).items()}


@pytest.mark.parametrize("language", OTHERS)
def test_a_term_has_one_word(language: str) -> None:
    found = dict.fromkeys(TERMS, 0)
    missing = []
    for file in FILES:
        other = read_texts(file, language)
        due = is_due(file, language)
        for name, text in read_texts(file, ENGLISH).items():
            english = prose(text)
            for term, words in TERMS.items():
                if re.search(rf"(?<![\w-])(?:{term})(?![\w-])", english, re.IGNORECASE):
                    found[term] += 1
                    if not due and name in other and not re.search(words[language], other[name], re.IGNORECASE):
                        missing.append((file, name, term))
    assert missing == []
    assert min(found.values()) > 2  # each is looked at somewhere
