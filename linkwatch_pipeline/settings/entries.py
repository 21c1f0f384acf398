"""Every setting: its default, what it may be, and what a new `linkwatch.toml` says about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from linkwatch_pipeline.domain.allowances import Allowance
from linkwatch_pipeline.domain.hosts import COOLDOWN
from linkwatch_pipeline.settings.kinds import SWITCH, Kind, entry, one_of, seconds, whole_number
from linkwatch_pipeline.settings.values import (
    ALLOWANCES,
    BUCKET,
    CONFIRM,
    CONTACT,
    FILE,
    HOSTS,
    LINK_IDS,
    MAIL_FROM,
    MAIL_SERVER,
    NAMESPACE,
    QUEUE_URL,
    SES_NAME,
    TABLE,
    USER_NAME,
    WEBHOOK,
)
from linkwatch_pipeline.settings.variables import PASSWORD_FILE_VARIABLE, PASSWORD_VARIABLE

SMTP_PORTS = {"starttls": 587, "tls": 465, "none": 25}
MAX_CONCURRENCY = 200
MAX_BATCHES = 1000
MAX_COOLDOWN_SECONDS = 900.0
SHORTEST_COOLDOWN_SECONDS = COOLDOWN.total_seconds()
_COUNT = whole_number(1, 1_000_000)
_PERCENT = whole_number(0, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All choices, checked. `allowed_hosts` empty means every host, `smtp_port` 0 the usual one."""

    contact: str = entry(
        "",
        CONTACT,
        "Where a site's operator can complain: a URL or an e-mail address. It is part of the user agent, and\n"
        "linkwatch visits no public host without it.",
    )
    confirm: int = entry(
        1,
        CONFIRM,
        "How many failing observations in a row make a link broken, for links that do not say it themselves.",
    )
    concurrency: int = entry(20, whole_number(1, MAX_CONCURRENCY), "How many hosts are visited at once.")
    batches: int = entry(
        8,
        whole_number(1, MAX_BATCHES),
        "Into how many steps a run's hosts are grouped in Dagster. It never changes the pace.",
    )
    cooldown_seconds: float = entry(
        SHORTEST_COOLDOWN_SECONDS, seconds(MAX_COOLDOWN_SECONDS), "How long a host rests after each visit: 1 s or more."
    )
    mail: str = entry(
        "files",
        one_of(("files", "smtp", "ses")),
        'How mails go out: "files" writes them into this home, "smtp" and "ses" send them.',
    )
    mail_from: str = entry("linkwatch@localhost.invalid", MAIL_FROM, "The sender of the mails.")
    smtp_host: str = entry(
        "",
        MAIL_SERVER,
        'The mail server, for "smtp". Its password is in no file of settings: set\n'
        f"{PASSWORD_VARIABLE}, or {PASSWORD_FILE_VARIABLE} to the file that holds it.",
    )
    smtp_port: int = entry(
        0, whole_number(0, 65535), "Its port; 0 takes the usual one: 587 with starttls, 465 with tls, 25 with none."
    )
    smtp_security: str = entry(
        "starttls",
        one_of(SMTP_PORTS),
        '"starttls", "tls" (from the first byte), or "none" for a server on this machine.',
    )
    smtp_username: str = entry("", USER_NAME, "The account there; empty does not log in.")
    ses_region: str = entry("", SES_NAME, 'Where Amazon SES is, for "ses"; empty takes what the AWS environment says.')
    ses_configuration_set: str = entry(
        "", SES_NAME, "The configuration set whose events say what became of a mail; SES needs one here."
    )
    profile: str = entry(
        "local",
        one_of(("local", "aws"), spelled=repr),
        'Where all is kept: "local" keeps it in this home, "aws" in DynamoDB, SQS and CloudWatch.',
    )
    allowed_hosts: tuple[str, ...] = entry(
        (), HOSTS, "Visit only these hosts and their subdomains; empty means all. Begin with domains you control."
    )
    allowances: Mapping[str, Allowance] = entry(
        {},
        ALLOWANCES,
        "Hosts whose operators agreed to more than one visit at once: a table by host name, each with visits\n"
        "and agreed_with.",
    )
    breaker: bool = entry(
        True,
        SWITCH,
        "Whether a run in which suspiciously much fails has its notices held until a person decides.",
    )
    breaker_hosts: int = entry(
        5,
        _COUNT,
        "A run is suspect if more hosts than this, and than the next line's share of those checked, broke anew\n"
        "or newly gave no certain answer.",
    )
    breaker_hosts_percent: int = entry(10, _PERCENT, "The share of hosts, in percent.")
    breaker_links: int = entry(
        20,
        _COUNT,
        "A run is suspect if more links than this, and than the next line's share of those checked, are\n"
        "uncertain, those of the worst host left out.",
    )
    breaker_links_percent: int = entry(25, _PERCENT, "The share of links, in percent.")
    canaries: tuple[str, ...] = entry(
        (),
        LINK_IDS,
        "Ids of links that never fail while linkwatch is well, three or so on different hosts. A run is suspect\n"
        "if two thirds of them fail.",
    )
    ops_webhook: str = entry(
        "",
        WEBHOOK,
        "Where on-call is told of linkwatch's own health: a URL that gets a JSON document by POST; empty posts\n"
        "nowhere. If it holds a secret, set LINKWATCH_OPS_WEBHOOK instead.",
    )
    ops_file: str = entry(
        "alarms.jsonl", FILE, "The file that gets the same alarms, one JSON document a line; empty writes none."
    )
    table: str = entry(
        "",
        TABLE,
        'The DynamoDB table of the profile "aws". Region and credentials are found the way boto3 finds them.',
    )
    queue_url: str = entry("", QUEUE_URL, "The SQS work queue (output QueueUrl).")
    dead_letter_queue_url: str = entry("", QUEUE_URL, "The queue of its dead letters (output DeadLetterQueueUrl).")
    metrics_namespace: str = entry(
        "linkwatch-home",
        NAMESPACE,
        "Where the numbers of health --watch and of Dagster go in CloudWatch. That of the functions is theirs\n"
        "alone: another heartbeat there would hide their silence.",
    )
    warehouse_bucket: str = entry(
        "",
        BUCKET,
        'A bucket of S3 that keeps a copy of the warehouse: "links-warehouse", or "links-warehouse/weekly".\n'
        "What the home lacks is brought before a report, what is new in the home is put there after it.",
    )
    allow_endpoint: bool = entry(
        False,
        SWITCH,
        "Whether DynamoDB may be somewhere else than at Amazon, as an emulator is. AWS_ENDPOINT_URL is refused\n"
        "without it, so that nothing is written into the void by mistake.",
    )


KINDS: Mapping[str, Kind[object]] = {key.name: key.metadata["kind"] for key in fields(Settings)}
