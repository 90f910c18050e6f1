"""Redaction, the first part of the table: tokens and keys that speak for themselves.

Makers give their tokens a prefix so that they can be found. The shape is proof, no label needed.
"""

# ruff: noqa: E501 - a pattern that is one thought reads better on one line.
import re

from .redaction_rules import Rule
from .redaction_values import Family

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
        apart=True,
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
        "lin_api_ ntn_ figd_ sbp_ nfp_ dckr_pat_ dckr_oat_ sntrys_ sntryu_ glsa_ rubygems_ pul- hrku- lsv2_pt_"
        " sb_secret_ ccipat_ bkua_ sgp_ rnd_ fm2_ pscale_tkn_ pscale_pw_ nrak-",
        r"(?:lin_api|ntn|figd|sbp|nfp|dckr_[po]at|sntry[su]|glsa|rubygems|lsv2_pt|sb_secret|CCIPAT|bkua|sgp|rnd|fm2|pscale_(?:tkn|pw))_(?=[A-Za-z_-]{0,60}[0-9])[A-Za-z0-9_+/=-]{24,}|NRAK-[A-Z0-9]{27}|pul-[0-9a-f]{40}|HRKU-[A-Za-z0-9_-]{30,}",
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
    token(
        "vault, older",
        "s.",
        r"s\.(?=[A-Za-z]{0,23}[0-9])(?=[A-Za-z0-9]{0,23}[A-Z])[A-Za-z0-9]{24}(?![\w.(-])",
        "vault login <<s.{an10}A1{an12}>>",
        "s.encodeUtf8WithoutSurrogates(x)",
        apart=True,
    ),
    token(
        "notion, older",
        "secret_",
        r"secret_(?=[A-Za-z]{0,42}[0-9])[A-Za-z0-9]{43}(?![\w-])",
        "NOTION <<secret_{an43}>>",
        "secret_santa_of_the_year",
        apart=True,
    ),
    token(
        "airtable",
        "pat",
        r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}",
        "<<pat{an14}.{he64}>>",
        "pattern.of_a_path",
        apart=True,
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

# A block may run over the lines of a string in code, never over the end of one field of a record.
# Without an END the block was cut off: only lines that are base64 belong to it.
PRIVATE_KEY = Rule(
    "private key block",
    ("-----begin ",),
    re.compile(
        r"""(?P<s>-----BEGIN\ [A-Z0-9 ]{0,40}PRIVATE\ KEY(?:\ BLOCK)?-----
        (?: (?=(?:[^-]|-(?!----)){0,400}?[A-Za-z0-9+/]{16})
            (?:[^-"\0]|-(?!----)|"[ \t,+.\\]{0,6}\r?\n[ \t]{0,40}[fbr]?")++
            -----END\ [A-Z0-9 ]{0,60}-----
          | (?:\s|\\[nr])*+
            (?:[A-Za-z-]{3,20}:\ [^\n\\"\0]{0,80}(?:\r?\n|\\n)){0,4}
            (?:(?:\s|\\[nr]){0,200}+[A-Za-z0-9+/=]{16,}+)++
        ))""",
        re.X,
    ),
    "a\n<<-----BEGIN RSA PRIVATE KEY-----\n{an64}\n{an64}\n-----END RSA PRIVATE KEY----->>\nb",
    'grep "-----BEGIN RSA PRIVATE KEY-----" -r .',
)

# Keys that are no PEM: what other programs write between their own lines.
OTHER_KEYS = (
    Rule(
        "ssh2 private key",
        ("---- begin ssh2 encrypted private",),
        re.compile(
            r"""(?P<s>----\ BEGIN\ SSH2\ ENCRYPTED\ PRIVATE\ KEY\ ----[^"\0-]{16,8192}
            (?:----\ END\ SSH2\ ENCRYPTED\ PRIVATE\ KEY\ ----)?)""",
            re.X,
        ),
        "a\n<<---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n{an64}\n---- END SSH2 ENCRYPTED PRIVATE KEY ---->>\nb",
        'grep "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----" -r .',
    ),
    Rule(
        "putty private key",
        ("private-lines:",),
        re.compile(
            r"Private-Lines:[ ]?[0-9]{1,4}(?:\s|\\[nr]){1,4}"
            r"(?P<s>[A-Za-z0-9+/=]{16,76}(?:(?:\s|\\[nr]){1,4}[A-Za-z0-9+/=]{16,76}){0,200})"
        ),
        "Private-Lines: 2\n<<{an64}\n{an64}>>\nPrivate-MAC: x",
        "Private-Lines: 2 of them",
    ),
    Rule(
        "jwk private part",
        ('"d"',),
        re.compile(r"""\\{0,3}"d\\{0,3}"[ \t]?:[ \t]?\\{0,3}"(?P<s>[A-Za-z0-9_-]{40,})"""),
        '{"kty": "OKP", "d": "<<{us43}>>", "x": "a"}',
        '{"kty": "OKP", "d": "name"}',
        "token",
        back=(0, 1, 2, 3),
    ),
    Rule(
        "seed phrase",
        ("mnemonic", "seed phrase", "recovery phrase"),
        re.compile(
            r"""(?i:mnemonic|(?:seed|recovery)\ phrase)(?:\ (?:is|was))?["']?[ \t]?[:=]?[ \t]?["'`]?
            (?P<s>(?:[a-z]{3,8}\ ){11,23}[a-z]{3,8})(?![\w,.;]\ )""",
            re.X,
        ),
        'mnemonic: "<<{lw5} {lw6} {lw4} {lw5} {lw6} {lw4} {lw5} {lw6} {lw4} {lw5} {lw6} {lw4}>>"',
        "a mnemonic for the order of the planets",
    ),
)
