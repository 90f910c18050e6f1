"""Measures redaction: ordinary text, text full of secrets, and the nastiest text we know.

    python tests/bench/redaction.py [--json] [--kilobytes N]

Goals: 1 MB of ordinary text within 1.2 s; nothing slower than 1 s per 100 KB; time grows with
length (three times the text, about three times the time). Times are CPU time of this process.
"""

# ruff: noqa: E501 - a row of pieces belongs on one line.

import argparse
import json
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from threadbook.domain.redaction import redact  # noqa: E402

from tests.fixtures.secrets import further_shapes  # noqa: E402

KEY_LINE = "-----BEGIN RSA PRIVATE " + "KEY-----"
NASTY = (
    *("a.a.a.", "a", "A1", "\u200b", "\x1b[0m", "\u0130", "--", "[REDACTED_SECRET]"),
    *("xoxb-1-1-", "glpat-", "pypi-a-", "sk-", "eyJ", "eyJa-", "eyJaaaaaaaaaa.", "AKIA", "SG.a.", "8Q~"),
    *(KEY_LINE, KEY_LINE + "\n", KEY_LINE + "\nA: b\n", "Mbcdefghijklmnopqrstuvwxy."),
    *("secret_secret_", "password=", "password=$", 'password: "', "password='\\'", "password\n"),
    *("token ", "--password ", "password a b c d is ", "passwort は", "<password>", "password: str = "),
    *("password:\n aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 'password" value="', 'name="password" ', "login a password "),
    *("Cookie: a=b", "Cookie: ", "Bearer ", "basic ", "authorization: ", "://a:", "://a:b@", "key=", "/?sig="),
    *("curl -u ", "curl curl ", "echo a | ", "mysql -uroot ", "sshpass -p", "htpasswd -b a b ", "<<< "),
    *("identified by ", "WIFI:S:a;", "mongo -u x ", "x://a:b@password is A9!b.", "Das Passwort lautet A9!b."),
    *("password: \u00ab ", 'password="""', "password=[[", "password: |\n  a", "mnemonic abandon ", "abandon "),
    *("sqlcmd -S ", "plink -p ", "put-parameter --value ", "Private-Lines: 1\n", "Private-Lines: 1\nAAAAAAAAAAAAAAAA\n"),
    *("---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n", ":5432:a", ":*:*:a", '"d":"', "s.A1", "az login -u "),
)  # fmt: skip


def seconds(text: str) -> float:
    started = time.process_time()
    redact(text)
    return time.process_time() - started


def repeated(unit: str, length: int) -> str:
    return (unit * (length // len(unit) + 1))[:length]


def ordinary(length: int) -> str:
    """This project's own prose and code, which speaks of tokens and passwords a lot."""
    files = sorted([*ROOT.glob("*/*.py"), *ROOT.glob("*/*/*.py"), *ROOT.glob("*.md")])
    text = "\n".join(file.read_text("utf-8") for file in files if "redaction" not in file.name)
    return repeated(text, length)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--kilobytes", type=int, default=100, help="size of each nasty text")
    asked = parser.parse_args()
    length = asked.kilobytes * 1000

    nasty = []
    for unit in NASTY:
        third, full = seconds(repeated(unit, length // 3)), seconds(repeated(unit, length))
        nasty.append({"unit": unit, "s": round(full, 3), "growth": round(full / third, 1)})
    nasty.sort(key=lambda row: -row["s"])
    secrets = "\n".join(case.text for case in further_shapes.SECRETS)
    found = {
        "ordinary_1mb_s": round(seconds(ordinary(1_000_000)), 3),
        "secrets_1mb_s": round(seconds(repeated(secrets, 1_000_000)), 3),
        "nasty": nasty,
    }
    if asked.json:
        print(json.dumps(found))
        return
    print(f"1 MB of ordinary text  {found['ordinary_1mb_s']:.3f} s")
    print(f"1 MB full of secrets   {found['secrets_1mb_s']:.3f} s")
    print(f"{asked.kilobytes} KB of nasty text: seconds, growth at three times the length")
    for row in nasty[:15]:
        print(f"  {row['s']:.3f}  x{row['growth']:<5} {row['unit']!r}")


if __name__ == "__main__":
    main()
