"""Rows of Arrow data: Parquet files, and folders into which the library `datasets` has saved a data set.

Where the data says that integers stand for the names of classes, as `datasets` notes it, the names are given.
"""

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path, PureWindowsPath
from typing import Any

from bertsmith.foundation.errors import InputError

_STATE, _INFO, _SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"
_BATCH_ROWS = 64
_BUFFER_BYTES = 1 << 20  # Without it, or with pre_buffer, pyarrow holds the columns of a whole row group.
_NO_CLASS = -1
"""What `datasets` writes where a row has no class."""


@dataclass(frozen=True)
class UnreadableRow:
    """A row that cannot be read."""

    received: str
    wanted: str
    """What the file must hold instead."""


def refuse_double_names(names: Sequence[str], where: object, do: str) -> None:
    """Raise an `InputError` for columns of one name: rows by column have room for one of them alone."""
    if doubles := sorted({name for name in names if name and names.count(name) > 1}):
        raise InputError(
            "Each column of a table must have a name of its own",
            f"{where}, with {', '.join(doubles)} more than once",
            do,
        )


def is_dataset_folder(path: Path) -> bool:
    """Whether a folder was written by `save_to_disk`: one split, or several."""
    return any((path / name).is_file() for name in (_STATE, _SPLITS))


def dataset_files(folder: Path) -> list[Path]:
    """The files of a data set's rows, in their order.

    Raises:
        InputError: if the folder holds no data set or several splits, or is damaged.
    """
    if (folder / _SPLITS).is_file():
        splits = _names(folder / _SPLITS, "splits")
        raise InputError(
            "One split of a data set must be named",
            f"{folder}, with {', '.join(splits) or 'none'}",
            f"For example: {folder / splits[0]}." if splits else "Save the data set again.",
        )
    if not (folder / _STATE).is_file():
        raise InputError(
            "A folder of rows must be a data set that was saved with save_to_disk",
            folder,
            "Name a file, or such a folder.",
        )
    names = _names(folder / _STATE, "_data_files", inner="filename")
    for name in names:
        if PureWindowsPath(name).anchor or len(PureWindowsPath(name).parts) != 1 or name == "..":
            raise InputError(
                f"{_STATE} must name files of its folder", f"{name!r} in {folder}", "Do not use this folder."
            )
        if not (folder / name).is_file():
            raise InputError(
                "A data set must be whole to be read", f"{folder} without {name}", "Copy or save it again."
            )
    return [folder / name for name in names]


def dataset_rows(folder: Path) -> Iterator[dict[str, Any] | UnreadableRow]:
    """The rows of a data set's one split, by column.

    Raises:
        InputError: as `dataset_files`.
    """
    import pyarrow as pa  # Loaded only where such a file is read: it takes longer to import than all else here.

    paths = dataset_files(folder)
    # What a person renamed or cast stands here; the files may have been written before.
    features = _json(folder / _INFO).get("features") if (folder / _INFO).is_file() else None
    for path in paths:
        with _damage_told(path, "Arrow stream"), pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as batches:
            known = features or _features(batches.schema.metadata)
            for batch in batches:
                for first in range(0, batch.num_rows, _BATCH_ROWS):
                    yield from _rows(batch.slice(first, _BATCH_ROWS), known)


def parquet_rows(path: Path, column: str | None = None) -> Iterator[dict[str, Any] | UnreadableRow]:
    """The rows of a Parquet file, by column.

    Args:
        path: the file.
        column: the only one that is read; all, where not given.

    Raises:
        InputError: if the file is damaged, or has two columns of one name.
    """
    columns = None if column is None else [column]
    with _parquet_file(path) as file:
        refuse_double_names(file.schema_arrow.names, path, "Rename the columns.")
        features = _features(file.schema_arrow.metadata)
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=columns, use_threads=False):
            yield from _rows(batch, features)


def num_arrow_rows(path: Path) -> int:
    """Rows of a Parquet file, or of a data set's one split, which is looked through without its values being read.

    Raises:
        InputError: as `parquet_rows` and `dataset_rows`.
    """
    import pyarrow as pa

    if not path.is_dir():
        with _parquet_file(path) as file:
            return file.metadata.num_rows
    count = 0
    for part in dataset_files(path):
        with _damage_told(part, "Arrow stream"), pa.memory_map(str(part)) as file, pa.ipc.open_stream(file) as batches:
            count += sum(batch.num_rows for batch in batches)
    return count


def parquet_columns(path: Path) -> dict[str, str]:
    """The columns of a Parquet file, and the type of what each holds, `string` or `large_string` for text.

    Raises:
        InputError: if the file is damaged.
    """
    import pyarrow as pa

    with _parquet_file(path) as file:
        fields = [(field.name, field.type) for field in file.schema_arrow]
    return {name: str(kind.value_type if pa.types.is_dictionary(kind) else kind) for name, kind in fields}


def _rows(batch: Any, features: dict[str, Any]) -> Iterator[dict[str, Any] | UnreadableRow]:
    names = batch.schema.names
    for fields in zip(*batch.columns, strict=True):
        try:
            # Bytes that are no UTF-8 show only where a value is taken out.
            yield {name: _named(field.as_py(), features.get(name)) for name, field in zip(names, fields, strict=True)}
        except UnicodeDecodeError as error:
            yield UnreadableRow(f"the byte 0x{error.object[error.start]:02X}", "UTF-8")
        except _NoSuchClass as error:
            yield UnreadableRow(str(error), "numbers of classes that have a name")


class _NoSuchClass(Exception):
    """A number that stands for no class."""


def _named(value: Any, feature: Any) -> Any:
    """A value with names in place of the numbers that `feature` says stand for classes, and whole numbers as such."""
    match value, feature:
        case Decimal(), _:
            # Databases write whole numbers so, too.
            return int(value) if value == value.to_integral_value() else value
        case _, None:
            return value
        case int(), {"_type": "ClassLabel", "names": list(names)}:
            if value == _NO_CLASS:
                return None
            if not 0 <= value < len(names):
                raise _NoSuchClass(f"{value}, where classes 0 to {len(names) - 1} have names")
            return names[value]
        case list(), {"_type": _, "feature": inner} | [inner]:
            return [_named(item, inner) for item in value]
        case dict(), {"_type": _, "feature": dict(inner)} if "_type" not in inner:
            # A sequence of records is stored as a record of sequences.
            return {name: _named(part, [inner.get(name)]) for name, part in value.items()}
        case dict(), dict():
            return {name: _named(part, feature.get(name)) for name, part in value.items()}
        case _:
            return value


def _features(metadata: dict[bytes, bytes] | None) -> dict[str, Any]:
    """What `datasets` notes of the columns in a schema; nothing where it was not the writer."""
    try:
        features = json.loads((metadata or {})[b"huggingface"])["info"]["features"]
    except (KeyError, TypeError, ValueError):
        return {}
    return features if isinstance(features, dict) else {}


def _names(path: Path, key: str, *, inner: str | None = None) -> list[str]:
    """A list of names out of a JSON file; with `inner`, out of the objects in the list."""
    names: Any = _json(path).get(key)
    if isinstance(names, list) and inner is not None:
        names = [value.get(inner) if isinstance(value, dict) else None for value in names]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{path.name} must hold names under {key}", path, "Copy or save the data set again.")
    return names


def _json(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        values = error
    if not isinstance(values, dict):
        received = f"{path} ({values})" if isinstance(values, Exception) else path
        raise InputError(f"{path.name} must be a JSON object", received, "Copy or save the data set again.")
    return values


@contextlib.contextmanager
def _parquet_file(path: Path) -> Iterator[Any]:
    import pyarrow.parquet as pq

    with _damage_told(path, "Parquet file"), pq.ParquetFile(path, buffer_size=_BUFFER_BYTES, pre_buffer=False) as file:
        yield file


@contextlib.contextmanager
def _damage_told(path: Path, kind: str) -> Iterator[None]:
    """Damage becomes an `InputError`, also where it shows only while rows are read."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            "A file must be whole to be read",
            f"{path}, damaged or no {kind} ({error})",
            "Fetch or write the file again.",
        ) from None
