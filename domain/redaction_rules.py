"""Redaction, the table: what gives a secret away, each with an example and a counter-example.

A rule is tried only where one of its anchors stands in the lower-cased text, so ordinary text
costs a few searches for fixed strings. Every pattern begins at its anchor (or `back` characters
before it) and is bounded, so that a rule costs the same at each anchor, whatever follows.

The secret is the group `s`. Without one it is the value that follows the match, as
`redaction_values` reads it. In the examples `{an36}` stands for 36 random letters and digits, so
that this file holds no key; `<<…>>` marks what must go.
"""

import re
from typing import NamedTuple

from .redaction_values import Family


class Rule(NamedTuple):
    name: str
    anchors: tuple[str, ...]
    pattern: re.Pattern[str]
    example: str
    counter: str
    family: Family | None = None
    """How a value is judged; None: the shape alone is proof."""
    strong: bool = False
    """The value must look random too: the words before it prove little."""
    before: re.Pattern[str] | None = None
    """What must end where the anchor stands, within 160 characters."""
    each: re.Pattern[str] | None = None
    """Looked for again inside the match, for lists such as cookies."""
    back: tuple[int, ...] = (0,)


# What may stand before a token. A letter before it makes another word of it (`task-…` has `sk-`),
# unless the letter ends an escape of the string that holds the token.
ESCAPED = r"(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2})|(?<=\[[0-9]m)|(?<=;[0-9]m)|(?<=[0-9][0-9]m)"
FREE = rf"(?:(?<![A-Za-z0-9\0])|{ESCAPED})"
APART = rf"(?:(?<![A-Za-z0-9_\0-])|{ESCAPED})"
END = r"(?![A-Za-z0-9])"


def token(
    name: str,
    anchors: str,
    shape: str,
    example: str,
    counter: str,
    *,
    family: Family | None = None,
    apart: bool = False,
    back: tuple[int, ...] = (0,),
) -> Rule:
    pattern = re.compile(f"{APART if apart else FREE}(?P<s>{shape})")
    return Rule(name, tuple(anchors.split()), pattern, example, counter, family, back=back)


TOKENS = (
    token(
        "openai and alike",
        "sk-",
        r"sk-[A-Za-z0-9_-]{16,}",
        "key <<sk-proj-{us40}>>",
        "task-master-ai__next_task_with_long_suffix",
        family="token",
        apart=True,
    ),
    token(
        "github",
        "ghp_ gho_ ghu_ ghs_ ghr_",
        r"gh[pousr]_[A-Za-z0-9]{30,}",
        "https://x:<<ghp_{an36}>>@github.com/o/p",
        "ghp_short",
        family="sure",
    ),
    token(
        "github fine-grained",
        "github_pat_",
        r"github_pat_[A-Za-z0-9_]{40,}",
        "PAT <<github_pat_{an22}_{an59}>>.",
        "github_pat_name",
    ),
    token(
        "gitlab",
        "glpat- gldt- glrt- glcbt- glptt- glft- glsoat- gloas-",
        r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|oas)-[A-Za-z0-9_-]{20,}(?:\.[A-Za-z0-9_-]{2,}){0,2}",
        "login -t <<glpat-{us20}>>",
        "glpat-name",
    ),
    token(
        "aws key id",
        "akia asia abia acca",
        rf"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{{16}}{END}",
        "id <<AKIA{up16}>>.",
        "id ASIANCOUNTRIESANDMANYMORE",
    ),
    token(
        "slack",
        "xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxc- xoxd- xoxe- xoxe.",
        r"xox[a-z][.-](?=[A-Za-z-]{0,12}[0-9%])[A-Za-z0-9%+/.-]{12,}",
        "<<xoxb-{di12}-{an24}>> works",
        "xoxb-your-token-here",
    ),
    token(
        "slack app",
        "xapp-",
        r"xapp-[0-9]-[A-Za-z0-9-]{20,}",
        "<<xapp-1-{up11}-{di13}-{he64}>>",
        "xapp-two",
    ),
    token(
        "google api key", "aiza", r"AIza[A-Za-z0-9_-]{35}", "maps?key=<<AIza{us35}>>&v=3", "AIzawa"
    ),
    token("google oauth", "ya29.", r"ya29\.[A-Za-z0-9_-]{20,}", "<<ya29.{us60}>> ok", "ya29.short"),
    token("google refresh", "1//0", r"1//0[A-Za-z0-9_-]{30,}", "<<1//0{us40}>>", "http1//0.5"),
    token(
        "google client secret",
        "gocspx-",
        r"GOCSPX-[A-Za-z0-9_-]{20,}",
        "<<GOCSPX-{us28}>>",
        "GOCSPX-x",
    ),
    token(
        "azure client secret",
        "7q~ 8q~",
        r"[A-Za-z0-9_.~-]{3}[78]Q~[A-Za-z0-9_.~-]{31,34}",
        "found <<{an3}8Q~{an34}>>",
        "abc8Q~short",
        back=(3,),
    ),
    token(
        "jwt",
        "eyj",
        r"eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]{10,})(?:\.[A-Za-z0-9_-]*){0,3}",
        "it said <<eyJ{us20}.eyJ{us30}.{us43}>>",
        "eyJhbGciOiJIUzI1NiJ9 alone",
    ),
    token(
        "stripe",
        "sk_live_ sk_test_ rk_live_ rk_test_ sk_org_",
        r"[sr]k_(?:live|test|org)_[A-Za-z0-9]{16,}",
        "K=<<sk_live_{an24}>>",
        "task_test_of_something",
    ),
    token(
        "webhook secret", "whsec_", r"whsec_[A-Za-z0-9+/=]{24,}", "<<whsec_{an32}>>", "whsec_name"
    ),
    token(
        "npm",
        "npm_",
        r"npm_[A-Za-z0-9]{36}" + END,
        "_authToken=<<npm_{an36}>>",
        "npm_config_registry",
    ),
    token(
        "pypi",
        "pypi-",
        r"pypi-[A-Za-z0-9_-]{50,}",
        "<<pypi-AgEI{us80}>>",
        "pypi-publish",
        family="token",
    ),
    token(
        "hugging face",
        "hf_",
        r"hf_[A-Za-z]{30,40}" + END,
        "<<hf_{al34}>>",
        "hf_hub_download",
        apart=True,
    ),
    token("groq", "gsk_", r"gsk_[A-Za-z0-9]{40,}", "<<gsk_{an52}>>", "gsk_render", apart=True),
    token(
        "xai and perplexity",
        "xai- pplx-",
        r"(?:xai|pplx)-[A-Za-z0-9]{40,}",
        "<<xai-{an80}>>",
        "xai-org",
        apart=True,
    ),
    token(
        "replicate", "r8_", r"r8_[A-Za-z0-9]{37}" + END, "<<r8_{an37}>>", "r8_format", apart=True
    ),
    token(
        "sendgrid",
        "sg.",
        r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{30,64}",
        "<<SG.{us22}.{us43}>>",
        "SG.name.other",
    ),
    token(
        "mailchimp",
        "-us",
        rf"[0-9a-f]{{32}}-us[0-9]{{1,2}}{END}",
        "<<{he32}-us12>>",
        "call-us2",
        back=(32,),
    ),
    token(
        "mailgun",
        "key-",
        rf"key-[0-9a-f]{{32}}{END}",
        "<<key-{he32}>>",
        "cache-key-{he40}",
        apart=True,
    ),
    token("twilio key", "sk", rf"SK[0-9a-f]{{32}}{END}", "<<SK{he32}>>", "SKIP", apart=True),
    token(
        "shopify",
        "shpat_ shpca_ shppa_ shpss_",
        r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}",
        "<<shpat_{he32}>>",
        "shpat_x",
    ),
    token(
        "digitalocean",
        "dop_v1_ doo_v1_ dor_v1_",
        r"do[por]_v1_[0-9a-f]{64}",
        "<<dop_v1_{he64}>>",
        "dop_v1_x",
    ),
    token(
        "named prefixes",
        "lin_api_ ntn_ figd_ sbp_ nfp_ dckr_pat_ dckr_oat_ sntrys_ sntryu_ glsa_ rubygems_ pul- hrku- lsv2_pt_",
        r"(?:lin_api|ntn|figd|sbp|nfp|dckr_[po]at|sntry[su]|glsa|rubygems|lsv2_pt)_[A-Za-z0-9_+/=-]{24,}|pul-[0-9a-f]{40}|HRKU-[A-Za-z0-9_-]{30,}",
        "<<lin_api_{an40}>>",
        "figd_name",
        apart=True,
    ),
    token(
        "databricks",
        "dapi",
        rf"dapi[0-9a-f]{{32}}(?:-[0-9])?{END}",
        "<<dapi{he32}>>",
        "dapibus",
        apart=True,
    ),
    token(
        "doppler",
        "dp.pt. dp.st. dp.ct. dp.sa.",
        r"dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9._-]{32,}",
        "<<dp.pt.{an43}>>",
        "dp.pt.x",
    ),
    token("vault", "hvs. hvb. hvr.", r"hv[sbr]\.[A-Za-z0-9_-]{24,}", "<<hvs.{us90}>>", "hvs.name"),
    token(
        "terraform cloud",
        ".atlasv1.",
        r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}",
        "<<{an14}.atlasv1.{us60}>>",
        "x.atlasv1.y",
        back=(14,),
    ),
    token(
        "postman", "pmak-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}", "<<PMAK-{he24}-{he34}>>", "PMAK-1"
    ),
    token(
        "atlassian",
        "atatt3 atctt3",
        r"AT[AC]TT3[A-Za-z0-9_=-]{60,}",
        "<<ATATT3{us180}>>",
        "ATATT3x",
    ),
    token(
        "tailscale",
        "tskey-",
        r"tskey-[a-z]+-[A-Za-z0-9-]{16,}",
        "<<tskey-auth-{an12}-{an32}>>",
        "tskey-auth-name",
    ),
    token(
        "age",
        "age-secret-key-1",
        r"AGE-SECRET-KEY-1[A-Z0-9]{58}",
        "<<AGE-SECRET-KEY-1{up58}>>",
        "AGE-SECRET-KEY-1",
    ),
    token(
        "discord bot",
        ".",
        r"[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}",
        "<<M{an25}.{an6}.{us38}>>",
        "Modules.name1.other",
        back=(24, 25, 26),
    ),
    token(
        "telegram bot",
        ":aa",
        r"[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}",
        "/bot<<{di10}:AA{us33}>>/getMe",
        "12:AA",
        back=(8, 9, 10),
    )._replace(pattern=re.compile(r"(?<![0-9])(?P<s>[0-9]{8,10}:AA[A-Za-z0-9_-]{30,})")),
    token(
        "password hash",
        "$6$ $5$ $y$ $2a$ $2b$ $2y$ $apr1$ $argon2",
        r"\$(?:6|5|y|2[aby]|apr1|argon2\w{1,2})\$[A-Za-z0-9./$=,+]{24,}",
        "dana:<<$6${an8}${an86}>>:19700",
        "cost $5$ or $6$",
    ),
)

PEM = Rule(
    "private key block",
    ("-----begin ",),
    # Without an END the block was cut off: only lines that are base64 belong to it.
    re.compile(
        r"""(?P<s>-----BEGIN\ [A-Z0-9 ]{0,40}PRIVATE\ KEY(?:\ BLOCK)?-----
        (?: (?=(?:[^-]|-(?!----)){0,400}?[A-Za-z0-9+/]{16})(?:[^-\0]|-(?!----))++-----END\ [A-Z0-9 ]{0,60}-----
          | (?:\s|\\[nr])*(?:[A-Za-z-]{3,20}:\ [^\n\\]{0,80}(?:\n|\\n)){0,4}(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{16,})++ ))""",
        re.X,
    ),
    "a\n<<-----BEGIN RSA PRIVATE KEY-----\n{an64}\n{an64}\n-----END RSA PRIVATE KEY----->>\nb",
    'grep "-----BEGIN RSA PRIVATE KEY-----" -r .',
)

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
    "credential", "requirepass", "令牌", "密钥", "秘钥", "トークン", "токен", "geheimnis",
)  # fmt: skip
NO_SECRETS = r"(?<!next)(?<!next[_-])(?<!page)(?<!page[_-])(?<!pad_)(?<!eos_)(?<!bos_)(?<!unk_)(?<!sync)(?<!public_)"


def words(of: tuple[str, ...]) -> str:
    return "(?:" + "|".join(re.escape(word) for word in sorted(of, key=len, reverse=True)) + ")"


SUFFIX = r"(?:[_.-]?(?:key|value|token|base|string|text|hex|plain|prod|dev|staging|test|live|old|new|current|id(?=[_\W]{1,4}[\"'])|\d{1,3})){0,2}"
CLOSE = r"""(?![A-Za-z0-9_-])(?:\\{0,3}["'`\])]|\*\*|[?!](?==?:)|\x1b){0,4}"""
SEPARATOR = r"[ \t]{0,16}(?:=>|->|:=|!=|={1,3}|:|\uff1a|\uff1d|\||%3[dD])(?:\*\*)?[ \t]{0,16}"
TOKEN = f"(?i:{NO_SECRETS}{words(TOKEN_WORDS)}{SUFFIX})"
PASS = f"(?i:{words(PASS_WORDS)}{SUFFIX})"
VERB = r"(?:is(?:\ now|\ set\ to)?|was|ist|lautet|war|est|es|è|é|jest|to|auf)"
TALK = rf"(?:(?:[ \t]{{1,4}}[\w'’./@-]{{1,24}}){{0,5}}?[ \t]{{1,4}}{VERB}[ \t]{{0,2}}:?[ \t]{{1,4}}|[ \t]?(?:是|为|為|は)[ \t]?[:\uff1a]?[ \t]?)"
TYPE = r"[ \t]{0,8}:[ \t]{0,8}[A-Za-z_][\w.\[\]|<> ]{0,40}?[ \t]{0,8}=[ \t]{0,8}(?=[fbru]?[\"'`])"
NAMED = r"""(?:["'][ \t]{0,20},?|[ \t]{0,20})\s{1,40}["']?(?:value|content|default)["']?[ \t]{0,8}[:=][ \t]{0,8}"""
PAIR = r"""["'][ \t]{0,8},[ \t]{0,8}(?=["'])"""
NEXT_LINE = (
    r"""[ \t]{0,8}\r?\n[ \t]{0,40}(?P<s>[^\s:#\0\x1b-][^\s\0\x1b]{7,127})[ \t]{0,40}(?=\r?\n|$)"""
)
TAG = r"[\w.-]{0,20}(?:[ \t][^<>\n\0]{0,100})?>[ \t]{0,8}(?P<s>[^<>\n\0]{4,512})</"
ASSIGNING = re.compile(r"(?:^|[\s;&])(?:ENV|ARG|setx|set[ \t]+-\w{1,4}|export)[ \t]+\w*$")
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
    ),
    *label(
        "in a tag",
        TAG,
        "<password><<{an12}!9>></password>",
        "<password>${db.password}</password>",
        before=r"</?[\w:.-]{0,40}$|<[\w:.-]{0,40}$",
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
        before=r"\b(?:login|account|user)[ \t]+\S{1,64}\s{1,16}$",
    ),
    *label(
        "on the next line",
        CLOSE + r"[ \t]{0,8}[:\uff1a]" + NEXT_LINE,
        "password:\n  <<{an12}!9>>\nx",
        "password:\n  type: string\n",
        strong=True,
    ),
)

OTHERS = (
    Rule(
        "pass assigned",
        ("pass", "pw"),
        re.compile(
            r"""(?:(?<![A-Za-z])(?:pass|PASS|pw|PW)|(?<=[a-z])Pass)(?:(?:\\{0,3}["'])[ \t]?[:=]>?[ \t]?|=(?!=))"""
        ),
        "DB_PASS=<<{an12}!9>> x",
        "bypass=enabled1",
        "pass",
    ),
    Rule(
        "wifi and psk",
        ("psk", "wifi:"),
        re.compile(
            r"""(?i:psk["']?[ \t]?[:=][ \t]?(?=["'])|WIFI:(?:[STH]:[^;\n]{0,64};){0,4}P:(?P<s>[^;\n\0]{4,63}))"""
        ),
        "WIFI:S:fern;T:WPA;P:<<{an12}!9>>;;",
        "WIFI:S:fern;T:nopass;;",
        "pass",
    ),
    Rule(
        "url password",
        ("://",),
        re.compile(
            r"""://[^\s/:@"'`<>\\\0]{0,128}:(?P<s>[^\s/"'`<>\\\0\x1b]{1,256})@(?=[A-Za-z0-9\[_])"""
        ),
        "mysql://root:<<p@{an8}>>@db.test/f",
        "http://$USER:$PASS@host http://127.0.0.1:80/@x",
        "sure",
    ),
    Rule(
        "bearer",
        ("bearer",),
        re.compile(
            r"(?<![A-Za-z])(?i:bearer)(?:[ \t]{1,8}|%20)(?P<s>[A-Za-z0-9._~+/-]{16,}={0,2})"
        ),
        "Bearer <<{an40}>>",
        "the bearer misunderstanding_between_teams",
        "token",
    ),
    Rule(
        "basic",
        ("basic",),
        re.compile(
            r"(?<![A-Za-z])(?i:basic)[ \t]{1,8}(?P<s>(?=[A-Za-z]{0,40}[0-9+/=])[A-Za-z0-9+/]{10,}={0,2})(?![\w-])"
        ),
        "Authorization: Basic <<{an40}>>",
        "Basic authentication",
        "token",
    ),
    Rule(
        "authorization",
        ("authorization",),
        re.compile(
            r"""(?i:authorization)\\{0,3}["']?[ \t]?[:=,][ \t]{0,4}\\{0,3}["']?(?:[A-Za-z-]{3,20}[ \t]{1,4})?(?P<s>[^\s"',;=<>\\\0]{8,}={0,2})"""
        ),
        "Authorization: token <<{an40}>>",
        "Authorization: Bearer $TOKEN",
        "token",
    ),
    Rule(
        "cookies",
        ("cookie:", 'cookie":', "-b ", "--cookie "),
        re.compile(
            r"""(?i:cookie\\{0,3}["']?:[ \t]?|(?<!\S)(?:-b|--cookie)[ \t]+(?=["']))[^\n\0]{0,4096}"""
        ),
        "Cookie: theme=dark; sessionid=<<{lo32}>>; a=b",
        "Cookie: theme=dark; lang=de",
        "token",
        each=re.compile(r"""(?<![\w.%-])[\w.%-]{1,64}=(?P<s>[^;\s"',\\\0\x1b]{12,})"""),
    ),
    Rule(
        "query parameter",
        ("key=", "sig=", "signature=", "code="),
        re.compile(r"(?<=[?&#-])(?i:key|sig|signature|code)=(?P<s>[A-Za-z0-9%+/_.~-]{16,}={0,2})"),
        "https://a.test/?sp=r&sig=<<{an43}>>&x=1",
        "https://a.test/?key=name_of_it",
        "token",
    ),
    Rule(
        "percent-encoded query",
        ("token%3d", "key%3d", "secret%3d", "password%3d"),
        re.compile(r"(?i:(?:token|key|secret|password)%3d)(?P<s>[A-Za-z0-9_.~-]{12,})"),
        "next=%3Faccess_token%3D<<{an40}>>%26x",
        "next=%3Fkey%3Dname",
        "token",
    ),
    Rule(
        "docker and npm auth",
        ('"auth', "_auth"),
        re.compile(
            r"""(?:\\{0,3}"auth\\{0,3}"[ \t]?:[ \t]?\\{0,3}"|_auth[ \t]?=[ \t]?"?)(?P<s>[A-Za-z0-9+/]{12,}={0,2})"""
        ),
        '{"auths": {"r.test": {"auth": "<<{an30}==>>"}}}',
        '"auth": "none"',
        "token",
    ),
    Rule(
        "chat webhook",
        ("hooks.slack.com/", "/api/webhooks/", "/incomingwebhook/", "hooks.zapier.com/"),
        re.compile(
            r"(?i:hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9]{6,14}/(?:[A-Za-z0-9]{6,14}/)?(?=[A-Za-z0-9_-]{16})|/api/webhooks/[0-9]{15,20}/|/IncomingWebhook/|hooks\.zapier\.com/hooks/catch/[0-9]{4,12}/)(?P<s>[A-Za-z0-9_-]{6,})"
        ),
        "https://discord.com/api/webhooks/{di18}/<<{us68}>>",
        "/api/webhooks/list",
        None,
    ),
    Rule(
        "curl user",
        ("curl",),
        re.compile(
            r"""curl\b(?:[^\n|\0]|\\\n){0,240}?[ \t](?:-[A-Za-z]{0,5}[uU]|--user|--proxy-user)[ \t=]{0,2}\\{0,3}["']?[^\s:"'$\0]{1,64}:(?P<s>[^\s"'\\\0]{4,256})"""
        ),
        "curl -su dana:<<{an12}>> https://a.test",
        'curl -u "$USER:$PASS" https://a.test',
        "sure",
    ),
    Rule(
        "sshpass",
        ("sshpass",),
        re.compile(r"""sshpass[ \t]+-p[ \t]*\\{0,3}["']?(?P<s>[^\s"'\\\0]{4,256})"""),
        "sshpass -p '<<{an12}>>' ssh a",
        "sshpass -p $PASS ssh a",
        "sure",
    ),
    Rule(
        "mysql -p",
        ("mysql", "mariadb"),
        re.compile(
            r"""(?:mysql|mariadb)\w{0,8}(?:-dump)?\b[^\n|\0]{0,160}?[ \t]-p\\{0,3}["']?(?P<s>[^\s"'\\\0-][^\s"'\\\0]{3,255})"""
        ),
        "mysql -uroot -p<<{an12}>> ferns",
        "mysql -u root -p ferns",
        "sure",
    ),
    Rule(
        "redis-cli -a",
        ("redis-cli",),
        re.compile(
            r"""redis-cli\b[^\n|\0]{0,160}?[ \t]-a[ \t]+\\{0,3}["']?(?P<s>[^\s"'\\\0]{4,256})"""
        ),
        "redis-cli -a <<{an20}>> ping",
        "redis-cli -a $REDIS_PASS",
        "sure",
    ),
    Rule(
        "htpasswd -b",
        ("htpasswd",),
        re.compile(
            r"""htpasswd[ \t]+-\w{0,6}b\w{0,6}[ \t]+\S{1,128}[ \t]+\S{1,64}[ \t]+\\{0,3}["']?(?P<s>[^\s"'\\\0]{4,256})"""
        ),
        "htpasswd -bc f dana <<{an12}>>",
        "htpasswd -c f dana",
        "sure",
    ),
    Rule(
        "openssl pass:",
        ("pass:",),
        re.compile(r"""(?<=[ \t"'])pass:(?P<s>[^\s"'\\\0]{4,256})"""),
        "openssl rsa -passin pass:<<{an12}>> -in a",
        "pass: 12 of 12",
        "sure",
        before=re.compile(r"-pass(?:in|out)?[ \t]+[\"']?$"),
    ),
    Rule(
        "smb user",
        ("-u ", "-u'", "--user="),
        re.compile(
            r"""(?<!\S)(?:-U[ \t]*|--user=)\\{0,3}["']?[\w.\\@-]{1,64}%(?P<s>[^\s"'\\\0%]{4,256})"""
        ),
        "smbclient //n/s -U dana%<<{an12}>> -c ls",
        "sort -U a%b",
        "sure",
    ),
    Rule(
        "sql identified by",
        ("identified by", "identified with"),
        re.compile(
            r"""(?i:identified[ \t]+(?:by|with[ \t]+\w{1,40}[ \t]+(?:by|as))(?:[ \t]+password)?)[ \t]+\\{0,3}["'](?P<s>[^"'\n\0]{4,256})"""
        ),
        "CREATE USER a IDENTIFIED BY '<<{an12}>>';",
        "IDENTIFIED BY '$PASS'",
        "sure",
    ),
    Rule(
        "literal on standard input",
        ("echo ", "printf "),
        re.compile(
            r"""(?:echo|printf)[ \t]+(?:-[neE]{1,3}[ \t]+)?(?:["']?%s(?:\\n)?["']?[ \t]+)?\\{0,3}["']?(?P<s>[^\s"'`|\0][^"'`|\n\0]{2,200}?(?<![\s\\]))\\{0,3}["']?[ \t]*\|[^\n|\0]{0,160}?(?:password-stdin|--with-token|token-stdin|--stdin|sudo[ \t]+(?:-\w+[ \t]+){0,3}-S|chpasswd|passphrase-fd|cryptsetup|smbpasswd)"""
        ),
        "echo '<<{an12}>>' | docker login --password-stdin",
        'echo "$PASS" | docker login --password-stdin',
        "sure",
    ),
    Rule(
        "here-string",
        ("<<<",),
        re.compile(r"""<<<[ \t]*\\{0,3}["']?(?P<s>[^\s"'\\\0][^"'\n\\\0]{3,255})"""),
        "passwd --stdin dana <<< '<<{an12}>>'",
        "grep x <<< 'some text'",
        "sure",
        before=re.compile(r"(?:stdin|-S\b|--with-token|passwd|login|passphrase)[^\n|;]*$"),
    ),
)

RULES: tuple[Rule, ...] = (*TOKENS, PEM, *LABELS, *OTHERS)
