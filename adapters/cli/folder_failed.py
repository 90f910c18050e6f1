"""Why a folder was not written, in words: what was recorded is a code, and quotes nobody."""

SAYS = {
    "failed_invalid_artifacts": "what was proposed did not pass the checks, nor when mended",
    "failed_spawn_agent": "the command could not be started; look at `consolidator`",
    "turn_limit": "the model did not finish within its replies; a stronger `consolidation_model`"
    " may",
    "request_limit": "the server failed too often for the model to finish",
    "token_limit": "it would cost more than one folder may; raise `max_tokens_per_run`, or lower"
    " `max_raw_memories_for_consolidation`",
    "budget": "the budget of tokens is spent; `threadbook status` says what is left",
    "time_limit": "it did not finish within its time",
    "stopped": "it was ended before it had finished",
    "refused": "the model refused",
    "content_filter": "the provider's filter stopped an answer",
    "context_too_long": "too much for the model (`context_window`); lower"
    " `max_raw_memories_for_consolidation`, or take another `consolidation_model`",
    "cut_by_length": "its replies were cut again and again; raise `max_output_tokens`",
    "key_refused": "the provider refuses the key; look at OPENAI_API_KEY",
    "quota_used_up": "the account at the provider has no quota left",
    "access_refused": "the provider refuses this account or place",
    "no_such_endpoint_or_model": "no such model there; look at `base_url` and"
    " `consolidation_model`",
    "base_url_unusable": "`base_url` is no address of a server",
    "rate_limited": "the provider is asked too often",
    "no_connection": "the server cannot be reached; look at `base_url` and the network",
    "command_failed": "the command ended with an error",
    "command_killed": "something ended the command",
    "command_timeout": "the command did not end within its time",
    "command_too_much": "the command left more than a memory holds",
    "command_cancelled": "the command was ended before it had finished",
}


def told(reason: str) -> str:
    """The code, what it means as far as we know, and what becomes of the folder."""
    code = reason.partition(":")[2] or reason
    means = f": {SAYS[code]}" if code in SAYS else ""
    return f"{reason}{means}; the folder is as it was, and a later run tries again"
