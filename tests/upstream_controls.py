"""Which of our tests pin what upstream's tests of the other parts of the read path pin: injection,
settings, controls, import, and what is known of a session.

Where we have no such thing, or do it otherwise on purpose, the table says so in words instead of a
test. The names are upstream's; several of one kind stand in one row, as where they were listed.
"""

CONTEXT = "tests/application/test_context.py::"
SETTINGS = "tests/adapters/test_settings.py::"
CHANGES = "tests/application/test_changes.py::"
RESET = "tests/application/test_reset.py::"
CLAUDE = "tests/application/test_importing_claude.py::"
CODEX_RULES = "tests/adapters/rollouts/test_codex_rules.py::"
CLAUDE_RULES = "tests/adapters/rollouts/test_claude.py::"
HARNESS = "tests/adapters/rollouts/test_harness.py::"

INJECTION: dict[str, tuple[str, ...]] = {
    "prompt_contribution_uses_memory_summary_when_enabled": (
        CONTEXT + "test_a_session_is_given_the_summary_in_one_fence_with_where_the_rest_is",
    ),
    "build_memory_tool_developer_instructions_renders_embedded_template": (
        CONTEXT + "test_a_prompt_has_every_part_and_one_place_for_the_memory",
        CONTEXT + "test_a_session_is_given_the_summary_in_one_fence_with_where_the_rest_is",
    ),
    "v2_reads_only_its_own_summary_without_falling_back_to_v1": (
        CONTEXT + "test_v2_is_given_its_own_summary_and_never_v1s",
    ),
}

SETTINGS_TABLE: dict[str, tuple[str, ...]] = {
    "memories_config_clamps_count_limits_to_nonzero_values": (
        SETTINGS + "test_a_number_out_of_range_is_clamped_in_the_file_and_in_the_environment",
    ),
    "memories_config_clamps_rate_limit_remaining_threshold": (
        SETTINGS + "test_a_number_out_of_range_is_clamped_in_the_file_and_in_the_environment",
    ),
    "core config tests": (SETTINGS + "test_codexs_own_table_may_be_pasted_as_it_is",),
}

CONTROLS: dict[str, tuple[str, ...]] = {
    "thread_memory_mode_set_updates_loaded_thread_state": (
        CHANGES + "test_disabling_takes_out_and_enabling_brings_back_without_reading_again",
    ),
    "thread_memory_mode_set_updates_stored_thread_state": (
        CHANGES + "test_disabling_takes_out_and_enabling_brings_back_without_reading_again",
    ),
    "memory_reset_clears_memory_files_and_rows_preserves_threads": (
        RESET + "test_every_word_that_was_learned_leaves_the_home_and_the_sessions_stay",
        RESET + "test_notes_stay_unless_they_are_named",
    ),
    "clear_memory_root_contents_preserves_root_directory": (
        RESET + "test_every_word_that_was_learned_leaves_the_home_and_the_sessions_stay",
    ),
    "clear_memory_root_contents_rejects_symlinked_root": (
        RESET + "test_a_folder_that_cannot_be_emptied_is_told_and_emptied_by_the_next_run",
    ),
}

EXTERNAL_MEMORY: dict[str, tuple[str, ...]] = {
    "discovers_arbitrary_project_markdown_and_resolves_cwd_from_session_metadata": (
        CLAUDE + "test_any_markdown_is_found_and_the_newest_session_says_where_the_project_lies",
    ),
    "discovers_user_and_project_custom_directories_with_project_precedence": (
        CLAUDE + "test_one_folder_for_all_projects_is_told_and_not_followed",
    ),
    "does_not_require_documentation_example_topic_names": (
        CLAUDE + "test_no_file_needs_a_name_that_some_documentation_has",
    ),
    "copies_only_selected_projects_and_recopies_changed_content": (
        CLAUDE
        + "test_only_the_projects_that_are_named_come_in_and_what_changed_replaces_them_whole",
    ),
    "preserves_project_successes_and_reports_each_failed_selection": (
        CLAUDE + "test_a_project_that_fails_keeps_none_of_the_others_out",
    ),
    "rejects_memory_project_keys_that_are_not_single_components": (
        CLAUDE + "test_a_key_is_one_name",
    ),
    "rejects_symlinked_memory_destination_ancestors": (
        CLAUDE + "test_nothing_is_written_through_a_link_in_the_memory_folder",
    ),
    "projects_needing_import_rejects_symlinked_stale_memory_project": (
        CLAUDE + "test_links_are_passed_over_wherever_they_stand",
        CLAUDE + "test_nothing_is_written_through_a_link_in_the_memory_folder",
    ),
    "removes_project_resources_when_the_source_project_disappears": (
        CLAUDE + "test_what_is_gone_there_goes_here_its_words_included",
    ),
    "uses_scope_file_to_identify_owned_projects": (
        CLAUDE + "test_what_another_home_of_claude_had_stays",
    ),
    "project_rename_removes_the_old_target_and_imports_the_new_target": (
        CLAUDE + "test_a_project_that_was_renamed_moves_in_one_go",
    ),
    "does_not_import_a_new_project_without_a_reliable_cwd": (
        CLAUDE + "test_a_project_that_fails_keeps_none_of_the_others_out",
    ),
    "missing_cwd_does_not_make_an_existing_scoped_project_look_deleted": (
        CLAUDE + "test_a_project_whose_sessions_are_gone_is_left_as_it_is",
    ),
    "removes_an_existing_unscoped_target_when_cwd_is_unavailable": (
        CLAUDE + "test_files_that_no_scope_stands_beside_go_when_nobody_knows_whose_they_are",
    ),
}

SESSIONS: dict[str, tuple[str, ...]] = {
    "response_item_user_messages_do_not_set_title_or_first_user_message": (
        CODEX_RULES + "test_a_typed_message_and_its_event_are_one_whichever_comes_first",
        CODEX_RULES + "test_an_editor_s_context_is_not_typed_and_the_preview_shows_the_request",
    ),
    "event_msg_user_messages_set_title_and_first_user_message": (
        CODEX_RULES + "test_an_editor_s_context_is_not_typed_and_the_preview_shows_the_request",
    ),
    "completed_user_message_items_set_title_and_first_user_message": (
        CODEX_RULES + "test_a_message_of_several_parts_has_one_event_however_they_are_joined",
    ),
    "event_msg_image_only": (
        CODEX_RULES + "test_a_picture_alone_shows_as_a_placeholder_and_is_no_typed_text",
    ),
    "event_msg_thread_goal_sets_preview_only_and_later_user_sets_message_title": (
        CODEX_RULES + "test_without_a_message_the_goal_is_the_preview",
    ),
    "turn_context_does_not_override_session_cwd": (
        CODEX_RULES
        + "test_a_turn_s_folder_counts_only_where_the_session_has_none_and_settings_replace_it",
    ),
    "thread_settings_applied_updates_resume_metadata": (
        CODEX_RULES
        + "test_a_turn_s_folder_counts_only_where_the_session_has_none_and_settings_replace_it",
    ),
    "diff_fields_detects_changes": (
        "tests/domain/test_thread.py::test_a_change_names_only_what_changed",
    ),
    "classifies_memory_excluded_fragments": (
        HARNESS + "test_text_of_the_harness_holds_nothing_typed",
    ),
    "reads_session_import_in_one_pass": (
        CLAUDE_RULES + "test_of_a_whole_session_only_what_a_person_typed_is_a_person_s",
    ),
    "converts_tool_use": (CLAUDE_RULES + "test_a_failed_command_and_its_exit_code_are_read",),
}

NOT_OURS: dict[str, str] = {
    "thread_memory_mode_set_requires_experimental_api_capability": (
        "there is no app-server; `threadbook mode` is the control"
    ),
    "memory_status_requires_successful_v2_consolidation_and_resets": (
        "readiness of version v2 comes with its consolidation"
    ),
    "turn_context_sets_permission_profile_metadata": "what a sandbox may is not kept",
    "session_meta_does_not_set_model_or_reasoning_effort": "they are not kept",
    "persists_image_generation_end_events": "we read rollouts and write none",
    "builds_visible_turns": "we make no Codex sessions out of Claude Code's",
}
