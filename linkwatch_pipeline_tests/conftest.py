"""For all tests: the same chance everywhere, no verdict by a clock, a Ctrl-C that works; emulators, mail servers."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import botocore.session
import pytest
from hypothesis import HealthCheck, settings

from linkwatch_pipeline_tests.cloud.ministack import ministack
from linkwatch_pipeline_tests.cloud.timed_cloud import timed_cloud
from linkwatch_pipeline_tests.cloud.timed_sqs import timed_sqs
from linkwatch_pipeline_tests.patience import patient_homes
from linkwatch_pipeline_tests.services.postgresql import postgres
from linkwatch_pipeline_tests.services.team import team
from linkwatch_pipeline_tests.services.valkey import valkey, valkey_of_session

if TYPE_CHECKING:
    import trustme

    from linkwatch_pipeline_tests.world.mail_server import MailServer
    from linkwatch_pipeline_tests.world.ses_server import SesServer

# fixtures for every room
__all__ = ["ministack", "postgres", "team", "timed_cloud", "timed_sqs", "valkey", "valkey_of_session"]

settings.register_profile("linkwatch", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("linkwatch")

# A shell starts what it puts into the background with SIGINT ignored; every program that a test starts would inherit
# that and never hear the Ctrl-C that the test sends.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def aws_read_once() -> Iterator[None]:
    """What the services of AWS look like is read from the disk once, and not again by each command that is called."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.session, "create_loader", cache(botocore.session.create_loader))
        yield


@pytest.fixture(scope="session", autouse=True)
def patience() -> Iterator[None]:
    """A stall of the machine is no page that keeps silent."""
    with patient_homes():
        yield


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """A command that chose how to log chose it for its own process, not for the tests after it."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture(scope="session")
def mail_authority() -> trustme.CA:
    """Who vouches for mail servers."""
    import trustme

    return trustme.CA()


@pytest.fixture(scope="module")
def mail_server(mail_authority: trustme.CA) -> Iterator[MailServer]:
    """A mail server with STARTTLS and a login; a test begins by emptying what it has accepted."""
    from linkwatch_pipeline_tests.world.mail_server import MailServer

    with MailServer(mail_authority).running() as server:
        yield server


@pytest.fixture(scope="module")
def ses_server() -> Iterator[SesServer]:
    """A stand-in for Amazon SES; a test begins by emptying what it has accepted."""
    from linkwatch_pipeline_tests.world.ses_server import SesServer

    with SesServer().running() as server:
        yield server


@pytest.fixture(scope="module")
def ses_at_server(ses_server: SesServer, aws_environment: None) -> Any:
    """A client of the stand-in, made as for Amazon's."""
    from linkwatch_pipeline.adapters.notify.ses import ses_client

    client = ses_client(region="eu-west-1", endpoint_url=ses_server.url)
    yield client
    client.close()


@pytest.fixture(scope="module")
def aws_environment() -> Iterator[None]:
    """Credentials that are none, and nothing of this machine's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
            patch.setenv(name, "absent")
        for name in ("AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION"):
            patch.delenv(name, raising=False)
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield
