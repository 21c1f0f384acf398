"""The warehouse's copy in S3, for a home whose disk comes and goes, as a container's.

DuckDB reads the files of the folder; the bucket only keeps them. One process at a time writes a warehouse and its copy.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from boto3.exceptions import Boto3Error
from botocore.exceptions import BotoCoreError, ClientError

from linkwatch_pipeline.adapters.aws_client import make_client
from linkwatch_pipeline.adapters.warehouse.files import file_sha256
from linkwatch_pipeline.domain.errors import StoreUnavailable

_SHA256 = "linkwatch-sha256"


class BucketCopy:
    """Keeps the Parquet files of a folder under `prefix` in a bucket, by the same names.

    Args:
        client: a boto3 S3 client.
        prefix: without slashes around it; empty is the bucket's root.
        mover: one for the files themselves, which need more time on a slow line; None: the same.
    """

    def __init__(self, client: Any, folder: Path, *, bucket: str, prefix: str = "", mover: Any | None = None) -> None:
        self._client = client
        self._mover = client if mover is None else mover
        self._folder = folder
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""

    def fetch(self) -> int:
        """Bring the files that the folder has not, or has otherwise; how many. Files that only the folder has stay.

        Each takes its place whole. Raises StoreUnavailable naming the bucket.
        """
        return sum(self._fetch(name) for name in self._kept())

    def store(self) -> int:
        """Put the files that the bucket has not, or has otherwise, and take away those the folder lost; how many."""
        kept, here = set(self._kept()), set(self._files())
        changed = sum(self._put(name) for name in sorted(here))
        for name in sorted(kept - here):
            self._call(self._client.delete_object, Key=self._prefix + name)
        return changed + len(kept - here)

    def _files(self) -> Iterator[str]:
        """The Parquet files that stand in their places, by their names below the folder."""
        for path in self._folder.glob("**/*.parquet"):
            name = path.relative_to(self._folder)
            if not any(part.startswith(".") for part in name.parts):
                yield name.as_posix()

    def _kept(self) -> Iterator[str]:
        try:
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=self._prefix)
            for page in pages:
                for item in page.get("Contents", ()):
                    name = item["Key"].removeprefix(self._prefix)
                    if name.endswith(".parquet") and ".." not in Path(name).parts:
                        yield name
        except (ClientError, BotoCoreError) as exc:
            raise self._unavailable(exc) from exc

    def _fetch(self, name: str) -> bool:
        path = self._folder / name
        if path.exists() and self._sha256_of(name) == file_sha256(path):
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".tmp-") as scratch:
            fresh = Path(scratch, "new.parquet")
            self._call(self._mover.download_file, Key=self._prefix + name, Filename=str(fresh))
            os.replace(fresh, path)
        return True

    def _put(self, name: str) -> bool:
        path = self._folder / name
        told = file_sha256(path)
        if self._sha256_of(name) == told:
            return False
        metadata = {"ExtraArgs": {"Metadata": {_SHA256: told}}}
        self._call(self._mover.upload_file, Key=self._prefix + name, Filename=str(path), **metadata)
        return True

    def _sha256_of(self, name: str) -> str | None:
        """What the bucket says of a file; None if it has none."""
        try:
            head = self._client.head_object(Bucket=self._bucket, Key=self._prefix + name)
        except ClientError as exc:
            if exc.response["Error"]["Code"] in ("404", "NoSuchKey", "NotFound"):
                return None
            raise self._unavailable(exc) from exc
        except BotoCoreError as exc:
            raise self._unavailable(exc) from exc
        return str(head["Metadata"].get(_SHA256, ""))

    def _call(self, method: Any, **arguments: Any) -> None:
        try:
            method(Bucket=self._bucket, **arguments)
        except (ClientError, BotoCoreError, Boto3Error) as exc:
            raise self._unavailable(exc) from exc

    def _unavailable(self, exc: Exception) -> StoreUnavailable:
        return StoreUnavailable(f"the warehouse's bucket {self._bucket} cannot serve: {exc}")


def connect_bucket(folder: Path, *, bucket: str, prefix: str) -> BucketCopy:
    """The copy, over clients of its own, with region, endpoint and credentials found the ordinary boto3 way.

    The bucket is listed before a file is moved, so that one that is silent is told after 21 s.
    """
    client, mover = _client(read_timeout=6, attempts=3), _client(read_timeout=30, attempts=4)
    return BucketCopy(client, folder, bucket=bucket, prefix=prefix, mover=mover)


def _client(*, read_timeout: int, attempts: int) -> Any:
    from botocore.config import Config

    retries = {"mode": "standard", "total_max_attempts": attempts}
    config = Config(connect_timeout=3, read_timeout=read_timeout, retries=retries)
    return make_client("s3", config=config, called="S3")
