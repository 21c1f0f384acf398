"""What only the folder of mails does."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from linkwatch_pipeline.adapters.notify.files import FileNotifier
from linkwatch_pipeline.domain.errors import DeliveryError, DeliveryFailure
from linkwatch_pipeline_tests.mail_builders import a_mail


def test_the_file_is_named_after_the_transition_and_names_the_mail(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "mail"
    assert FileNotifier(folder).send(a_mail(transition_id="docs.example.com-a_b:12")) == (
        "docs_2eexample_2ecom-a_5fb_3a12.eml"
    )
    assert [path.name for path in folder.iterdir()] == ["docs_2eexample_2ecom-a_5fb_3a12.eml"]


def test_the_longest_id_still_makes_a_file(tmp_path: Path) -> None:
    name = FileNotifier(tmp_path).send(a_mail(transition_id="a" + "_" * 79 + ":1000000"))
    assert (tmp_path / name).exists()


def test_sending_again_replaces_the_file(tmp_path: Path) -> None:
    notifier = FileNotifier(tmp_path)
    first = notifier.send(a_mail())
    assert notifier.send(a_mail(text="The same, once more.\n")) == first
    (file,) = tmp_path.iterdir()
    assert "once more" in file.read_text()


def test_a_plain_mail_can_be_read_and_searched_as_it_is(tmp_path: Path) -> None:
    url = "https://docs.example.com/" + "long/" * 60
    name = FileNotifier(tmp_path).send(a_mail(text=f"URL: {url}\n"))
    assert url in (tmp_path / name).read_text()


def test_a_folder_that_cannot_be_made_means_not_accepted(tmp_path: Path) -> None:
    (tmp_path / "mail").write_text("a file in the way")
    with pytest.raises(DeliveryError, match="tried again") as refused:
        FileNotifier(tmp_path / "mail").send(a_mail())
    assert refused.value.kind is DeliveryFailure.NOT_ACCEPTED


@pytest.fixture
def tiny_files() -> Iterator[None]:
    """No file may grow beyond 100 bytes: as on a full disk, a write ends early."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("tiny_files")
def test_a_full_disk_leaves_no_half_mail_and_the_earlier_one_whole(tmp_path: Path) -> None:
    (tmp_path / "guide_3a2.eml").write_text("earlier")
    with pytest.raises(DeliveryError) as refused:
        FileNotifier(tmp_path).send(a_mail())
    assert refused.value.kind is DeliveryFailure.NOT_ACCEPTED
    assert [path.name for path in tmp_path.iterdir()] == ["guide_3a2.eml"]
    assert (tmp_path / "guide_3a2.eml").read_text() == "earlier"
