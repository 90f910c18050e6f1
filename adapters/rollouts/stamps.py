"""Times as transcripts write them, as Unix milliseconds. What is no time is None, never a guess.

Plain integers all the way: comparing dates with and without a zone raises, and a date near the
end of the calendar overflows when it is shifted.
"""

import re
from datetime import date

_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d)[:-](\d\d)[:-](\d\d)(?:[.,](\d{1,12}))?\s*"
    r"(?:([Zz])|([+-])(\d\d):?(\d\d))?",
    re.ASCII,
)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
# Below this a number is seconds (until the year 5138), above it milliseconds (from 1973 on).
_SECONDS_BELOW = 100_000_000_000
_LATEST_MS = 253_402_300_800_000


def to_ms(stamp: object) -> int | None:
    """Without a zone a time is UTC, as every writer of these files means it."""
    if isinstance(stamp, bool):
        return None
    if isinstance(stamp, (int, float)):
        if not 0 < stamp < _LATEST_MS:
            return None
        return int(stamp * 1000) if stamp < _SECONDS_BELOW else int(stamp)
    if not isinstance(stamp, str) or not (found := _RFC3339.fullmatch(stamp.strip())):
        return None
    year, month, day, hour, minute, second = (int(found[n]) for n in range(1, 7))
    try:
        days = date(year, month, day).toordinal() - _EPOCH_DAY
    except ValueError:
        return None
    if hour > 23 or minute > 59 or second > 60:
        return None
    ms = int((found[7] or "0").ljust(3, "0")[:3])
    seconds = days * 86_400 + hour * 3_600 + minute * 60 + min(second, 59)
    if found[9]:
        shift = int(found[10]) * 3_600 + int(found[11]) * 60
        seconds += -shift if found[9] == "+" else shift
    return seconds * 1000 + ms
