"""Reasons in words: why something waits or came to nothing, and what to do about it.

What is recorded is a code, and quotes nobody. `PROVIDER` is said of sessions and of folders alike;
a code that nobody put in words is told as it is.
"""

PROVIDER = {
    "budget": "they do not fit into the budget (`max_tokens_per_run`, `max_tokens_per_day`);"
    " `threadbook status` says what is left",
    "key_refused": "the provider refuses the key; look at OPENAI_API_KEY",
    "quota_used_up": "the account at the provider has no quota left",
    "access_refused": "the provider refuses this account or place",
    "no_such_endpoint_or_model": "no such model there; look at `base_url`, `extract_model` and"
    " `consolidation_model`",
    "base_url_unusable": "`base_url` is no address of a server",
    "environment_unusable": "the environment's proxy or certificates cannot be used (a SOCKS proxy"
    " neither); look at HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE",
    "no_connection": "the server cannot be reached; look at `base_url` and the network",
    "rate_limited": "the provider is asked too often",
}
WAITING = PROVIDER | {
    "age": "older than the age limit; `threadbook run --backfill` reads them",
    "idle": "still in use, or left only hours ago; a later run reads them",
    "running": "another run is reading them",
    "cap": "as many as may be are being read; a later run reads them",
    "startup_cap": "a run begins no more (`max_rollouts_per_startup`); --backfill reads them all",
    "rate_limit": "the account has too little left (`min_rate_limit_remaining_percent`)",
    "backoff": "they failed and are tried again later; `threadbook status` says when",
    "retry_exhausted": "they failed too often; `threadbook run --again` tries once more",
    "source_missing": "their file is not there; what is known of them stays",
    "phase1_running": "a folder is written when another run has read its last session",
    "cooldown": "a folder rests for six hours after it was written; --consolidate does it now",
    "inputs_changed": "a folder's sessions kept changing; the next run writes it",
    "lease_lost": "a folder was taken over by another run, which writes it",
    "folder_edited": "a folder was edited again and again; the next run writes it",
    "max_roots_per_run": "a run consolidates no more folders (`max_roots_per_run`); run it again",
}
# Of a reading. When it is tried again is said once for each kind of failure.
_SOON = "tried again in a minute, then later"
_IN_AN_HOUR = "tried again in an hour, three times in all"
_NOT_AGAIN = "not tried again until they go on"
FAILED = PROVIDER | {
    "refused": f"the model refused; {_NOT_AGAIN}",
    "content_filter": f"the provider's filter stopped the answer; {_NOT_AGAIN}",
    "content_policy_violation": f"the provider's rules forbid it; {_NOT_AGAIN}",
    "invalid_prompt": f"the provider's rules forbid it; {_NOT_AGAIN}",
    "source_is_no_session": "the session's file is no session any more",
    "source_unreadable": f"the session's file could not be read; {_SOON}",
    "rate_limited": "the provider is asked too often; tried again when it said",
    "deadline": f"no whole answer came in time; {_SOON}",
    "timeout": f"the server went silent; {_SOON}",
    "hung_up": f"the server hung up; {_SOON}",
    "connection_lost": f"the connection broke; {_SOON}",
    "server_failed": f"the server failed at it; {_SOON}",
    "stream_ended_early": f"the answer broke off; {_SOON}",
    "stream_broken": f"the answer was garbled on its way; {_SOON}",
    "no_api_reply": f"what answers at `base_url` is no such server, or not just now; {_SOON}",
    "stopped": f"the call was ended; {_SOON}",
    "cut_by_length": f"the answer was cut (`max_output_tokens`); {_IN_AN_HOUR}, with less",
    "answer_broke_off": f"the answer broke off; {_IN_AN_HOUR}, with less",
    "context_too_long": f"too long for the model (`context_window`); {_IN_AN_HOUR}, with less",
    "no_room_for_evidence": f"nothing of them fits (`context_window`); {_IN_AN_HOUR}",
    "reply_too_large": f"the answer had no end; {_IN_AN_HOUR}",
    "incomplete": f"the model did not finish its answer; {_IN_AN_HOUR}",
    "no_answer": f"the model gave no answer; {_IN_AN_HOUR}",
    "reply_not_json": f"the model did not answer in the form that was asked for; {_IN_AN_HOUR}",
}
for _code in ("has_several_objects", "names_a_field_twice", "not_an_object", "schema"):
    FAILED[f"reply_{_code}"] = FAILED["reply_not_json"]


def waiting(why: str) -> str:
    return WAITING.get(why, why)


def failed(why: str) -> str:
    """Behind a colon stands which field of the answer it is about."""
    code = why.partition(":")[0]
    return FAILED.get(code, why)
