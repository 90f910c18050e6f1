"""The calibration of the pipeline: bodies posted through the bare client of the SDK, and no more.

    python tests/bench/pipeline_post.py BASE_URL BODIES

One client, eight threads, each answer read to its end; a body is a line of JSON. This is what
asking the same things costs without a memory.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def main(base_url: str, file: str) -> None:
    bodies = [json.loads(line) for line in Path(file).read_text(encoding="utf-8").splitlines()]

    import httpx2
    import openai

    client = openai.OpenAI(base_url=base_url, api_key="none", max_retries=0)

    def post(body: dict[str, object]) -> int:
        reply = client.post("/responses", body=body, cast_to=httpx2.Response, stream=True)
        response = reply if isinstance(reply, httpx2.Response) else reply.response
        try:
            return sum(len(chunk) for chunk in response.iter_bytes())
        finally:
            response.close()

    with ThreadPoolExecutor(8) as pool:
        read = list(pool.map(post, bodies))
    assert all(read), "an answer was empty"


if __name__ == "__main__":
    main(*sys.argv[1:])
