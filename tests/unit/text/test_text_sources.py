import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from bertsmith.foundation.errors import InputError
from bertsmith.text.documents import find_files


def _fill(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(gzip.compress(b"text") if name.endswith(".gz") else b"text")


def test_a_folder_gives_its_readable_files_by_posix_name(tmp_path: Path) -> None:
    _fill(tmp_path, "b.txt", "a/z.jsonl", "a/y.CSV", "a.tsv", "c.md", "d.txt.gz", "e.parquet")
    _fill(tmp_path, ".hidden.txt", ".git/x.txt", "x.py", "y.txt.bz2", "z.parquet.gz", "plain", "w.gz")
    names = [path.relative_to(tmp_path).as_posix() for path in find_files([tmp_path])]
    assert names == ["a.tsv", "a/y.CSV", "a/z.jsonl", "b.txt", "c.md", "d.txt.gz", "e.parquet"]


def test_sources_keep_their_order_and_a_file_named_twice_comes_once(tmp_path: Path) -> None:
    _fill(tmp_path, "folder/a.txt", "folder/b.txt", "c.txt")
    found = find_files([tmp_path / "folder/b.txt", str(tmp_path / "c.txt"), tmp_path])
    assert [path.name for path in found] == ["b.txt", "c.txt", "a.txt"]


def test_one_path_as_a_string_is_one_source(tmp_path: Path) -> None:
    _fill(tmp_path, "a.txt")
    assert find_files(str(tmp_path)) == [tmp_path / "a.txt"]


def test_a_named_file_of_unknown_suffix_is_taken(tmp_path: Path) -> None:
    _fill(tmp_path, "README.rst", "book")
    assert len(find_files([tmp_path / "README.rst", tmp_path / "book"])) == 2


@pytest.mark.parametrize("name", ["a.bin", "a.txt", "a.csv", "book"])
def test_a_binary_file_is_refused_before_anything_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"PK\n\x04" + b"\0" * 10)
    with pytest.raises(InputError, match=r"line 2, a binary file \(NUL byte at offset 4\)"):
        find_files([tmp_path / name])


def test_a_binary_file_inside_a_compressed_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"\0\1"))
    with pytest.raises(InputError, match="binary file"):
        find_files([tmp_path])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_utf_16_is_named_as_what_it_is(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.txt").write_bytes(
        "\ufeffكلمة".removeprefix("" if encoding == "utf-16-be" else "\ufeff").encode(encoding)
    )
    with pytest.raises(InputError, match=r"iconv -f UTF-16 -t UTF-8 a\.txt"):
        find_files([tmp_path / "a.txt"])


def test_a_missing_file_is_named_with_its_nearest_neighbour(tmp_path: Path) -> None:
    _fill(tmp_path, "corpus.txt")
    with pytest.raises(InputError, match=r"must exist.*corpsu\.txt.*Did you mean .*corpus\.txt\?"):
        find_files([tmp_path / "corpsu.txt"])
    with pytest.raises(InputError, match="Check the path"):
        find_files([tmp_path / "nowhere" / "a.txt"])


def test_an_empty_folder_and_one_with_nothing_readable_tell_what_is_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.txt, .*\.jsonl, .*\.parquet.*holds no file"):
        find_files([tmp_path])
    _fill(tmp_path, "a.py", "b.pdf")
    with pytest.raises(InputError, match="with 2 files of other kinds"):
        find_files([tmp_path])


def test_no_source_and_a_json_array_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least one file"):
        find_files([])
    _fill(tmp_path, "a.json")
    with pytest.raises(InputError, match="one object a line"):
        find_files([tmp_path / "a.json"])


def test_the_import_of_text_loads_neither_pyarrow_nor_numpy_nor_torch() -> None:
    code = (
        "import sys, bertsmith.text.documents as d; "
        "print(sorted({'pyarrow', 'torch', 'numpy', 'tokenizers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
