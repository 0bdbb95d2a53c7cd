"""Write the course packs: `python docs/teach/course.py --site https://atlas.school.example/site` (`make course`).

For each language, build/course holds the pages to read and print (LANGUAGE/index.html), the same as a zip, and a Common
Cartridge 1.1 for a learning platform. The cartridge is for students: it has no keys and no notes for the teacher. The
vote of each lesson is a quiz in it (QTI 1.2 in the cartridge's profile), which the platform shows without its answer.
"""

from __future__ import annotations

import argparse
import html
import re
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

import markdown

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LANGUAGES = tuple(sorted((path.parent.name for path in HERE.glob("*/index.md")), key="en".__ne__))
ADDRESS = "http://localhost:8501"
"""Where the Markdown expects the app."""
_VIEW = {"head": "head", "pin": "pin", "look": "look"}
STATIC_PAGES = {
    "transformer": ("transformer", {"t-text": "text", "t-without": "off"} | _VIEW),
    "model-lab": ("writer", {"ml-start": "text"} | _VIEW),
    "walk": ("walk", {}),
}
"""Pages of the site without a server by chapter, and what the app's parameters are called there."""
_CHAPTERS = {path.parent.name: tomllib.loads(path.read_text("utf-8")) for path in ROOT.glob("pages/*/chapter.toml")}
RECORDED = {
    name.replace("_", "-"): {each["control"]: each["values"] for each in chapter.get("site", ())}
    for name, chapter in _CHAPTERS.items()
}
"""The controls, and their values, whose figures the site has of a chapter."""
_SHOWN_ANYWAY = {("present", "1"), ("present", "maps"), ("se-open-curves", "true"), ("w-model", "translator")}
"""Parameters that a link does not need: the page shows this without them."""
SECTIONS = ("goals", "plan", "slides", "vote", "sheet", "key", "homework")
"""The sections of a lesson, in the order of their headings."""
MINUTES = 45
_NAME = re.compile(r"<!-- name: (.+) -->")  # in a teacher's page: what students write above an exercise sheet
_STYLE = """
body { font: 17px/1.5 Georgia, serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
h1, h2 { line-height: 1.2 } a { color: #0b6e66 }
table { border-collapse: collapse } td, th { border: 1px solid #bbb; padding: .25rem .6rem; text-align: left }
.name { border-bottom: 1px solid #888; color: #666; margin-bottom: 1.5rem } .sheet > ol > li { margin-bottom: 4.5rem }
@media print { body { font-size: 12pt; margin: 0 auto } a { color: inherit } }
"""


@dataclass(frozen=True)
class Lesson:
    """A lesson: its title, and the Markdown and the heading of each section."""

    name: str
    title: str
    sections: dict[str, str]
    headings: dict[str, str]

    @property
    def minutes(self) -> list[int]:
        """The minutes of each step of the plan."""
        return [int(each) for each in re.findall(r"^\|\s*(\d+)\s*\|", self.sections["plan"], re.MULTILINE)]

    def links(self) -> list[str]:
        """The addresses in the app that the lesson links to, without the base address."""
        return app_links("\n".join(self.sections.values()))


def app_links(text: str) -> list[str]:
    """The addresses in the app that a text links to, without the base address."""
    return re.findall(rf"\]\({ADDRESS}/([^)\s]*)\)", text)


def static_address(link: str) -> str | None:
    """Where the site without a server shows the same as this address in the app; None where it does not."""
    chapter, asked = urlsplit(link).path, dict(parse_qsl(urlsplit(link).query))
    file, names = STATIC_PAGES.get(chapter, ("", {}))
    language, recorded = asked.pop("lang", "en"), RECORDED.get(chapter, {})
    chosen = dict(asked.items() - _SHOWN_ANYWAY)
    if recorded and all(value in recorded.get(key, ()) for key, value in chosen.items()):
        place = {key.partition("-")[2]: recorded[key].index(chosen[key]) for key in recorded if key in chosen}
        return f"{language}/{chapter}.html" + (f"#{urlencode(place)}" if place else "")
    if not file or any(each not in _SHOWN_ANYWAY for each in asked.items() if each[0] not in names):
        return None
    shown = {names[name]: value for name, value in asked.items() if name in names}
    if "off" in shown:
        group, layer, head = re.split("[-.]", shown["off"])  # a head, counted from 1
        shown["off"] = f"{group}.{int(layer) - 1}.{int(head) - 1}"
    return f"{language}/{file}.html" + (f"#{urlencode(shown)}" if shown else "")


def items(section: str) -> list[str]:
    """The numbered items of a section."""
    return [each.strip() for each in re.split(r"^\d+\. ", section, flags=re.MULTILINE)[1:]]


@dataclass(frozen=True)
class Vote:
    """A question to vote on, its right answer, and those that a misunderstanding leads to."""

    question: str
    right: str
    wrong: tuple[str, ...]

    @property
    def answers(self) -> list[str]:
        """All answers in the order of the alphabet, in which the right one has no place of its own."""
        return sorted((self.right, *self.wrong))


def read_vote(lesson: Lesson, language: str) -> Vote:
    """The vote of a lesson; a question that is not in the lesson is that of the exercise it links to.

    Raises ValueError if there is no question, or no two answers.
    """
    text = lesson.sections["vote"]
    right, *wrong = re.findall(r"\*\*(.+?)\*\*", text)
    address = app_links(text)[0]
    exercise = re.search(r"present=exercise-([\w-]+)", address)
    if exercise is None:
        found = re.search(r"\)[^:：]*[:：](?:[^:：\n]*[:：])?(.+)", text.split("\n")[0])
    else:
        words = (ROOT / "assets" / "text" / language / f"{address.split('?')[0]}.md").read_text("utf-8")
        found = re.search(rf"(?ms)^## exercise\.{exercise[1]}\s+(?:\[[\d.]+\]\s*)?(.+?)\n- \[", words)
    if found is None or not wrong:
        raise ValueError(f"{lesson.name} ({language}) has no question with two answers to vote on")
    return Vote(_plain(found[1][0].upper() + found[1][1:].strip()), _plain(right), tuple(map(_plain, wrong)))


def _plain(text: str) -> str:
    """Markdown without emphasis and with its few formulas in letters, as every platform shows them."""
    return re.sub(r"[$*]|\\mathbf |\^\\top ?", lambda found: "ᵀ" if "top" in found[0] else "", text)


def quiz(lesson: Lesson, language: str) -> str:
    """The vote of a lesson as a quiz of one question (IMS Common Cartridge 1.1, section 5; QTI 1.2.1)."""
    vote = read_vote(lesson, language)
    labels = {f"answer-{number}": answer for number, answer in enumerate(vote.answers, 1)}
    right = next(name for name, answer in labels.items() if answer == vote.right)
    labelled = (f'<response_label ident="{name}">{_material(text)}</response_label>' for name, text in labels.items())
    choices = "".join(labelled)
    exam = {"cc_profile": "cc.exam.v0p1", "qmd_assessmenttype": "Examination", "qmd_scoretype": "Percentage"}
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<questestinterop xmlns="http://www.imsglobal.org/xsd/ims_qtiasiv1p2">'
        f'<assessment ident="{lesson.name}-vote" title="{html.escape(lesson.title)}">{_metadata(exam)}'
        f'<section ident="{lesson.name}-section"><item ident="{lesson.name}-item">'
        f"<itemmetadata>{_metadata({'cc_profile': 'cc.multiple_choice.v0p1'})}</itemmetadata>"
        f'<presentation>{_material(vote.question)}<response_lid ident="vote" rcardinality="Single">'
        f"<render_choice>{choices}</render_choice></response_lid></presentation>"
        '<resprocessing><outcomes><decvar maxvalue="100" minvalue="0" varname="SCORE" vartype="Decimal"/></outcomes>'
        f'<respcondition continue="No"><conditionvar><varequal respident="vote">{right}</varequal></conditionvar>'
        '<setvar action="Set" varname="SCORE">100</setvar></respcondition></resprocessing>'
        "</item></section></assessment></questestinterop>\n"
    )


def _material(text: str) -> str:
    return f'<material><mattext texttype="text/plain">{html.escape(text)}</mattext></material>'


def _metadata(fields: dict[str, str]) -> str:
    pairs = (f"<fieldlabel>{name}</fieldlabel><fieldentry>{value}</fieldentry>" for name, value in fields.items())
    inner = "".join(f"<qtimetadatafield>{pair}</qtimetadatafield>" for pair in pairs)
    return f"<qtimetadata>{inner}</qtimetadata>"


def read_lesson(path: Path) -> Lesson:
    """Read a lesson. ValueError if it does not have the sections of a lesson."""
    title, *parts = re.split(r"^## ", path.read_text("utf-8"), flags=re.MULTILINE)
    if len(parts) != len(SECTIONS):
        raise ValueError(f"{path} has {len(parts)} sections, not {len(SECTIONS)}")
    headings, texts = zip(*(part.split("\n", 1) for part in parts), strict=True)
    sections = {name: text.strip() for name, text in zip(SECTIONS, texts, strict=True)}
    name = title.strip().removeprefix("# ").split("\n")[0]
    return Lesson(path.stem, name, sections, dict(zip(SECTIONS, headings, strict=True)))


def read_lessons(language: str) -> list[Lesson]:
    """The lessons of a language, in order."""
    return [read_lesson(path) for path in sorted((HERE / language).glob("lesson-*.md"))]


@dataclass(frozen=True)
class Addresses:
    """Where links lead: to the site without a server where it shows the same, else to the app."""

    app: str  # its address
    site: str = ""  # address of the site, or ""

    @property
    def is_local(self) -> bool:
        """Whether the app is on this computer, which students cannot reach."""
        return re.match(r"https?://(localhost|127\.|\[::1\])", self.app) is not None

    def linked(self, body: str) -> str:
        """A text with its links in the app led there."""

        def lead(found: re.Match[str]) -> str:
            shown = static_address(found[1]) if self.site else None
            return f"]({self.site}/{shown})" if shown else f"]({self.app}/{found[1]})"

        return re.sub(rf"\]\({ADDRESS}(?=\))", f"]({self.app}", re.sub(rf"\]\({ADDRESS}/([^)\s]*)\)", lead, body))

    def for_students(self, body: str) -> str:
        """The same, without the links that lead to this computer; their words stay."""
        body = self.linked(body)
        return re.sub(rf"\[([^]]*)\]\({re.escape(self.app)}[^)]*\)", r"\1", body) if self.is_local else body


def page(title: str, body: str, language: str) -> str:
    """An HTML page of Markdown; links between pages lead to HTML."""
    body = re.sub(r"\]\(([\w-]+)\.md\)", r"](\1.html)", body)
    inner = markdown.markdown(body, extensions=["tables", "md_in_html"])
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{_STYLE}</style>'
    return f'<!doctype html><html lang="{language}"><head>{head}</head><body>{inner}</body></html>\n'


def _sheet(lesson: Lesson, language: str) -> str:
    label = _NAME.search((HERE / language / "index.md").read_text("utf-8"))
    name = f'<div class="name">{label[1] if label else ""}</div>'
    sheet = f'<div class="sheet" markdown="1">\n\n{lesson.sections["sheet"]}\n\n</div>'
    return f"# {lesson.title}\n\n{name}\n\n## {lesson.headings['sheet']}\n\n{sheet}\n"


def _student_page(lesson: Lesson) -> str:
    """The goals, the slides without what the teacher says about them, and the homework."""
    links = re.findall(rf"^\d+\. (\[[^]]*\]\({ADDRESS}/[^)]*\))", lesson.sections["slides"], re.MULTILINE)
    texts = lesson.sections | {"slides": "\n".join(f"{i}. {link}" for i, link in enumerate(links, 1))}
    parts = (f"## {lesson.headings[name]}\n\n{texts[name]}" for name in ("goals", "slides", "homework"))
    return f"# {lesson.title}\n\n" + "\n\n".join(parts)


def teacher_pages(language: str, addresses: Addresses) -> dict[str, str]:
    """The pages of the teacher's pack by file name: the teacher's page, and each lesson with its sheet."""
    pages = {}
    for path in sorted((HERE / language).glob("*.md")):
        text = path.read_text("utf-8")
        pages[f"{path.stem}.html"] = page(text.split("\n")[0].removeprefix("# "), addresses.linked(text), language)
    for lesson in read_lessons(language):
        title = f"{lesson.title}: {lesson.headings['sheet']}"
        pages[f"{lesson.name}-sheet.html"] = page(title, addresses.linked(_sheet(lesson, language)), language)
    return pages


def cartridge(language: str, addresses: Addresses) -> dict[str, str]:
    """The files of the Common Cartridge by name: a manifest, and for each lesson its page, its sheet and its vote."""
    files, entries, resources = {}, [], []
    title = (HERE / language / "index.md").read_text("utf-8").split("\n")[0].removeprefix("# ")
    for lesson in read_lessons(language):
        pages = {
            f"{lesson.name}.html": (lesson.title, _student_page(lesson)),
            f"{lesson.name}-sheet.html": (lesson.headings["sheet"], _sheet(lesson, language)),
        }
        for name, (label, text) in pages.items():
            files[name] = page(label, addresses.for_students(text), language)
        files[f"{lesson.name}-vote.xml"] = quiz(lesson, language)
        parts = {name: (label, "webcontent") for name, (label, _) in pages.items()}
        parts[f"{lesson.name}-vote.xml"] = lesson.headings["vote"], "imsqti_xmlv1p2/imscc_xmlv1p1/assessment"
        inner = ""
        for name, (label, kind) in parts.items():
            reference = f"r-{Path(name).stem}"
            named = f"<title>{html.escape(label)}</title>"
            inner += f'<item identifier="i-{reference}" identifierref="{reference}">{named}</item>'
            href = f' href="{name}"' if kind == "webcontent" else ""  # a quiz has none in the profile
            resources.append(f'<resource identifier="{reference}" type="{kind}"{href}><file href="{name}"/></resource>')
        entries.append(f'<item identifier="{lesson.name}"><title>{html.escape(lesson.title)}</title>{inner}</item>')
    files["imsmanifest.xml"] = _manifest(language, title, "".join(entries), "".join(resources))
    return files


def _manifest(language: str, title: str, entries: str, resources: str) -> str:
    """Return the manifest (IMS Common Cartridge 1.1, section 4)."""
    space = "http://www.imsglobal.org/xsd/imsccv1p1"
    lom = "http://ltsc.ieee.org/xsd/imsccv1p1/LOM/manifest"
    named = f'<lom:string language="{language}">{html.escape(title)}</lom:string>'
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<manifest identifier="attention-atlas-{language}" xmlns="{space}/imscp_v1p1" xmlns:lom="{lom}">'
        "<metadata><schema>IMS Common Cartridge</schema><schemaversion>1.1.0</schemaversion>"
        f"<lom:lom><lom:general><lom:title>{named}</lom:title></lom:general></lom:lom></metadata>"
        '<organizations><organization identifier="course" structure="rooted-hierarchy">'
        f'<item identifier="root">{entries}</item></organization></organizations>'
        f"<resources>{resources}</resources></manifest>\n"
    )


def _write_zip(path: Path, files: dict[str, str]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)


def build(folder: Path, address: str = ADDRESS, site: str = "") -> None:
    """Write the packs of all languages.

    ValueError if an address does not begin with http:// or https://, or the site is on this computer.

    Args:
        folder: made where it does not exist.
        address: of the app, such as https://atlas.school.example. Students cannot reach this computer's own: no
            cartridges are written for it unless there is a site, and then what the site lacks has no link in them.
        site: address of the site without a server; links of all packs lead there where it shows the same.
    """
    for each in (address, *([site] if site else [])):
        if not re.fullmatch(r"https?://[^\s()<>\"]+", each):
            raise ValueError(f"the address begins with http:// or https:// and has no spaces, got {each!r}")
    addresses = Addresses(address.rstrip("/"), site.rstrip("/"))
    if site and Addresses(site).is_local:
        raise ValueError(f"{site} is this computer, which students cannot reach; expected a published site")
    for language in LANGUAGES:
        pages = teacher_pages(language, addresses)
        (folder / language).mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            (folder / language / name).write_text(text, "utf-8")
        _write_zip(folder / f"teacher-{language}.zip", pages)
        students = folder / f"students-{language}.imscc"
        students.unlink(missing_ok=True)
        if site or not addresses.is_local:
            _write_zip(students, cartridge(language, addresses))
    if addresses.is_local and not site:
        print(
            f"No cartridges were written: {address} is this computer, which students cannot reach. Give the address of "
            "your app, make course ATLAS_ADDRESS=https://atlas.school.example, or of a published site: ATLAS_SITE"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the course packs to build/course.")
    parser.add_argument("--address", default=ADDRESS, help=f"of the app, {ADDRESS} if not given")
    parser.add_argument("--site", default="", help="of the site without a server, where links lead if they can")
    options = parser.parse_args()
    try:
        build(ROOT / "build" / "course", options.address, options.site)
    except ValueError as error:
        parser.error(str(error))
