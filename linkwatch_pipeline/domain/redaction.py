"""What may be kept or shown of a URL that others chose: no credentials, no query value that looks like a secret.

Guessing by name and by shape. Where it guesses wrong a harmless value is hidden, which costs little: the link's id and
its registered URL are at hand. Secrets in a path are not recognised.
"""

from __future__ import annotations

import re
import traceback
from urllib.parse import unquote_plus

REDACTED = "REDACTED"

_USERINFO = re.compile(r"//[^/?#]*@")
# A parameter, in a query, a path (`;jsessionid=`), a fragment, or an unescaped URL inside another parameter.
_PARAMETER = re.compile(r"([?&;#])([^=&;?#]*)(=?)")
_SECRET_ENDS = "&#"  # a secret may itself contain ';' and '?'
_VALUE_ENDS = "&;?#"
_SECRET_NAME = re.compile(
    r"token|secret|passw|passphrase|pwd|signature|credential|session|sessid|bearer|hmac|samlre|cookie|nonce|otp\Z"
    r"|(api|access|auth|private|subscription|account|secret|license|client|shared)key|keypairid"
    r"|oauth|auth\Z|authorization|authcode"
)
_SECRET_WORDS = frozenset({"key", "sig", "sign", "sid", "jwt", "code", "ticket", "pass", "pin", "policy", "assertion"})
_SECRET_SHAPE = re.compile(
    r"eyJ[\w-]+\.[\w-]+\.|gh[opsur]_\w{16}|github_pat_|glpat-|xox[a-z]-|sk[-_](live|test|proj|ant)|A[KS]IA[A-Z0-9]{16}"
    r"|(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{20}"
)
_LOOKED_AT, _SHOWN = 1000, 60  # characters of a text
_NAMED_VALUE = re.compile(r"""([\w-]+)(["']?\s*[:=]\s*["']?)[^\s"',&]+""")
_WORD = re.compile(r"""[^\s"'{}\[\](),;:<>=]+""")
_DECODINGS = 3  # a value escaped more often than this hides something


def redacted_url(url: str) -> str:
    """The URL with REDACTED for credentials and for parameter values that look like secrets; else byte for byte."""
    return _redacted(url, _DECODINGS)


def redacted_beginning(text: str) -> str:
    """The first characters of a text of unknown origin, with REDACTED for what may be secret or an address."""
    shown = _NAMED_VALUE.sub(_named_value, redacted_url(text[:_LOOKED_AT]))
    return _WORD.sub(lambda word: REDACTED if _hides_something(word[0]) else word[0], shown)[:_SHOWN]


def fault_in_our_words(fault: BaseException) -> str:
    """What may be logged of a fault of ours: which kind and where, its causes included, but never its own words.

    They may quote a URL, an answer or a mail.
    """
    told: list[str] = []
    cause: BaseException | None = fault
    while cause is not None:
        told.append(f"{type(cause).__name__}\n{''.join(traceback.format_tb(cause.__traceback__))}".rstrip())
        cause = cause.__cause__ or cause.__context__
    return "\nafter ".join(told)


def _named_value(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2]}{REDACTED}" if _is_secret_name(found[1]) else found[0]


def _hides_something(word: str) -> bool:
    return _SECRET_SHAPE.search(word) is not None or ("@" in word and not word.startswith(f"//{REDACTED}@"))


def _redacted(url: str, decodings: int) -> str:
    text = _USERINFO.sub(f"//{REDACTED}@", url)
    kept, position = [], 0
    while (parameter := _PARAMETER.search(text, position)) is not None:
        kept.append(text[position : parameter.start()])
        shown, position = _parameter(text, parameter, decodings)
        kept.append(shown)
    return "".join(kept) + text[position:]


def _parameter(text: str, parameter: re.Match[str], decodings: int) -> tuple[str, int]:
    """How one parameter is shown, and where the text goes on."""
    mark, name, equals = parameter.groups()
    began = parameter.end()
    if equals and _is_secret_name(name):
        ended = _next_of(_SECRET_ENDS, text, began)
        return (f"{mark}{name}={REDACTED}" if ended > began else parameter[0]), ended
    ended = _next_of(_VALUE_ENDS, text, began) if equals else began
    shown_name, shown_value = (REDACTED if _is_secret(part, decodings) else part for part in (name, text[began:ended]))
    return f"{mark}{shown_name}{equals}{shown_value}", ended


def _next_of(marks: str, text: str, start: int) -> int:
    return next((i for i in range(start, len(text)) if text[i] in marks), len(text))


def _is_secret_name(name: str) -> bool:
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", unquote_plus(name))
    lower = [word.lower() for word in words]
    return not _SECRET_WORDS.isdisjoint(lower) or _SECRET_NAME.search("".join(lower)) is not None


def _is_secret(value: str, decodings: int) -> bool:
    """Whether a value has the shape of a secret, or is an escaped URL or query that carries one."""
    if _SECRET_SHAPE.search(value) is not None:
        return True
    decoded = unquote_plus(value)
    if decoded == value:
        return False
    inner = decoded if "?" in decoded or "://" in decoded else "?" + decoded
    return decodings == 0 or _redacted(inner, decodings - 1) != inner
