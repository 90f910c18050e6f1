"""Which of our tests pin what each test of upstream's state layer pins.

The names are those of the 39 tests of Codex's memory store, and of the long scenario that a port of
it compares itself with. `OURS` maps each name to node ids of this suite. `DEPARTURES` says where we
differ on purpose, and which section of the design decided it; a name may stand in both.
`IN_THE_STORE` are tests with a database under them, in one file that the store's side fills.
"""

EXTRACTION = "tests/domain/test_extraction.py::"
CONSOLIDATION = "tests/domain/test_consolidation.py::"
ELIGIBILITY = "tests/domain/test_eligibility.py::"
SELECTION = "tests/domain/test_selection.py::"
THREAD = "tests/domain/test_thread.py::"
PHASE_1_RACE = "tests/properties/test_phase1_lease.py::Phase1Lease::"
PHASE_2_RACE = "tests/properties/test_phase2_lease.py::Phase2Lease::"
STORE = "tests/application/test_upstream_store.py::"
SQL = "tests/projections/test_stage1_outputs.py::"
SCENARIO = "the differential scenario"

OURS: dict[str, tuple[str, ...]] = {
    "stage1_claim_skips_when_up_to_date": (
        EXTRACTION + "test_a_reading_is_up_to_date_until_the_session_goes_on",
    ),
    "stage1_running_stale_can_be_stolen_but_fresh_running_is_skipped": (
        EXTRACTION + "test_a_fresh_lease_refuses_a_second_worker_until_the_second_it_ends",
        EXTRACTION + "test_taking_over_at_the_same_watermark_spends_a_try",
    ),
    "stage1_concurrent_claim_for_same_thread_is_conflict_safe": (
        EXTRACTION + "test_of_two_claims_on_one_reading_one_wins_and_the_other_is_told",
        PHASE_1_RACE + "a_lease_never_has_two_holders",
        STORE + "test_eight_racing_claims_of_a_session_give_one",
    ),
    "stage1_concurrent_claims_respect_running_cap": (
        EXTRACTION + "test_of_two_threads_and_one_slot_one_waits",
        PHASE_1_RACE + "no_more_sessions_are_being_read_than_the_cap",
        STORE + "test_ten_racing_claims_with_a_cap_of_three_give_three",
    ),
    "claim_stage1_jobs_filters_by_age_idle_and_current_thread": (
        ELIGIBILITY + "test_a_window_of_thirty_days_and_twelve_hours",
        ELIGIBILITY + "test_the_session_that_asks_is_not_idle",
        STORE + "test_the_gates_come_before_the_scan_limit",
    ),
    "claim_stage1_jobs_bounds_state_scan_before_memory_probes": (
        STORE + "test_the_scan_limit_counts_threads_that_are_up_to_date",
    ),
    "claim_stage1_jobs_skips_threads_with_disabled_memory_mode": (
        ELIGIBILITY + "test_any_mode_but_enabled_is_outside",
        STORE + "test_a_disabled_thread_is_not_claimed_and_its_peer_is",
    ),
    "clear_memory_data_clears_rows_and_preserves_thread_memory_modes": (
        EXTRACTION + "test_a_reset_ends_the_leases_and_watermarks_of_its_version_only",
        CONSOLIDATION + "test_a_reset_ends_the_lease_and_the_rest_of_its_version_only",
        STORE + "test_a_reset_empties_outputs_and_jobs_and_leaves_modes_alone",
    ),
    "claim_stage1_jobs_enforces_global_running_cap": (
        EXTRACTION + "test_the_cap_counts_the_others",
        STORE + "test_a_pass_fills_the_slots_that_are_left_and_the_next_finds_none",
    ),
    "claim_stage1_jobs_processes_two_full_batches_across_startup_passes": (
        STORE + "test_the_next_pass_takes_a_full_batch_once_the_first_is_done",
    ),
    "delete_thread_removes_stage1_output_and_enqueues_phase2_when_selected": (
        EXTRACTION
        + "test_a_forgotten_thread_cannot_be_claimed_and_whoever_reads_it_has_lost_the_lease",
        STORE + "test_forgetting_a_selected_thread_removes_its_output_and_asks_for_phase_2",
        STORE + "test_forgetting_what_nobody_selected_asks_for_nothing",
    ),
    "mark_stage1_job_succeeded_no_output_skips_phase2_when_output_was_already_absent": (
        EXTRACTION + "test_a_session_that_teaches_nothing_counts_as_read",
        STORE + "test_no_output_where_none_was_asks_for_nothing",
    ),
    "mark_stage1_job_succeeded_no_output_enqueues_phase2_when_deleting_output": (
        EXTRACTION + "test_a_session_that_teaches_nothing_any_more_takes_its_output_away",
        STORE + "test_no_output_that_removes_one_asks_for_phase_2",
    ),
    "stage1_retry_exhaustion_does_not_block_newer_watermark": (
        EXTRACTION + "test_three_bad_replies_close_the_job_until_the_session_goes_on",
        EXTRACTION + "test_three_transient_failures_leave_all_tries",
    ),
    "phase2_global_lock_respects_success_cooldown": (
        CONSOLIDATION + "test_a_success_rests_six_hours_to_the_second",
        CONSOLIDATION + "test_a_request_does_not_lift_the_rest_of_a_success",
        CONSOLIDATION + "test_the_rest_can_be_waived_and_the_claim_says_by_whom",
    ),
    "phase2_global_lock_can_be_claimed_after_retry_budget_is_exhausted": (
        CONSOLIDATION + "test_a_root_without_tries_can_still_be_claimed",
    ),
    "list_stage1_outputs_for_global_returns_latest_outputs": (
        STORE + "test_what_phase_2_reads_comes_with_its_session_and_without_what_is_not_known",
    ),
    "list_stage1_outputs_for_global_skips_empty_payloads": (
        STORE + "test_blank_texts_are_no_output",
    ),
    "list_stage1_outputs_for_global_skips_polluted_threads": (
        SELECTION + "test_a_mode_other_than_enabled_is_ranked_by_nobody",
        SQL + "test_both_ways_to_a_selection_find_the_best_recent_outputs_in_rank_order",
    ),
    "get_phase2_input_selection_returns_current_selected_rows": (
        SELECTION + "test_what_is_chosen_goes_by_thread_id_and_not_by_rank",
        SELECTION + "test_what_was_selected_before_has_no_better_rank",
        CONSOLIDATION + "test_a_success_reaches_as_far_as_what_it_read",
        STORE + "test_what_was_consolidated_before_has_no_better_place",
        STORE + "test_what_phase_2_reads_comes_with_its_session_and_without_what_is_not_known",
    ),
    "get_phase2_input_selection_excludes_polluted_previous_selection": (
        SELECTION + "test_a_polluted_thread_is_left_out_although_the_last_success_read_it",
        STORE + "test_pollution_of_a_selected_thread_asks_for_phase_2",
    ),
    "mark_thread_memory_mode_polluted_enqueues_phase2_for_selected_threads": (
        STORE + "test_pollution_of_a_selected_thread_asks_for_phase_2",
        STORE + "test_pollution_during_the_rest_waits_for_its_end_unless_it_is_waived",
    ),
    "mark_thread_memory_mode_polluted_enqueues_phase2_when_already_polluted": (
        THREAD + "test_pollution_is_recorded_once",
        STORE + "test_pollution_and_its_request_are_recorded_together",
    ),
    "get_phase2_input_selection_returns_regenerated_selected_rows": (
        STORE + "test_a_refreshed_output_is_selected_anew_while_the_snapshot_stays",
    ),
    "get_phase2_input_selection_uses_current_ranking_after_refreshes": (
        SELECTION + "test_refreshed_outputs_rank_by_their_new_reading",
    ),
    "mark_global_phase2_job_succeeded_updates_selected_snapshot_timestamp": (
        STORE + "test_a_refreshed_output_is_selected_anew_while_the_snapshot_stays",
    ),
    "mark_global_phase2_job_succeeded_only_marks_exact_selected_snapshots": (
        SELECTION + "test_a_success_marks_only_what_is_still_what_it_read",
        STORE + "test_an_output_refreshed_during_a_run_is_not_marked_and_is_read_next",
    ),
    "record_stage1_output_usage_updates_usage_metadata": (
        EXTRACTION + "test_uses_are_counted_and_outlive_a_newer_reading",
        EXTRACTION + "test_a_citation_counts_once_and_only_for_a_live_output",
        STORE + "test_ids_cited_in_one_turn_count_once_each",
    ),
    "get_phase2_input_selection_prioritizes_usage_count_then_recent_usage": (
        SELECTION + "test_uses_come_first_then_the_last_use",
        SQL + "test_both_ways_to_a_selection_find_the_best_recent_outputs_in_rank_order",
    ),
    "get_phase2_input_selection_excludes_stale_used_memories_but_keeps_fresh_never_used": (
        SELECTION + "test_the_last_use_counts_and_not_how_often",
        SQL + "test_both_ways_to_a_selection_find_the_best_recent_outputs_in_rank_order",
    ),
    "get_phase2_input_selection_prefers_recent_thread_updates_over_recent_generation": (
        SELECTION + "test_when_an_output_was_written_plays_no_part",
    ),
    "prune_stage1_outputs_for_retention_prunes_stale_unselected_rows_only": (
        SELECTION + "test_pruning_takes_what_is_old_and_unselected_whatever_its_mode",
        EXTRACTION + "test_a_pruned_output_is_not_read_again",
        STORE + "test_pruning_leaves_the_jobs_and_what_is_selected",
    ),
    "prune_stage1_outputs_for_retention_respects_batch_limit": (
        SELECTION + "test_pruning_takes_the_oldest_first_and_no_more_than_its_limit",
        SQL + "test_pruning_takes_the_oldest_first_and_no_more_than_asked",
        STORE + "test_pruning_leaves_the_jobs_and_what_is_selected",
    ),
    "mark_stage1_job_succeeded_enqueues_global_consolidation": (
        CONSOLIDATION + "test_a_claim_carries_the_newest_watermark_asked_for",
        STORE + "test_a_success_asks_for_phase_2_in_the_same_transaction",
    ),
    "phase2_global_lock_allows_only_one_fresh_runner": (
        CONSOLIDATION + "test_a_held_lease_refuses_a_second_worker_and_says_when_to_return",
        PHASE_2_RACE + "the_lease_never_has_two_holders",
        STORE + "test_eight_racing_claims_of_a_root_give_one",
    ),
    "phase2_global_lock_creates_missing_job_row": (
        CONSOLIDATION + "test_a_root_that_nobody_asked_for_can_be_claimed",
        STORE + "test_a_root_that_nobody_asked_for_is_claimed_once_and_then_rests",
    ),
    "phase2_global_lock_stale_lease_allows_takeover": (
        CONSOLIDATION + "test_who_took_over_finishes_and_who_was_late_does_not",
        STORE + "test_who_takes_over_publishes_and_who_was_late_does_not",
    ),
    "enqueue_global_consolidation_keeps_phase2_input_watermark_monotonic": (
        CONSOLIDATION + "test_an_older_request_after_a_success_is_still_news",
        "tests/properties/test_watermarks.py::Phase2Watermarks"
        "::watermarks_never_move_back_and_every_request_is_heard",
    ),
    "phase2_failure_fallback_updates_unowned_running_job": (
        CONSOLIDATION + "test_a_running_job_always_has_a_token",
    ),
    SCENARIO: (
        "tests/domain/test_upstream_scenario.py::test_one_long_run_ends_as_upstreams_does",
        "tests/application/test_upstream_scenario_store.py"
        "::test_one_long_run_on_a_store_ends_as_upstreams_does",
        STORE + "test_ten_racing_claims_with_a_cap_of_three_give_three",
        STORE + "test_eight_racing_claims_of_a_root_give_one",
        STORE + "test_readings_that_end_while_the_root_is_claimed_are_all_recorded",
    ),
}

# What else upstream's layer promises: its tests beside those 39 that bear on memory, and what it
# does without a test of its own. The names of the second kind are ours.
LEASES = "tests/application/test_leases.py::"
FORGETTING = "tests/application/test_forgetting.py::"
BESIDE: dict[str, tuple[str, ...]] = {
    "versions_isolate_jobs_outputs_and_reset_without_losing_threads": (
        STORE + "test_versions_keep_apart_jobs_outputs_and_resets",
        STORE + "test_a_reset_empties_outputs_and_jobs_and_leaves_modes_alone",
        FORGETTING + "test_it_goes_from_every_version_and_from_every_root",
    ),
    "polluting_v2_thread_enqueues_v2_forgetting": (
        STORE + "test_versions_keep_apart_jobs_outputs_and_resets",
    ),
    "upsert_thread_keeps_creation_memory_mode_for_existing_rows": (
        THREAD + "test_creation_mode_is_kept_by_later_readings",
        "tests/application/test_ingest.py"
        "::test_new_sessions_are_disabled_where_the_setting_says_so_and_old_ones_stay",
    ),
    "apply_rollout_items_restores_memory_mode_from_session_meta": (
        THREAD + "test_a_transcript_that_says_it_is_polluted_pollutes_its_thread",
    ),
    "delete_thread_cleans_associated_state": (
        FORGETTING + "test_an_id_that_was_never_seen_can_be_forgotten_before_its_session_turns_up",
        FORGETTING + "test_forgetting_twice_is_forgetting_once",
    ),
    "delete_thread_keeps_retry_graph_on_cleanup_failure": (
        FORGETTING + "test_a_folder_that_cannot_be_written_is_told_and_the_next_run_finishes",
        "tests/application/test_forgetting_killed.py"
        "::test_killed_at_any_point_the_next_run_leaves_no_byte",
    ),
    "apply_rollout_items_preserves_existing_git_branch_and_fills_missing_git_fields": (
        THREAD + "test_an_existing_branch_is_kept_and_a_missing_one_is_filled",
    ),
    "heartbeat": (CONSOLIDATION + "test_a_lease_that_ran_out_is_renewed_if_nobody_took_it",),
    "lease_until == now": (
        EXTRACTION + "test_a_fresh_lease_refuses_a_second_worker_until_the_second_it_ends",
        CONSOLIDATION + "test_a_lease_is_free_from_the_moment_it_expires",
    ),
    "retry_at == now": (
        EXTRACTION + "test_a_bad_reply_waits_an_hour_and_spends_a_try",
        CONSOLIDATION + "test_a_failure_waits_to_the_second",
    ),
    "finished_at == now - 6 h": (
        CONSOLIDATION + "test_a_success_rests_six_hours_to_the_second",
        STORE + "test_a_root_that_nobody_asked_for_is_claimed_once_and_then_rests",
    ),
    "recency == cutoff": (
        SELECTION + "test_the_cutoff_itself_is_selectable_and_the_second_before_it_is_prunable",
        STORE + "test_the_mode_of_an_output_does_not_keep_it_from_pruning",
    ),
    "a late end after expiry without theft": (
        EXTRACTION + "test_a_lease_that_ran_out_is_still_good_until_somebody_takes_it_over",
        STORE + "test_who_is_late_and_was_not_taken_over_still_ends_its_work",
    ),
    "a success for an older reading": (
        EXTRACTION + "test_an_equal_or_newer_reading_replaces_the_output",
    ),
    "a request during a run": (
        STORE + "test_a_request_during_a_run_is_still_to_be_answered_after_it",
    ),
    "a request lifts a failure's wait": (
        CONSOLIDATION + "test_a_request_lifts_the_wait_of_a_failure_and_brings_the_tries_back",
    ),
    "an archived thread stays selected": (
        ELIGIBILITY + "test_an_archived_session_is_not_read_but_its_output_stays_selectable",
    ),
    "ties in the order of threads": (
        STORE + "test_of_equally_recent_sessions_the_greater_id_comes_first",
    ),
    "malformed rows": (
        "tests/adapters/test_store.py"
        "::test_an_event_that_should_be_readable_and_is_not_stops_whoever_decides_on_it",
    ),
    "deletion while it is read": (
        FORGETTING + "test_forgetting_while_it_is_being_read_discards_the_reading",
    ),
    "clear while jobs run": (
        STORE + "test_a_reset_empties_outputs_and_jobs_and_leaves_modes_alone",
    ),
    "polluting while it is read": (
        LEASES + "test_the_mode_that_counts_is_the_one_when_the_reading_ends",
    ),
    "more than a page of 512": (
        SELECTION + "test_more_outputs_than_one_page_of_codex_are_ranked_as_one",
    ),
    "max_unused_days = 0": (SELECTION + "test_no_days_at_all_keep_only_what_is_from_this_second",),
}

# Name -> (section of the design, what differs).
DEPARTURES: dict[str, tuple[str, str]] = {
    "stage1_running_stale_can_be_stolen_but_fresh_running_is_skipped": (
        "10",
        "taking over an expired lease at the same watermark spends a retry",
    ),
    "claim_stage1_jobs_enforces_global_running_cap": (
        "10",
        "the cap of running jobs is apart from the batch of one run; the default is the same",
    ),
    "claim_stage1_jobs_processes_two_full_batches_across_startup_passes": (
        "10",
        "the cap of running jobs is apart from the batch of one run; the default is the same",
    ),
    "delete_thread_removes_stage1_output_and_enqueues_phase2_when_selected": (
        "10",
        "a thread is not deleted but forgotten, and is not claimable again",
    ),
    "stage1_retry_exhaustion_does_not_block_newer_watermark": (
        "10",
        "only bad replies spend a retry; transient failures leave the budget",
    ),
    "mark_stage1_job_succeeded_no_output_enqueues_phase2_when_deleting_output": (
        "8",
        "the cooldown before the claim can be waived",
    ),
    "phase2_global_lock_respects_success_cooldown": (
        "8",
        "the offline model has no cooldown, and a person may waive a provider's",
    ),
    "list_stage1_outputs_for_global_returns_latest_outputs": (
        "4",
        "there is no such read: selection is the one reading of outputs for phase 2",
    ),
    "list_stage1_outputs_for_global_skips_empty_payloads": (
        "10",
        "an output of white space only is no output, so no read has to skip it",
    ),
    "mark_thread_memory_mode_polluted_enqueues_phase2_for_selected_threads": (
        "8",
        "the cooldown before the claim can be waived",
    ),
    "mark_thread_memory_mode_polluted_enqueues_phase2_when_already_polluted": (
        "10",
        "pollution and its request are one transaction, so nothing is left to repair",
    ),
    "get_phase2_input_selection_returns_regenerated_selected_rows": (
        "3",
        "the flag is read from the last success's snapshot (`matched`), not kept in the row",
    ),
    "mark_global_phase2_job_succeeded_updates_selected_snapshot_timestamp": (
        "3",
        "the snapshot is replaced whole by each success",
    ),
    "mark_global_phase2_job_succeeded_only_marks_exact_selected_snapshots": (
        "3",
        "an output refreshed during the run stays in the snapshot as not matched",
    ),
    "record_stage1_output_usage_updates_usage_metadata": (
        "4",
        "a citation counts once per thread, session and turn",
    ),
    "phase2_failure_fallback_updates_unowned_running_job": (
        "10",
        "a running job always has a token, so there is no fallback for one without",
    ),
    SCENARIO: (
        "10",
        "a deleted thread is forgotten and not claimable; duplicates count once; no list, no"
        " unowned failure",
    ),
}

IN_THE_STORE: frozenset[str] = frozenset(
    node for nodes in (*OURS.values(), *BESIDE.values()) for node in nodes if node.startswith(STORE)
)
