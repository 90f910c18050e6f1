"""Why a folder was not written, in words: what was recorded is a code, and quotes nobody."""

from .reasons import PROVIDER

SAYS = PROVIDER | {
    "failed_invalid_artifacts": "what was proposed did not pass the checks, nor when mended",
    "failed_spawn_agent": "the command could not be started; look at `consolidator`",
    "turn_limit": "the model did not finish within its replies; a stronger `consolidation_model`"
    " may",
    "request_limit": "the server failed too often for the model to finish",
    "token_limit": "it would cost more than one folder may; raise `max_tokens_per_run`, or lower"
    " `max_raw_memories_for_consolidation`",
    "time_limit": "it did not finish within its time",
    "stopped": "it was ended before it had finished",
    "refused": "the model refused",
    "content_filter": "the provider's filter stopped an answer",
    "context_too_long": "too much for the model (`context_window`); lower"
    " `max_raw_memories_for_consolidation`, or take another `consolidation_model`",
    "cut_by_length": "its replies were cut again and again; raise `max_output_tokens`",
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
