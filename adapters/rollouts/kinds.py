"""The kinds of record that are known, read or not. Any other is passed over and counted by name.

Codex: what 0.171 and earlier versions wrote. Claude Code: what 2.1 was seen to write.
"""


def _words(names: str) -> frozenset[str]:
    return frozenset(names.split())


CODEX_RECORDS = _words(
    "session_meta response_item event_msg turn_context compacted world_state token_usage_record"
    " inter_agent_communication inter_agent_communication_metadata retained_context"
    " security_risk_score realtime_item"
)
CODEX_ITEMS = _words(
    "message agent_message reasoning function_call function_call_output custom_tool_call"
    " custom_tool_call_output local_shell_call tool_search_call tool_search_output web_search_call"
    " image_generation_call compaction compaction_summary context_compaction additional_tools"
    " configuration_update compaction_trigger ghost_snapshot"
)
# Events that say nothing about the session that another record does not say better.
CODEX_EVENTS_IGNORED = _words(
    "agent_reasoning agent_reasoning_raw_content agent_reasoning_section_break"
    " thread_name_updated context_compacted entered_review_mode exited_review_mode"
    " undo_completed task_complete turn_complete image_generation_end patch_apply_end"
    " injected_message error guardian_assessment web_search_end exec_command_end"
    " view_image_tool_call collab_agent_spawn_end collab_agent_interaction_end collab_waiting_end"
    " collab_close_end collab_resume_end dynamic_tool_call_request dynamic_tool_call_response"
    " warning stream_error turn_diff plan_update item_started background_event session_configured"
)
CODEX_COMPLETED_IGNORED = _words(
    "AgentMessage Reasoning CommandExecution FileChange ContextCompaction Plan ImageView"
    " ImageGeneration HookPrompt CollabAgentToolCall DynamicToolCall EnteredReviewMode"
    " ExitedReviewMode Sleep SubAgentActivity"
)
CODEX_TEXT_BLOCKS = _words("input_text output_text text Text summary_text")
CODEX_IMAGE_BLOCKS = _words("input_image image local_image output_image")
CODEX_SHELLS = _words(
    "exec_command shell shell_command local_shell local_shell_call container.exec unified_exec bash"
)

CLAUDE_CONVERSATION = _words("user assistant")
CLAUDE_BOOKKEEPING = _words(
    "summary custom-title ai-title attachment progress file-history-snapshot queue-operation"
    " last-prompt mode permission-mode pr-link tag checkpoint agent-name agent-color agent-setting"
    " task-summary worktree-state content-replacement speculation-accept bridge-session"
    " marble-origami-commit marble-origami-snapshot"
)
CLAUDE_SUBTYPES = _words(
    "compact_boundary microcompact_boundary local_command stop_hook_summary turn_duration api_error"
    " informational away_summary bridge_status memory_saved agents_killed api_metrics"
    " permission_retry scheduled_task_fire thinking file_snapshot init"
)
CLAUDE_BLOCKS_IGNORED = _words("thinking redacted_thinking container_upload tool_reference")
CLAUDE_RESULT_BLOCKS = _words(
    "web_search_tool_result web_fetch_tool_result code_execution_tool_result"
    " bash_code_execution_tool_result text_editor_code_execution_tool_result mcp_tool_result"
)
