"""Models: whoever speaks OpenAI's protocol, asked over HTTP.

`wire` asks one question and gives one answer, by the Responses API or by chat completions, as the
server can (`servers` remembers what it can). `extractor` reads sessions with it. `wiring`
imports it when a session was claimed: the SDK is heavy, and pydantic and asyncio are.
"""
