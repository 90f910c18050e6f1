"""Models: whoever speaks OpenAI's protocol, asked over HTTP.

`wire` asks one question and gives one answer, by the Responses API or by chat completions, as the
server can (`fallback` finds out what it can, `servers` remembers it). `extractor` reads sessions
with it, `consolidator` keeps folders. `wiring` imports them when there is something to ask: the
SDK is heavy, and pydantic and asyncio are.
"""
