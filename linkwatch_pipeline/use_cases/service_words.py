"""What a mail says when it is about a service that is watched each minute, and not about a link of the handbook."""

from __future__ import annotations

from linkwatch_pipeline.domain.links import LinkState
from linkwatch_pipeline.domain.notices import Notice
from linkwatch_pipeline.domain.service_changes import JOB_PREFIX

# Facts of a link's mail that nobody knows of a service: the message between the two halves carries no HTTP status.
NOT_OF_SERVICES = frozenset({"In the handbook", "Answer"})
_DOWN = (
    "When linkwatch asked this service, there was no 2xx answer within 10 seconds. It is asked every minute; that it "
    "was down between two checks, or is down for everybody, is not proven."
)
_UP = "When linkwatch asked this service, it answered with a 2xx status again. It is asked every minute."


def is_about_service(notice: Notice) -> bool:
    """Whether a change of a service made it (`use_cases.tell_services`)."""
    return notice.job_id.startswith(JOB_PREFIX)


def service_headline(notice: Notice) -> str:
    return "Down" if notice.to_state is LinkState.BROKEN else "Up again"


def service_summary(notice: Notice) -> str:
    return _DOWN if notice.to_state is LinkState.BROKEN else _UP
