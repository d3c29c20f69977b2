"""The documentation inside CPython as a corpus: what is kept, what is dropped, and what a poor installation gives."""

import sys
import sysconfig
import time
from pathlib import Path

import pytest

from bertsmith.recipes.demonstration.corpus import python_documentation
from bertsmith.text.documents import Document


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return list(python_documentation())


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that stands in for the standard library."""
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    return tmp_path


def _modules() -> dict[str, str]:
    documents = python_documentation()
    return {each.source: each.text for each in documents if each.source.startswith("module ")}


def test_the_corpus_is_large_enough_to_learn_from(documents: list[Document]) -> None:
    text = "\n".join(document.text for document in documents)
    assert len(text) > 1_200_000
    assert len(text.split()) > 200_000


def test_topics_come_first_and_both_kinds_are_in_order(documents: list[Document]) -> None:
    sources = [document.source for document in documents]
    topics = [source for source in sources if source.startswith("pydoc topic ")]
    modules = [source for source in sources if source.startswith("module ")]
    assert len(topics) > 50
    assert len(modules) > 300
    assert sources == sorted(topics) + sorted(modules)


def test_two_readings_give_the_same_documents(documents: list[Document]) -> None:
    assert list(python_documentation()) == documents


def test_reading_takes_seconds() -> None:
    started_at = time.perf_counter()
    num_documents = sum(1 for _ in python_documentation())
    assert num_documents > 0
    assert time.perf_counter() - started_at < 20  # about 2 s on one idle core; the rest is room for a busy machine


def test_no_paragraph_is_given_twice_and_none_is_blank(documents: list[Document]) -> None:
    paragraphs = [paragraph for document in documents for paragraph in document.text.split("\n")]
    assert len(set(paragraphs)) == len(paragraphs)
    assert [paragraph for paragraph in paragraphs if not paragraph.strip()] == []


def test_prose_is_left_without_markup(documents: list[Document]) -> None:
    text = "\n".join(document.text for document in documents)
    # "*****" is a heading's underline, "::=" a grammar production.
    assert [mark for mark in ("\n>>>", "*****", "=====", "::=", ":func:`", ":class:`") if mark in text] == []
    assert "The if statement is used for conditional execution:" in text


def test_tests_and_foreign_packages_stay_out(documents: list[Document]) -> None:
    parts = {part for document in documents for part in document.source.split(" ")[-1].split(".")}
    assert parts & {"test", "tests", "idlelib", "lib2to3", "site-packages", "__pycache__"} == set()


def test_reading_imports_no_module_of_the_library(library: Path) -> None:
    (library / "explosive.py").write_text('"""A module that must not be run by a reader."""\nraise SystemExit\n')
    assert _modules() == {"module explosive": "A module that must not be run by a reader."}
    assert "explosive" not in sys.modules


def test_docstrings_of_modules_classes_methods_and_functions_are_read_in_the_order_of_the_file(library: Path) -> None:
    (library / "zoo.py").write_text(
        '"""Animals and where\nthey live."""\n'
        "def feed():\n    '''Feed every animal once.'''\n    def inner():\n        '''Hidden inside a function.'''\n"
        "class Animal:\n    '''A thing that eats.'''\n    async def eat(self):\n        '''Eat what is there.'''\n"
        "if True:\n    def sleep():\n        '''Sleep until the morning.'''\n"
    )
    assert _modules()["module zoo"].split("\n") == [
        "Animals and where they live.",
        "Feed every animal once.",
        "A thing that eats.",
        "Eat what is there.",
        "Sleep until the morning.",
    ]


def test_code_is_dropped_and_lists_roles_and_directives_become_prose(library: Path) -> None:
    (library / "menu.py").write_text(
        '"""Menu of the day\n===============\n\nUse :class:`~menu.Dish` or ``None`` for *every* dish::\n\n'
        "    dish = Dish(price=3)\n\n>>> Dish()\n\n.. note:: The price is\n   in pounds.\n\n"
        '- the first of the dishes\n- the second of the\n  dishes\n"""\n'
    )
    assert _modules()["module menu"].split("\n") == [
        "Menu of the day",
        "Use menu.Dish or None for every dish:",
        "The price is in pounds.",
        "the first of the dishes",
        "the second of the dishes",
    ]


def test_identical_docstrings_are_given_once(library: Path) -> None:
    (library / "a.py").write_text('"""Words that are said twice."""\n')
    (library / "b.py").write_text('"""Words that are said twice."""\n')
    assert list(_modules()) == ["module a"]


def test_unreadable_sources_are_passed_over(library: Path) -> None:
    (library / "broken.py").write_text("def (:\n")
    (library / "binary.py").write_bytes(b'"""\xff\xfe not a text"""\n')
    (library / "zeros.py").write_bytes(b"\0\0\0")
    (library / "dangling.py").symlink_to(library / "nowhere.py")
    (library / "folder.py").mkdir()
    (library / "circle").symlink_to(library)
    (library / "good.py").write_text('"""A module that can be read."""\n')
    assert list(_modules()) == ["module good"]


def test_a_library_of_compiled_files_alone_gives_the_topics_alone(library: Path) -> None:
    (library / "os.pyc").write_bytes(b"compiled")
    sources = [document.source for document in python_documentation()]
    assert len(sources) > 50
    assert all(source.startswith("pydoc topic ") for source in sources)


def test_a_missing_library_gives_the_topics_alone(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(library / "nowhere"))
    assert all(document.source.startswith("pydoc topic ") for document in python_documentation())


def test_an_installation_without_topics_gives_the_modules_alone(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    (library / "good.py").write_text('"""A module that can be read."""\n')
    assert [document.source for document in python_documentation()] == ["module good"]
