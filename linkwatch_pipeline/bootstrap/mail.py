"""How mails go out: into files, by SMTP, or by Amazon SES."""

from __future__ import annotations

import ssl

from linkwatch_pipeline.adapters.home import Home
from linkwatch_pipeline.bootstrap.aws import is_emulated
from linkwatch_pipeline.domain.errors import ConfigurationError
from linkwatch_pipeline.ports import Notifier
from linkwatch_pipeline.settings import PASSWORD_FILE_VARIABLE, PASSWORD_VARIABLE, SMTP_PORTS, Settings


def open_notifier(
    settings: Settings, home: Home, *, smtp_password: str, ssl_context: ssl.SSLContext | None
) -> Notifier:
    """The notifier that is set; `ssl_context` None means the machine's own. Raises ConfigurationError."""
    refuse_a_private_mailbox(settings)
    if settings.mail == "smtp":
        return _smtp_notifier(settings, smtp_password, ssl_context or ssl.create_default_context())
    if settings.mail == "ses":
        return _ses_notifier(settings)
    from linkwatch_pipeline.adapters.notify.files import FileNotifier

    return FileNotifier(home.mail)


def refuse_a_private_mailbox(settings: Settings) -> None:
    """Raise ConfigurationError if a delivery would only write files here, while many machines share the notices."""
    if settings.profile == "aws" and settings.mail == "files" and not is_emulated(settings):
        raise ConfigurationError(
            'mail is "files", but the profile is "aws": a notice written into this home would count as sent, and '
            'nobody would ever mail it. Set mail = "ses" or "smtp" (LINKWATCH_MAIL), or leave the delivery to the '
            "function notify."
        )


def mail_destination(settings: Settings, home: Home) -> str:
    """Where mails are handed over, for people."""
    return {"smtp": settings.smtp_host, "ses": "Amazon SES"}.get(settings.mail, str(home.mail))


def _smtp_notifier(settings: Settings, password: str, tls: ssl.SSLContext) -> Notifier:
    from linkwatch_pipeline.adapters.notify.smtp import SmtpNotifier, SmtpSecurity, SmtpServer

    if bool(settings.smtp_username) != bool(password):
        raise ConfigurationError(
            f"smtp_username goes with a password: set {PASSWORD_VARIABLE} or {PASSWORD_FILE_VARIABLE}."
            if settings.smtp_username
            else f"{PASSWORD_VARIABLE} is set without smtp_username; set both or none."
        )
    server = SmtpServer(
        host=settings.smtp_host,
        port=settings.smtp_port or SMTP_PORTS[settings.smtp_security],
        security=SmtpSecurity(settings.smtp_security),
        username=settings.smtp_username,
        password=password,
    )
    return SmtpNotifier(server, tls=tls)


def _ses_notifier(settings: Settings) -> Notifier:
    from linkwatch_pipeline.adapters.notify.ses import SesNotifier, ses_client

    client = ses_client(region=settings.ses_region or None)
    return SesNotifier(client, configuration_set=settings.ses_configuration_set)
