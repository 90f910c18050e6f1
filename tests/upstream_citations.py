"""Which of our tests pin what upstream's tests of citations, usage and pollution pin.

The names are those of Codex's tests; those of `GAPS` say what it has no test of. `DEPARTURES` says
what is different here on purpose, or is not ours to do; a name may stand in both.
"""

PARSER = "tests/domain/test_citation.py::"
CHUNKS = "tests/properties/test_citation_chunks.py::"
CITING = "tests/application/test_citing.py::"
FOUND = "tests/application/test_citing_found.py::"
TRANSCRIPT = "tests/adapters/rollouts/test_citations.py::"
COMMAND = "tests/adapters/cli/test_citing.py::"
ROWS = "tests/adapters/rollouts/test_pollution_rows.py::"
POLLUTION = "tests/application/test_pollution_found.py::"
STORE = "tests/application/test_upstream_store.py::"

CASES = PARSER + "test_an_open_case_reads_the_same_whole_and_in_chunks"
UNCLOSED = PARSER + "test_an_unclosed_block_hides_nothing_but_itself"

CITATIONS: dict[str, tuple[str, ...]] = {
    "parse_memory_citation_supports_legacy_thread_ids": (
        CASES,
        PARSER + "test_an_older_name_counts_only_where_the_newer_one_is_not_closed",
    ),
    "parse_memory_citation_supports_rollout_ids": (CASES,),
    "parse_memory_citation_extracts_entries_and_rollout_ids": (
        CASES,
        PARSER + "test_a_line_is_a_place_or_is_dropped",
    ),
    "citation_parser_streams_across_chunk_boundaries": (
        CASES,
        CHUNKS + "test_any_chunking_reads_as_the_whole",
        PARSER + "test_a_tag_that_comes_in_two_chunks_is_a_tag",
    ),
    "citation_parser_buffers_partial_open_tag_prefix": (
        PARSER + "test_the_beginning_of_a_tag_is_held_back_until_it_is_known_to_be_none",
    ),
    "citation_parser_auto_closes_unterminated_tag_on_finish": (CASES, UNCLOSED),
    "citation_parser_preserves_partial_open_tag_at_eof_if_not_a_full_tag": (
        CASES,
        PARSER + "test_the_beginning_of_a_tag_is_held_back_until_it_is_known_to_be_none",
    ),
    "strip_citations_collects_all_citations": (CASES,),
    "strip_citations_auto_closes_unterminated_citation_at_eof": (CASES, UNCLOSED),
    "citation_parser_does_not_support_nested_tags": (PARSER + "test_blocks_do_not_nest",),
    "handle_non_tool_response_item_strips_citations_from_assistant_message": (
        COMMAND + "test_cite_prints_the_visible_reply_and_counts",
    ),
    "finalize_annotation_contributors_only_for_final_items": (
        TRANSCRIPT + "test_where_the_transcript_says_which_message_is_final_that_counts",
        TRANSCRIPT + "test_a_citation_that_codex_took_out_of_the_text_counts",
        TRANSCRIPT + "test_what_codex_noted_of_an_intermediate_message_does_not_count",
        PARSER + "test_a_closed_block_that_says_nothing_is_hidden_all_the_same",
    ),
    "last_assistant_message_from_item_strips_citations_and_plan_blocks": (CASES,),
    "last_assistant_message_from_item_returns_none_for_citation_only_message": (
        PARSER + "test_a_reply_that_is_only_a_block_shows_nothing",
    ),
    "last_assistant_message_from_item_returns_none_for_plan_only_hidden_message": (),
    "handle_output_item_done_returns_contributed_last_agent_message": (),
    "classifies_reads_in_both_memory_versions": (),
    "attributes_mixed_version_reads_to_their_roots": (),
}

POLLUTING: dict[str, tuple[str, ...]] = {
    "external_context_pollution_items_include_web_search_and_tool_search": (
        ROWS + "test_codex",
        ROWS + "test_claude_code",
    ),
    "external_context_pollution_items_exclude_local_tool_calls": (
        ROWS + "test_codex",
        ROWS + "test_claude_code",
    ),
    "mark polluted returns true, then false": (
        STORE + "test_pollution_of_a_selected_thread_asks_for_phase_2",
    ),
    "selected: consolidation queued": (
        STORE + "test_pollution_of_a_selected_thread_asks_for_phase_2",
        STORE + "test_versions_keep_apart_jobs_outputs_and_resets",
        POLLUTION + "test_a_session_that_grew_is_judged_whole_and_its_folder_asked_for_again",
    ),
}

GAPS: dict[str, tuple[str, ...]] = {
    "citation of an unknown id, or of the session's own": (
        CITING + "test_each_id_that_does_not_count_is_told_with_its_reason",
        CITING + "test_a_session_of_the_store_does_not_count_its_own_memory",
        FOUND + "test_a_session_does_not_use_itself_nor_what_nobody_knows",
    ),
    "usage counted per message": (
        CITING + "test_it_counts_once_a_thread_session_and_turn",
        FOUND + "test_reading_again_and_growing_count_nothing_twice",
        FOUND + "test_what_was_counted_live_is_not_counted_again_whichever_way_turns_are_numbered",
    ),
    "a cited session was shown, or is not counted": (
        CITING + "test_what_a_session_was_not_shown_does_not_count",
        CITING + "test_in_reach_is_what_the_memory_was_made_from_when_it_was_shown",
    ),
    "external text claims ids": (
        PARSER + "test_a_web_citation_is_text_and_claims_nothing",
        TRANSCRIPT + "test_only_the_agents_own_reply_cites",
    ),
    "an unclosed block hides the rest of an answer": (UNCLOSED,),
    "raw blocks and injected memory re-enter phase 1": (
        "tests/application/test_echo.py"
        "::test_a_session_that_only_saw_and_repeated_memory_teaches_nothing",
    ),
    "polluted survives a rebuild": (
        POLLUTION + "test_pollution_lasts_through_a_rebuild_and_whatever_the_transcript_says",
    ),
    "polluted to enabled by API": (
        "tests/application/test_changes.py"
        "::test_what_a_person_enabled_is_not_polluted_again_by_the_same_text",
    ),
}

# Name -> (section of the design, what differs).
DEPARTURES: dict[str, tuple[str, str]] = {
    "citation_parser_auto_closes_unterminated_tag_on_finish": (
        "10",
        "what is of the block is hidden, the answer behind it becomes visible",
    ),
    "strip_citations_auto_closes_unterminated_citation_at_eof": (
        "10",
        "what is of the block is hidden, the answer behind it becomes visible",
    ),
    "finalize_annotation_contributors_only_for_final_items": (
        "4",
        "only what ends a turn counts; an intermediate message does not",
    ),
    "last_assistant_message_from_item_strips_citations_and_plan_blocks": (
        "4",
        "a plan is for whoever runs the agent; memory takes out its own block only",
    ),
    "last_assistant_message_from_item_returns_none_for_plan_only_hidden_message": (
        "4",
        "a plan is for whoever runs the agent",
    ),
    "handle_output_item_done_returns_contributed_last_agent_message": (
        "4",
        "nobody else contributes to a reply that a transcript holds",
    ),
    "classifies_reads_in_both_memory_versions": (
        "4",
        "reads through our tools are recorded as shown; a shell's are not guessed from its words",
    ),
    "attributes_mixed_version_reads_to_their_roots": (
        "4",
        "reads through our tools are recorded as shown, each with its root",
    ),
    "external_context_pollution_items_include_web_search_and_tool_search": (
        "5",
        "a setting that is turned on later also judges sessions that were read before",
    ),
    "selected: consolidation queued": ("10", "in every version, and together with the pollution"),
    "mark polluted returns true, then false": ("10", "what is polluted is not asked for again"),
}
