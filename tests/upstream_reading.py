"""Which of our tests pin what each test of upstream's read path pins, and what it leaves open.

The names of `TOOLS` are those of Codex's memory extension and of the server that came before it;
those of `GAPS` say what upstream has no test of. What we do otherwise on purpose stands in the test
that is named: a note's answer says where it is and whether it was new, a search says which files it
could not read and which excerpts are cut, and what ends a turn there is an error here.
"""

TOOL = "tests/application/test_tools.py::"
LINES = "tests/domain/test_search.py::"
CUT = "tests/domain/test_truncation.py::"
DESK = "tests/adapters/mcp/test_desk.py::"
SERVER = "tests/adapters/mcp/test_server.py::"
READING = "tests/application/test_reading.py::"

TOOLS: dict[str, tuple[str, ...]] = {
    "memory_tool_namespace_matches_responses_api_identifier": (
        DESK + "test_names_are_such_as_every_client_and_model_takes",
    ),
    "tools_are_not_contributed_without_thread_config": (
        DESK + "test_where_no_project_is_nobodys_memory_is_read",
    ),
    "tools_are_not_contributed_when_disabled": (
        DESK + "test_memory_that_is_switched_off_is_offered_and_given_to_nobody",
        DESK + "test_a_project_may_switch_it_off_for_itself",
    ),
    "tools_are_not_contributed_when_dedicated_tools_disabled": (
        DESK + "test_memory_that_is_switched_off_is_offered_and_given_to_nobody",
    ),
    "tools_are_contributed_when_enabled_with_dedicated_tools": (
        SERVER + "test_the_tools_are_offered_with_their_words_schemas_and_hints",
        DESK + "test_names_are_such_as_every_client_and_model_takes",
    ),
    "tools_are_contributed_when_enabled": (
        SERVER + "test_nothing_that_is_offered_approves_forgets_or_changes_a_mode",
    ),
    "install_registers_dedicated_tool_contributor": (
        SERVER + "test_the_tools_are_offered_with_their_words_schemas_and_hints",
    ),
    "ad_hoc_tool_definition_includes_filename_contract": (
        DESK + "test_the_form_of_a_notes_name_stands_in_its_schema",
    ),
    "add_ad_hoc_note_tool_creates_note_file": (
        DESK + "test_a_note_is_kept_as_it_is_written",
        DESK + "test_a_note_makes_a_home_and_is_read_from_then_on",
    ),
    "add_ad_hoc_note_tool_rejects_paths_as_filenames": (
        DESK + "test_a_note_that_is_not_named_as_notes_are_is_refused_with_the_form_that_they_have",
    ),
    "read_tool_reads_memory_file": (
        TOOL + "test_one_line_of_a_file_keeps_its_break_and_says_that_there_is_more",
        SERVER + "test_an_agent_finds_reads_and_notes",
    ),
    "local_listing_and_search_ignore_symlinks": (
        DESK + "test_links_pipes_and_what_is_hidden_are_neither_listed_nor_found",
    ),
    "search_tool_accepts_multiple_queries": (
        TOOL + "test_several_queries_find_lines_with_any_of_them",
    ),
    "search_tool_accepts_windowed_all_match_mode": (
        TOOL + "test_a_window_of_lines_with_all_queries_is_one_match",
    ),
    "search_tool_rejects_legacy_single_query": (
        TOOL + "test_arguments_that_are_wrong_are_named_and_so_are_those_there_are",
        SERVER + "test_what_is_refused_is_refused_in_words_that_name_it",
    ),
    "list_returns_shallow_memory_paths": (
        TOOL + "test_one_level_is_listed_files_and_folders_together",
    ),
    "list_supports_pagination": (TOOL + "test_pages_go_on_at_the_cursor_and_the_last_has_none",),
    "list_preserves_lexicographic_order_for_siblings": (
        TOOL + "test_siblings_come_in_the_order_of_their_bytes",
    ),
    "list_scoped_directory_is_shallow": (
        TOOL + "test_a_folder_below_is_shallow_too_and_its_paths_begin_at_the_root",
    ),
    "list_rejects_invalid_cursor": (TOOL + "test_a_cursor_is_a_count",),
    "list_rejects_cursor_past_end": (
        TOOL + "test_a_cursor_at_the_end_is_an_empty_page_and_one_behind_it_an_error",
    ),
    "read_rejects_directory_and_returns_file_content": (
        TOOL + "test_a_file_is_read_whole",
        TOOL + "test_a_folder_is_no_file_to_read",
    ),
    "read_supports_line_offset": (
        TOOL + "test_lines_end_at_line_feeds_and_a_last_break_begins_one_more",
    ),
    "read_supports_max_lines": (
        TOOL + "test_lines_end_at_line_feeds_and_a_last_break_begins_one_more",
    ),
    "read_rejects_invalid_line_requests": (
        TOOL + "test_no_line_and_no_lines_are_errors_before_the_path_is_looked_at",
        TOOL + "test_a_line_behind_the_end_is_an_error_that_says_how_many_there_are",
    ),
    "search_supports_directory_and_file_scopes": (
        TOOL + "test_a_folder_a_file_or_everything_is_searched_by_path_then_line",
    ),
    "search_supports_pagination": (TOOL + "test_the_pages_of_a_search_go_on_across_files",),
    "search_supports_context_lines": (TOOL + "test_contexts_that_overlap_are_both_given",),
    "search_rejects_invalid_cursor": (
        TOOL + "test_a_cursor_is_a_count",
        TOOL + "test_the_pages_of_a_search_go_on_across_files",
    ),
    "scoped_paths_reject_parent_segments": (
        TOOL + "test_a_path_that_leads_out_is_refused_and_says_that_it_must_stay_within",
    ),
    "read_rejects_symlinked_files": (DESK + "test_what_cannot_be_read_is_an_error_that_names_it",),
}

GAPS: dict[str, tuple[str, ...]] = {
    "truncation at the last byte and inside a character": (
        CUT + "test_one_byte_too_many_costs_a_mark_of_one_token",
        CUT + "test_a_cut_inside_a_character_leaves_that_character_out_on_both_sides",
    ),
    "normalised and case-insensitive search": (
        LINES + "test_normalized_compares_letters_and_digits_only",
        LINES + "test_case_counts_until_it_is_told_not_to",
        TOOL + "test_a_text_of_signs_is_nothing_once_it_is_normalized",
    ),
    "minimal-window rule": (
        LINES + "test_of_windows_inside_one_another_the_smallest_stands_and_others_may_overlap",
        LINES + "test_the_findings_are_those_of_the_rule",
    ),
    "hidden paths": (
        TOOL + "test_what_is_hidden_looks_like_what_is_not_there",
        TOOL + "test_what_is_hidden_below_a_folder_is_hidden_too",
        DESK + "test_links_pipes_and_what_is_hidden_are_neither_listed_nor_found",
    ),
    "symlinked root, also where a child is named": (
        DESK + "test_a_memory_folder_that_is_a_link_is_not_followed_whatever_is_named",
    ),
    "non-UTF-8 read is an error that the model can read": (
        DESK + "test_what_cannot_be_read_is_an_error_that_names_it",
    ),
    "no cap on context and excerpts": (
        LINES + "test_an_excerpt_keeps_its_bound_and_is_lines_of_the_text",
        TOOL + "test_a_page_ends_where_it_has_enough_bytes_and_the_next_goes_on_there",
    ),
    "duplicate note": (
        DESK + "test_a_note_that_is_there_is_refused_and_the_same_words_are_kept_once",
    ),
    "slug edge cases": (
        DESK + "test_a_note_that_is_not_named_as_notes_are_is_refused_with_the_form_that_they_have",
        DESK + "test_a_note_is_kept_as_it_is_written",
    ),
    "secrets and size of notes": (
        DESK + "test_a_secret_in_a_note_is_hidden_and_a_book_is_no_note",
    ),
    "a forgotten fact no longer appears": (
        DESK + "test_what_a_polluted_session_said_is_on_no_surface_from_then_on",
        READING + "test_after_any_acts_nobody_reads_a_session_that_is_out",
    ),
    "one memory for all projects": (
        SERVER + "test_another_projects_words_are_on_no_surface_and_its_own_server_has_them",
        DESK + "test_a_note_is_of_its_project_only",
    ),
}
