"""What a person typed that may be worth keeping: sentences, and the cues that mark them.

The lists are short on purpose. A wrong line in a memory is read by every later session, a missing
one is only missing, so a cue stands here when it marks something that still holds next week: a
wish that lasts (`said`), or the agent set right about a fact or a method (`corrected`). A report
that something does not work ends with its session; it decides the outcome and is never kept.

What is not prose is dropped before any cue is tried: fences, quotations, logs, code, tables, and
whatever follows `the log says:`. A question asks, and a report of what somebody else says is not
the person's own word; neither is kept, whatever cue it holds. How right the lists are was
measured on sentences that they had not seen: 12 of 23 hits, and after mending 17 of 32 on a further
set that is half traps; widened, 25 of 29 on a fifth set, where the list before had 3 of 6 right and
found 3 of 29, and a set about `remember` apart (tests/adapters/offline/typed.py). The last sets are
by who wrote the cues. So a kept line is a quote, and no rule.

Three things tell a wish from a task. A liking is for a kind of thing (`small commits`) and not for
one at hand (`the second mockup`): that is a choice. A condition speaks of the agent's own work of
some kind (`when you add a setting`) and not of a program's (`when the user logs in`). A request
counts right behind a wish in the same message if its object is a kind too (`Use British spelling`).
"""

# ruff: noqa: RUF001 - the punctuation of other languages is meant.
import re
from collections.abc import Iterator
from typing import Literal

Kind = Literal["said", "corrected"]

PASTE_CHARS = 1_500
LETTERS_SHARE_MIN = 0.72

_I = re.IGNORECASE

# Programs write these into the user's role. The readers take them out; this is the second look.
_NOT_TYPED = re.compile(
    r"<(system-reminder|user_instructions|environment_context|instructions|skill|task-notification"
    r"|command-[a-z]+|local-command-[a-z]+|turn_aborted|subagent_notification|bash-[a-z]+)\b[^>]*>"
    r".*?(?:</\1>|\Z)",
    _I | re.DOTALL,
)
_NOT_A_PERSON = (
    "# AGENTS.md",
    "# CLAUDE.md",
    "[Request interrupted",
    "Caveat: The messages below",
    "This session is being continued",
    "Message Type:",
)
_FENCE = re.compile(r"^[ \t]*(```+|~~~+).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_SKILL_FILE = re.compile(r"\n---\nname:")
_PASTE_FOLLOWS = re.compile(
    r"\b(here(?:'s| is| are)|says?|said|error|errors|output|log|logs|trace|message|review|page)\b"
    r"[^.?!]*[:：]\s*$",
    _I,
)
_CODE = re.compile(
    r"""^(?:\s{4,}\S.*[(){};=]|\s*(?:[>|]|\$\s|[{}\[\]]|\+\+\+|---|@@|diff\s--git|\#include|//|/\*|<[a-z/!]
    |at\s\S+\(|File\s"|Traceback\s|import\s\w+(?:$|\s+from|,)|from\s\S+\simport|def\s\w+\(|class\s\w+[:({]
    |(?:const|let|var)\s\w+\s*=|return\b.*;|raise\s\w+\(|func\s\w+\(|fn\s\w+|public\s|private\s))"""
    r"|[{};]\s*$|^\s*\"[^\"]+\"\s*:",
    re.VERBOSE,
)
_LOG = re.compile(
    r"^\s*(?:\[?\d{4}-\d\d-\d\d|\[?\d\d:\d\d:\d\d|\[?(?:ERROR|WARN|WARNING|INFO|DEBUG|TRACE|FATAL)\b"
    r"|(?:FAIL|FAILED|PASS|PASSED|ok|not ok)\b[: ]\s*\S*[/._:]|npm ERR!|E   )"
)
_MARK = re.compile(r"^\s*(?:[-*•+]|\d{1,2}[.)])\s+")
_END = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)(?<!vs\.)\s+|(?<=[。！？])")

_CODE_NAME = re.compile(r"\b(?:[a-z]+[A-Z]\w*|\w+_\w+|\w+::\w+)|\b\w+\(\)")
_INSTRUMENT = re.compile(
    r"\b(?:reply|respond|answer) (?:with )?(?:exactly|only)\b|\bno other text\b|\blines? \d+", _I
)
_QUESTION = re.compile(
    r"[?？]\s*$|か[。]?$|吗[。]?$|^(?:what|why|how|who|which|whose"
    r"|(?:can|could|would|will|should|shall|do|does|did|is|are|was|has|have) "
    r"(?:you|i|we|it|they|there|this|that|the)"
    r"|(?:where|when) (?:is|are|do|does|did|will|should|can))\b",
    _I,
)
_WHY_DID_YOU = re.compile(r"^why (?:did|didn'?t|don'?t|do|are|have) you\b", _I)
_REPORTED = re.compile(
    r"\b(?:docs?|documentation|page|article|readme|post|error|message|log|linter|compiler|tests?|spec"
    r"|review(?:er)?|guide|he|she|they|it|someone|somebody|people)\s+"
    r"(?:says?|said|states?|stated|tells?|told|claims?|complains?|recommends?|suggests?|writes?|wrote)\b"
    r"|\baccording to\b|^[\"“„«'‘]"
    r"|(?<!\bich )\b(?:sagte?|meinte?|schreibt|schrieb|behauptet)\b|\blaut (?:der|dem)\b"
    r"|\b(?:il|elle|on|doc\w*|page|collègue) (?:dit|disent|écrit)\b|\b(?:dice|dicen|dijo|según)\b"
    r"|(?:文档|文件|他|她|同事|页面)(?:里|中|上)?(?:说|写)|と(?:言って|書いて(?:ある|あり)|のこと)",
    _I,
)
_IDLE = re.compile(
    r"^(?:never ?mind|don'?t worry|do not worry|no worries|no problem|don'?t bother|no need|no idea"
    r"|i don'?t (?:know|mind|care|think)|always (?:good|nice|happy|fun)\b)",
    _I,
)
# It says itself that it does not last.
_FOR_NOW = re.compile(
    r"\b(?:yet|for now|right now|this time|for the moment|today|let me|wait)\b|\bfirst$"
    r"|^no,? go back",
    _I,
)
_FILLER = re.compile(
    r"^(?:(?:please|pls|also|and|but|so|then|ok(?:ay)?|yes|yeah|well|oh|hey|btw|just|again|no|nope"
    r"|bitte|por favor|s['’]il te pla[iî]t)\b"
    r"[\s,]*)+",
    _I,
)
_CLAUSE = re.compile(r"[,;:]\s+|\s+[–—-]+\s+|\s+(?:and|but|so|then)\s+|[、，；]", _I)

# Words that say that a wish lasts. They count in the first message too, because nobody states a
# default as the task of the moment.
_LASTS = re.compile(
    r"^(?:make|be) sure\b|^remember (?:to|that)\b"
    r"|^keep in mind\b"
    # At the start only: a thing may as well be `stamped in the future`.
    r"|^in (?:the )?future [a-z]+"
    r"|^don'?t (?:ever|forget)\b|^by default\b|^(?:every time|each time|whenever) you\b"
    r"|^i(?:'d| would)? (?:really |strongly |always )?(?:prefer|hate|dislike)\b"
    r"|^i(?:'d| would) rather (?:have|use|keep|see|not)\b"
    r"|^i (?:don'?t|do not|never) want\b"
    r"|^we (?:always|never|only)\b"
    # `we don't have that yet` tells how things are; these tell how things are done.
    r"|^we (?:don'?t|do not) (?:use|want|do|allow|support|write|commit|add|ship|touch|push|mock)\b",
    _I,
)
# `always` opens a wish; inside a sentence it does so before a verb only (`always visible`).
_ALWAYS = re.compile(r"^(?:always|never) (?:ever )?(?!seen|been|had|heard|knew|used to)[a-z]+", _I)
_ALWAYS_DO = re.compile(
    r"^(?:always|never) (?:ever )?(?:use|run|ask|keep|check|write|make|add|put|call|include|start"
    r"|stop|update|commit|push|merge|rebase|squash|test|format|lint|answer|reply|document|read|do|create"
    r"|return|name|change|edit|touch|delete|remove|rename|log|mock|import|install|assume|guess|skip"
    r"|plain|leave|prefer|pin|sign|wrap|explain|respond)\b",
    _I,
)
_LASTS_ANYWHERE = re.compile(
    r"\b(?:from now on|going forward|as a rule|from here on)\b"
    # A rule for the whole place outlasts the request in which it is said.
    r"|\b(?:we|use|only|no|keep|always|never|must|don'?t)\b.*"
    r"\b(?:in|for|across|throughout) (?:this|our|the whole) "
    r"(?:repo(?:sitory)?|project|code ?base)\b"
    r"|\bin (?:this|our) (?:repo(?:sitory)?|project|code ?base)\b.*"
    r"\b(?:we|use|only|no|keep|always|never|must|don'?t)\b",
    _I,
)
# German, Japanese, Chinese. Beside the measured starts: `ab sofort` and `in Zukunft` are `ab jetzt`
# in other words, and 以后 counts at the start of a clause only, because behind a noun it means
# `after`.
_LASTS_ELSEWHERE = re.compile(
    r"\b(?:ab jetzt|ab sofort|künftig|in zukunft)\b"
    r"|\bbitte (?:immer|nie(?:mals)?|nicht|nur|kein\w*)\b"
    r"|今後は|必ず.|しないで|(?:^|[，,。；])\s*以后|请用|不要",
    _I,
)
# To have something remembered. A form may `remember: name, mail`, so that the word opens a clause,
# and behind a dash or inside a sentence a colon has to say that now comes what.
_REMEMBER = re.compile(
    r"^(?:(?:remember|make a note)(?: (?:this|it|please|for (?:next time|later|the future)))*"
    r"|for (?:future reference|next time))\s*[:,–—]\s*\S.{7,}"
    r"|(?:[,.;!]|\s[–—-]+)\s+(?:(?:and|but|also|so|please|pls) )*remember"
    r"(?: (?:this|it|please|for (?:next time|later|the future)))*\s*:\s*\S.{7,}"
    r"|^merke? (?:dir|euch)\b(?: bitte)?\s*[:,]|^denke? (?:bitte |immer )*daran[:,]"
    r"|^(?:souviens-toi|rappelle-toi|n['’]oublie pas) (?:que\b|qu['’])"
    r"|^(?:recuerda|acuérdate de|no olvides) que\b"
    r"|^(?:请)?记住\s*[：:，,]|^覚えておいて(?:ください)?[：:、]|と覚えておいて(?:ください|ね)?$",
    _I,
)
# What an agent does again and again, as a request.
_DO = (
    r"(?:use|run|ask|keep|check|write|make|add|put|call|include|start|stop|update|commit|push|merge"
    r"|rebase|squash|test|format|lint|answer|reply|respond|document|read|do|create|name|leave|prefer"
    r"|avoid|follow|place|store|save|show|tell|explain|quote|sort|wrap|sign|pin|regenerate|mention"
    r"|be|give|stick|skip|delete|remove|don'?t|do not|never|always)"
)
# One of the things at hand: to prefer it is a choice, and holds for the moment.
_CHOICE = re.compile(
    r"\bprefer(?:ence is)? (?:it(?! (?:when|if)\b)|that(?! you\b)|how|what|this|these|those|both"
    r"|either|yours?|[b-hj-z]$"
    r"|(?:option|variant|version|plan|number|approach) (?:[a-z]|\d+|one|two)\b"
    r"|the (?:first|second|third|last|latter|former|other|left|right|new|old|previous|current)\b"
    r"|the (?!.*\b(?:over|rather|instead)\b))"
    r"|\bone(?: please| pls| instead)?$",
    _I,
)
# `Prefer X` as a request; `Prefer header is …` tells of a thing with that name.
_PREFER = re.compile(
    r"^prefer (?!\w+ (?:is|are|was|were|has|had|does|will|can)\b)[a-z]|^my (?:\w+ )?preference is\b"
    r"|^i like (?:my\b|it when\b|to have\b)",
    _I,
)
# A moment that will come again, and what to do then. `the next time the user …` is a product's.
_NEXT_TIME = re.compile(
    rf"^next time\b,? (?:you\b|(?:please |pls |just |rather |better |also |first )*{_DO}\b)", _I
)
# Work of a kind, and not a piece of it: nothing with an article that points.
_OF_A_KIND = (
    r"you (?:write|add|create|change|touch|edit|make|commit|push|merge|delete|remove|rename|update"
    r"|review|open|start|install|run|use|release|deploy|rebase|refactor|name|implement)"
    r"(?! (?:the|this|that|these|those|it|them|him|her|my|your|our|all)\b)[^,]*"
)
_AT_EACH = re.compile(
    rf"^(?:when|whenever|if|before|after) {_OF_A_KIND}, (?:please |pls |also )*{_DO} "
    r"|^(?:ask|check with|consult) me before (?:you\b|[a-z]+ing\b)",
    _I,
)
# The same in German, French and Spanish: words that say how long, a wish that names the agent and
# says how long, a liking for a kind of thing, a request with `always` or `never`.
_LASTS_IN_EUROPE = re.compile(
    r"^ich (?:möchte|will|wünsche mir|erwarte)[^,]*, dass du\b.*"
    r"\b(?:immer|stets|nie|niemals|nur|kein\w*|grundsätzlich|jede[mnrs]?|künftig)\b"
    r"|^(?:beim |das )?nächste[ns]? mal,? (?:bitte|erst|zuerst|vorher|immer|nicht|kein\w*|du"
    r"|nimm|nutze?|verwende|benutze|frage?|schreibe?|lass|mache?)\b"
    r"|^ich (?:bevorzuge|mag keine?n?|hasse) (?!(?:der|die|das|den|diese\w*|jene\w*|beide\w*|es"
    r"|option|variante|version)\b)"
    r"|^(?:verwende|benutze?|nutze?|schreibe?|nimm|mache?|antworte|frage?|lass|halte|führe?|prüfe?"
    r"|teste|lege?|setze?|committe) (?:[\w-]+ ){0,3}(?:immer|stets|nie|niemals|grundsätzlich)\b"
    # With an article behind it, it tells how a thing is or should be.
    r"|^(?:désormais|dorénavant|à partir de maintenant|à l['’]avenir|la prochaine fois),? "
    r"(?!(?:les?|la|une?|ça|cela|il|elle|on|tout|que)\b|[lcqj]u?['’])"
    r"|^je (?:préfère|déteste) (?!(?:le|la|ce|cet|cette|ces|ça|celui|celle|option|version|que)\b"
    r"|l['’])"
    r"|^n(?:e |['’])\w+ jamais\b"
    r"|^(?:utilise|écris|réponds|fais|mets|garde|lance|demande|vérifie|ajoute|teste)z? "
    r"(?:\w+ )?toujours\b|^je veux que tu\b.*\b(?:toujours|jamais)\b"
    r"|^(?:a partir de ahora|de ahora en adelante|en adelante|la próxima vez),? "
    r"(?!(?:el|los?|las?|una?|esto|eso|todo|ya|que)\b)"
    r"|^(?:prefiero|odio) (?!(?:el|la|lo|este|esta|esto|ese|esa|eso|opción|versión|que)\b)"
    r"|^(?:nunca|jamás|siempre) (?:us[ae]s?|utili[cz]e?[as]?s?|escrib[ae]s?|respond[ae]s?|hagas|haz"
    r"|pon|pongas|ejecut[ae]s?|pregunt[ae]s?|borres|toques|cambies|añadas?|modifiques)\b"
    r"|^(?:usa|utiliza|escribe|responde|haz|pon|ejecuta|pregunta|revisa) (?:\w+ )?siempre\b"
    r"|^quiero que (?:siempre|nunca)\b",
    _I,
)
# And in Japanese and Chinese. `next time` counts with a request behind it; a thing that is to be
# shown next time is a product's.
_LASTS_IN_ASIA = re.compile(
    r"(?:^|[、，。])(?:次回から|次からは?|これからは)(?!.*(?:表示|画面|ボタン|ユーザー))"
    r"|(?:^|[，,。；])\s*(?:从现在(?:开始|起)|今后)"
    r"|(?:^|[，,。；])\s*下次(?:请|先|别|不要|记得|要|用|改用)"
    r"|^请?(?:你)?(?:总是|始终|一律|务必|每次都?)(?:要)?(?:用|使用|先|写|把)"
    r"|^我(?:希望|想让|要)你(?:总是|始终|以后|每次|一直)"
)
# Behind a kept wish in the same message: a request about a kind of thing. A bare plural or mass
# noun (`Use British spelling`) names a kind; with an article it is the task (`Fix the page`).
_MORE_OF_IT = re.compile(
    r"^(?:(?:please|also|and) )*(?:use|keep|write|put|name|call|avoid|answer|reply|prefer|wrap"
    r"|format|document|indent|group|sort|sign|don'?t|do not|no) "
    r"(?!(?:it|them|me|him|her|my|your|a|an|one|another|both|all|option|version|variant|plan|line"
    r"|step|worry|forget|bother)\b|\w+ing\b$)"
    r"(?!.*\b(?:the|this|that|these|those|now|here|it|them|then)\b)[a-z]+ \S",
    _I,
)
# After the first message: what sets the agent right.
_SETS_RIGHT = re.compile(
    r"^(?:do not|don'?t|avoid) (?!you\b)[a-z]+|^(?:stop|quit) [a-z]+ing\b"
    r"|^i (?:want|need|expect) (?:you|it|them|the \w+) to\b"
    r"|^you (?:have to|must(?! be\b)|should(?:n'?t| not)?(?! (?:see|find|be|get|have|know)))\b"
    r"|^you (?:forgot|missed|skipped|ignored|misunderstood|broke"
    r"|deleted|removed|overwrote|assumed|confused|mixed up|didn'?t|did not"
    r"|(?:don'?t|do not) (?:need|have to))\b"
    r"|^(?:like|as) i (?:asked|said|told)\b"
    r"|^i (?:(?:never|already) )?(?:said|asked|told|meant)\b"
    r"|^(?:that|this|it)(?:'s|’s| is| was) (?:the )?"
    r"(?:wrong (?!in\b)|old|outdated|deprecated|never)\b"
    r"|^(?:that|this|it)(?:(?:'s|’s| is| was) not| isn'?t) (?:an?|the|what|how|where"
    # A bare verdict says what is wrong with a thing of the moment.
    r"|(?:right|correct|true) (?:for|in|when|on|with|since)|needed|necessary|allowed|supported|our"
    r"|my)\b"
    r"|^(?:it|that|this|they|we|you|the \w+) already (?!looks?\b|feels?\b|seems?\b|better\b)"
    r"|^there(?:'s|’s| is| are) already\b|^let'?s not (?!worry|forget|go)\b"
    r"|^(?:use|keep|call|name|write|do|run|leave|work)\b.*"
    r"(?:\binstead\b|\brather than\b|, not\b|\bas (?:it )?is\b|\balone\b)"
    r"|^wrong \w+"
    r"|^(?:das|es) ist (?:nicht|falsch|kein\w*)\b|ではなく|而不是"
    r"|^n(?:e |['’])(?:utilise|touche|modifie|change|supprime|ajoute|mets|écris)z? pas\b",
    _I,
)
# A fact with what it is not: `it is called workspace, not project`.
_CONTRAST = re.compile(
    r"\b(?:is|are|has|have|goes|lives?|belongs?|means|uses|sits?|comes?|reads|runs)\b[^,]*, not\b"
    r"|'s\b[^,]*, not\b"
    # No comma is needed where the two places are named in the same way.
    r"|\b(?:is|are|goes|lives?|belongs?|sits?|comes?|stands?|reads|runs)\b.*"
    r"\b(in|on|from|by|under|at|to|with) (?:(?!\bor\b)[^,]){1,60}?,? (?:and )?not \1\b"
    r"|\b(?:ist|sind|heißt|liegt|liegen|läuft|steht|kommt)\b.*\bnicht\b.*\bsondern\b",
    _I,
)
# How a thing shall look, and how not, is the task.
_ARRANGES = re.compile(r"^(?:make|put|move|change|fix|add|set|turn|let|show)\b", _I)
_NO = re.compile(r"^(?:no|nope|nein|non)\s*[,.!:;–—-]+\s*(?P<rest>.{12,})", _I)
# A verdict with the fact behind it. What is wrong with a thing, and what to do, is the task.
_VERDICT = re.compile(
    r"^(?:(?:that|this|it|you)(?:['’]s|['’]re| is| are)? )?(?:wrong|incorrect|mistaken|false"
    r"|not (?:right|true|correct|so)|isn'?t (?:right|true|correct))\s*[,:;–—-]+"
    rf"(?!\s*(?:please|try|fix|undo|revert|redo|again|can|could|should|{_DO}|look|change|go|i)\b"
    r"|\s*(?:it|this|that) (?:should|must|needs?)\b).{12,}"
    r"|^das (?:stimmt (?:so )?nicht|ist (?:so )?nicht richtig)\s*[,:;–—-]+\s*.{12,}"
    r"|^c['’]est (?:faux|incorrect)\s*[,:;–—-]+\s*.{12,}"
    r"|^(?:eso|esto) (?:está mal|no es (?:así|cierto|correcto)|es incorrecto)\s*[,:;–—-]+\s*.{12,}"
    r"|^(?:違います|違う|いいえ|間違いです|それは違います)[、，,].{6,}"
    r"|^(?:不对|不是|错了|你错了|你搞错了)[，,：:]\s*.{6,}",
    _I,
)

_THANKS = re.compile(
    r"\b(?:thanks|thank you|thx|perfect|lgtm|looks good|(?:that|it|this) works|works now"
    r"|works great|well done|danke|passt so|funktioniert jetzt|merci|gracias)\b"
    r"|ありがとう|谢谢|感谢|可以了",
    _I,
)
_FAULT = re.compile(
    r"\b(?:doesn'?t|does not|didn'?t|did not|isn'?t|is not|not|never|won'?t|can'?t) "
    r"(?:\w+ )?(?:work|working|compile|compiling|load|loading|start|starting|run|running|pass"
    r"|passing|build|show|showing|fixed)\b|\bstill (?:fail|fails|failing|broken|wrong|crash\w*"
    r"|the same|there|see|get|getting|red|not|doesn'?t|isn'?t)\b"
    r"|\bfails again\b|\bbroken\b|\bcrash(?:es|ed)\b"
    r"|\bgeht (?:\w+ )?nicht\b|\bfunktioniert (?:\w+ )?nicht\b|動かない|动不了|不行",
    _I,
)
_GREETING = re.compile(
    r"^(?:hi|hello|hey|hallo|moin|good (?:morning|evening|afternoon))(?: \w+)?[!.,]*$", _I
)


# Three words in quotation marks are somebody's sentence; one or two are a name.
_QUOTATION = re.compile(
    r'"[^"]*\s[^"]*\s[^"]*"|[“„«][^”“»]*\s[^”“»]*\s[^”“»]*[”“»]|[「『][^」』]{6,}[」』]'
)


def is_paste(text: str) -> bool:
    return len(text) > PASTE_CHARS or text.lstrip().startswith(_NOT_A_PERSON)


def sentences(text: str) -> Iterator[str]:
    """The sentences of a message that are prose of the person's own, in order.

    >>> list(sentences("fix it. The log says:\\nnever do that"))
    ['fix it', 'The log says:']
    """
    if is_paste(text):
        return
    text = _SKILL_FILE.split(text, maxsplit=1)[0]
    for line in _prose_lines(_FENCE.sub("\n", _NOT_TYPED.sub("\n", text))):
        for sentence in _END.split(line):
            sentence = _MARK.sub("", sentence).strip().rstrip(" .。")
            if sentence and _is_prose(sentence):
                yield sentence


def first_sentence(text: str) -> str | None:
    """What names the task. A greeting names nothing."""
    return next((s for s in sentences(text) if not _GREETING.match(s)), None)


def kind(sentence: str, *, first: bool = False, refusal: bool = False) -> Kind | None:
    """What a typed sentence is, if it is worth keeping.

    In a first message only a wish that lasts counts: the rest is the task. The reason for refusing
    a tool call sets the agent right by itself.

    >>> kind("always use uv here"), kind("no, that is the old endpoint"), kind("add a button")
    ('said', 'corrected', None)
    """
    blame = not first and bool(_WHY_DID_YOU.match(sentence))
    if len(sentence) < (4 if not sentence.isascii() else 8) or _IDLE.match(sentence):
        return None
    if _INSTRUMENT.search(sentence) or len(_CODE_NAME.findall(sentence)) >= 2:
        return None
    if _REPORTED.search(sentence) or (_QUESTION.search(sentence) and not blame):
        return None
    clauses = [_FILLER.sub("", clause).strip() for clause in _CLAUSE.split(sentence)]
    clauses = [clause for clause in clauses if clause and not _IDLE.match(clause)]
    plain = _FILLER.sub("", sentence)
    choice = bool(_CHOICE.search(plain))
    if (
        _LASTS_ANYWHERE.search(sentence)
        or _LASTS_ELSEWHERE.search(sentence)
        or _LASTS_IN_ASIA.search(sentence)
        or _LASTS_IN_EUROPE.match(plain)
        or _NEXT_TIME.match(plain)
        or _ALWAYS.match(plain)
        or any(
            (_LASTS.match(clause) and not choice) or _ALWAYS_DO.match(clause) for clause in clauses
        )
        or (
            not _FOR_NOW.search(sentence)
            and not choice
            and (_PREFER.match(plain) or _AT_EACH.match(plain) or _REMEMBER.search(plain))
        )
    ):
        return "said"
    if first or is_fault(sentence) or is_thanks(sentence) or _FOR_NOW.search(sentence):
        return None
    if (
        refusal
        or blame
        or (_NO.match(sentence) and not choice)
        or (_CONTRAST.search(sentence) and not _ARRANGES.match(plain))
        or _VERDICT.match(plain)
        or _SETS_RIGHT.search(plain)
        or any(_SETS_RIGHT.search(clause) for clause in clauses)
    ):
        return "corrected"
    return None


def kept(text: str, *, refusal: bool = False, first: bool = False) -> Iterator[tuple[str, Kind]]:
    """What of a message is worth keeping, in order, each with what it is.

    A request right behind a wish that lasts belongs to it where it speaks of a kind of thing. The
    two are one quote, so that a reader sees what it was that made the second one last.

    >>> list(kept("I prefer small commits. Use British spelling in docs. Fix the page."))
    [('I prefer small commits. Use British spelling in docs', 'said')]
    """
    wish = ""
    paired, quoting = text.count('"') % 2 == 0, False  # A mark too many pairs with nothing.
    for sentence in sentences(text):
        # A quotation may go over several sentences; none of them is the person's own.
        begun, quoting = quoting, paired and quoting ^ (sentence.count('"') % 2 == 1)
        own = "" if begun or quoting else _QUOTATION.sub(" ", sentence)
        found = kind(own, first=first, refusal=refusal) if own.strip() else None
        if wish and found is None and _goes_on(sentence):
            wish = f"{wish}{'' if wish[-1] in '!?' else '.'} {sentence}"
            continue
        if wish:
            yield wish, "said"
        wish = sentence if found == "said" else ""
        if found == "corrected":
            yield sentence, found
    if wish:
        yield wish, "said"


def lasts(quote: str) -> bool:
    """Whether a kept quote is a wish that lasts, by its first sentence or a later one."""
    return any(kind(sentence) == "said" for sentence in _END.split(quote))


def _goes_on(sentence: str) -> bool:
    return (
        bool(_MORE_OF_IT.match(sentence))
        and not _FOR_NOW.search(sentence)
        and not _QUESTION.search(sentence)
        and not _INSTRUMENT.search(sentence)
        and not _REPORTED.search(sentence)
        and not _CODE_NAME.search(sentence)
    )


def is_thanks(sentence: str) -> bool:
    return bool(_THANKS.search(sentence)) and "in advance" not in sentence.lower()


def is_fault(sentence: str) -> bool:
    return bool(_FAULT.search(sentence))


def is_question(sentence: str) -> bool:
    return bool(_QUESTION.search(sentence))


def _prose_lines(text: str) -> Iterator[str]:
    """Lines of prose, hard-wrapped ones joined. A line that announces a paste is the last."""
    held = ""
    for line in text.splitlines():
        if not line.strip() or _CODE.search(line) or _LOG.search(line) or line.count("|") >= 2:
            if held:
                yield held
            held = ""
            continue
        if held and len(held) >= 60 and line.lstrip()[:1].islower() and held[-1] not in ".!?:":
            held = f"{held} {line.strip()}"
        else:
            if held:
                yield held
            held = line.strip()
        if _PASTE_FOLLOWS.search(line):
            break
    if held:
        yield held


def _is_prose(sentence: str) -> bool:
    solid = [c for c in sentence if not c.isspace()]
    return sum(c.isalpha() for c in solid) >= LETTERS_SHARE_MIN * len(solid)
