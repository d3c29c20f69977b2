"""The demonstration's text: the documentation inside every CPython, and a hundred cloze lines about Python.

Nothing is downloaded and no module of the library is imported: docstrings are read from source files by `ast`.
"""

import ast
import csv
import inspect
import re
import sysconfig
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from bertsmith.text.documents import Document

_SKIPPED_FOLDERS = frozenset(
    {"__pycache__", "dist-packages", "ensurepip", "idlelib", "idle_test", "lib-dynload", "lib2to3"}
    | {"pydoc_data", "site-packages", "test", "tests", "turtledemo"}
)
_RULER = re.compile(r"[\s=\-~*^#+|`.:\"']{3,}")  # a heading's underline, a table's border
_TABLE_ROW = re.compile(r"\s*\|.*\|\s*")
_BANNER = re.compile(r"-\[ .* \]-")
_PROMPT = re.compile(r"\s*(>>>|\.\.\.( |$))")
_DIRECTIVE = re.compile(r"^\s*\.\. (?:[\w:-]+::|\[\w+\]|_\S+:.*)[ \t]*")
_ITEM = re.compile(r"\s*(?:[-*+•o] |\d{1,2}[.)] |\[\d+\] |:\w[^:]*: |@\w+|-{1,2}\w)")
_MARKUP = (
    (re.compile(r"^\s*(?:[-*+•] |\[\d+\] )"), ""),  # the mark of a list item
    (re.compile(r"(?::[\w+.-]+)+:`[~!]?([^`]*)`"), r"\1"),  # :role:`target`
    (re.compile(r"``([^`]*)``"), r"\1"),
    (re.compile(r"`([^`]*)`_?_?"), r"\1"),
    (re.compile(r"(?<![\w*])\*{1,2}([A-Za-z_][^*]*?)\*{1,2}(?![\w*])"), r"\1"),  # *emphasis*
    (re.compile(r" ?\[\d+\](?!\w)"), ""),  # a footnote's number
    (re.compile(r"::(?=\s|$)"), ":"),
)
_QUOTED_CODE = re.compile(r'(?<![\w"])"([^"]{1,60})"(?![\w"])')
_PLAIN_WORD = re.compile(r"[(\[\"'“]*[A-Za-z]+(?:[’'-][A-Za-z]+)*[)\]\"'”]*[.,:;!?]*[)\]\"'”]*")
_CODE = re.compile(r"@\w|(?:async )?def \w+\(|class \w+[:(]|import \w|from \S+ import |.* # ")
_MIN_PLAIN_SHARE = 0.6
_MIN_WORDS = 3


@dataclass(frozen=True)
class ClozeLine:
    """One sentence with a single [MASK], and the one lower-case word that was taken out."""

    text: str
    answer: str


def load_cloze() -> tuple[ClozeLine, ...]:
    """The hundred cloze lines that come with the package, in the file's order."""
    table = resources.files("bertsmith.recipes.demonstration").joinpath("cloze.tsv").read_text(encoding="utf-8")
    rows = csv.reader(table.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    return tuple(ClozeLine(text=text, answer=answer) for text, answer in rows)


def python_documentation() -> Iterator[Document]:
    """The documentation of the running CPython: a document for each language topic, then one for each module.

    A document holds one paragraph a line and no blank line. The order is that of the names, so that it does not
    depend on the file system; a paragraph or docstring that was given once is not given again. Modules without
    readable source are passed over: an installation of compiled files alone gives the topics alone.
    """
    seen: set[str] = set()
    for name, text in _topics():
        yield from _document(_paragraphs(text, quotes_are_code=True), seen, source=f"pydoc topic {name}")
    for name, path in _modules(Path(sysconfig.get_path("stdlib"))):
        docstrings = (_paragraphs(docstring, quotes_are_code=False) for docstring in _docstrings(path))
        yield from _document((paragraph for each in docstrings for paragraph in each), seen, source=f"module {name}")


def _document(paragraphs: Iterable[str], seen: set[str], *, source: str) -> Iterator[Document]:
    new: list[str] = []
    for paragraph in paragraphs:
        if paragraph not in seen:
            seen.add(paragraph)
            new.append(paragraph)
    if new:
        yield Document(text="\n".join(new), source=source)


def _topics() -> list[tuple[str, str]]:
    """The language reference by topic. Empty where a distribution leaves `pydoc_data` out."""
    try:
        from pydoc_data.topics import topics
    except ImportError:
        return []
    return sorted(topics.items())


def _modules(library: Path) -> list[tuple[str, Path]]:
    """Every module of the library that has a source file, as (dotted name, path), by name."""
    found: list[tuple[str, Path]] = []
    folders = [library]
    while folders:
        folder = folders.pop()
        try:
            entries = list(folder.iterdir())
        except OSError:
            continue
        for entry in entries:
            if entry.suffix == ".py":
                parts = entry.relative_to(library).with_suffix("").parts
                found.append((".".join(parts).removesuffix(".__init__"), entry))
            elif entry.name.isidentifier() and entry.name not in _SKIPPED_FOLDERS and _is_folder(entry):
                folders.append(entry)
    return sorted(found)


def _is_folder(path: Path) -> bool:
    """Whether a path is a folder itself: a link to one could lead round in a circle."""
    return path.is_dir() and not path.is_symlink()


def _docstrings(path: Path) -> Iterator[str]:
    """The docstrings of a source file in the order of the file, dedented. None where it cannot be read or parsed."""
    try:
        source = path.read_bytes()
        # Old source may hold an invalid escape, which is no concern of the reader of its docstrings.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    waiting: list[ast.stmt | ast.Module] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            docstring = ast.get_docstring(node, clean=False)
            if docstring:
                yield inspect.cleandoc(docstring)
        # A function's own body is left alone: what it defines inside is not documentation for anyone outside.
        if isinstance(node, (ast.Module, ast.ClassDef, ast.If, ast.Try)):
            waiting.extend(child for child in reversed(list(ast.iter_child_nodes(node))) if isinstance(child, ast.stmt))


def _paragraphs(text: str, *, quotes_are_code: bool) -> Iterator[str]:
    """The prose of a documentation text, a paragraph or list item at a time, each on one line without markup."""
    for lines in _items(text):
        paragraph = " ".join(" ".join(lines).split())
        for pattern, replacement in _MARKUP:
            paragraph = pattern.sub(replacement, paragraph)
        if quotes_are_code:
            paragraph = _QUOTED_CODE.sub(r"\1", paragraph)
        paragraph = paragraph.strip()
        if _is_prose(paragraph):
            yield paragraph


def _items(text: str) -> Iterator[list[str]]:
    """Lines that belong together: a blank line, a list mark, a smaller indent or a colon's end starts a new item."""
    item: list[str] = []
    indent = 0
    for raw in [*text.expandtabs().splitlines(), ""]:
        line = _DIRECTIVE.sub("", raw)
        if _TABLE_ROW.fullmatch(line):
            line = line.replace("|", " ")
        if not line.strip() or _RULER.fullmatch(line) or _BANNER.fullmatch(line.strip()) or _PROMPT.match(line):
            if item:
                yield item
            item = []
            continue
        line_indent = len(raw) - len(raw.lstrip())
        if item and (_ITEM.match(line) or line_indent < indent or item[-1].rstrip().endswith(":")):
            yield item
            item = []
        item.append(line)
        indent = line_indent


def _is_prose(paragraph: str) -> bool:
    """Whether a paragraph is mostly plain words: grammar productions, code and tables are not."""
    words = paragraph.split()
    if len(words) < _MIN_WORDS or "::=" in paragraph or _CODE.match(paragraph):
        return False
    return sum(_PLAIN_WORD.fullmatch(word) is not None for word in words) >= _MIN_PLAIN_SHARE * len(words)
