"""Which of our tests pin what each test of upstream's extraction pins.

Names are Codex's: of phase 1, of its input, of its guard, of its prompts as far as the window goes,
of its sanitizer, and of its start-up as far as phase 1 goes.
"""

EVIDENCE = "tests/adapters/rollouts/test_evidence.py::"
SENT = "tests/adapters/rollouts/test_evidence_fixtures.py::"
LONG = "tests/adapters/rollouts/test_evidence_long.py::"
FORMS = "tests/domain/test_evidence.py::"
FIELDS = "tests/domain/test_fields.py::"
SETTING = "tests/adapters/models/test_model_of_settings.py::"
ASKED = "tests/adapters/models/test_extractor.py::"
BEARER = "tests/domain/test_redaction_bearer.py::"
VERSIONS = "tests/application/test_versions.py::"
LIMITS = "tests/adapters/rollouts/test_limits.py::"
LEASES = "tests/application/test_leases.py::"
LEFT = (
    "tests/domain/test_guard.py::"
    "test_every_window_must_have_the_least_left_and_exactly_that_is_enough"
)

PHASE_1: dict[str, tuple[str, ...]] = {
    "output_schema_requires_rollout_slug_and_keeps_it_nullable": (
        ASKED + "test_the_schema_of_v1_requires_the_slug_and_lets_it_be_null",
        ASKED + "test_v1_takes_a_missing_or_an_empty_slug_for_none",
    ),
    "serializes_memory_rollout_with_agents_removed_but_environment_kept": (
        EVIDENCE + "test_a_message_keeps_its_other_parts_and_lines_of_the_program_are_passed_over",
        SENT + "test_what_we_show_is_what_codex_sent",
    ),
    "serializes_memory_rollout_redacts_secrets_before_prompt_upload": (
        EVIDENCE + "test_a_key_in_a_tools_output_is_hidden_before_it_is_shown_to_anybody",
        SENT + "test_secrets_that_codex_sent_are_hidden_and_nothing_else_is_changed",
        FIELDS + "test_a_secret_is_hidden_behind_layers_of_json_and_each_layer_is_still_json",
    ),
    "serializes_inter_agent_communications_for_memory": (
        EVIDENCE
        + "test_what_agents_say_to_each_other_is_an_agents_message_plain_or_encrypted_in_order",
    ),
    "serializes_agent_message_response_items_for_memory": (
        EVIDENCE
        + "test_what_agents_say_to_each_other_is_an_agents_message_plain_or_encrypted_in_order",
    ),
    "count_outcomes_sums_token_usage_across_all_jobs": (
        LEASES + "test_a_run_says_what_its_calls_cost_those_that_failed_included",
    ),
    "count_outcomes_keeps_usage_empty_when_no_job_reports_it": (
        LEASES + "test_a_run_says_what_its_calls_cost_those_that_failed_included",
    ),
}

INPUT: dict[str, tuple[str, ...]] = {
    "extraction_chunks_preserve_unicode_evidence_with_bounded_messages": (
        FORMS + "test_messages_of_a_v2_prompt_join_to_it_again_and_each_is_short_enough",
        SENT + "test_a_v2_prompt_travels_in_as_many_messages_as_codex_sent_each_within_8900_bytes",
    ),
    "classifies_memory_excluded_fragments": (
        EVIDENCE
        + "test_instructions_and_skills_are_left_out_and_the_environment_and_notifications_are_not",
    ),
    "tiered_memory_input_preserves_messages_around_rollout_references": (
        EVIDENCE + "test_of_a_human_and_a_final_message_v2_shows_exactly_two_labelled_lines_each",
        EVIDENCE + "test_control_records_add_nothing_and_leave_no_gap",
    ),
    "observation_control_records_do_not_become_memory_evidence": (
        EVIDENCE + "test_control_records_add_nothing_and_leave_no_gap",
    ),
}

GUARD: dict[str, tuple[str, ...]] = {
    "startup_check_uses_configured_remaining_threshold": (LEFT,),
    "startup_check_skips_when_primary_or_secondary_is_too_low": (
        LEFT,
        LIMITS + "test_a_provider_is_not_asked_while_codexs_account_has_little_left",
    ),
    "startup_check_skips_when_limit_is_reached": (LEFT,),
}

WINDOW: dict[str, tuple[str, ...]] = {
    "build_stage_one_input_message_truncates_rollout_using_model_context_window": (
        FORMS + "test_the_limit_is_seventy_percent_of_ninety_five_percent_of_the_window",
        FORMS + "test_v1_keeps_the_beginning_and_the_end_and_says_how_much_is_missing_between",
        SENT
        + "test_a_text_longer_than_the_window_of_an_unknown_model_is_cut_where_codex_was_seen_to",
    ),
    "build_stage_one_input_message_uses_default_limit_when_model_context_window_missing": (
        FORMS + "test_the_limit_is_seventy_percent_of_ninety_five_percent_of_the_window",
    ),
}

SANITIZER: dict[str, tuple[str, ...]] = {
    "redacts_supported_bearer_tokens": (
        BEARER + "test_a_bearer_token_is_hidden_whatever_its_signs_case_spaces_and_padding",
    ),
    "avoids_bearer_false_positives": (
        BEARER + "test_prose_about_bearers_and_what_is_too_short_for_a_token_is_left",
    ),
}

STARTUP: dict[str, tuple[str, ...]] = {
    "memories_startup_phase1_uses_live_thread_service_tier_and_detached_metadata": (
        ASKED + "test_a_request_holds_what_it_must_and_nothing_beside_it",
    ),
    "memories_startup_phase1_provider_default_drives_request_model": (
        SETTING + "test_a_request_names_the_model_of_the_settings_or_the_default",
    ),
    "memories_startup_phase1_explicit_model_override_drives_request_model": (
        SETTING + "test_a_request_names_the_model_of_the_settings_or_the_default",
    ),
    "memories_startup_phase1_v2_preserves_human_evidence_and_redacts_storage": (
        LONG + "test_human_words_answers_workers_and_finals_outlive_notes_and_the_noise_of_tools",
        LONG
        + "test_rows_stand_in_the_order_of_the_session_and_the_newest_notes_are_those_that_fit",
        LONG + "test_the_prompt_travels_in_messages_that_join_to_it",
        FORMS + "test_another_tool_of_that_name_and_a_blank_answer_are_no_persons_words",
        VERSIONS + "test_a_secret_goes_before_the_cut_that_would_part_it_from_its_name",
        VERSIONS + "test_a_long_summary_is_cut_in_the_middle_and_stored_under_ten_thousand_bytes",
        ASKED + "test_evidence_of_v2_travels_in_messages_of_at_most_8900_bytes_on_whole_characters",
        ASKED + "test_evidence_of_v2_without_a_branch_says_so",
        ASKED + "test_the_schema_of_v2_has_two_texts",
    ),
}

ALL = PHASE_1 | INPUT | GUARD | WINDOW | SANITIZER | STARTUP

# Name -> what we do otherwise on purpose.
DEPARTURES: dict[str, str] = {
    "memories_startup_phase1_uses_live_thread_service_tier_and_detached_metadata": (
        "there is no live thread: a request names no tier, no session and no turn"
    ),
    "serializes_memory_rollout_redacts_secrets_before_prompt_upload": (
        "decoded fields are searched, by more rules than Codex's four"
    ),
    "serializes_inter_agent_communications_for_memory": (
        "encrypted content is not sent; a placeholder stands for it"
    ),
    "memories_startup_phase1_v2_preserves_human_evidence_and_redacts_storage": (
        "pictures are left out of tools' outputs too, and a budget too small for a row is never"
        " answered with empty evidence"
    ),
}
