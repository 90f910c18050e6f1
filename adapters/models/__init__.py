"""Models: whoever speaks OpenAI's protocol, asked over HTTP.

`wire` asks one question and gives one answer, by the Responses API or by chat completions, as the
server can (`servers` remembers what it can). `extractor` reads sessions with it. Nothing heavy is
imported before the first question: not the SDK, not pydantic, not asyncio.
"""
