"""Words that a translation no longer uses: converted terms, false friends, phrases that follow English too closely."""

from __future__ import annotations

import re

import pytest

import ui.text.words
from tests.due import is_due
from ui.text.words import TEXT, languages

# What a pattern finds, and what the text says instead.
OLD = {
    "zh-TW": {
        # Other words with this character, and lines of text and code, are no rows or columns.
        r"(?<!一兩)(?<![進執運飛步流旅平並可實自不另換舉才])行(?![為動人程業不文])": "列 (row) or 欄 (column)",
        r"往[前後](?!饋)": "前一個、後一個、前面的、後面的",
        r"去除(?!了)": "除以",
        r"暫退": "dropout",
        r"規範化|歸一化|標準化層": "正規化",
        r"殘差連線": "殘差連接",
        r"(?:注意力|的)匯(?!聚|入|出|總)": "注意力沉沒點",
        r"迴圈(?:神經)?(?:網路|模型|解碼器|編碼器|層)": "循環",
        r"獨熱": "one-hot",
        r"評分函式|核函式|損失函式|三角函式": "函數",
        r"軟件|信息|網絡|文件夾|默認|鼠標|代碼|數據集|視頻|程序(?!設)|矢量|內存|打印|激活函": "the word used in Taiwan",
        r"弄壞": "故意改錯、不改動",
        r"看什麼。": "觀察重點",
        r"柔軟": "軟查找",
        r"站在": "位於",
        r"點擊": "點、點選",
        r"門控": "閘控",
        r"視覺塔": "視覺編碼器",
        r"有號圖|因果圖": "權重有正有負的、因果的注意力圖",
        r"全程走": "逐步解說",
        r"[“”]": "「」",
        r"(?<!\*)\*(?![\s*])[^*\n]*[\u4e00-\u9fff][^*\n]*(?<![\s*])\*(?!\*)": "no slanted Chinese: bold or 「」",
        r"[\u4e00-\u9fff] [，。；：、？！（）「」]": "no space before full-width punctuation",
        r"[，。；：、？！）」] [\u4e00-\u9fff]": "no space after full-width punctuation",
        r"[\u4e00-\u9fff][,;?!](?!\w)": "full-width punctuation",
        r"[。：？！]\*\* ": "punctuation after the bold, without a space",
        r"\*\*\*": "two asterisks for bold",
        r"每隔 ?[$一\d]": "每遠一個、每 n 個中的一個",
    },
    "pt-BR": {
        r"Quebre: nada": "O que quebrar: nada",
        r"responde, mais alto": "quanto melhor combina, maior o peso",
        r"faz das pontuações pesos": "transforma as pontuações em pesos",
        r"chave da miniatura": "botão da miniatura",
        r"afirmação por um número\b": "com um número medido",
        r"\d M parâmetros": "milhões de parâmetros",
        r"\bIsto é \{": "Mostrando",
        r"Mais perto|Mais longe|Como no início": "Ampliar, Reduzir, Restaurar",
        r"Desenhe uma caixa": "Desenhe um retângulo",
        r"só pelo lugar": "só pela posição",
        r"parte de teste": "conjunto de teste",
        r"[Ss]oma e norma\b": "soma e normalização",
        r"quanto lhe é pedido": "na proporção do seu peso",
        r"A prova\b": "A demonstração",
        r"não é uma fração": "é irracional",
        r"sabid[ao]s? de cor": "decorado",
        r"[Ss]orvedouro": "sumidouro (attention sink)",
        r"\\text\{output\}": r"\text{saída}",
        r"as tantas mais|últimos tantos": "as k mais prováveis, os últimos n",
        r"olha adiante": "pode olhar para os seguintes",
        r"nomeia corretamente": "classifica corretamente",
        r"[Pp]osto recíproco|posto aqui": "mean reciprocal rank (MRR), colocação",
        r"\bTerminado:|\bParado depois": "Concluído, Interrompido",
        r"comprimento somado": "comprimento acrescentado",
        r"(?:[Tt]abela|[Pp]enalidade|[Gg]radiente|[Pp]esos) quebrad": "com defeito",
        r"(?:partes|termos|contribuições|chaves) somam [ao]\b": "a soma das partes é",
        r"(?<![\w,.)}\]])-\d": "− (minus sign)",
    },
}
# What is no prose: formulas, code, targets of links, placeholders, and marks of answers.
_NO_PROSE = re.compile(
    r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|\]\([^)]*\)|:[\w-]+/\w+:|^- \[[^\]]*\]", re.DOTALL | re.MULTILINE
)
# Sentences that models read in English, and names of files.
_EXEMPT = ("start.", "preset.", "stem")


def _prose(text: str) -> str:
    """The text of a page: what stands in TeX's \\text{} too, for its words are translated."""
    inside = "\n".join(re.findall(r"\\text\{+([^{}]*)\}", text))
    return f"{_NO_PROSE.sub('·', text)}\n{inside}"


@pytest.mark.parametrize("language", OLD)
@pytest.mark.parametrize("file", sorted(path.stem for path in (TEXT / "zh-TW").glob("*.md")))
def test_old_words_do_not_return(file: str, language: str) -> None:
    if is_due(file, language):
        pytest.skip("its translation is due")
    words = ui.text.words._read(file, language)
    texts = {name: text for name, text in words.front.items() if isinstance(text, str)} | words.sections
    texts |= {f"label {name}": str(label) for name, label in words.front.get("controls", {}).items()}
    found = [
        (name, match[0], better)
        for name, text in texts.items()
        if not name.startswith(_EXEMPT)
        for pattern, better in OLD[language].items()
        for match in re.finditer(pattern, _prose(text))
    ]
    assert found == []


def test_old_words_are_of_languages_that_there_are() -> None:
    assert set(OLD) <= set(languages())


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("每一列的總和是 1，每一欄各有一個鍵。", 0),
        ("每一行的總和是 1", 1),
        ("順序進行和平行計算", 0),
        ("第 3 行", 1),
        ("誰都不准往前看", 1),
        ("前饋網路與 **粗體** 的 *cat*", 0),
        ("這是*斜體*字", 1),
        ("它說 “cat”", 2),
    ],
)
def test_what_is_found_in_chinese(text: str, count: int) -> None:
    assert sum(len(re.findall(pattern, _prose(text))) for pattern in OLD["zh-TW"]) == count
