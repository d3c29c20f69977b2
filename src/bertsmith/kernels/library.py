"""The compiled kernels: found in the cache, or compiled from the sources beside this file."""

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

SWITCH = "BERTSMITH_KERNELS"
"""Environment variable: ``off`` leaves all to torch."""
TILE = 32
"""Of what the kernels that multiply matrices take, widths are multiples of this."""
_SOURCES = Path(__file__).parent / "source"
_FLAGS = (
    # Vectors as wide as the processor has them, and sums that are made of fused products.
    "-std=c++17", "-O3", "-march=native", "-mprefer-vector-width=512", "-ffp-contract=fast", "-fopenmp",
    # Errors of numbers are looked for in the results. Without threaded jumps, a clamped exponential stays one formula;
    # with them, its ends become constants that are no normal numbers, and everything that meets them is slow.
    "-fno-math-errno", "-fno-trapping-math", "-fno-thread-jumps", "-shared", "-fPIC",
)  # fmt: skip
_COMPILE_SECONDS, _ANSWER_SECONDS = 120, 10

_POINTER, _SIZE, _REAL, _FLAG, _SEED = (
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_float,
    ctypes.c_int,
    ctypes.c_uint64,
)
_SIGNATURES = {
    "activate": (_FLAG,) * 3 + (_POINTER,) * 3 + (_SIZE,) * 2,
    "residual_norm_forward": (_FLAG,) + (_POINTER,) * 4 + (_REAL, _REAL, _SEED) + (_POINTER,) * 5 + (_SIZE,) * 2,
    "residual_norm_backward": (_FLAG,) + (_POINTER,) * 7 + (_REAL, _SEED) + (_POINTER,) * 4 + (_SIZE,) * 2,
    "rearrange_heads": (_FLAG,) * 2 + (_POINTER,) * 2 + (_SIZE,) * 2 + (_POINTER,) * 2 + (_SIZE,) * 3 + (_POINTER,) * 2,
    "attention_softmax": (
        (_FLAG,) + (_POINTER,) * 3 + (_SIZE,) * 6 + (_POINTER, _FLAG, _SIZE, _REAL, _REAL, _SEED, _SIZE)
    ),
    "tiled_attention": ((_POINTER,) * 6 + (_SIZE,) * 3 + (_FLAG, _SIZE, _REAL, _REAL, _SEED) + (_POINTER,) * 2),
    "tiled_pack": (_POINTER,) * 3 + (_SIZE,) * 2,
    "tiled_linear": (_POINTER,) * 3 + (_FLAG,) + (_POINTER,) * 3 + (_SIZE,) * 3,
    "tiled_gradient": (_POINTER,) * 2 + (_FLAG,) + (_POINTER,) * 2 + (_SIZE,) * 3 + (_FLAG,),
    "vocabulary_sums": (_POINTER,) * 4 + (_SIZE,) * 3,
    "vocabulary_gradients": (_POINTER,) * 7 + (_SIZE,) * 3,
    "sums_of_squares": (_POINTER, _SIZE, _SIZE, _POINTER),
    "embed_tokens": (_POINTER,) * 8 + (_REAL, _POINTER) + (_SIZE,) * 2,
    "encode_tokens": (_FLAG, _POINTER, _SIZE) + (_POINTER,) * 3 + (_SIZE,) * 4 + (_FLAG,) * 4 + (_REAL,),
    "exponential_sums": (_FLAG,) + (_POINTER,) * 3 + (_SIZE,) * 2,
    "exponential_gradients": (_FLAG,) + (_POINTER,) * 4 + (_SIZE,) * 2,
}


@dataclass(frozen=True)
class Kernels:
    """The library, or why there is none."""

    library: ctypes.CDLL | None
    why_not: str = ""


@functools.cache
def kernels() -> Kernels:
    """The kernels of this process; compiled at the first call where the cache does not hold them."""
    if os.environ.get(SWITCH) == "off":
        return Kernels(None, f"{SWITCH} is off")
    if sys.platform != "linux":
        return Kernels(None, f"they are made for Linux, and this is {platform.system()}")
    compiler: str | None = None
    try:
        compiler = _compiler()
        if compiler is None:
            return Kernels(None, "there is no GNU C++ compiler (Debian and Ubuntu: apt install g++)")
        path = _compiled(compiler)
        try:
            return Kernels(_loaded(path))
        except OSError:
            # What was kept is damaged: a full disk may have cut it.
            path.unlink(missing_ok=True)
            return Kernels(_loaded(_compiled(compiler)))
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        named = "" if compiler is None else f" with {compiler}"
        return Kernels(None, f"they could not be compiled{named} ({_last_line(error)})")


def usable(values: Tensor) -> bool:
    """Whether the kernels take a tensor: on a CPU, in fp32 or bf16."""
    return values.is_cpu and values.dtype in (torch.bfloat16, torch.float32) and kernels().library is not None


def multiplies() -> bool:
    """Whether kernels that multiply matrices in bf16 are there: the processor has AMX, or AVX-512 for bf16."""
    library = kernels().library
    return library is not None and bool(library.multiplies())


def call(name: str, *arguments: Tensor | bool | int | float | None) -> None:
    """Call a kernel. Tensors are given by their memory, which must be contiguous."""
    function = getattr(kernels().library, name)
    function(*[value.data_ptr() if isinstance(value, Tensor) else value for value in arguments])


def _compiler() -> str | None:
    # Clang would bring an OpenMP of its own beside the one that torch has loaded.
    named = os.environ.get("CXX")
    for name in [named] if named else ["g++", "c++"]:
        found = shutil.which(name)
        if found is not None:
            asked = [found, "--version"]
            shown = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=_ANSWER_SECONDS)
            if "Free Software Foundation" in shown.stdout:
                return found
    return None


def _compiled(compiler: str) -> Path:
    sources = sorted(_SOURCES.glob("*.cpp"))
    contents = [path.read_bytes() for path in sorted(_SOURCES.iterdir()) if path.suffix in (".cpp", ".h")]
    identity = b"\0".join([*contents, *(flag.encode() for flag in _FLAGS), compiler.encode(), _processor()])
    target = _cache() / f"{hashlib.sha256(identity).hexdigest()[:24]}.so"
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        # Several processes may compile at once: each into a file of its own, and the last one to end is kept.
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            made = Path(folder) / target.name
            subprocess.run(
                [compiler, *_FLAGS, *map(str, sources), "-o", str(made)],
                check=True,
                capture_output=True,
                text=True,
                timeout=_COMPILE_SECONDS,
            )
            made.replace(target)
    return target


def _processor() -> bytes:
    """What `-march=native` depends on: a cache may be shared between machines."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    described = {line.split(":", 1)[0].strip(): line for line in lines if ":" in line}
    names = ("model name", "flags", "CPU implementer", "CPU part", "Features")
    return "\n".join([platform.machine(), *(described.get(name, "") for name in names)]).encode()


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "bertsmith" / "kernels"


def _loaded(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    for name, arguments in _SIGNATURES.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, None
    return library


def _last_line(error: Exception) -> str:
    said = getattr(error, "stderr", None) or str(error)
    # What a compiler said before its time was over comes undecoded.
    text = said.decode(errors="replace") if isinstance(said, bytes) else said
    return text.strip().splitlines()[-1] if text.strip() else type(error).__name__
