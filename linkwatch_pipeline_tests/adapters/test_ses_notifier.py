"""Mails through SES: what is asked of it, and what each failure proves."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from botocore import exceptions as aws

from linkwatch_pipeline.adapters.notify.ses import SesNotifier, ses_client
from linkwatch_pipeline.domain.errors import DeliveryError, DeliveryFailure
from linkwatch_pipeline_tests.mail_builders import a_mail
from linkwatch_pipeline_tests.world import ses_server as behaviour
from linkwatch_pipeline_tests.world.ses_server import SesServer

LATER, NEVER, DOUBT = DeliveryFailure.NOT_ACCEPTED, DeliveryFailure.PERMANENT, DeliveryFailure.UNKNOWN


@pytest.fixture
def server(ses_server: SesServer) -> Iterator[SesServer]:
    """The shared server, well and empty."""
    ses_server.accepted.clear()
    ses_server.calls = 0
    yield ses_server
    ses_server.script.clear()


@pytest.fixture
def notifier(server: SesServer, ses_at_server: Any) -> SesNotifier:
    return SesNotifier(ses_at_server, configuration_set="linkwatch")


def failure(notifier: SesNotifier, **changes: Any) -> DeliveryError:
    with pytest.raises(DeliveryError) as refused:
        notifier.send(a_mail(**changes))
    return refused.value


def test_ses_gets_people_tag_and_configuration_set(server: SesServer, notifier: SesNotifier) -> None:
    provider_id = notifier.send(a_mail(copies=("web@example.com",)))
    (taken,) = server.accepted
    assert provider_id == taken.message_id
    assert taken.source == "linkwatch@example.com"
    assert taken.destination == ("docs-team@example.com", "web@example.com")
    assert taken.tags == {"linkwatch-mail": "guide_3a2"}
    assert taken.configuration_set == "linkwatch"


@pytest.mark.parametrize(
    ("mail_id", "tag"),
    [
        (
            "digest:2026-09-28T09:00:00Z~retry-1:0a1b2c3d4e5f",
            "digest_3a2026-09-28T09_3a00_3a00Z_7eretry-1_3a0a1b2c3d4e5f",
        ),
        ("a" + "_" * 79 + ":1000000", "a" + "_5f" * 79 + "_3a1000000"),
    ],
)
def test_every_id_of_a_mail_makes_a_tag_that_ses_takes(
    server: SesServer, notifier: SesNotifier, mail_id: str, tag: str
) -> None:
    notifier.send(a_mail(transition_id=mail_id, transition_ids=("guide:2", "home:4")))
    assert server.accepted[0].tags == {"linkwatch-mail": tag}


def test_an_id_too_long_for_a_tag_is_refused_before_any_call(server: SesServer, notifier: SesNotifier) -> None:
    error = failure(notifier, transition_id="a" + "_" * 100, transition_ids=("guide:2",))
    assert (error.kind, server.calls) == (NEVER, 0)


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        *((f"400 {code}", LATER) for code in ("Throttling", "ThrottlingException", "LimitExceededException")),
        *((f"{status} TooManyRequestsException", LATER) for status in (400, 429)),
        ("429 Whatever", LATER),
        *((f"403 {code}", LATER) for code in ("ExpiredToken", "ExpiredTokenException", "RequestExpired")),
        ("400 SendingPausedException", LATER),
        *((f"400 {code}", NEVER) for code in ("BadRequestException", "MessageRejected", "AccountSuspendedException")),
        ("400 MailFromDomainNotVerifiedException", NEVER),
        ("404 NotFoundException", NEVER),
        *((f"403 {code}", NEVER) for code in ("AccessDenied", "AccessDeniedException", "SignatureDoesNotMatch")),
        *((f"{status}", DOUBT) for status in (500, 502, 503, 504)),
        ("503 ThrottlingException", DOUBT),
        ("400 SomethingNew", DOUBT),
        (behaviour.LOSE, DOUBT),
        (behaviour.HANG_UP, DOUBT),
        (behaviour.GARBAGE, DOUBT),
        (behaviour.TRUNCATED, DOUBT),
    ],
)
def test_each_failure_is_of_the_kind_that_it_proves(
    server: SesServer, notifier: SesNotifier, script: str, kind: DeliveryFailure
) -> None:
    server.script = [script]
    error = failure(notifier)
    assert error.kind is kind
    assert "@" not in str(error)
    assert server.calls == 1  # a second call could be a second mail
    assert len(server.accepted) == (1 if script in (behaviour.LOSE, behaviour.GARBAGE, behaviour.TRUNCATED) else 0)
    notifier.send(a_mail())


def test_silence_is_in_doubt_and_not_asked_again(server: SesServer, aws_environment: None) -> None:
    server.script = [behaviour.SILENT]
    client = ses_client(region="eu-west-1", endpoint_url=server.url, read_seconds=1.0)
    error = failure(SesNotifier(client, configuration_set="linkwatch"))
    client.close()
    while not server.accepted:  # what was sent is read, and on a busy machine later than it was given up
        threading.Event().wait(0.01)
    assert (error.kind, server.calls, len(server.accepted)) == (DOUBT, 1, 1)


def test_what_the_real_service_would_refuse_is_refused(server: SesServer, ses_at_server: Any) -> None:
    """The stand-in is not the easy-going emulator that takes everything."""
    assert failure(SesNotifier(ses_at_server, configuration_set="linkwatch"), sender="other@example.com").kind is NEVER
    assert failure(SesNotifier(ses_at_server, configuration_set="absent")).kind is NEVER
    assert server.accepted == []


def test_nobody_listens(aws_environment: None) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        client = ses_client(region="eu-west-1", endpoint_url=f"http://127.0.0.1:{unused.getsockname()[1]}")
        assert failure(SesNotifier(client, configuration_set="linkwatch")).kind is LATER
        client.close()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (aws.ConnectTimeoutError(endpoint_url="https://email.example"), LATER),
        (aws.ParamValidationError(report="wrong"), NEVER),
        (aws.NoCredentialsError(), NEVER),
        (aws.ReadTimeoutError(endpoint_url="https://email.example"), DOUBT),
        (RuntimeError("a fault of the client"), DOUBT),
    ],
)
def test_what_a_small_server_cannot_show_is_sorted_too(error: Exception, kind: DeliveryFailure) -> None:
    class Client:
        def send_email(self, **_: Any) -> None:
            raise error

    assert failure(SesNotifier(Client(), configuration_set="linkwatch")).kind is kind


def test_the_client_calls_once_and_gives_up_soon(ses_at_server: Any) -> None:
    config = ses_at_server.meta.config
    assert (config.connect_timeout, config.read_timeout) == (3, 10)
    assert config.retries == {"mode": "standard", "total_max_attempts": 1}
