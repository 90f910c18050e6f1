"""How a thread's id is written where it is a UUID: plain, in letters of either size."""

import re

UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
