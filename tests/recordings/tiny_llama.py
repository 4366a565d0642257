"""A language model with random weights, made on the spot: for llama.cpp's server, which needs some file to serve."""

from __future__ import annotations

from pathlib import Path

import numpy as np

WIDTH, LAYERS, HEADS, CONTEXT = 256, 4, 4, 4096
_SPECIAL = ("<unk>", "<s>", "</s>")
_LETTERS = tuple("▁abcdefghijklmnopqrstuvwxyz.,?")


def write_tiny_llama(path: Path, seed: int = 0) -> Path:
    """The path of a GGUF file with a small Llama of random weights and a tokenizer of bytes and letters.

    Args:
        path: File to write.
        seed: Of the weights.
    """
    # Function-level: an optional dependency of tests.
    import gguf

    tokens = [*_SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), *_LETTERS]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    kinds += [gguf.TokenType.BYTE] * 256 + [gguf.TokenType.NORMAL] * len(_LETTERS)
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(4 * WIDTH)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([int(kind) for kind in kinds])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template("{% for message in messages %}{{ message['content'] }} {% endfor %}")
    rng = np.random.default_rng(seed)
    shapes = {"token_embd": (len(tokens), WIDTH), "output": (len(tokens), WIDTH)}
    for layer in range(LAYERS):
        shapes |= {f"blk.{layer}.{name}": (WIDTH, WIDTH) for name in ("attn_q", "attn_k", "attn_v", "attn_output")}
        shapes |= {f"blk.{layer}.{name}": (4 * WIDTH, WIDTH) for name in ("ffn_gate", "ffn_up")}
        shapes |= {f"blk.{layer}.ffn_down": (WIDTH, 4 * WIDTH)}
    for name, shape in shapes.items():
        weights = rng.standard_normal(shape).astype(np.float32) / np.sqrt(np.float32(shape[1]))
        writer.add_tensor(f"{name}.weight", weights)
    for name in ("output_norm", *(f"blk.{n}.{norm}" for n in range(LAYERS) for norm in ("attn_norm", "ffn_norm"))):
        writer.add_tensor(f"{name}.weight", np.ones(WIDTH, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
