"""The bucket that holds the zips of the functions, one for each content ever deployed."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError
from package_lambda import CannotPack, package
from refusals import Refused, say


class CodeBucket:
    """A bucket of a name, there or not.

    Args: store: a boto3 client of S3.
    """

    def __init__(self, store: Any, name: str, *, region: str) -> None:
        self.name = name
        self._store, self._region = store, region

    def deployed_before(self, key: str) -> str:
        """The key. Raises Refused if it is not there."""
        try:
            self._store.head_object(Bucket=self.name, Key=key)
        except ClientError as error:
            if error.response["Error"]["Code"] not in ("404", "NoSuchBucket", "NoSuchKey"):
                raise
            raise Refused(f"there is no zip {key} in {self.name}; 'aws s3 ls {self.name}' lists them.") from error
        return key

    def upload(self, extra: Sequence[Path]) -> str:
        """Pack and upload; the key. Raises CannotPack. Args: extra: further files to pack."""
        with tempfile.TemporaryDirectory() as folder:
            packed = Path(folder) / "linkwatch-lambda.zip"
            try:
                package(packed, extra=tuple(extra))
            except OSError as error:  # of this machine, and no word of AWS
                raise CannotPack(f"the zip cannot be packed on this machine: {error}.") from error
            content = packed.read_bytes()
        self._make()
        key = f"linkwatch-lambda-{hashlib.sha256(content).hexdigest()[:16]}.zip"
        say(f"uploading {len(content):,} bytes as {key}")
        self._store.put_object(Bucket=self.name, Key=key, Body=content)
        return key

    def _make(self) -> None:
        try:
            self._store.head_bucket(Bucket=self.name)
            return
        except ClientError as error:
            if error.response["Error"]["Code"] not in ("404", "NoSuchBucket"):
                raise
        say(f"making bucket {self.name}")
        where = {} if self._region == "us-east-1" else {"LocationConstraint": self._region}
        self._store.create_bucket(
            Bucket=self.name, **({"CreateBucketConfiguration": where} if where else {})
        )  # private and encrypted unless somebody says otherwise
        self._store.put_public_access_block(
            Bucket=self.name,
            PublicAccessBlockConfiguration={
                "BlockPublicAcls": True,
                "IgnorePublicAcls": True,
                "BlockPublicPolicy": True,
                "RestrictPublicBuckets": True,
            },
        )

    def delete(self) -> bool:
        """Whether there was one."""
        try:
            for page in self._store.get_paginator("list_objects_v2").paginate(Bucket=self.name):
                for entry in page.get("Contents", ()):
                    self._store.delete_object(Bucket=self.name, Key=entry["Key"])
            self._store.delete_bucket(Bucket=self.name)
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchBucket":
                raise
            return False
        say(f"deleted bucket {self.name}")
        return True
