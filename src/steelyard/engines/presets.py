"""What each hosted decision API wants, as data. Limits and prices drift: settings override them."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from steelyard.errors import InputError
from steelyard.formats.jsontext import one_line, quote

WAYS = ("tournament", "shortlist")
"""How what is over a server's limits may be asked all the same."""
SOURCES = ("native", "logprob", "verbalised", "label-only")
"""Where a server's probabilities come from; ``sampled(N)`` is the fifth."""


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """One hosted API.

    Attributes
    ----------
    base_url, path : str
        `path` may hold ``{model}``.
    auth : str
        ``bearer``, ``x-api-key``, ``basic`` or ``none``.
    key_env : str
        Environment variable of the key; a server on this machine may do without.
    model : str or None
        Asked for when none is named.
    model_in : str
        ``body``, ``header``, ``both`` or ``none``.
    model_header : str
    headers : dict
        Sent with every request.
    yes_no : str
        What the wire calls a yes/no question.
    unwrap : str or None
        Key the reply is wrapped in.
    batch_path : str or None
        Where many states of one question set go.
    most_questions, most_options, most_levels, most_states : int or None
    rounds : bool
        Whether the wire rounds probabilities, so that a sum within 0.02 of 1 is scaled.
    confidence : str
        ``wire`` takes the answer's own; ``top`` the probability of the answer, as what vendors call
        confidence is not one measure.
    min_confidence : bool
        Whether the wire takes a threshold.
    probability_source : str
        One of `SOURCES`, or ``sampled(N)``.
    price_input, price_output : float or None
        Money for a million tokens.
    """

    base_url: str = ""
    path: str = "/v1/systemone"
    auth: str = "bearer"
    key_env: str = ""
    model: str | None = None
    model_in: str = "body"
    model_header: str = ""
    headers: dict[str, str] = {}
    yes_no: str = "noul"
    unwrap: str | None = None
    batch_path: str | None = None
    most_questions: int | None = None
    most_options: int | None = None
    most_levels: int | None = None
    most_states: int | None = None
    rounds: bool = True
    confidence: str = "top"
    min_confidence: bool = False
    probability_source: str = "native"
    price_input: float | None = None
    price_output: float | None = None


def changed(preset: Preset, changes: dict[str, Any]) -> Preset:
    """A preset with settings in place of its own.

    Raises
    ------
    InputError
        A setting it cannot have.
    """
    try:
        found = msgspec.convert(msgspec.to_builtins(preset) | changes, Preset)
    except msgspec.ValidationError as error:
        raise InputError(f"setting {one_line(error)}") from None
    if found.confidence not in ("wire", "top"):
        raise InputError(f'setting confidence must be "wire" or "top", got {quote(found.confidence)}')
    source = found.probability_source
    if source not in SOURCES and not re.fullmatch(r"sampled\([1-9][0-9]*\)", source):
        raise InputError(
            f"setting probability_source must be {', '.join(SOURCES)} or sampled(N), got {quote(source)}"
        )
    for name, least in (("questions", 1), ("options", 2), ("levels", 2), ("states", 1)):
        most = getattr(found, f"most_{name}")
        if most is not None and most < least:
            raise InputError(f"setting most_{name} must be {least} or more, got {most}")
    return found


SYSTEM_ONE: dict[str, Preset] = {
    "custom": Preset(key_env="STEELYARD_API_KEY"),
    "jev": Preset(
        base_url="https://api.typesafe.ai",
        key_env="TYPESAFE_API_KEY",
        model="jev-1.13.0",
        most_options=255,
        most_levels=10,
        price_input=0.042,
        price_output=0.0,
    ),
    "laya-serve": Preset(
        base_url="http://127.0.0.1:8000",
        key_env="LAYA_API_KEY",
        batch_path="/v1/systemone/batch",
        most_questions=64,
        most_options=100,
        most_levels=32,
        most_states=64,
        rounds=False,
        confidence="wire",
        min_confidence=True,
    ),
    "openrouter": Preset(
        base_url="https://openrouter.ai/api",
        key_env="OPENROUTER_API_KEY",
        model="typesafe/jev-1.13",
        most_options=255,
        most_levels=10,
    ),
    "clef": Preset(
        base_url="https://api.cloudflare.com/client/v4/accounts/{account}",
        path="/ai/run/@cf/cloudflare/{model}",
        key_env="CLOUDFLARE_API_TOKEN",
        model="clef",
        unwrap="result",
        most_questions=64,
        most_options=255,
        most_levels=10,
        price_input=0.24,
        price_output=0.0,
    ),
    "perplexity": Preset(
        base_url="https://api.perplexity.ai",
        path="/v1/decisions",
        key_env="PERPLEXITY_API_KEY",
        model="pplx-decider-v1-27b",
        most_questions=128,
        most_options=255,
        price_input=0.04,
        price_output=0.0,
    ),
    "subq": Preset(base_url="https://api.subq.ai", key_env="SUBQ_API_KEY", model="subq-snap-preview"),
    "xor": Preset(key_env="XOR_API_KEY", most_options=255),
    "scaledown": Preset(
        base_url="https://api.scaledown.xyz",
        auth="x-api-key",
        key_env="SCALEDOWN_API_KEY",
        model="classify-1",
    ),
    "llamacpp": Preset(base_url="http://127.0.0.1:8080", key_env="LLAMA_API_KEY"),
    "fireworks": Preset(
        base_url="https://api.fireworks.ai", path="/inference/v1/systemone", key_env="FIREWORKS_API_KEY"
    ),
}
"""APIs that speak the System One wire."""

OPENAI = Preset(
    base_url="https://api.openai.com",
    path="/v1/decisions",
    key_env="OPENAI_API_KEY",
    model="gpt-6-luna",
    most_questions=400,
    most_options=255,
    price_input=0.10,
    price_output=0.0,
)
VERCEL = Preset(
    base_url="https://ai-gateway.vercel.sh",
    path="/v4/ai/evaluation-model",
    key_env="AI_GATEWAY_API_KEY",
    model="typesafe-ai/jev",
    model_in="header",
    model_header="ai-model-id",
    headers={"ai-gateway-protocol-version": "0.0.1"},
    yes_no="boolean",
)
HUNCH = Preset(
    base_url="http://127.0.0.1:8000",
    path="/v1/judge",
    key_env="HUNCH_API_KEY",
    probability_source="logprob",
    most_options=300,
    most_levels=10,
)
