"""Redaction, the third part of the table: places where programs take a secret.

Headers, links, connection strings and command lines: what stands there is a secret, or a
reference to one.
"""

# ruff: noqa: E501 - a pattern that is one thought reads better on one line.
import re

from .redaction_rules import Rule

PLACES: tuple[Rule, ...] = (
    Rule(
        "pass assigned",
        ("pass", "pw"),
        re.compile(
            r"""(?:(?<![A-Za-z\0])(?:pass|PASS|pw|PW)|(?<=[a-z])Pass)(?:(?:\\{0,3}["'])[ \t]?[:=]>?[ \t]?|=(?!=)|[ \t]?[:=][ \t]?(?=["']))"""
        ),
        "DB_PASS=<<{an12}!9>> x",
        "bypass=enabled1",
        "pass",
    ),
    Rule(
        "wifi and psk",
        ("psk", "wifi:"),
        re.compile(
            r"""(?i:psk["']?[ \t]?[:=][ \t]?(?=["'])|WIFI:(?:[STH]:[^;\n]{0,64};){0,4}P:(?P<s>[^;"'\n\\\0]{4,63}))"""
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
            r"(?<![A-Za-z\0])(?i:bearer)(?:[ \t]{1,8}|%20)(?P<s>[A-Za-z0-9._~+/-]{16,}={0,2})"
        ),
        "Bearer <<{an40}>>",
        "the bearer misunderstanding_between_teams",
        "token",
    ),
    Rule(
        "basic",
        ("basic",),
        re.compile(
            r"(?<![A-Za-z\0])(?i:basic)[ \t]{1,8}(?P<s>(?=[A-Za-z]{0,40}[0-9+/=])[A-Za-z0-9+/]{10,}={0,2})(?![\w-])"
        ),
        "Authorization: Basic <<{an40}>>",
        "Basic authentication",
        "token",
    ),
    Rule(
        "authorization",
        ("authorization",),
        re.compile(
            r"""(?i:authorization)(?:\\{0,3}["'])?[ \t]?[:=][ \t]{0,4}(?:\\{0,3}["'])?(?:[A-Za-z-]{3,20}[ \t]{1,4})?(?P<s>[^\s"',;=<>(){}\[\]\\\0]{8,}={0,2})"""
        ),
        "Authorization: token <<{an40}>>",
        "Authorization: Bearer $TOKEN",
        "token",
    ),
    Rule(
        "cookies",
        ("cookie:", 'cookie":', "-b ", "--cookie "),
        re.compile(
            r"""(?i:cookie(?:\\{0,3}["'])?:[ \t]?|(?<!\S)(?:-b|--cookie)[ \t]+(?=["']))[^\n\0]{0,4096}"""
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
        re.compile(
            r"(?i:(?:token|key|secret|password)%3d)(?P<s>(?:[A-Za-z0-9_.~-]|%(?!26)[0-9A-Fa-f]{2}){12,})"
        ),
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
            r"""curl\b(?:[^\n|\0]|\\\n){0,240}?[ \t](?:-[A-Za-z]{0,5}[uU]|--user|--proxy-user)[ \t=]{0,2}(?:\\{0,3}["'])?[^\s:"'$\0]{1,64}:(?P<s>[^\s"'\\\0]{4,256})"""
        ),
        "curl -su dana:<<{an12}>> https://a.test",
        'curl -u "$USER:$PASS" https://a.test',
        "sure",
    ),
    Rule(
        "sshpass",
        ("sshpass",),
        re.compile(r"""sshpass[ \t]+-p[ \t]*(?:\\{0,3}["'])?(?P<s>[^\s"'\\\0]{4,256})"""),
        "sshpass -p '<<{an12}>>' ssh a",
        "sshpass -p $PASS ssh a",
        "sure",
    ),
    Rule(
        "mysql -p",
        ("mysql", "mariadb"),
        re.compile(
            r"""(?:mysql|mariadb)\w{0,8}(?:-dump)?\b[^\n|\0]{0,160}?[ \t]-p(?:\\{0,3}["'])?(?P<s>[^\s"'\\\0-][^\s"'\\\0]{3,255})"""
        ),
        "mysql -uroot -p<<{an12}>> ferns",
        "mysql -u root -p ferns",
        "sure",
    ),
    Rule(
        "redis-cli -a",
        ("redis-cli",),
        re.compile(
            r"""redis-cli\b[^\n|\0]{0,160}?[ \t]-a[ \t]+(?:\\{0,3}["'])?(?P<s>[^\s"'\\\0]{4,256})"""
        ),
        "redis-cli -a <<{an20}>> ping",
        "redis-cli -a $REDIS_PASS",
        "sure",
    ),
    Rule(
        "htpasswd -b",
        ("htpasswd",),
        re.compile(
            r"""htpasswd[ \t]+-\w{0,6}b\w{0,6}[ \t]+[^\s\0]{1,128}[ \t]+[^\s\0]{1,64}[ \t]+(?:\\{0,3}["'])?(?P<s>[^\s"'\\\0]{4,256})"""
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
            r"""(?<!\S)(?:-U[ \t]*|--user=)(?:\\{0,3}["'])?[\w.\\@-]{1,64}%(?P<s>[^\s"'\\\0%]{4,256})"""
        ),
        "smbclient //n/s -U dana%<<{an12}>> -c ls",
        "sort -U a%b",
        "sure",
    ),
    Rule(
        "sql identified by",
        ("identified by", "identified with"),
        re.compile(
            r"""(?i:identified[ \t]+(?:by|with[ \t]+\w{1,40}[ \t]+(?:by|as))(?:[ \t]+password)?)[ \t]+\\{0,3}["'](?P<s>[^"'\n\\\0]{4,256})"""
        ),
        "CREATE USER a IDENTIFIED BY '<<{an12}>>';",
        "IDENTIFIED BY '$PASS'",
        "sure",
    ),
    Rule(
        "literal on standard input",
        ("echo ", "printf "),
        re.compile(
            r"""(?:echo|printf)[ \t]+(?:-[neE]{1,3}[ \t]+)?(?:["']?%s(?:\\n)?["']?[ \t]+)?(?:\\{0,3}["'])?(?P<s>[^\s"'`|\0][^"'`|\n\0]{2,200}?(?<![\s\\]))(?:\\{0,3}["'])?[ \t]*\|[^\n|\0]{0,160}?(?:password-stdin|--with-token|token-stdin|--stdin|sudo[ \t]+(?:-\w+[ \t]+){0,3}-S|chpasswd|passphrase-fd|cryptsetup|smbpasswd|secret[ \t]+(?:put|set))"""
        ),
        "echo '<<{an12}>>' | docker login --password-stdin",
        'echo "$PASS" | docker login --password-stdin',
        "sure",
    ),
    Rule(
        "here-string",
        ("<<<",),
        re.compile(r"""<<<[ \t]*(?:\\{0,3}["'])?(?P<s>[^\s"'\\\0][^"'\n\\\0]{3,255})"""),
        "passwd --stdin dana <<< '<<{an12}>>'",
        "grep x <<< 'some text'",
        "sure",
        before=re.compile(r"(?:stdin|-S\b|--with-token|passwd|login|passphrase)[^\n|;\0]*$"),
    ),
    Rule(
        "password option",
        ("7z ", "zip ", "rar ", "ldap", "mongo"),
        re.compile(
            r"""(?:(?:7z|zip|rar)[ \t](?:[^\n|\0]{0,160}?[ \t])??-[pP][ \t]?|ldap\w{3,10}[ \t][^\n|\0]{0,160}?[ \t]-w[ \t]+"""
            r"""|mongo\w{0,8}[ \t][^\n|\0]{0,160}?[ \t]-p[ \t]+)["']?(?P<s>[^\s"'\\\0]{5,256})"""
        ),
        "mongosh -u dana -p <<{an12}!9>> --quiet",
        "mongod -p 27017; zip -r out.zip src",
        "pass",
        strong=True,
    ),
    Rule(
        "user and password in code",
        ("auth=(", "basicauth(", "auth(", "credentials("),
        re.compile(
            r"""(?i:(?:auth=|basic_?auth|auth|credentials)\()[ \t]{0,4}["'][^"'\n\0]{1,64}["'][ \t]?,[ \t]?["'](?P<s>[^"'\n\\\0]{5,256})["']"""
        ),
        "get(u, auth=('dana', '<<{an12}!9>>'))",
        "auth=('user', 'password')",
        "pass",
    ),
    Rule(
        "gh secret set",
        ("secret set ",),
        re.compile(
            r"""secret[ \t]+set[ \t]+\w{1,64}[ \t]+(?:-b|--body)[ \t=]["']?(?P<s>[^\s"'\\\0]{4,4096})"""
        ),
        "gh secret set API_KEY --body '<<{an40}>>'",
        'gh secret set API_KEY --body "$KEY"',
        "sure",
    ),
    Rule(
        "httpie user",
        ("http -a", "https -a", "http --auth"),
        re.compile(
            r"""https?[ \t]+(?:-a|--auth)[ \t=]["']?[^\s:"'$\0]{1,64}:(?P<s>[^\s"'\\\0]{4,256})"""
        ),
        "http -a dana:<<{an12}>> GET a.test",
        "http -a $USER:$PASS GET a.test",
        "sure",
    ),
    Rule(
        "pgpass",
        (":5432:", ":5433:", ":6432:", ":*:*:"),
        re.compile(
            r"""(?::(?:5432|5433|6432):[^\s:"'\0]{1,63}|:\*:\*):[^\s:"'\0]{1,63}:(?P<s>[^\s:"'\\\0]{4,256})(?=[\s"'\\]|$)"""
        ),
        "db.test:5432:ferns:dana:<<{an18}>>",
        "docker run -p 127.0.0.1:5432:5432/tcp db",
        "sure",
    ),
    Rule(
        "telegram address",
        ("api.telegram.org/",),
        re.compile(r"(?i:api\.telegram\.org/(?:file/)?bot)(?P<s>[0-9]{6,12}:[A-Za-z0-9_-]{30,})"),
        "https://api.telegram.org/bot<<{di10}:{us35}>>/getMe",
        "https://api.telegram.org/bot12:short/getMe",
    ),
    Rule(
        "sqlcmd -P",
        ("sqlcmd", "isql", "bcp "),
        re.compile(
            r"""(?:sqlcmd|isql|bcp)\b[^\n|\0]{0,160}?[ \t]-P[ \t]?(?:\\{0,3}["'])?(?P<s>[^\s"'\\\0-][^\s"'\\\0]{3,255})"""
        ),
        "sqlcmd -S db -U sa -P '<<{an12}>>' -Q x",
        "sqlcmd -S db -U sa -P $PASS",
        "sure",
    ),
    Rule(
        "password of a program",
        ("plink", "pscp", "psftp", "putty", "keytool", "jarsigner", "openssl enc"),
        re.compile(
            r"""(?:(?:plink|pscp|psftp|putty)\b[^\n|\0]{0,160}?[ \t]-pw"""
            r"""|(?:keytool|jarsigner)\b[^\n|\0]{0,240}?[ \t]-(?:store|key|src|dest)(?:store)?pass"""
            r"""|openssl\ enc\b[^\n|\0]{0,160}?[ \t]-k)[ \t]{1,4}(?:\\{0,3}["'])?(?P<s>[^\s"'\\\0-][^\s"'\\\0]{3,255})"""
        ),
        "plink -pw <<{an12}>> dana@host",
        "keytool -list -keystore moss.jks -storepass:env PASS",
        "sure",
    ),
    Rule(
        "login of a cloud",
        ("az login", "vault login ", "cargo login ", "lftp "),
        re.compile(
            r"""(?:az\ login\b[^\n|\0]{0,240}?[ \t](?:-p|--password)[ \t=]{1,4}|vault\ login[ \t]+"""
            r"""|cargo\ login[ \t]+|lftp\b[^\n|\0]{0,120}?[ \t]-u[ \t]+[^\s,\0]{1,64},)"""
            r"""(?:\\{0,3}["'])?(?P<s>(?!-)[^\s"'\\\0]{6,4096})"""
        ),
        "az login --service-principal -u app -p <<{an34}>> --tenant x",
        "vault login -method=oidc",
        "pass",
    ),
    Rule(
        "secret that is set by a command",
        ("user-secrets set ",),
        re.compile(
            r"""user-secrets\ set[ \t]+["']?[\w:.-]{1,120}["']?[ \t]+["']?(?P<s>[^\s"'\\\0]{4,4096})"""
        ),
        'dotnet user-secrets set "Db:Key" "<<{an20}!9>>"',
        "dotnet user-secrets set --help",
        "sure",
    ),
    Rule(
        "secure parameter",
        ("put-parameter",),
        re.compile(
            r"""put-parameter\b(?=[^\n\0]{0,400}SecureString)[^\n\0]{0,400}?[ \t]--value[ \t=]+(?:\\{0,3}["'])?(?P<s>[^\s"'\\\0]{4,4096})"""
        ),
        "aws ssm put-parameter --name /db --value '<<{an12}>>' --type SecureString",
        "aws ssm put-parameter --name /db --value 'eu-west-1' --type String",
        "sure",
    ),
    Rule(
        "oracle login",
        ("sqlplus ", "oracle:thin:"),
        re.compile(
            r"""(?:sqlplus[ \t]+(?:-\w+[ \t]+){0,3}|oracle:thin:)["']?\w{1,40}/(?P<s>[^\s/"'@\\\0]{4,64})@"""
        ),
        "sqlplus -s scott/<<{an12}>>@db",
        "sqlplus /nolog @setup.sql",
        "sure",
    ),
)
