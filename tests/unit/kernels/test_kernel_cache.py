"""What the cache keeps of compiled kernels, and when it compiles again."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from stand_in_compilers import forget_kernels, num_calls, stand_in

from bertsmith.kernels import library
from bertsmith.kernels.library import kernels


@pytest.fixture
def compiler(library_file: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Gives a copy of this machine's library, whatever it should compile."""
    made = stand_in(tmp_path / "bin" / "g++", f'cp "{library_file}" "$target"')
    monkeypatch.setenv("CXX", str(made))
    return made


def load() -> Path:
    """The file of the library that a new process would use."""
    forget_kernels()
    loaded = kernels().library
    assert loaded is not None, kernels().why_not
    return Path(loaded._name)


def test_a_library_that_is_kept_is_used_without_the_compiler(compiler: Path, cache: Path) -> None:
    first = load()
    assert first.parent == cache
    assert list(cache.iterdir()) == [first]
    assert num_calls(compiler) == 1
    assert load() == first
    assert num_calls(compiler) == 1


def test_within_a_process_it_is_looked_for_once(compiler: Path) -> None:
    assert load().is_file()
    first = kernels()
    compiler.unlink()
    assert kernels() is first


@pytest.mark.parametrize("name", ["numbers.h", "vocabulary.cpp"])
def test_another_source_gives_another_file(
    name: str, compiler: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load()
    changed = tmp_path / "source"
    shutil.copytree(library._SOURCES, changed)
    monkeypatch.setattr(library, "_SOURCES", changed)
    assert load() == first
    with (changed / name).open("a", encoding="utf-8") as source:
        source.write("// Changed.\n")
    second = load()
    assert {first, second} == set(cache.iterdir())
    assert first != second
    assert num_calls(compiler) == 2


def test_a_damaged_file_is_made_anew(compiler: Path, cache: Path) -> None:
    kept = library._compiled(str(compiler))
    kept.write_bytes(b"\x7fELF and no more, for the disk was full")
    assert load() == kept
    assert set(cache.iterdir()) == {kept}
    assert num_calls(compiler) == 2


def test_another_flag_gives_another_file(compiler: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load()
    monkeypatch.setattr(library, "_FLAGS", (*library._FLAGS, "-DCHANGED"))
    second = load()
    assert {first, second} == set(cache.iterdir())
    assert first != second
    assert "-DCHANGED" in (compiler.parent / "calls").read_text(encoding="utf-8").splitlines()[-1]


def test_another_processor_gives_another_file(compiler: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load()
    monkeypatch.setattr(library, "_processor", lambda: b"another one")
    second = load()
    assert {first, second} == set(cache.iterdir())
    assert first != second


def test_another_compiler_gives_another_file(
    compiler: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load()
    other = tmp_path / "other" / "g++"
    other.parent.mkdir()
    shutil.copy(compiler, other)
    monkeypatch.setenv("CXX", str(other))
    second = load()
    assert {first, second} == set(cache.iterdir())
    assert first != second


def test_two_processes_that_compile_at_the_same_time_leave_one_file_that_both_use(
    library_file: Path, cache: Path, tmp_path: Path
) -> None:
    # Each compilation waits, a minute at most, until the other one runs as well.
    folder = tmp_path / "bin"
    work = (
        f'touch "{folder}/running.$$"\n'
        f'for _ in $(seq 600); do set -- "{folder}"/running.*; [ $# -ge 2 ] && break; sleep 0.1; done\n'
        f'cp "{library_file}" "$target"'
    )
    compiler = stand_in(folder / "g++", work)
    code = (
        "import torch\n"
        "from bertsmith.kernels.activations import activate\n"
        "from bertsmith.kernels.library import kernels\n"
        "activate(torch.ones(2, 3), 'gelu')\n"
        "print(kernels().library._name if kernels().library else kernels().why_not)\n"
    )
    environment = os.environ | {"CXX": str(compiler)}
    processes = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [process.communicate()[0].strip() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert num_calls(compiler) == 2
    (kept,) = cache.iterdir()
    assert said == [str(kept)] * 2
