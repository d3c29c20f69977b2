"""The library: compiled where it can be, done without where it cannot."""

import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from dense_attention import REACHES, dense_attention, made_packed
from exact_results import assert_rounded, relative_error, within_one
from kernel_models import KINDS, loss_and_gradients, packed_tokens, varied_model
from stand_in_compilers import forget_kernels, stand_in
from torch import Tensor

from bertsmith.kernels import library
from bertsmith.kernels.activations import activate
from bertsmith.kernels.library import SWITCH, kernels, usable

LENGTHS = [20, 3, 40, 1, 17]


def results(kind: str, precision: str = "fp32") -> list[Tensor]:
    return loss_and_gradients(varied_model(kind), packed_tokens(LENGTHS), precision)


def assert_does_without(why: str) -> None:
    """Hold that there is no library, that the reason is one line, and that a model runs."""
    assert kernels().library is None
    assert re.search(why, kernels().why_not), kernels().why_not
    assert len(kernels().why_not.splitlines()) == 1
    assert not usable(torch.zeros(1))
    values = torch.linspace(-3, 3, 30)[None]
    assert torch.equal(activate(values, "gelu"), torch.nn.functional.gelu(values))
    assert all(result.isfinite().all() for result in results("bert"))


def needs_gnu_compiler() -> None:
    if sys.platform != "linux" or library._compiler() is None:
        pytest.skip("there is no GNU C++ compiler on this machine")


def test_wherever_there_is_a_gnu_compiler_there_are_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    needs_gnu_compiler()
    forget_kernels()
    assert kernels().why_not == ""
    assert kernels().library is not None


@pytest.mark.parametrize(
    "flags", [(), ("-mno-amx-tile", "-mno-amx-bf16"), ("-march=x86-64",)], ids=["this one", "without AMX", "any x86-64"]
)
def test_the_sources_become_one_file_that_is_right_on_lesser_processors_too(
    flags: tuple[str, ...], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_gnu_compiler()
    if flags and platform.machine() != "x86_64":
        pytest.skip(f"a processor of kind {platform.machine()} cannot run what is made for x86-64")
    quickly_made = [flag.replace("-O3", "-O0") for flag in library._FLAGS]
    monkeypatch.setattr(library, "_FLAGS", [*quickly_made, *flags])
    assert kernels().why_not == ""
    (kept,) = cache.iterdir()
    assert kept.suffix == ".so"
    values = within_one(3, 50)
    assert_rounded(activate(values, "gelu"), torch.nn.functional.gelu(values.double()))
    packed = made_packed(2, 32, rotated=True)
    rows = packed.rows.bfloat16()
    for reach in REACHES:
        assert relative_error(packed.attend(rows, reach), dense_attention(rows.double(), packed, reach)) < 2e-2
    for precision in ("fp32", "bf16"):
        assert all(result.isfinite().all() for result in results("bert", precision))


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("kind", KINDS)
def test_off_leaves_all_to_torch_with_the_same_results(
    kind: str, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = results(kind, precision)
    monkeypatch.setenv(SWITCH, "off")
    forget_kernels()
    try:
        assert kernels().library is None
        assert kernels().why_not == "BERTSMITH_KERNELS is off"
        expected = results(kind, precision)
    finally:
        forget_kernels()
    assert len(given) == len(expected)
    for one, other in zip(given, expected, strict=True):
        assert one.dtype == other.dtype
        if other.norm() > 1e-5:
            assert relative_error(one, other.double()) < (1e-5 if precision == "fp32" else 5e-2)


def test_only_numbers_on_the_cpu_in_two_types_are_taken(compiled: None) -> None:
    assert usable(torch.zeros(1))
    assert usable(torch.zeros(1, dtype=torch.bfloat16))
    for dtype in (torch.float64, torch.float16, torch.int64, torch.bool):
        assert not usable(torch.zeros(1, dtype=dtype))
    assert not usable(torch.zeros(1, device="meta"))


@pytest.mark.usefixtures("cache")
def test_without_a_compiler_torch_does_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert_does_without(r"there is no GNU C\+\+ compiler \(Debian and Ubuntu: apt install g\+\+\)")


@pytest.mark.usefixtures("cache")
def test_a_compiler_that_is_named_and_not_there_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/nowhere/g++")
    assert_does_without("there is no GNU")


def test_a_compiler_that_is_not_gnu_is_left_alone(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("g++", "c++"):
        stand_in(tmp_path / "bin" / name, "exit 0", about="clang version 14.0.6")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert_does_without("there is no GNU")
    assert not (tmp_path / "bin" / "calls").exists()
    assert not cache.exists()


def test_a_compiler_that_fails_is_quoted_and_leaves_nothing_behind(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = stand_in(tmp_path / "bin" / "g++", 'echo "in file" >&2; echo "fatal: no space left" >&2; exit 1')
    monkeypatch.setenv("PATH", str(compiler.parent))
    assert_does_without(rf"could not be compiled with {re.escape(str(compiler))} \(fatal: no space left\)")
    assert list(cache.iterdir()) == []


def test_a_compiler_that_fails_in_silence_is_named(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = stand_in(tmp_path / "g++", "exit 3")
    monkeypatch.setenv("CXX", str(compiler))
    assert_does_without(rf"could not be compiled with {re.escape(str(compiler))} \(.*exit status 3")
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("said", ["", "echo half a warning >&2; "], ids=["silent", "not silent"])
def test_a_compiler_that_does_not_end_is_ended(
    said: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "_COMPILE_SECONDS", 0.5)
    monkeypatch.setenv("CXX", str(stand_in(tmp_path / "g++", f"{said}exec sleep 60")))
    assert_does_without("could not be compiled with .*(timed out|half a warning)")
    assert "b'" not in kernels().why_not
    assert list(cache.iterdir()) == []


@pytest.mark.usefixtures("cache")
def test_a_compiler_that_makes_no_library_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", str(stand_in(tmp_path / "g++", 'echo "no library" > "$target"')))
    assert_does_without("could not be compiled with ")


@pytest.mark.usefixtures("cache")
def test_a_compiler_that_cannot_be_started_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "g++"
    compiler.write_bytes(b"\0no program of this machine")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    assert_does_without("compile")


@pytest.mark.usefixtures("cache")
def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("and no folder", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    monkeypatch.setenv("CXX", str(stand_in(tmp_path / "g++", "exit 0")))
    assert_does_without(re.escape(str(blocked)))


@pytest.mark.usefixtures("cache")
def test_a_user_without_a_home_is_served_by_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.setenv("CXX", str(stand_in(tmp_path / "g++", "exit 0")))
    assert_does_without("home")


@pytest.mark.usefixtures("cache")
def test_another_system_than_linux_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert_does_without("they are made for Linux")


def test_arguments_are_declared_as_the_sources_have_them() -> None:
    kinds = {"int": library._FLAG, "int64_t": library._SIZE, "float": library._REAL, "uint64_t": library._SEED}
    declared: dict[str, tuple[type, ...]] = {}
    for path in library._SOURCES.glob("*.cpp"):
        for name, arguments in re.findall(r'extern "C" void (\w+)\(([^)]*)\)', path.read_text(encoding="utf-8")):
            words = [argument.replace("const", "").strip() for argument in arguments.split(",")]
            declared[name] = tuple(library._POINTER if "*" in word else kinds[word.split()[0]] for word in words)
    assert declared == library._SIGNATURES


def test_kernels_run_in_the_threads_of_torch(library_file: Path) -> None:
    code = (
        "import torch\n"
        "from bertsmith.kernels.activations import activate\n"
        "activate(torch.ones(3, 40_000), 'gelu')\n"
        "print(open('/proc/self/maps').read())\n"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    loaded = {line[line.index("/") :] for line in said.splitlines() if "/" in line}
    assert str(library_file) in loaded
    # A second OpenMP would have threads of its own, and settings that torch does not know.
    assert len([path for path in loaded if "gomp" in Path(path).name]) == 1
