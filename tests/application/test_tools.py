"""list, read and search: their arguments, limits, cursors and errors, over one root's texts."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadbook.application.questions import (
    BadArguments,
    EmptyQuery,
    InvalidCursor,
    InvalidLineOffset,
    InvalidMatchWindow,
    InvalidMaxLines,
    LineOffsetExceedsFileLength,
    ListArguments,
    NoteArguments,
    ReadArguments,
    SearchArguments,
    decoded,
)
from threadbook.application.reading import (
    InvalidPath,
    NotFile,
    NotFound,
    Reading,
    Texts,
    Unreadable,
)
from threadbook.application.roots import Root
from threadbook.application.tools import (
    LIST_RESULTS_MAX,
    PAGE_BYTES_MAX,
    READ_TOKENS_MAX,
    SEARCH_RESULTS_MAX,
    listed,
    read,
    search,
)

ROOT = Root(memory_version="v1", scope="project:fern")


def reading(texts):
    return Reading(root=ROOT, position=1, rendered_position=1, files=Texts(texts))


def a_list(texts, **asked):
    return msgspec.to_builtins(listed(reading(texts), decoded(asked, ListArguments)))


def a_read(texts, **asked):
    return msgspec.to_builtins(read(reading(texts), decoded(asked, ReadArguments)))


def a_search(texts, *queries, **asked):
    arguments = decoded({"queries": list(queries), **asked}, SearchArguments)
    return msgspec.to_builtins(search(reading(texts), arguments))


def paths(answer):
    return [each["path"] for each in answer["entries"]]


def lines(answer):
    return [(each["path"], each["match_line_number"]) for each in answer["matches"]]


NESTED = {
    "MEMORY.md": "# summary\n",
    "rollout_summaries/one.md": "needle\n",
    "skills/lint/SKILL.md": "run make lint\n",
}


# list


def test_one_level_is_listed_files_and_folders_together():
    assert a_list(NESTED) == {
        "path": None,
        "entries": [
            {"path": "MEMORY.md", "entry_type": "file"},
            {"path": "rollout_summaries", "entry_type": "directory"},
            {"path": "skills", "entry_type": "directory"},
        ],
        "next_cursor": None,
        "truncated": False,
    }


def test_siblings_come_in_the_order_of_their_bytes():
    texts = {"b.txt": "", "a/x.md": "", "a.txt": "", "B": "", "é": ""}

    assert paths(a_list(texts)) == ["B", "a", "a.txt", "b.txt", "é"]


def test_a_folder_below_is_shallow_too_and_its_paths_begin_at_the_root():
    answer = a_list(NESTED, path="skills")

    assert answer["path"] == "skills"
    assert answer["entries"] == [{"path": "skills/lint", "entry_type": "directory"}]


def test_a_file_lists_itself():
    assert paths(a_list(NESTED, path="skills/lint/SKILL.md")) == ["skills/lint/SKILL.md"]


@pytest.mark.parametrize("path", [".", "", "./", None])
def test_the_root_has_several_names(path):
    answer = a_list(NESTED, path=path)

    assert answer["path"] == path
    assert len(answer["entries"]) == 3


@pytest.mark.parametrize("path", ["skills/", "./skills", "skills//", "skills/./"])
def test_a_folder_may_be_written_with_more_slashes_and_dots(path):
    assert paths(a_list(NESTED, path=path)) == ["skills/lint"]


def test_pages_go_on_at_the_cursor_and_the_last_has_none():
    texts = dict.fromkeys("abc", "")

    first = a_list(texts, max_results=2)
    second = a_list(texts, max_results=2, cursor=first["next_cursor"])

    assert (paths(first), first["next_cursor"], first["truncated"]) == (["a", "b"], "2", True)
    assert (paths(second), second["next_cursor"], second["truncated"]) == (["c"], None, False)


def test_a_cursor_at_the_end_is_an_empty_page_and_one_behind_it_an_error():
    texts = dict.fromkeys("abc", "")

    assert a_list(texts, cursor="3")["entries"] == []
    assert a_list(texts, cursor="+1")["entries"][0]["path"] == "b"
    with pytest.raises(InvalidCursor, match=r"cursor '4' is behind the end .3 entries."):
        a_list(texts, cursor="4")


@pytest.mark.parametrize("cursor", ["", " 1", "-1", "1.0", "x", "٣", "1" * 5_000])
def test_a_cursor_is_a_count(cursor):
    for ask in (a_list, lambda texts, **asked: a_search(texts, "needle", **asked)):
        with pytest.raises(InvalidCursor):
            ask(NESTED, cursor=cursor)


def test_a_path_is_looked_at_before_the_cursor():
    with pytest.raises(NotFound):
        a_list(NESTED, path="gone", cursor="x")


@pytest.mark.parametrize(
    ("asked", "given"), [(None, 2_000), (0, 1), (1, 1), (2_000, 2_000), (10**30, 2_000)]
)
def test_list_clamps_how_many_it_gives(asked, given):
    texts = {f"{number:04}": "" for number in range(LIST_RESULTS_MAX + 1)}

    assert len(a_list(texts, max_results=asked)["entries"]) == given


# read


def test_a_file_is_read_whole():
    assert a_read({"a.md": "first\nsecond\n"}, path="a.md") == {
        "path": "a.md",
        "start_line_number": 1,
        "content": "first\nsecond\n",
        "truncated": False,
    }


def test_one_line_of_a_file_keeps_its_break_and_says_that_there_is_more():
    answer = a_read({"a.md": "first\nsecond\nthird\n"}, path="a.md", line_offset=2, max_lines=1)

    assert answer == {
        "path": "a.md",
        "start_line_number": 2,
        "content": "second\n",
        "truncated": True,
    }


@pytest.mark.parametrize(
    ("text", "offset", "most", "content", "truncated"),
    [
        ("only\n", 2, None, "", False),
        ("only\n", 1, 1, "only\n", False),
        ("only", 1, 1, "only", False),
        ("a\n\n", 1, 1, "a\n", True),
        ("a\nb", 2, 9, "b", False),
        ("", 1, None, "", False),
        ("a\r\nb\r\n", 2, 1, "b\r\n", False),
        ("a\x0cb\u2028c\nd", 2, None, "d", False),
    ],
)
def test_lines_end_at_line_feeds_and_a_last_break_begins_one_more(
    text, offset, most, content, truncated
):
    answer = a_read({"a.md": text}, path="a.md", line_offset=offset, max_lines=most)

    assert (answer["content"], answer["truncated"]) == (content, truncated)


def test_a_line_behind_the_end_is_an_error_that_says_how_many_there_are():
    with pytest.raises(LineOffsetExceedsFileLength, match=r"line_offset 3 .* has 2 lines"):
        a_read({"a.md": "only\n"}, path="a.md", line_offset=3)


def test_no_line_and_no_lines_are_errors_before_the_path_is_looked_at():
    with pytest.raises(InvalidLineOffset, match="line_offset 0"):
        a_read({}, path="../gone", line_offset=0, max_lines=0)
    with pytest.raises(InvalidMaxLines, match="max_lines 0"):
        a_read({}, path="../gone", max_lines=0)


@pytest.mark.parametrize("path", [".", "", "rollout_summaries"])
def test_a_folder_is_no_file_to_read(path):
    with pytest.raises(NotFile, match="no file"):
        a_read(NESTED, path=path)


def test_what_is_over_the_budget_loses_its_middle():
    text = "a" * READ_TOKENS_MAX * 4

    assert a_read({"a.md": text}, path="a.md")["truncated"] is False
    cut = a_read({"a.md": text + "\nend"}, path="a.md")
    assert cut["truncated"] is True
    assert cut["content"].endswith("a\nend")
    assert "…1 tokens truncated…" in cut["content"]


# search


def test_several_queries_find_lines_with_any_of_them():
    texts = {"MEMORY.md": "alpha only\nneedle only\nalpha needle\nno match\n"}

    assert a_search(texts, " alpha ", "needle") == {
        "queries": ["alpha", "needle"],
        "match_mode": {"type": "any"},
        "path": None,
        "matches": [
            match("MEMORY.md", 1, "alpha only", "alpha"),
            match("MEMORY.md", 2, "needle only", "needle"),
            match("MEMORY.md", 3, "alpha needle", "alpha", "needle"),
        ],
        "next_cursor": None,
        "truncated": False,
        "skipped": [],
    }


def match(path, line, content, *matched, start=None):
    return {
        "path": path,
        "match_line_number": line,
        "content_start_line_number": start or line,
        "content": content,
        "matched_queries": list(matched),
        "content_truncated": False,
    }


def test_a_window_of_lines_with_all_queries_is_one_match():
    texts = {"MEMORY.md": "start\nneedle\nmiddle\nalpha\nend\n"}
    mode = {"type": "all_within_lines", "line_count": 3}

    answer = a_search(texts, "alpha", "needle", match_mode=mode)

    assert answer["match_mode"] == mode
    assert answer["matches"] == [match("MEMORY.md", 2, "needle\nmiddle\nalpha", "alpha", "needle")]


def test_all_on_the_same_line_is_asked_for_by_name():
    texts = {"MEMORY.md": "alpha\nalpha needle\n"}

    answer = a_search(texts, "alpha", "needle", match_mode={"type": "all_on_same_line"})

    assert lines(answer) == [("MEMORY.md", 2)]


def test_a_folder_a_file_or_everything_is_searched_by_path_then_line():
    texts = {"a/x.md": "needle\n\nneedle\n", "a.txt": "needle\n", "b.md": "needle\n"}

    assert lines(a_search(texts, "needle")) == [
        ("a.txt", 1),
        ("a/x.md", 1),
        ("a/x.md", 3),
        ("b.md", 1),
    ]
    assert lines(a_search(texts, "needle", path="a")) == [("a/x.md", 1), ("a/x.md", 3)]
    assert lines(a_search(texts, "needle", path="b.md")) == [("b.md", 1)]


def test_the_pages_of_a_search_go_on_across_files():
    texts = {"a.md": "needle\nneedle\n", "b.md": "needle\n"}

    first = a_search(texts, "needle", max_results=1)
    second = a_search(texts, "needle", max_results=1, cursor=first["next_cursor"])
    third = a_search(texts, "needle", max_results=1, cursor=second["next_cursor"])

    assert [lines(each) for each in (first, second, third)] == [
        [("a.md", 1)],
        [("a.md", 2)],
        [("b.md", 1)],
    ]
    assert (first["truncated"], third["truncated"], third["next_cursor"]) == (True, False, None)
    assert a_search(texts, "needle", cursor="3")["matches"] == []
    with pytest.raises(InvalidCursor, match=r"behind the end .3 matches."):
        a_search(texts, "needle", cursor="4")


def test_contexts_that_overlap_are_both_given():
    texts = {"a.md": "one\nneedle\nneedle\nfour\nfive\n"}

    answer = a_search(texts, "needle", context_lines=1)

    assert answer["matches"] == [
        match("a.md", 2, "one\nneedle\nneedle", "needle", start=1),
        match("a.md", 3, "needle\nneedle\nfour", "needle", start=2),
    ]


def test_case_and_signs_count_until_they_are_told_not_to():
    texts = {"a.md": "Make-Lint\n"}

    assert lines(a_search(texts, "make lint")) == []
    assert lines(a_search(texts, "make-lint", case_sensitive=False)) == [("a.md", 1)]
    assert lines(a_search(texts, "Make Lint", normalized=True)) == [("a.md", 1)]
    assert lines(a_search(texts, "make/lint", normalized=True, case_sensitive=False)) == [
        ("a.md", 1)
    ]


@pytest.mark.parametrize("queries", [[], [""], ["a", "  "], ["\n"]])
def test_a_search_for_nothing_is_an_error(queries):
    with pytest.raises(EmptyQuery, match="queries"):
        a_search(NESTED, *queries)


def test_a_text_of_signs_is_nothing_once_it_is_normalized():
    assert lines(a_search({"a.md": "x -- y"}, "--")) == [("a.md", 1)]
    with pytest.raises(EmptyQuery, match="normalized"):
        a_search({"a.md": "x -- y"}, "a", "--", normalized=True)


def test_a_window_of_no_lines_is_an_error_before_the_path_is_looked_at():
    with pytest.raises(InvalidMatchWindow, match="line_count 0"):
        a_search({}, "a", path="../x", match_mode={"type": "all_within_lines", "line_count": 0})


@pytest.mark.parametrize(("asked", "given"), [(None, 200), (0, 1), (200, 200), (10**30, 200)])
def test_search_clamps_how_many_it_gives(asked, given):
    texts = {"a.md": "needle\n" * (SEARCH_RESULTS_MAX + 1)}

    assert len(a_search(texts, "needle", max_results=asked)["matches"]) == given


def test_a_page_ends_where_it_has_enough_bytes_and_the_next_goes_on_there():
    texts = {"a.md": ("needle " + "x" * 9_993 + "\n") * 20}

    seen, cursor = [], None
    for _ in range(3):
        page = a_search(texts, "needle", cursor=cursor)
        size = sum(len(each["content"].encode()) for each in page["matches"])
        assert size <= PAGE_BYTES_MAX
        seen += lines(page)
        cursor = page["next_cursor"]

    assert seen == [("a.md", line) for line in range(1, 21)]
    assert cursor is None


def test_a_finding_that_is_too_long_says_so():
    answer = a_search({"a.md": "x" * 900_000 + "needle"}, "needle")

    (only,) = answer["matches"]
    assert only["content_truncated"] is True
    assert only["content"].endswith("needle")
    assert len(only["content"]) == 16_000


class Locked(Texts):
    """A folder of which one file may not be opened, and another goes away while it is searched."""

    def text(self, path):
        if path == "locked.md":
            raise Unreadable(f"{path} may not be used; make it your own")
        if path == "gone.md":
            raise NotFound(f"there is no {path}")
        return super().text(path)


def test_a_file_that_may_not_be_opened_is_named_and_keeps_no_other_from_being_searched():
    texts = dict.fromkeys(("a.md", "gone.md", "locked.md", "z.md"), "needle")
    locked = Reading(root=ROOT, position=1, rendered_position=1, files=Locked(texts))

    answer = search(locked, SearchArguments(queries=("needle",)))

    assert [match.path for match in answer.matches] == ["a.md", "z.md"]
    assert answer.skipped == ["locked.md"]


# properties

TEXTS = st.text(alphabet="ab \r\n\x0c", max_size=24)
FOLDERS = st.dictionaries(
    st.sampled_from(["a.md", "a/x.md", "a/b/y.md", "a.txt", "b.md", "é.md"]), TEXTS, max_size=6
)


@given(TEXTS)
def test_a_file_read_line_by_line_is_the_file(text):
    count = text.count("\n") + 1
    parts = [
        a_read({"a.md": text}, path="a.md", line_offset=line, max_lines=1)
        for line in range(1, count + 1)
    ]

    assert "".join(part["content"] for part in parts) == text
    assert [part["truncated"] for part in parts] == [
        bool("".join(later["content"] for later in parts[at + 1 :])) for at in range(count)
    ]


@given(FOLDERS, st.integers(1, 4), st.integers(0, 3))
def test_the_pages_are_the_whole_in_order(texts, size, context_lines):
    asked = {"context_lines": context_lines}
    whole = a_search(texts, "a", "b", **asked)["matches"]
    entries = a_list(texts)["entries"]

    assert (
        pages(lambda **page: a_search(texts, "a", "b", **asked, **page), "matches", size) == whole
    )
    assert pages(lambda **page: a_list(texts, **page), "entries", size) == entries
    assert whole == sorted(whole, key=lambda each: (each["path"], each["match_line_number"]))


def pages(ask, what, size):
    found, cursor = [], None
    while True:
        page = ask(max_results=size, cursor=cursor)
        assert len(page[what]) <= size
        assert page["truncated"] == (page["next_cursor"] is not None)
        found += page[what]
        cursor = page["next_cursor"]
        if cursor is None:
            return found


# paths and arguments


ASKED = {
    "list": lambda path: a_list(NESTED, path=path),
    "read": lambda path: a_read(NESTED, path=path),
    "search": lambda path: a_search(NESTED, "needle", path=path),
}


@pytest.mark.parametrize("tool", ASKED)
@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../x",
        "skills/../MEMORY.md",
        ".git/../MEMORY.md",
        "/etc/passwd",
        "//server/share",
        "C:/x",
        "c:",
        "..\\x",
        "skills\\lint",
        "a\0b",
        "a\nb",
    ],
)
def test_a_path_that_leads_out_is_refused_and_says_that_it_must_stay_within(tool, path):
    with pytest.raises(InvalidPath) as refused:
        ASKED[tool](path)

    assert "path" in str(refused.value)
    assert "must stay within" in str(refused.value) or "control character" in str(refused.value)


@pytest.mark.parametrize("tool", ASKED)
@pytest.mark.parametrize("path", ["gone.md", "skills/gone", ".git", ".git/HEAD", "skills/.x/y"])
def test_what_is_hidden_looks_like_what_is_not_there(tool, path):
    with pytest.raises(NotFound) as refused:
        ASKED[tool](path)

    assert str(refused.value) == f"path {path!r} does not exist; list shows what there is"


def test_what_is_hidden_below_a_folder_is_hidden_too():
    with pytest.raises(NotFound):
        a_read({"skills/.x/y": "secret"}, path="skills/.x/y")


@pytest.mark.parametrize("tool", ASKED)
def test_a_file_on_the_way_is_no_folder(tool):
    with pytest.raises(InvalidPath, match=r"MEMORY.md is a file"):
        ASKED[tool]("MEMORY.md/x")


@pytest.mark.parametrize(
    ("kind", "arguments", "named"),
    [
        (SearchArguments, {"queries": ["a"], "query": "a"}, "unknown field `query`"),
        (SearchArguments, {"query": "a"}, "unknown field `query`"),
        (SearchArguments, {}, "`queries`"),
        (SearchArguments, {"queries": "a"}, "queries"),
        (SearchArguments, {"queries": [1]}, "queries"),
        (SearchArguments, {"queries": ["a"], "case_sensitive": "no"}, "case_sensitive"),
        (SearchArguments, {"queries": ["a"], "case_sensitive": None}, "case_sensitive"),
        (SearchArguments, {"queries": ["a"], "context_lines": -1}, "context_lines"),
        (SearchArguments, {"queries": ["a"], "match_mode": "any"}, "match_mode"),
        (SearchArguments, {"queries": ["a"], "match_mode": {"type": "fuzzy"}}, "match_mode.type"),
        (SearchArguments, {"queries": ["a"], "match_mode": {"type": "any", "n": 1}}, "`n`"),
        (SearchArguments, {"queries": ["\ud800"]}, "lone surrogate"),
        (ListArguments, {"max_results": "7"}, "max_results"),
        (ListArguments, {"max_results": True}, "max_results"),
        (ListArguments, {"max_results": -1}, "max_results"),
        (ListArguments, {"cursor": 2}, "cursor"),
        (ReadArguments, {}, "`path`"),
        (ReadArguments, {"path": None}, "path"),
        (ReadArguments, {"path": "a", "line_offset": 1.5}, "line_offset"),
        (NoteArguments, {"filename": "a.md", "note": "x", "path": "/"}, "unknown field `path`"),
    ],
)
def test_arguments_that_are_wrong_are_named_and_so_are_those_there_are(kind, arguments, named):
    with pytest.raises(BadArguments) as refused:
        decoded(arguments, kind)

    assert named in str(refused.value)
    assert str(refused.value).endswith(", ".join(kind.__struct_fields__))


def test_what_may_be_left_out_may_be_null():
    assert decoded({"path": None, "cursor": None, "max_results": None}, ListArguments)


def test_every_error_of_a_tool_is_of_one_family_and_has_a_code_of_its_own():
    family = [BadArguments, EmptyQuery, InvalidCursor, InvalidLineOffset, InvalidMatchWindow]
    family += [InvalidMaxLines, InvalidPath, LineOffsetExceedsFileLength, NotFile, NotFound]

    assert all(issubclass(each, Unreadable) for each in family)
    assert len({each.code for each in family}) == len(family)
