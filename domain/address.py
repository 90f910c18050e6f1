"""Address: where a provider's server is asked, whether that can be one, and how it may be shown.

An address may carry a user and a password, which some servers want, and then it is a secret: only
who asks the server sees it whole. What is shown, agreed to and recorded has neither.
"""

from urllib.parse import urlsplit


def is_usable(base_url: str) -> bool:
    """Whether paths can be put behind it. With a query or a fragment they would land inside.

    >>> [is_usable(each) for each in ("http://[::1]:8080/v1", "http://a:99999", "https://a/?k=v")]
    [True, False, False]
    """
    if not base_url.isprintable() or any(sign in base_url for sign in " ?#"):
        return False
    try:
        parts = urlsplit(base_url)
        return bool(parts.scheme in ("http", "https") and parts.hostname and parts.port != 0)
    except ValueError:  # No port, or no address of the sixth version.
        return False


def shown(base_url: str) -> str:
    """
    >>> shown("https://me:hunter2@a.example/v1?key=sesame")
    'https://a.example/v1'
    """
    scheme, mark, rest = base_url.partition("://")
    for sign in "?#":
        rest = rest.partition(sign)[0]
    authority, slash, path = rest.partition("/")
    return f"{scheme}{mark}{authority.rpartition('@')[2]}{slash}{path}"
