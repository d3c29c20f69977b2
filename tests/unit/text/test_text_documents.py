import gzip
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from bertsmith.foundation.errors import InputError
from bertsmith.text.documents import TextConfig, find_files, read_documents


def _texts(path: Path, **options: object) -> list[str]:
    return [document.text for document in read_documents([path], TextConfig.parse(options, where="the test"))]


def _file(folder: Path, content: bytes, name: str = "a.txt") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("layout", "texts"),
    [
        ("blank_line", ["one\ntwo", "three", "four"]),
        ("line", ["one", "two", "three", "four"]),
        ("file", ["one\ntwo\n\nthree\n \t\n\nfour"]),
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_a_layout_tells_what_parts_documents(tmp_path: Path, layout: str, texts: list[str], line_end: str) -> None:
    content = "\n\none\ntwo\n\nthree\n \t\n\nfour\n".replace("\n", line_end)
    assert _texts(_file(tmp_path, content.encode()), layout=layout) == texts


def test_only_line_feed_and_carriage_return_end_a_line(tmp_path: Path) -> None:
    text = "a\x0bb\x0cc\x85d\u2028e\u2029f\x1cg"
    assert _texts(_file(tmp_path, text.encode()), layout="line") == [text]


def test_a_document_tells_file_and_line_where_it_begins(tmp_path: Path) -> None:
    path = _file(tmp_path, b"one\ntwo\n\n\nthree. four\nfive\n\nsix")
    sources = [document.source for document in read_documents([path], TextConfig())]
    assert sources == [f"{path}, line 1", f"{path}, line 5", f"{path}, line 8"]
    cut = [document.source for document in read_documents([path], TextConfig(max_document_characters=8))]
    assert cut == [f"{path}, line {number}" for number in (1, 5, 5, 6, 8)]


def test_a_byte_order_mark_is_removed_at_the_start_only(tmp_path: Path) -> None:
    assert _texts(_file(tmp_path, b"\xef\xbb\xbfone\n\n\xef\xbb\xbftwo")) == ["one", "\ufefftwo"]
    assert _texts(_file(tmp_path, b'\xef\xbb\xbf{"text": "one"}', "a.jsonl")) == ["one"]
    assert _texts(_file(tmp_path, b"\xef\xbb\xbftext,label\none,1", "a.csv")) == ["one"]


@pytest.mark.parametrize("before", [0, 1, 5, 1_023, 1_024, 262_143, 262_144, 262_145, 263_167, 263_168, 263_169])
def test_a_bad_byte_is_located_by_file_line_and_offset(tmp_path: Path, before: int) -> None:
    path = _file(tmp_path, b"\r\n" + b"a" * before + b"\xe9\n" + b"b" * 9_000)
    with pytest.raises(InputError, match=rf"a\.txt, line 2, with the byte 0xE9 at offset {2 + before}\. Re-encode"):
        _texts(path)


@pytest.mark.parametrize("before", range(1_018, 1_026))
@pytest.mark.parametrize("character", ["é", "ع", "語", "😊", "\r\n"])
def test_what_straddles_a_border_of_chunks_stays_whole(tmp_path: Path, before: int, character: str) -> None:
    text = "a" * before + character * 3 + "b"
    assert _texts(_file(tmp_path, text.encode()), layout="file") == [text.replace("\r\n", "\n")]


@pytest.mark.parametrize("cut", [b"\xe2\x82", b"\xf0\x9f\x98", b"\xc3"])
def test_a_character_cut_by_the_files_end_is_located(tmp_path: Path, cut: bytes) -> None:
    with pytest.raises(InputError, match=f"line 3, with the byte 0x{cut[0]:02X} at offset 8"):
        _texts(_file(tmp_path, b"one\n\r\nab" + cut))


def test_text_is_utf_8_whatever_the_locale(tmp_path: Path) -> None:
    path = _file(tmp_path, "\ufeffكلمة é 語".encode())
    code = (
        "import sys\nfrom pathlib import Path\nfrom bertsmith.text.documents import TextConfig, read_documents\n"
        "(document,) = read_documents([Path(sys.argv[1])], TextConfig())\nprint(ascii(document.text))"
    )
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code, path], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ascii("كلمة é 語")


def _zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(("suffix", "compress"), [("gz", gzip.compress), ("zst", _zstd)])
def test_compressed_files_read_as_their_content(
    tmp_path: Path, suffix: str, compress: Callable[[bytes], bytes]
) -> None:
    assert _texts(_file(tmp_path, compress("é\n\nb".encode()), f"a.txt.{suffix}")) == ["é", "b"]
    assert _texts(_file(tmp_path, compress(b'{"text": "c"}'), f"a.jsonl.{suffix}")) == ["c"]
    assert _texts(_file(tmp_path, compress(b"one") + compress(b"\n\ntwo"), f"b.txt.{suffix}")) == ["one", "two"]


@pytest.mark.parametrize(("suffix", "compress"), [("gz", gzip.compress), ("zst", _zstd)])
def test_a_cut_off_compressed_file_is_told_with_its_line(
    tmp_path: Path, suffix: str, compress: Callable[[bytes], bytes]
) -> None:
    lines = b"".join(b"%060d\n" % (number**9 % 10**45) for number in range(20_000))
    data = compress(lines)
    path = _file(tmp_path, data[: len(data) // 2], f"a.txt.{suffix}")
    with pytest.raises(InputError, match=rf"a\.txt\.{suffix}, damaged or cut off after line \d{{3,}} ") as error:
        _texts(path, layout="line")
    assert "Fetch or write the file again." in str(error.value)
    with pytest.raises(InputError, match="damaged or cut off after line 1 "):
        find_files([_file(tmp_path, b"no archive", f"b.txt.{suffix}")])


def test_files_without_a_document_are_named(tmp_path: Path) -> None:
    paths = [
        _file(tmp_path, content, f"{name}.txt")
        for name, content in zip("abcde", [b"", b" \n", b"\n\n", b"\xe2\x80\x8b", b""], strict=True)
    ]
    with pytest.raises(InputError, match=r"at least one document.*a\.txt, .*b\.txt, .*c\.txt and 2 more"):
        list(read_documents(paths, TextConfig()))
    paths.append(_file(tmp_path, b"text", "f.txt"))
    assert len(list(read_documents(paths, TextConfig()))) == 1


def test_a_long_document_goes_on_at_its_last_sentence_end(tmp_path: Path) -> None:
    path = _file(tmp_path, b"One two. Three four. Five six seven eight.\n\nNine.")
    expected = ["One two. Three four.", "Five six seven eight.", "Nine."]
    assert _texts(path, max_document_characters=30) == expected
    row = b'{"text": "One two. Three four. Five six seven eight."}\n{"text": "Nine."}'
    assert _texts(_file(tmp_path, row, "a.jsonl"), max_document_characters=30) == expected


@pytest.mark.parametrize("content", [b"word " * 4_000_000, b"x" * 20_000_000], ids=["no newline", "no space"])
def test_a_file_without_line_breaks_is_read_in_bounded_memory(tmp_path: Path, content: bytes) -> None:
    path = _file(tmp_path, content)
    size = len(content)
    del content
    tracemalloc.start()
    try:
        total = sum(len(document.text) for document in read_documents([path], TextConfig()))
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert size - 100 <= total <= size
    assert peak_bytes < 10_000_000


def test_a_mistyped_layout_lists_the_valid_ones() -> None:
    with pytest.raises(InputError, match=r"layout: .*'blank_line', 'line' or 'file'.*layout='lines'"):
        TextConfig.parse({"layout": "lines"}, where="run.toml")
    with pytest.raises(InputError, match=r"Did you mean text_column\?"):
        TextConfig.parse({"textcolumn": "a"}, where="run.toml")
    with pytest.raises(InputError, match="max_document_characters"):
        TextConfig.parse({"max_document_characters": 0}, where="run.toml")
