"""The conversation that `turnlock run` plays when it is told nothing else: recorded, real, small.

From pydantic/pydantic-ai, `tests/cassettes/test_temporal/test_complex_agent_run.yaml` at commit
4fda38988f2939fa6ea9cdefcf120693e10ef491, copyright of that project, MIT licence: three responses of
an OpenAI model and what its tools answered. In the form of the recordings that `turnlock replay`
reads; examples/corpus/SOURCES.md says what was changed.
"""

from __future__ import annotations

from typing import Final

NAME: Final = "pydantic-ai/complex_agent_run"
"""What it is called in the corpus."""

RECORDING: Final = (
    '{"source": "pydantic/pydantic-ai:tests/cassettes/test_temporal/test_complex_agen'
    't_run.yaml", "conv": "pydantic-ai/complex_agent_run", "turn": 0, "provider": "op'
    'enai", "streaming": true, "calls": [{"id": "call_q2UyBRP7eXNTzAoR8lEhjc9Z", "nam'
    'e": "get_country", "args": "{}"}, {"id": "call_b51ijcpFkDiTQG1bQzsrmtW5", "name"'
    ': "get_product_name", "args": "{}"}], "results": [{"id": "call_q2UyBRP7eXNTzAoR8'
    'lEhjc9Z", "status": "ok", "content": "Mexico"}, {"id": "call_b51ijcpFkDiTQG1bQzs'
    'rmtW5", "status": "ok", "content": "Pydantic AI"}]}'
    "\n"
    '{"source": "pydantic/pydantic-ai:tests/cassettes/test_temporal/test_complex_agen'
    't_run.yaml", "conv": "pydantic-ai/complex_agent_run", "turn": 1, "provider": "op'
    'enai", "streaming": true, "calls": [{"id": "call_LwxJUB9KppVyogRRLQsamRJv", "nam'
    'e": "get_weather", "args": "{\\"city\\":\\"Mexico City\\"}"}], "results": [{"id": "c'
    'all_LwxJUB9KppVyogRRLQsamRJv", "status": "ok", "content": "sunny"}]}'
    "\n"
    '{"source": "pydantic/pydantic-ai:tests/cassettes/test_temporal/test_complex_agen'
    't_run.yaml", "conv": "pydantic-ai/complex_agent_run", "turn": 2, "provider": "op'
    'enai", "streaming": true, "calls": [{"id": "call_CCGIWaMeYWmxOQ91orkmTvzn", "nam'
    'e": "final_result", "args": "{\\"answers\\":[{\\"label\\":\\"Capital\\",\\"answer\\":\\"T'
    'he capital of Mexico is Mexico City.\\"},{\\"label\\":\\"Weather\\",\\"answer\\":\\"The '
    'weather in Mexico City is currently sunny.\\"},{\\"label\\":\\"Product Name\\",\\"answ'
    'er\\":\\"The product name is Pydantic AI.\\"}]}"}], "results": []}'
    "\n"
)
"""One batch a line."""
