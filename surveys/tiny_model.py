"""A small Llama of random weights, in the format of Hugging Face: its text means nothing, and its time is real.

write_tiny_model(Path("tiny"))      # a folder of 13 MB that vLLM, SGLang, transformers and MLX load
"""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any, Final

import numpy as np

from docmind_lab.core.whole_files import as_bytes, as_json, as_text, write_or_refuse

_WIDTH, _INNER, _LAYERS, _HEADS, _CONTEXT = 256, 688, 4, 4, 16_384
_SPECIAL: Final = ("<unk>", "<s>", "</s>")
# Every token is text that can be shown, so that a stream has as many events as tokens.
_LETTERS: Final = tuple(string.ascii_letters + string.digits + " .,:;!?\n-")
_ALL: Final = (*_SPECIAL, *_LETTERS)

_TOKENIZER: Final[dict[str, Any]] = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [
        {
            "id": number,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for number, token in enumerate(_SPECIAL)
    ],
    "normalizer": None,
    "pre_tokenizer": None,
    "post_processor": None,
    "decoder": {"type": "Fuse"},
    "model": {
        "type": "BPE",
        "dropout": None,
        "unk_token": "<unk>",
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": {token: number for number, token in enumerate(_ALL)},
        "merges": [],
    },
}


def write_tiny_model(folder: Path, seed: int = 0) -> None:
    """Write the model and its tokenizer.

    Args:
        folder: Where; it is made.
        seed: Of the weights.

    Raises: ConfigurationError when a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, Any] = {
        "config.json": {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "vocab_size": len(_ALL),
            "hidden_size": _WIDTH,
            "intermediate_size": _INNER,
            "num_hidden_layers": _LAYERS,
            "num_attention_heads": _HEADS,
            "num_key_value_heads": _HEADS,
            "max_position_embeddings": _CONTEXT,
            "rms_norm_eps": 1e-6,
            "hidden_act": "silu",
            "tie_word_embeddings": False,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "torch_dtype": "float32",
        },
        "generation_config.json": {"bos_token_id": 1, "eos_token_id": 2},
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "unk_token": "<unk>",
            "bos_token": "<s>",
            "eos_token": "</s>",
            "model_max_length": _CONTEXT,
            "chat_template": "{% for m in messages %}{{ m['content'] }}\n{% endfor %}",
        },
        "tokenizer.json": _TOKENIZER,
    }
    for name, content in files.items():
        write_or_refuse(folder / name, as_json(content))
    write_or_refuse(folder / "chat_template.jinja", as_text(files["tokenizer_config.json"]["chat_template"]))
    write_or_refuse(folder / "model.safetensors", as_bytes(_safetensors(seed)))


def _safetensors(seed: int) -> bytes:
    draws = np.random.default_rng(seed)
    wide, inner = (_WIDTH, _WIDTH), (_INNER, _WIDTH)
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (len(_ALL), _WIDTH)}
    for layer in range(_LAYERS):
        at = f"model.layers.{layer}"
        shapes |= {f"{at}.self_attn.{name}_proj.weight": wide for name in "qkvo"}
        shapes |= {f"{at}.mlp.{name}_proj.weight": inner for name in ("gate", "up")}
        shapes |= {f"{at}.mlp.down_proj.weight": (_WIDTH, _INNER)}
        shapes |= {f"{at}.{name}_layernorm.weight": (_WIDTH,) for name in ("input", "post_attention")}
    shapes |= {"model.norm.weight": (_WIDTH,), "lm_head.weight": (len(_ALL), _WIDTH)}
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    parts: list[bytes] = []
    end = 0
    for name, shape in shapes.items():
        values = np.ones(shape) if len(shape) == 1 else draws.normal(0.0, 0.02, shape)
        parts.append(values.astype("<f4").tobytes())
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": (end, end := end + len(parts[-1]))}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(parts)
