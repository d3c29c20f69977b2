"""Tokenizers of other families: which may look words up, and that they get the pieces that whole texts have."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from made_tokenizer_folders import FOLDERS
from tokenizers import Tokenizer as LibraryTokenizer

from bertsmith.tokenization import Tokenizer, known_words
from bertsmith.tokenization.known_words import KnownWords
from bertsmith.tokenization.views import View
from made_hard_texts import HARD_TEXTS

Change = Callable[[dict[str, Any]], None]
_EXAMPLES = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def _setting(name: str, value: Any) -> Change:
    return lambda state: state.update({name: value})


def _normalizer(*steps: dict[str, Any]) -> Change:
    """More steps behind those that there are."""

    def change(state: dict[str, Any]) -> None:
        before = [state["normalizer"]] if state["normalizer"] else []
        state["normalizer"] = {"type": "Sequence", "normalizers": [*before, *steps]}

    return change


def _added(content: str, **flags: bool) -> Change:
    def change(state: dict[str, Any]) -> None:
        token = {name: flags.get(name, False) for name in ("single_word", "lstrip", "rstrip", "normalized", "special")}
        number = 1 + max(len(state["model"]["vocab"]), *(token["id"] for token in state["added_tokens"]))
        state["added_tokens"].append({"id": number, "content": content, **token})

    return change


def _replacing(pattern: str, content: str, kind: str = "Regex") -> dict[str, Any]:
    return {"type": "Replace", "pattern": {kind: pattern}, "content": content}


def _metaspace(scheme: str, *, split: bool = True) -> dict[str, Any]:
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split}


def _twice(state: dict[str, Any]) -> None:
    """The normaliser's steps, and the same again."""
    state["normalizer"] = {"type": "Sequence", "normalizers": [state["normalizer"]] * 2}


_WHITESPACE, _ONE_SPACE = {"type": "WhitespaceSplit"}, _replacing(" {2,}", " ")
LOOKED_UP: dict[str, tuple[str, list[Change]]] = {
    **{name: (name, []) for name in FOLDERS},
    "roberta, composed": ("roberta", [_normalizer({"type": "NFC"})]),
    "roberta with runs of spaces": ("roberta", [_added("  "), _added("   ", normalized=True)]),
    "roberta with a word": ("roberta", [_added("walking", normalized=True), _added("|||IP|||")]),
    "roberta with a word in spaces": ("roberta-spaced", [_added("reading", normalized=True, lstrip=True)]),
    "xlm-roberta as published": (
        "xlm-roberta",
        [_normalizer(_ONE_SPACE), _setting("pre_tokenizer", _metaspace("always"))],
    ),
    "xlm-roberta, first": ("xlm-roberta", [_normalizer(_ONE_SPACE), _setting("pre_tokenizer", _metaspace("first"))]),
    "xlm-roberta with a word": ("xlm-roberta", [_setting("pre_tokenizer", _metaspace("always")), _added("walking")]),
    "albert as published": ("albert", [_normalizer(_ONE_SPACE), _setting("pre_tokenizer", _metaspace("always"))]),
    "bert, tatweel removed": ("bert-cased", [_normalizer(_replacing("[\u0610-\u061a\u064b-\u065f\u0670\u0640]", ""))]),
    "bert with a word": ("bert-cased", [_added("walking", normalized=True, rstrip=True, lstrip=True)]),
}
ENCODED: dict[str, tuple[str, list[Change]]] = {
    "words that are looked for across spaces": ("bert-cased", [_added("the quick")]),
    "a word whose normal form has a space": (
        "bert-cased",
        [_normalizer({"type": "NFKC"}), _added("ﷺ", normalized=True)],
    ),
    "a word that takes the space behind it": ("roberta", [_added("walking", rstrip=True)]),
    "a pattern that may hold a space": ("bert-cased", [_normalizer(_replacing("[^a-z]", ""))]),
    "a pattern with a space": ("bert-cased", [_normalizer(_replacing("[ a]", ""))]),
    "a pattern that looks around": ("bert-cased", [_normalizer(_replacing(r"(?<=a )b", "c"))]),
    "a text with a space": ("bert-cased", [_normalizer(_replacing("k b", "c", "String"))]),
    "a space in front of the text": ("bert-cased", [_normalizer({"type": "Prepend", "prepend": "x"})]),
    "forms with a space": ("roberta", [_normalizer({"type": "NFKC"})]),
    "nothing that parts words": ("bert-cased", [_setting("pre_tokenizer", None)]),
    "spaces that are not parted at": ("xlm-roberta", [_setting("pre_tokenizer", _metaspace("always", split=False))]),
    "only the first word marked": (
        "xlm-roberta",
        [_setting("pre_tokenizer", {"type": "Sequence", "pretokenizers": [_WHITESPACE, _metaspace("first")]})],
    ),
    "two tables": ("xlm-roberta", [_twice]),
    "chance": ("roberta", [lambda state: state["model"].update(dropout=0.1)]),
}


def _view(made: tuple[str, list[Change]], folder: Path) -> View:
    name, changes = made
    library = Tokenizer.from_folder(FOLDERS[name](folder))._parts.library
    state = json.loads(library.to_str())
    for change in changes:
        change(state)
    return View.of_text(LibraryTokenizer.from_str(json.dumps(state)))


@pytest.fixture(scope="module", autouse=True)
def _little_room() -> Iterator[None]:
    """So that words are forgotten on the way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known_words, "_MAX_WORDS", 200)
        yield


@pytest.fixture(scope="module", params=LOOKED_UP)
def view(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> View:
    return _view(LOOKED_UP[request.param], tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture(scope="module")
def known(view: View) -> KnownWords:
    assert view.lone_words is not None
    candidates = ((word, ids[0]) for word in "zjqZ東" if len(ids := view.piece_ids([f" {word}"])[0]) == 1)
    return KnownWords(view.piece_ids, view.lone_words, candidates)


@_EXAMPLES
@given(texts=HARD_TEXTS)
def test_words_that_are_looked_up_have_the_pieces_that_they_have_in_the_text(
    view: View, known: KnownWords, texts: list[str]
) -> None:
    piece_ids, lengths = known.piece_ids(texts)
    assert [part.tolist() for part in np.split(piece_ids, np.cumsum(lengths))[:-1]] == view.piece_ids(texts)


@pytest.mark.parametrize("made", ENCODED.values(), ids=ENCODED)
def test_what_may_reach_across_a_space_is_not_looked_up(made: tuple[str, list[Change]], tmp_path: Path) -> None:
    assert _view(made, tmp_path).lone_words is None
