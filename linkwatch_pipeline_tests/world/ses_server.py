"""A stand-in for Amazon SES v2 on loopback, as strict as the real one where emulators are not, and able to fail.

It takes `SendEmail`, checks sender, configuration set and tags, keeps what it accepted, and publishes events as they
arrive in a queue: SES's JSON inside SNS's inside SQS's. Written after the service's model and its documentation.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

_TAG = re.compile(r"[A-Za-z0-9_-]{1,256}")
# Behaviours that need no error code. All but HANG_UP accept the mail.
LOSE = "lose"  # accept, and close the connection without an answer
GARBAGE = "garbage"  # accept, and answer something that is not JSON
TRUNCATED = "truncated"  # accept, and end in the middle of the answer
SILENT = "silent"  # accept, and say nothing for longer than anybody waits
HANG_UP = "hang up"  # close at once


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """One mail that SES took."""

    message_id: str
    content: bytes
    source: str
    destination: tuple[str, ...]
    tags: dict[str, str]
    configuration_set: str


@dataclass
class SesServer:
    """Answers by script: the next behaviour of `script` for each call (`500`, `429 TooManyRequestsException`, or one
    of the above), and as a healthy service when the script is over."""

    sender: str = "linkwatch@example.com"
    configuration_set: str = "linkwatch"
    script: list[str] = field(default_factory=list)
    accepted: list[Accepted] = field(default_factory=list)
    calls: int = 0
    url: str = ""

    @contextmanager
    def running(self) -> Iterator[SesServer]:
        """Serve on a free port."""
        served, released = self, threading.Event()

        class Handler(_Handler):
            ses = served
            over = released

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            self.url = f"http://127.0.0.1:{server.server_address[1]}"
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
            thread.start()
            try:
                yield self
            finally:
                released.set()
                server.shutdown()
                thread.join()

    def accept(self, request: dict[str, Any]) -> Accepted:
        """Take a mail as the real service would. Raises _Refused."""
        tags = {tag["Name"]: tag["Value"] for tag in request.get("EmailTags", [])}
        destination = request["Destination"]
        if request.get("FromEmailAddress") != self.sender:
            raise _Refused(400, "MessageRejected", f"Email address is not verified: {request.get('FromEmailAddress')}")
        if request.get("ConfigurationSetName") != self.configuration_set:
            raise _Refused(404, "NotFoundException", "Configuration set does not exist.")
        if not all(_TAG.fullmatch(text) for pair in tags.items() for text in pair):
            raise _Refused(400, "BadRequestException", "Invalid tag.")
        number = len(self.accepted) + 1
        taken = Accepted(
            message_id=f"0100019a{number:08x}-11111111-2222-4333-8444-555555555555-000000",
            content=base64.b64decode(request["Content"]["Raw"]["Data"]),
            source=request["FromEmailAddress"],
            destination=(*destination.get("ToAddresses", ()), *destination.get("CcAddresses", ())),
            tags=tags,
            configuration_set=request["ConfigurationSetName"],
        )
        self.accepted.append(taken)
        return taken

    def publish(self, folder: Path, mail: Accepted, kind: str, recipients: Sequence[str] = ()) -> Path:
        """Write an event of an accepted mail as one SQS message into a folder; the file."""
        folder.mkdir(exist_ok=True)
        file = folder / f"{len(list(folder.iterdir())) + 1:04}.json"
        file.write_text(json.dumps(in_queue(ses_event(mail, kind, recipients))), encoding="utf-8")
        return file


def ses_event(mail: Accepted, kind: str, recipients: Sequence[str] = ()) -> dict[str, Any]:
    """An event with the fields of the real ones. `recipients` None means all of the mail's."""
    concerned = list(recipients or mail.destination)
    moment = "2026-09-28T10:00:05.123Z"
    about: dict[str, dict[str, Any]] = {
        "Send": {},
        "Reject": {"reason": "Bad content"},
        "Delivery": {
            "timestamp": moment,
            "processingTimeMillis": 512,
            "recipients": concerned,
            "smtpResponse": f"250 2.6.0 Message received by {concerned[0]}",
            "reportingMTA": "mta.example.com",
        },
        "Bounce": {
            "bounceType": "Permanent",
            "bounceSubType": "General",
            "bouncedRecipients": [
                {
                    "emailAddress": address,
                    "action": "failed",
                    "status": "5.1.1",
                    "diagnosticCode": f"smtp; 550 5.1.1 <{address}>: user unknown",
                }
                for address in concerned
            ],
            "timestamp": moment,
            "feedbackId": "0100019a00000000-feedback",
            "reportingMTA": "dsn; mta.example.com",
        },
        "Complaint": {
            "complainedRecipients": [{"emailAddress": address} for address in concerned],
            "timestamp": moment,
            "feedbackId": "0100019a00000000-feedback",
            "userAgent": "Example Feedback Loop",
            "complaintFeedbackType": "abuse",
            "arrivalDate": moment,
        },
    }
    return {
        "eventType": kind,
        "mail": {
            "timestamp": "2026-09-28T10:00:00.000Z",
            "source": mail.source,
            "sourceArn": f"arn:aws:ses:eu-west-1:123456789012:identity/{mail.source}",
            "sendingAccountId": "123456789012",
            "messageId": mail.message_id,
            "destination": list(mail.destination),
            "headersTruncated": False,
            "headers": [{"name": "From", "value": mail.source}],
            "commonHeaders": {"from": [mail.source], "messageId": mail.message_id},
            "tags": {
                "ses:configuration-set": [mail.configuration_set],
                "ses:source-ip": ["192.0.2.1"],
                **{name: [value] for name, value in mail.tags.items()},
            },
        },
        kind.lower(): about.get(kind, {}),
    }


def in_topic(event: object) -> dict[str, Any]:
    """As SNS hands it on."""
    return {
        "Type": "Notification",
        "MessageId": "33333333-4444-4555-8666-777777777777",
        "TopicArn": "arn:aws:sns:eu-west-1:123456789012:linkwatch-mail-events",
        "Subject": "Amazon SES Email Event Notification",
        "Message": json.dumps(event),
        "Timestamp": "2026-09-28T10:00:06.000Z",
    }


def in_queue(event: object) -> dict[str, Any]:
    """As SQS hands it on, from a topic."""
    return {
        "MessageId": "88888888-9999-4aaa-8bbb-cccccccccccc",
        "ReceiptHandle": "handle",
        "Body": json.dumps(in_topic(event)),
    }


class _Refused(Exception):
    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class _Handler(BaseHTTPRequestHandler):
    """One call of SendEmail."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet: two would wait for each other's acknowledgement
    ses: SesServer
    over: threading.Event

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.ses.calls += 1
        behaviour = self.ses.script.pop(0) if self.ses.script else ""
        try:
            self._behave(behaviour, request)
        except _Refused as refused:
            self._answer(refused.status, json.dumps({"message": str(refused)}), code=refused.code)

    def _behave(self, behaviour: str, request: dict[str, Any]) -> None:
        if behaviour == HANG_UP:
            self.close_connection = True
            return
        if behaviour[:1].isdigit():
            status, _, code = behaviour.partition(" ")
            raise _Refused(int(status), code, f"no, {self.ses.sender}")
        answer = json.dumps({"MessageId": self.ses.accept(request).message_id})
        if behaviour == LOSE:
            self.close_connection = True
        elif behaviour == SILENT:
            self.over.wait(30)
            self.close_connection = True
        elif behaviour == TRUNCATED:
            self._answer(200, answer[:20])
        elif behaviour == GARBAGE:
            self._answer(200, "<html>gateway</html>")
        else:
            self._answer(200, answer)

    def _answer(self, status: int, body: str, *, code: str = "") -> None:
        with suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            if code:
                self.send_header("x-amzn-ErrorType", code)
            self.end_headers()
            self.wfile.write(body.encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""
