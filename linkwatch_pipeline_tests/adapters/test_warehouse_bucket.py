"""A copy of the warehouse in S3 follows the folder, and a new folder is filled from it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.warehouse.bucket import BucketCopy, connect_bucket
from linkwatch_pipeline.domain.errors import StoreUnavailable
from linkwatch_pipeline_tests.cloud.ministack import Cloud
from linkwatch_pipeline_tests.cloud.silence import silence


@pytest.fixture
def bucket(ministack: Cloud, request: pytest.FixtureRequest) -> str:
    name = f"warehouse-{abs(hash(request.node.name))}"
    ministack.client("s3").create_bucket(Bucket=name)
    return name


def copy_of(folder: Path, ministack: Cloud, bucket: str, prefix: str = "weekly/files") -> BucketCopy:
    return BucketCopy(ministack.client("s3"), folder, bucket=bucket, prefix=prefix)


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_a_new_folder_gets_what_an_earlier_one_had(tmp_path: Path, ministack: Cloud, bucket: str) -> None:
    names = [f"observations/week=2026-09-{day:02d}.parquet" for day in range(1, 29)] + ["pages/pages.parquet"]
    for name in names:
        write(tmp_path / "one" / name, name)
    write(tmp_path / "one" / ".lock", "")
    write(tmp_path / "one" / "observations" / ".tmp-x" / "new.parquet", "half")
    assert copy_of(tmp_path / "one", ministack, bucket).store() == len(names)
    assert copy_of(tmp_path / "one", ministack, bucket).store() == 0
    other = copy_of(tmp_path / "two", ministack, bucket)
    assert other.fetch() == len(names)
    assert {str(f.relative_to(tmp_path / "two")) for f in (tmp_path / "two").glob("**/*") if f.is_file()} == set(names)
    assert (tmp_path / "two" / names[0]).read_text() == names[0]
    assert other.fetch() == 0


def test_only_what_changed_moves_and_what_is_gone_goes(tmp_path: Path, ministack: Cloud, bucket: str) -> None:
    folder = tmp_path / "one"
    for name in ("a.parquet", "b.parquet", "c.parquet"):
        write(folder / name, "old")
    copy_of(folder, ministack, bucket, prefix="").store()
    write(folder / "a.parquet", "new")
    (folder / "b.parquet").unlink()
    assert copy_of(folder, ministack, bucket, prefix="").store() == 2
    write(folder / "mine.parquet", "mine")
    write(folder / "c.parquet", "damaged")
    assert copy_of(folder, ministack, bucket, prefix="").fetch() == 1
    assert {file.name: file.read_text() for file in folder.iterdir()} == {
        "a.parquet": "new",
        "c.parquet": "old",
        "mine.parquet": "mine",
    }


def test_a_bucket_that_is_not_there_is_named(tmp_path: Path, ministack: Cloud) -> None:
    write(tmp_path / "a.parquet", "a")
    copy = copy_of(tmp_path, ministack, "no-such-bucket")
    for call in (copy.fetch, copy.store):
        with pytest.raises(StoreUnavailable, match="no-such-bucket cannot serve"):
            call()
    assert (tmp_path / "a.parquet").read_text() == "a"


@pytest.mark.parametrize("move", [BucketCopy.fetch, BucketCopy.store])
def test_a_silent_bucket_is_told_soon(
    move: Callable[[BucketCopy], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = silence(monkeypatch)
    write(tmp_path / "a.parquet", "new")
    copy = connect_bucket(tmp_path, bucket="warehouse", prefix="")
    for client in (copy._client, copy._mover):
        nobody.around(client)
    with pytest.raises(StoreUnavailable, match="warehouse cannot serve"):
        move(copy)
    assert 0 < sum(nobody.waits) <= 25
