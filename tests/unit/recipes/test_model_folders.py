"""Which model folder a path means, and what is said where there is none."""

from pathlib import Path

import pytest

from bertsmith.foundation.errors import InputError
from bertsmith.recipes.predict import model_folder_of


def test_a_name_on_the_hub_is_pointed_to_the_command_that_fetches_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fetch = "bertsmith import google-bert/bert-base-cased --out bert-base-cased fetches it"
    with pytest.raises(InputError, match=rf"A model folder must exist.*{fetch}"):
        model_folder_of("google-bert/bert-base-cased")
    with pytest.raises(InputError, match="A model folder must exist") as caught:
        model_folder_of("./bert-base-cased")
    assert "import" not in str(caught.value)


def test_a_misspelled_folder_is_met_with_the_nearest_one(tmp_path: Path) -> None:
    (tmp_path / "my-bert").mkdir()
    (tmp_path / "my-bert" / "config.json").write_text("{}")
    with pytest.raises(InputError, match=r"Did you mean .*my-bert"):
        model_folder_of(tmp_path / "my-brt")
