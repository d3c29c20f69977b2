import re
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from bertsmith.text import sentences
from bertsmith.text.documents import TextConfig, read_documents
from bertsmith.text.sentences import MAX_SENTENCE_CHARACTERS, has_visible, sentence_spans, split_sentences

WORDS = ["Mr", "U.S", "e.g", "3.14", "a", "The", "he", "كلمة", "م", "語", "नमस्ते", "😊", "word " * 500, "x" * 2_100]
MARKS = ".!?…؟۔。！।؛،,;:\"'”»)](（」 \n\u2028\u200b\u200d\ufe0f\u0301\x00"
PIECES = st.sampled_from(["  ", "\r\n", *MARKS, *WORDS])
SHORT_TEXTS = st.one_of(st.text(), st.lists(PIECES.filter(lambda piece: len(piece) < 10), max_size=40).map("".join))
TEXTS = st.one_of(st.text(), st.lists(PIECES, max_size=40).map("".join))


def _without_space(text: str) -> str:
    return "".join(text.split())


def _visible(text: str) -> str:
    return "".join(character for character in text if has_visible(character))


@settings(deadline=None)
@given(TEXTS)
def test_sentences_lose_and_reorder_nothing_visible(text: str) -> None:
    assert _visible(" ".join(split_sentences(text))) == _visible(text)


@settings(deadline=None)
@given(TEXTS)
def test_sentences_are_stripped_visible_and_within_the_limit(text: str) -> None:
    for sentence in split_sentences(text):
        assert sentence == sentence.strip()
        assert has_visible(sentence)
        assert len(sentence) <= MAX_SENTENCE_CHARACTERS
        assert not re.search(r"[\n\r]", sentence)


@settings(deadline=None)
@given(TEXTS)
def test_spans_ascend_and_hold_the_sentences(text: str) -> None:
    spans = sentence_spans(text)
    borders = [border for span in spans for border in span]
    assert borders == sorted(borders)
    assert [text[start:end] for start, end in spans] == split_sentences(text)
    between = [text[end:start] for (_, end), (start, _) in zip([(0, 0), *spans], [*spans, (len(text), 0)], strict=True)]
    assert not any(has_visible(gap) for gap in between)


def _ends_tried_everywhere(text: str) -> list[tuple[int, int]]:
    """The spans as they are found by trying the pattern of an end at every place of every line."""
    spans: list[tuple[int, int]] = []
    for line in re.finditer(r"[^\n\r]+", text):
        start, line_end = line.span()
        for found in sentences._CANDIDATE.finditer(text, start, line_end):
            if found.end() < line_end and sentences._ends_sentence(text, found, start, line_end, not text.islower()):
                sentences._add_span(spans, text, start, found.end())
                start = found.end()
        sentences._add_span(spans, text, start, line_end)
    return spans


@settings(deadline=None, max_examples=300)
@given(TEXTS)
def test_looking_only_at_marks_misses_no_end_of_a_sentence(text: str) -> None:
    assert sentence_spans(text) == _ends_tried_everywhere(text)


@settings(deadline=None)
@given(SHORT_TEXTS, st.integers(1, 50), st.sampled_from(["blank_line", "line", "file"]))
def test_documents_lose_and_reorder_nothing_visible_and_keep_the_limit(text: str, limit: int, layout: str) -> None:
    if not has_visible(text) or "\0" in text:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.txt")
        path.write_bytes(text.encode("utf-8"))
        config = TextConfig.parse({"layout": layout, "max_document_characters": limit}, where="the test")
        documents = list(read_documents([path], config))
    assert _visible("".join(document.text for document in documents)) == _visible(text.removeprefix("\ufeff"))
    assert all(0 < len(document.text) <= limit for document in documents)


@settings(deadline=None)
@given(TEXTS)
def test_whole_files_keep_every_character_but_the_form_of_line_ends(text: str) -> None:
    if not has_visible(text) or "\0" in text:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.txt")
        path.write_bytes(text.encode("utf-8"))
        (document,) = read_documents([path], TextConfig(layout="file"))
    assert document.text == re.sub(r"\r\n?", "\n", text.removeprefix("\ufeff")).strip()
    assert _without_space(document.text) == _without_space(text.removeprefix("\ufeff"))
