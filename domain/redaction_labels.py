"""Redaction, the second part of the table: values that a label gives away, in many languages.

One label, many shapes: assigned, typed, in a flag, in a tag, in a sentence, on the next line. The
label proves little in code, so the value is judged too.
"""

# ruff: noqa: E501 - a pattern that is one thought reads better on one line.
import re

from .redaction_rules import Rule

# Labels. Any prefix may be glued to one (`PGPASSWORD`, `clientSecret`, `STRIPE_SECRET_KEY`).
PASS_WORDS = (
    "password", "passwd", "passphrase", "passcode", "pwd", "passwort", "kennwort", "passwörter",
    "mot de passe", "contraseña", "contrasen\u0303a", "contrasena", "palabra clave", "senha",
    "wachtwoord", "hasło", "heslo", "jelszó", "şifre", "lösenord", "adgangskode", "salasana",
    "parola d'ordine", "mật khẩu", "пароль", "密码", "密碼", "口令", "パスワード", "비밀번호",
    "암호", "كلمة المرور", "كلمة السر", "סיסמה", "पासवर्ड", "รหัสผ่าน", "κωδικός",
)  # fmt: skip
TOKEN_WORDS = (
    "token", "secret", "apikey", "api_key", "api-key", "api key", "api-schlüssel", "clé api",
    "access_key", "access-key", "accesskey", "private_key", "private-key", "privatekey",
    "account_key", "accountkey", "encryption_key", "encryptionkey", "signing_key", "signingkey",
    "master_key", "masterkey", "auth_key", "authkey", "client-key-data", "subscription-key",
    "subscription_key", "storage_key", "shared_key", "sharedkey", "deploy_key", "access code",
    "credential", "requirepass", "routing_key", "integration_key", "令牌", "密钥", "秘钥", "トークン", "токен", "geheimnis",
)  # fmt: skip
NO_SECRETS = r"(?<!next)(?<!next[_-])(?<!page)(?<!page[_-])(?<!pad_)(?<!eos_)(?<!bos_)(?<!unk_)(?<!sync)(?<!public_)"


def words(of: tuple[str, ...]) -> str:
    return "(?:" + "|".join(re.escape(word) for word in sorted(of, key=len, reverse=True)) + ")"


SUFFIX = r"(?:[_.-]?(?:key|value|token|base|string|text|hex|plain|prod|dev|staging|test|live|old|new|current|id(?=[_\W]{1,4}[\"'])|\d{1,3})){0,2}"
CLOSE = r"""(?![A-Za-z0-9_-])(?:\\{0,3}["'`\])]|\*\*|[?!](?==?:)|\x1b){0,4}"""
SEPARATOR = r"(?:[ \t\xa0]{0,16}(?:=>|->|:=|!=|={1,3}|:|\uff1a|\uff1d)(?:\*\*)?[ \t\xa0\u3000]{0,16}|[ \t]{1,32}\|[ \t]{1,16})"
TOKEN = f"(?i:{NO_SECRETS}{words(TOKEN_WORDS)}{SUFFIX})"
PASS = f"(?i:{words(PASS_WORDS)}{SUFFIX})"
VERB = r"(?:is(?:\ now|\ set\ to)?|was|ist|lautet|war|est|es|è|é|jest|to|auf|er|är|on|هي|هو|है|это|είναι)"
TALK = rf"(?:(?:[ \t]{{1,4}}[\w'\u2019./@-]{{1,24}}){{0,5}}?[ \t]{{1,4}}{VERB}[ \t]{{0,2}}:?[ \t]{{1,4}}|[ \t]{{1,4}}[-\u2013\u2014][ \t]{{1,4}}|[ \t]?(?:是|为|為|は|는|은)[ \t]?[:\uff1a]?[ \t]?)"
TYPE = r"[ \t]{0,8}:[ \t]{0,8}&?[A-Za-z_][\w.\[\]|<> ]{0,40}?[ \t]{0,8}=[ \t]{0,8}(?=[fbru]?[\"'`])"
NAMED = r"""(?:["'][ \t]{0,20},?|[ \t]{0,20})\s{1,40}(?:[\w-]{1,20}=["'][^"'\n\0]{0,60}["'][ \t]{1,8}){0,3}["']?(?:value|content|default)["']?[ \t]{0,8}[:=][ \t]{0,8}"""
PAIR = r"""["'][ \t]{0,8},[ \t]{0,8}(?=["'])"""
NEXT_LINE = r"""[ \t]{0,8}\r?\n[ \t]{0,40}(?P<s>[^\s:#"'`\\\0\x1b-][^\s"'`\\\0\x1b]{7,127})[ \t]{0,40}(?=\r?\n|$)"""
TAG = r"[\w.-]{0,20}(?:[ \t][^<>\n\0]{0,100})?>[ \t]{0,8}(?P<s>[^<>\"\n\0]{4,512})</"
ASSIGNING = re.compile(
    r"(?:^|[\s;&])(?:ENV|ARG|#define|setx|set[ \t]+-\w{1,4}|export|config(?:ure)?[ \t]+set)[ \t]+\w*$"
)
FLAG = re.compile(r"(?<![\w-])--?(?:[A-Za-z]+[-.])*[A-Za-z]*$")


def label(
    name: str,
    tail: str,
    example: str,
    counter: str,
    *,
    kinds: str = "pass token",
    strong: bool = False,
    before: str | None = None,
) -> tuple[Rule, ...]:
    """One shape of "label, then value", for the labels of passwords and for those of tokens."""
    compiled = re.compile(before) if before else None
    rules = {
        "pass": lambda: Rule(
            f"password {name}",
            PASS_WORDS,
            re.compile(PASS + tail),
            example,
            counter,
            "pass",
            strong,
            compiled,
        ),
        "token": lambda: Rule(
            f"token {name}",
            TOKEN_WORDS,
            re.compile(TOKEN + tail),
            example.replace("password", "api_key"),
            counter.replace("password", "api_key"),
            "token",
            strong,
            compiled,
        ),
    }
    return tuple(rules[kind]() for kind in kinds.split())


LABELS = (
    *label(
        "assigned",
        CLOSE + SEPARATOR,
        'x_password: "<<{an12}!9>>" # y',
        "password = get_password(name)",
    ),
    *label(
        "typed", CLOSE + TYPE, "const password: string = '<<{an24}>>';", 'def f(password: str = "")'
    ),
    *label(
        "in a flag",
        r"[ \t]{1,4}(?!-)",
        "x --db-password <<{an24}>> --y",
        "x --password PASSWORD",
        before=FLAG.pattern,
    ),
    *label(
        "in a shell or image",
        r"[ \t]{1,4}(?!=)",
        "ENV DB_password <<{an24}>>",
        "export password",
        before=ASSIGNING.pattern,
    ),
    *label(
        "by name and value",
        r"(?![A-Za-z0-9_-])" + NAMED,
        '<add key="password" value="<<{an12}!9>>" />',
        '<input name="password" value="">',
    ),
    *label(
        "in a pair",
        r"(?![A-Za-z0-9_-])" + PAIR,
        "define('DB_password', '<<{an24}>>');",
        "('password', 'username')",
        strong=True,
    ),
    *label(
        "in a tag",
        TAG,
        "<password><<{an12}!9>></password>",
        "<password>${db.password}</password>",
        before=r"</?[\w:.-]{0,40}$|<[\w:.-]{0,40}$",
    ),
    *label(
        "in a property list",
        r"</key>\s{0,40}<string>(?P<s>[^<>\"\n\0]{4,512})</",
        "<key>password</key>\n<string><<{an12}!9>></string>",
        "<key>password</key>\n<string>required</string>",
    ),
    *label(
        "in a sentence",
        TALK,
        "the password is <<{an12}!9>> ok",
        "the password is required",
        strong=True,
    ),
    *label(
        "quoted after it",
        r"[ \t]{1,4}(?=[\"'`])",
        "with password `<<{an12}!9>>` ok",
        'the password "field"',
        kinds="pass",
        strong=True,
    ),
    *label(
        "after a login",
        r"[ \t]{1,8}(?=\S)",
        "machine a login dana password <<{an12}!9>>",
        "login failed, password wrong",
        kinds="pass",
        before=r"\b(?:login|account|user)[ \t]+[^\s\0]{1,64}\s{1,16}$",
    ),
    *label(
        "on the next line",
        CLOSE + r"[ \t]{0,8}[:\uff1a]" + NEXT_LINE,
        "password:\n  <<{an12}!9>>\nx",
        "password:\n  type: string\n",
        strong=True,
    ),
    Rule(
        "token beside it",
        ("token",),
        re.compile(
            r"(?i:token)[ \t]{1,4}(?=[\w-]{0,40}[A-Z])(?=[\w-]{0,40}[a-z])(?=[\w-]{0,40}[0-9])"
            r"(?P<s>[A-Za-z0-9_-]{24,})(?![\w./(])"
        ),
        "bot token <<{an40}>> works",
        "token 019c0000-0000-7000-8000-0000000000A1",
        "token",
        strong=True,
    ),
    # In an environment file even a plain word is the password: code is not written like this.
    Rule(
        "environment password",
        ("password=", "passwd=", "passphrase=", "_pass="),
        re.compile(
            r"(?:PASSWORD|PASSWD|PASSPHRASE|_PASS)="
            r"""(?P<s>[^\s"'`()\[\]{}<>$\\;&|,.:/\0\x1b]{6,256})(?=$|[\s"'\\;&])"""
        ),
        "DB_PASSWORD=<<{lw12}>>\nA=b",
        "PASSWORD=$1 PASSWORD=get_it() PASSWORD=",
        "sure",
    ),
    Rule(
        "pass said",
        ("pass", "pw", "clave", "chave", "pin"),
        re.compile(r"(?<![A-Za-z\0-])(?:[Pp]ass|[Pp]w|[Cc]lave|[Cc]have|PIN)[ \t]?:[ \t]{1,4}"),
        "user: dana pass: <<{an12}!9>>",
        "pass: 12 of 13, PASS: TestLogin9",
        "pass",
        strong=True,
    ),
    Rule(
        "credentials said",
        ("credentials", "creds", "login", "zugangsdaten"),
        re.compile(
            r"(?i:credentials|creds|logins?|zugangsdaten)(?:[ \t](?:are|is|sind))?:?[ \t]{1,4}[\w.@-]{2,40}"
            r"[ \t]?[/:|][ \t]?(?P<s>[^\s\"'`\\\0/]{6,128})(?=$|[\s\"'`])"
        ),
        "credentials: dana / <<{an12}!9>>",
        "login: see docs/setup2.md",
        "pass",
        strong=True,
    ),
)
