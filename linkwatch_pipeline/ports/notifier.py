"""The notifier: mails, and who carries them to a provider."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """One e-mail, ready but for its transport.

    `transition_id` is the mail's own id: the transition that it tells, or an id derived from owner and run if it tells
    several. Providers carry it, escaped, back in their events. `transition_ids` are then all that it tells.
    """

    transition_id: str
    transition_ids: tuple[str, ...] = ()
    sender: str
    recipient: str
    copies: tuple[str, ...] = ()
    subject: str
    text: str
    html: str
    message_id: str
    date: datetime
    references: tuple[str, ...] = ()


class Notifier(Protocol):
    """Hands mails to a provider."""

    def send(self, mail: Mail) -> str:
        """The provider's id of the accepted mail. Raises DeliveryError, whose kind says what is known."""
        ...
