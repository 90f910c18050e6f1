"""Which of our tests pin what upstream's tests of phase 2 pin, and what was seen of the program.

The names are Codex's, part by part; `SEEN` has the scenarios that were watched from outside, as
`<id>: <what happens>`. What has no test of ours is a departure, or is `NOT_OURS`, where we have no
such thing. `DEPARTURES` say which section of the design decided that we do it otherwise; most of
them have a test of ours too.
"""

CONSOLIDATING = "tests/application/test_consolidating.py::"
SCENARIOS = "tests/application/test_upstream_consolidating.py::"
STORE = "tests/application/test_upstream_store.py::"
RUNS = "tests/application/test_provider_runs.py::"
VERSIONS = "tests/application/test_versions.py::"
CHANGES = "tests/application/test_changes.py::"
FOLDER = "tests/application/test_folder.py::"
LEASES = "tests/application/test_leases.py::"
RACES = "tests/application/test_races.py::"
RESET = "tests/application/test_reset.py::"
FORGETTING = "tests/application/test_forgetting.py::"
CLAUDE = "tests/application/test_importing_claude.py::"
AGENTS_AT_ONCE = "tests/application/test_agents_at_once.py::"
START_RACE = "tests/application/test_start_race.py::"
CODEX_BYTES = "tests/application/test_codex_bytes.py::"
GIT = "tests/adapters/test_git.py::"
CONFIGURED = "tests/adapters/test_git_configured.py::"
WORKSPACE = "tests/adapters/test_workspace.py::"
WHO = "tests/adapters/test_consolidator_setting.py::"
INSIDE = "tests/adapters/test_inside_a_run.py::"
SETTINGS = "tests/adapters/test_settings.py::"
BOX = "tests/adapters/staging/test_box.py::"
ESCAPE = "tests/adapters/staging/test_escape.py::"
STAGED = "tests/adapters/staging/test_folder.py::"
COMMAND = "tests/adapters/staging/test_command.py::"
LOOP = "tests/adapters/models/test_consolidator.py::"
LIMITS = "tests/adapters/models/test_consolidator_limits.py::"
ARTIFACT = "tests/domain/test_artifact.py::"
JOB = "tests/domain/test_consolidation.py::"
SELECTION = "tests/domain/test_selection.py::"
INPUTS = "tests/projections/test_folder.py::"
PAGE = "tests/projections/test_workspace_diff.py::"
PROMPT = "tests/prompts/test_contracts.py::"
BOX_STAYS = "tests/properties/test_box_stays_inside.py::"

ONE_COMMIT = GIT + "test_git_finds_one_clean_sound_commit_whatever_the_person_configured"
UNSOUND = GIT + "test_without_a_sound_baseline_everything_is_an_addition_until_the_next"
EDITED = SCENARIOS + "test_what_a_person_did_is_on_the_page_or_mended_without_a_call"
LINKED = SCENARIOS + "test_a_link_that_an_agent_makes_fails_the_job_and_its_target_is_intact"
LISTED = SCENARIOS + "test_the_page_says_which_sessions_left_came_back_and_went_on"
INVALID = (
    SCENARIOS
    + "test_an_invalid_proposal_waits_an_hour_and_leaves_the_folder_and_a_good_one_follows"
)
RESTS = SCENARIOS + "test_what_is_new_waits_for_six_hours_after_a_success_to_the_second"
EMPTY_START = SCENARIOS + "test_a_first_start_without_sessions_asks_nobody_and_starts_no_rest"
NO_DAYS = (
    SCENARIOS + "test_without_any_days_nothing_is_selected_and_forgetting_it_is_an_agents_work"
)
RESOURCES = CONSOLIDATING + "test_resources_of_extensions_go_after_14_days"
WATERMARK = JOB + "test_a_success_reaches_as_far_as_what_it_read"
FOURTEEN = CODEX_BYTES + "test_fourteen_rows_of_codex_leave_its_bytes"
ROWS = INPUTS + "test_the_rows_of_codex_give_the_bytes_of_codex"
TOOLS = BOX + "test_the_tools_are_offered_as_strict_functions"
AT_ONCE = RACES + "test_runs_at_once_read_every_session_once_and_leave_every_output"
LEFT_TO_READER = RACES + "test_a_root_whose_session_is_being_read_is_left_to_whoever_reads_it"
AFTER_A_KILL = RACES + "test_after_a_kill_one_more_run_completes_everything"
ENDED_IN_A_CALL = (
    RUNS + "test_a_run_that_is_ended_in_a_call_leaves_the_folder_and_the_next_one_goes_on"
)
DUAL = VERSIONS + "test_dual_write_extracts_and_consolidates_into_independent_stores"

FILES: dict[str, tuple[str, ...]] = {
    "rollout_summary_file_stem_uses_uuid_timestamp_and_hash_when_slug_missing": (
        INPUTS + "test_the_published_vector_of_time_hash_and_slug",
        INPUTS + "test_the_name_begins_with_the_time_in_the_id_or_else_of_the_source",
    ),
    "rollout_summary_file_stem_sanitizes_and_truncates_slug": (
        INPUTS + "test_the_published_vector_of_time_hash_and_slug",
        INPUTS + "test_leading_underscores_of_a_slug_stay",
    ),
    "rollout_summary_file_stem_uses_uuid_timestamp_and_hash_when_slug_is_empty": (
        INPUTS + "test_a_slug_without_a_letter_is_no_slug",
    ),
    "sync_rollout_summaries_and_raw_memories_file_keeps_latest_memories_only": (
        SCENARIOS + "test_old_names_of_a_summary_go_and_one_canonical_file_stays",
        WORKSPACE + "test_rendering_writes_what_differs_and_removes_what_was_ours",
    ),
    "sync_rollout_summaries_uses_timestamp_hash_and_sanitized_slug_filename": (
        ROWS,
        FOURTEEN,
        SCENARIOS + "test_old_names_of_a_summary_go_and_one_canonical_file_stays",
    ),
    "rebuild_raw_memories_file_adds_canonical_rollout_summary_file_header": (ROWS, FOURTEEN),
}

PROMPTS: dict[str, tuple[str, ...]] = {
    "build_consolidation_prompt_points_to_workspace_diff_and_extension_tree": (
        PROMPT + "test_a_prompt_states_its_demand_once",
        LOOP + "test_it_is_told_its_version_its_mode_what_a_person_changed_and_what_to_read",
    ),
}

WORKSPACES: dict[str, tuple[str, ...]] = {
    "render_workspace_diff_file_bounds_large_diff": (
        PAGE + "test_a_diff_of_more_than_four_mib_is_cut_between_characters",
    ),
    "reset_memory_workspace_baseline_removes_generated_diff": (
        WORKSPACE + "test_the_page_of_changes_is_no_change",
        CONSOLIDATING + "test_succeeded_runs_leave_no_trace_of_staging",
    ),
    "memory_storage_size_counts_nested_files_but_not_git_or_symlinks": (),
    "prepare_memory_workspace_recovers_unusable_git_dir": (UNSOUND,),
    "previous_char_boundary_handles_multibyte_text": (
        PAGE + "test_a_diff_of_more_than_four_mib_is_cut_between_characters",
    ),
    "validate_consolidation_artifacts_rejects_invalid_summary": (
        ARTIFACT + "test_a_version_takes_what_codex_takes",
        INVALID,
    ),
    "v2_accepts_summary_only_and_checks_its_format_and_size": (
        ARTIFACT + "test_v2_accepts_a_summary_alone_and_checks_its_format_and_size",
        ARTIFACT + "test_a_version_takes_what_codex_takes",
    ),
}

CONTROL: dict[str, tuple[str, ...]] = {
    "clear_memory_root_contents_preserves_root_directory": (
        RESET + "test_every_word_that_was_learned_leaves_the_home_and_the_sessions_stay",
    ),
    "clear_memory_root_contents_rejects_symlinked_root": (
        RESET + "test_a_folder_that_cannot_be_emptied_is_told_and_emptied_by_the_next_run",
        WORKSPACE + "test_a_root_that_is_a_link_is_refused_with_advice",
    ),
}

EXTENSIONS: dict[str, tuple[str, ...]] = {
    "seeds_instructions_without_overwriting_existing_file": (
        CONSOLIDATING + "test_a_note_is_staged_with_how_to_read_it",
        SCENARIOS + "test_a_persons_own_way_to_read_notes_is_the_one_that_is_given",
    ),
    "prunes_only_old_resources_from_extensions_with_instructions": (
        RESOURCES,
        SCENARIOS + "test_resources_go_by_age_also_where_no_session_is_selected",
    ),
    "parses_timestamp_prefix_from_resource_file_name": (RESOURCES,),
    "sync_updates_changed_resources_removes_stale_managed_files_and_preserves_unrelated_files": (
        CLAUDE
        + "test_only_the_projects_that_are_named_come_in_and_what_changed_replaces_them_whole",
        CLAUDE + "test_what_is_gone_there_goes_here_its_words_included",
        CLAUDE + "test_what_another_home_of_claude_had_stays",
    ),
}

AGENT: dict[str, tuple[str, ...]] = {
    "consolidation_uses_canonical_parent_enforcement": (
        TOOLS,
        ESCAPE + "test_no_tool_takes_a_hostile_path",
    ),
    "consolidation_rebinds_workspace_roots_to_memory_root": (
        STAGED + "test_it_is_private_filled_read_back_and_gone",
        BOX_STAYS + "test_only_its_own_files_change_as_it_was_told_and_are_counted",
    ),
}

STARTUP: dict[str, tuple[str, ...]] = {
    "memories_startup_creates_memory_root": (
        WORKSPACE + "test_the_folder_is_found_by_version_and_scope_and_is_private",
        EMPTY_START,
    ),
    "dual_write_prepares_both_roots_without_importing_old_notes": (
        VERSIONS + "test_notes_are_a_persons_and_are_read_in_every_version",
    ),
    "memories_startup_removes_symlinked_extensions_before_seeding": (
        EDITED,
        WORKSPACE + "test_every_link_below_is_removed_and_told_and_nothing_behind_it",
    ),
    "memories_startup_fails_consolidation_when_worker_creates_extension_symlink": (
        LINKED,
        STAGED + "test_what_is_no_plain_text_file_is_told_and_never_followed",
    ),
    "memories_startup_phase2_scopes_stop_hooks": (
        INSIDE + "test_what_is_started_in_a_run_knows_it_and_afterwards_nothing_does",
        COMMAND + "test_its_environment_is_what_it_needs_what_was_named_and_the_mark_of_a_run",
    ),
    "memories_startup_phase2_tracks_workspace_diff_across_runs": (
        SCENARIOS
        + "test_with_room_for_one_the_newer_takes_the_place_of_the_older_and_the_page_is_gone",
    ),
    "phase2_retries_when_clean_workspace_is_missing_artifacts": (
        PAGE + "test_no_change_is_said_and_nothing_more",
        LEASES + "test_a_first_consolidation_that_fails_leaves_no_folder_and_says_why",
        INVALID,
    ),
    "memories_startup_phase2_prunes_old_extension_resources": (RESOURCES,),
    "memories_startup_phase2_prunes_old_extension_resources_without_stage1_input": (
        SCENARIOS + "test_resources_go_by_age_also_where_no_session_is_selected",
    ),
    "memories_startup_phase2_provider_default_drives_request_model": (
        RUNS + "test_who_wrote_it_with_which_prompt_tools_and_tokens_is_in_the_log",
        WHO + "test_who_consolidates_follows_from_the_settings",
    ),
    "memories_startup_phase2_explicit_model_override_drives_request_model": (
        SCENARIOS + "test_the_model_of_the_settings_is_the_one_that_is_asked",
        WHO + "test_who_consolidates_follows_from_the_settings",
    ),
    "memories_startup_phase2_v2_consolidates_without_a_handbook": (
        VERSIONS + "test_v2_is_consolidated_without_a_handbook",
        CONSOLIDATING + "test_v2_is_proposed_as_one_file",
    ),
    "dual_write_extracts_and_consolidates_into_independent_stores": (DUAL,),
}

BASELINE: dict[str, tuple[str, ...]] = {
    "reset_creates_fresh_baseline": (
        ONE_COMMIT,
        CONFIGURED + "test_gits_own_status_is_clean_under_all_their_files",
    ),
    "ensure_recovers_from_unborn_repository": (UNSOUND,),
    "diff_reports_added_modified_and_deleted_files": (
        GIT + "test_git_shows_what_we_show",
        GIT + "test_a_change_says_both_contents_and_both_modes",
    ),
    "reset_drops_previous_history": (
        ONE_COMMIT,
        GIT + "test_text_that_was_deleted_is_in_no_object",
        GIT + "test_what_a_person_commits_is_not_thereby_published",
    ),
    "status_scan_does_not_write_added_file_blobs": (
        GIT + "test_looking_for_changes_writes_nothing",
    ),
    "reports_executable_bit_changes_as_modified": (
        GIT + "test_a_change_says_both_contents_and_both_modes",
        PAGE + "test_the_diff_applies_with_git_whatever_the_names_modes_and_ends",
    ),
}

HISTORICAL: dict[str, tuple[str, ...]] = {
    "memory_root_uses_shared_global_path": (
        CHANGES + "test_global_scope_reads_every_project_into_one_folder",
    ),
    "completion_watermark_never_regresses_below_claimed_input_watermark": (
        WATERMARK,
        JOB + "test_the_last_success_never_moves_back",
    ),
    "completion_watermark_uses_claimed_watermark_when_there_are_no_memories": (WATERMARK,),
    "completion_watermark_uses_latest_memory_timestamp_when_it_is_newer": (WATERMARK,),
    "dispatch_skips_when_global_job_is_not_dirty": (
        SCENARIOS + "test_a_second_start_at_once_asks_nobody_and_is_no_event",
    ),
    "dispatch_skips_when_global_job_is_already_running": (
        LEASES + "test_a_live_worker_is_waited_for_and_its_work_is_enough",
        JOB + "test_a_held_lease_refuses_a_second_worker_and_says_when_to_return",
    ),
    "dispatch_reclaims_stale_global_lock_and_starts_consolidation": (
        JOB + "test_a_lease_is_free_from_the_moment_it_expires",
        LEASES + "test_a_dead_worker_s_consolidation_is_given_back_and_done_at_once",
    ),
    "dispatch_with_empty_stage1_outputs_rebuilds_local_artifacts": (NO_DAYS,),
    "dispatch_marks_job_for_retry_when_sandbox_policy_cannot_be_overridden": (),
    "dispatch_marks_job_for_retry_when_syncing_artifacts_fails": (
        FOLDER + "test_a_folder_that_cannot_be_used_keeps_no_other_project_from_its_memory",
    ),
    "dispatch_marks_job_for_retry_when_rebuilding_raw_memories_fails": (
        FOLDER + "test_a_render_that_was_stopped_is_finished_and_nothing_of_it_is_called_an_edit",
    ),
    "dispatch_marks_job_for_retry_when_spawn_agent_fails": (
        RUNS + "test_a_command_that_fails_leaves_the_folder_as_it_was_and_says_why",
    ),
}

SEEN: dict[str, tuple[str, ...]] = {
    "empty: first start ever, no sessions": (
        EMPTY_START,
        CHANGES + "test_an_empty_folder_costs_nothing_and_starts_nothing",
    ),
    "base: fourteen sessions, one agent, fourteen files, all selected": (
        FOURTEEN,
        STORE + "test_a_refreshed_output_is_selected_anew_while_the_snapshot_stays",
    ),
    "base: second trigger at once": (
        SCENARIOS + "test_a_second_start_at_once_asks_nobody_and_is_no_event",
        RUNS + "test_a_run_with_nothing_new_calls_nobody",
    ),
    "base: one, three and five hours after a success, and six": (
        RESTS,
        JOB + "test_a_success_rests_six_hours_to_the_second",
    ),
    "limits: all defaults name the two models": (
        RUNS + "test_who_wrote_it_with_which_prompt_tools_and_tokens_is_in_the_log",
        WHO + "test_who_consolidates_follows_from_the_settings",
    ),
    "select: cap 3, no usage": (
        SELECTION + "test_an_output_that_was_never_used_ranks_by_its_reading",
        CHANGES + "test_only_the_best_fit",
    ),
    "select: cap 3, uses of different age": (
        SELECTION + "test_uses_come_first_then_the_last_use",
        SELECTION + "test_the_last_use_counts_and_not_how_often",
    ),
    "select: never used, at the edge of the days": (
        SELECTION + "test_the_cutoff_itself_is_selectable_and_the_second_before_it_is_prunable",
        SELECTION + "test_when_an_output_was_written_plays_no_part",
        CHANGES + "test_what_has_aged_leaves_the_folder_first_and_the_store_with_the_next_run",
    ),
    "unused: clamped to 365 days, and none at all": (
        SETTINGS + "test_a_number_out_of_range_is_clamped_in_the_file_and_in_the_environment",
        NO_DAYS,
    ),
    "change: old session resumed, then idle again": (
        LISTED,
        CHANGES + "test_a_session_that_goes_on_is_read_again_and_replaces_what_it_said",
        PAGE + "test_an_output_made_again_gives_the_page_of_codex",
    ),
    "change: a thread is deleted": (
        CONSOLIDATING + "test_a_forgetting_writes_what_is_left_without_a_model",
        FORGETTING + "test_it_goes_from_every_version_and_from_every_root",
        PAGE + "test_an_output_that_left_gives_the_page_of_codex",
    ),
    "modes: disabled and enabled again": (
        LISTED,
        CHANGES + "test_disabling_takes_out_and_enabling_brings_back_without_reading_again",
    ),
    "modes: archive a selected thread": (
        SCENARIOS
        + "test_an_archived_session_stays_and_where_it_lies_now_is_news_of_the_next_consolidation",
    ),
    "pollute: an outside text, then the next consolidation": (
        LISTED,
        VERSIONS + "test_a_pollution_is_out_of_sight_at_once_and_asks_both_versions",
        PAGE + "test_an_output_that_left_gives_the_page_of_codex",
    ),
    "cite: usage change only": (
        CONSOLIDATING + "test_nothing_new_costs_no_call_whatever_was_used_or_read_again",
    ),
    "edits: user edits or deletes memory_summary.md": (
        EDITED,
        CONSOLIDATING + "test_an_edit_is_staged_named_and_kept",
        SCENARIOS + "test_what_a_person_commits_in_the_folder_is_an_edit_all_the_same",
    ),
    "edits: ad-hoc note added": (EDITED,),
    "edits: summary file deleted by hand": (EDITED,),
    "edits: foreign file in rollout_summaries, stray file in the root": (EDITED,),
    "edits: symlink in the folder": (EDITED,),
    "edits: .git deleted": (
        EDITED,
        FOLDER + "test_without_its_git_folder_everything_is_new",
        SCENARIOS
        + "test_the_page_is_made_against_what_the_log_published_last_whatever_the_baseline_says",
    ),
    "extret: resources of extensions by age": (
        RESOURCES,
        SCENARIOS + "test_resources_go_by_age_also_where_no_session_is_selected",
    ),
    "p2fail: agent writes nothing, no summary, or one without v1": (INVALID,),
    "p2fail: HTTP 500 in the agent": (
        LIMITS + "test_a_server_that_goes_on_failing_ends_it_and_the_next_run_may_try",
        RUNS + "test_a_consolidation_that_fails_leaves_the_folder_as_it_was_and_says_why",
    ),
    "p2fail: error and a new phase-1 output": (
        SCENARIOS + "test_what_is_read_during_the_wait_ends_it_and_the_tries_are_whole_again",
    ),
    "p2valid: 21 variants of the two files": (ARTIFACT + "test_a_version_takes_what_codex_takes",),
    "space: the raw memory is trimmed, the summary verbatim": (
        INPUTS + "test_only_the_raw_memory_is_trimmed",
    ),
    "escape: writes outside, TCP, delete .git": (
        ESCAPE + "test_no_hostile_call_is_obeyed",
        ESCAPE + "test_no_tool_takes_a_hostile_path",
        ESCAPE + "test_another_process_that_swaps_links_leads_nobody_outside",
        TOOLS,
    ),
    "escape: agent deletes raw_memories.md and rollout_summaries": (
        CONSOLIDATING + "test_inputs_that_an_agent_changes_or_deletes_are_as_they_were",
    ),
    "gate: parent read-only, parent without a sandbox": (
        TOOLS,
        ESCAPE + "test_no_tool_takes_a_hostile_path",
    ),
    "lease: the root session ends and takes the pipeline along": (
        RACES + "test_a_run_that_is_told_to_stop_gives_its_leases_back",
        AFTER_A_KILL,
        ENDED_IN_A_CALL,
        AGENTS_AT_ONCE
        + "test_an_agent_that_was_killed_or_stopped_leaves_the_folder_and_the_next_run_goes_on",
    ),
    "collab: the agent starts another": (TOOLS,),
    "exectrig: three short sessions in a row": (AFTER_A_KILL, ENDED_IN_A_CALL),
    "conc: two root sessions start together": (
        AT_ONCE,
        LEFT_TO_READER,
        AGENTS_AT_ONCE + "test_two_at_once_ask_one_agent_and_the_other_waits_for_it",
        START_RACE + "test_two_that_read_a_part_each_leave_both_parts_in_the_folder",
        START_RACE
        + "test_what_is_read_while_another_consolidates_is_in_the_folder_when_both_have_ended",
    ),
    "race: the empty consolidation wins": (
        AGENTS_AT_ONCE + "test_a_first_start_of_two_leaves_every_output_in_the_folder",
        AGENTS_AT_ONCE
        + "test_an_empty_first_start_of_two_asks_nobody_and_no_folder_rests_after_it",
        AT_ONCE,
        LEFT_TO_READER,
        RACES + "test_a_run_that_finds_its_root_leased_waits_and_then_brings_its_own_output_in",
        EMPTY_START,
    ),
    "dual: both versions from v1, v2 alone from v2": (
        DUAL,
        VERSIONS + "test_with_v2_in_force_dual_write_runs_v2_alone",
    ),
}

PARTS = {
    "files": FILES,
    "prompts": PROMPTS,
    "workspaces": WORKSPACES,
    "control": CONTROL,
    "extensions": EXTENSIONS,
    "agent": AGENT,
    "startup": STARTUP,
    "baseline": BASELINE,
    "historical": HISTORICAL,
    "seen": SEEN,
}
ALL = {name: nodes for part in PARTS.values() for name, nodes in part.items()}

# Name -> what is still missing. Whoever writes the test puts its node above and takes the name out.
NOT_OURS: dict[str, str] = {
    "memory_storage_size_counts_nested_files_but_not_git_or_symlinks": (
        "no measure of a folder's size is sent anywhere"
    ),
    "dispatch_marks_job_for_retry_when_sandbox_policy_cannot_be_overridden": (
        "a consolidator of ours has no policy that somebody else could forbid"
    ),
}

INSIDE_ONLY = "no path outside staging, whatever the sandbox of whoever starts the run"
PAID_FOR_NOTHING = (
    "an empty selection with nothing published costs nothing and starts no rest; how to read notes"
    " is staged beside them and is no change of the folder's own"
)
LOG_IS_RIGHT = (
    "the log says what was published: without a baseline nothing passes for seen, and the page is"
    " made against what was rendered"
)

# Name -> the section of the design that decided it, and what we do otherwise.
DEPARTURES: dict[str, tuple[str, str]] = {
    "prepare_memory_workspace_recovers_unusable_git_dir": ("4", LOG_IS_RIGHT),
    "ensure_recovers_from_unborn_repository": ("4", LOG_IS_RIGHT),
    "edits: .git deleted": ("4", LOG_IS_RIGHT + "; so there is nothing to ask an agent"),
    "phase2_retries_when_clean_workspace_is_missing_artifacts": (
        "4",
        "what is published is valid, so an artifact that is missing is a person's deletion and on"
        " the page",
    ),
    "consolidation_uses_canonical_parent_enforcement": ("10", INSIDE_ONLY),
    "gate: parent read-only, parent without a sandbox": ("10", INSIDE_ONLY),
    "escape: writes outside, TCP, delete .git": (
        "10",
        INSIDE_ONLY + "; nothing outside is read either, and a command of the user's is theirs",
    ),
    "escape: agent deletes raw_memories.md and rollout_summaries": (
        "4",
        "inputs are restored, and the folder has them in its baseline",
    ),
    "collab: the agent starts another": ("4", "there is no tool for that"),
    "memories_startup_fails_consolidation_when_worker_creates_extension_symlink": (
        "4",
        "the link was in staging; in the folder nothing is removed, and no page is left in it",
    ),
    "p2fail: agent writes nothing, no summary, or one without v1": (
        "4",
        "a failed run leaves the folder byte for byte: no partial files, no page",
    ),
    "p2fail: HTTP 500 in the agent": (
        "4",
        "the loop asks again before it fails, a wait that the server stated is kept, and the folder"
        " stays byte for byte",
    ),
    "memories_startup_phase2_scopes_stop_hooks": (
        "4",
        "no hook of the user's is started; what a run starts knows that it is one",
    ),
    "dual_write_prepares_both_roots_without_importing_old_notes": (
        "4",
        "a note is an event and no file of a version, so every version reads it",
    ),
    "memories_startup_creates_memory_root": (
        "4",
        "a folder is made with the first publication: an empty start makes none",
    ),
    "seeds_instructions_without_overwriting_existing_file": ("4", PAID_FOR_NOTHING),
    "empty: first start ever, no sessions": ("4", PAID_FOR_NOTHING),
    "memories_startup_phase2_prunes_old_extension_resources_without_stage1_input": (
        "4",
        PAID_FOR_NOTHING,
    ),
    "base: one, three and five hours after a success, and six": (
        "4",
        "a root without a diff and with an unchanged selection is not claimed: no event",
    ),
    "dispatch_skips_when_global_job_is_not_dirty": (
        "4",
        "a root without a diff and with an unchanged selection is not claimed: no event",
    ),
    "modes: archive a selected thread": (
        "4",
        "the selection is unchanged, so the new path waits for the next consolidation",
    ),
    "change: a thread is deleted": (
        "5",
        "forgetting writes the folder anew at once, without a model and without a rest",
    ),
    "pollute: an outside text, then the next consolidation": (
        "10",
        "pollution is durable and asks every version",
    ),
    "modes: disabled and enabled again": ("5", "disabling is out of sight at once and asks"),
    "lease: the root session ends and takes the pipeline along": (
        "10",
        "a stopped run gives its leases back; a killed one's are free to the next on that machine",
    ),
    "exectrig: three short sessions in a row": (
        "10",
        "a stopped run gives its leases back; a killed one's are free to the next on that machine",
    ),
    "conc: two root sessions start together": (
        "4",
        "phase 2 leaves a root in which somebody reads, and whoever read waits and claims again",
    ),
    "race: the empty consolidation wins": (
        "4",
        "phase 2 leaves a root in which somebody reads, and whoever read waits and claims again",
    ),
    "dispatch_skips_when_global_job_is_already_running": (
        "4",
        "a live runner is waited for where this run has something new",
    ),
    "dispatch_marks_job_for_retry_when_syncing_artifacts_fails": (
        "4",
        "the folder is rendered after the publication; one that cannot be used is told and spends"
        " no try",
    ),
    "dispatch_marks_job_for_retry_when_rebuilding_raw_memories_fails": (
        "4",
        "the folder is rendered after the publication, and the next run finishes a render",
    ),
}
