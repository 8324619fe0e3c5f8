/* The files that transformers reads beside the tensors and the tokenizer's own: config.json,
 * generation_config.json and tokenizer_config.json, written. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "checkpoint/hugging_face.h"
#include "io/json_input.h"

enum { GPT2_END = 50256 }; /* <|endoftext|> in the vocabulary of GPT-2 */

/* The token that ends a text. Without a tokenizer a vocabulary as large as GPT-2's is taken for
 * it. */
static json_t *end_of_text(const zero_gpt2_shape *s, const zero_tokenizer *tok)
{
    int64_t end = tok ? tok->end_of_text : s->vocab > GPT2_END ? GPT2_END : -1;
    return end >= 0 ? json_integer(end) : json_null();
}

/* Takes the reference. */
static zero_status append(const char *name, json_t *root, zero_bytes *out)
{
    char *text = root ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(root);
    zero_status st = text ? ZERO_OK : zero_fail(ZERO_ERR_NOMEM, "no memory for %s", name);
    if (st == ZERO_OK) st = zero_bytes_append(out, text, strlen(text));
    if (st == ZERO_OK) st = zero_bytes_append(out, "\n", 1);
    free(text);
    return st;
}

zero_status zero_hugging_face_write_config(const zero_gpt2_shape *s,
                                           const zero_tokenizer *tok, zero_bytes *out)
{
    double dropout = (double)s->dropout;
    json_t *root = json_pack(
        "{s:[s], s:s, s:I, s:I, s:I, s:n, s:I, s:I, s:I, s:s, s:f, s:f, s:f, s:f, s:f, "
        "s:b, "
        "s:b, s:b, s:b, s:s, s:o, s:o}",
        "architectures", "GPT2LMHeadModel", "model_type", "gpt2", "n_layer",
        (json_int_t)s->layers, "n_head", (json_int_t)s->heads, "n_embd",
        (json_int_t)s->hidden, "n_inner", "n_positions", (json_int_t)s->seq, "n_ctx",
        (json_int_t)s->seq, "vocab_size", (json_int_t)s->vocab, "activation_function",
        "gelu_new", "layer_norm_epsilon", 1e-5, "initializer_range", 0.02, "embd_pdrop",
        dropout, "attn_pdrop", dropout, "resid_pdrop", dropout, "scale_attn_weights", 1,
        "scale_attn_by_inverse_layer_idx", 0, "reorder_and_upcast_attn", 0,
        "tie_word_embeddings", 1, "torch_dtype", "float32", "bos_token_id",
        end_of_text(s, tok), "eos_token_id", end_of_text(s, tok));
    return append(ZERO_HUGGING_FACE_CONFIG, root, out);
}

zero_status zero_hugging_face_write_generation(const zero_gpt2_shape *s,
                                               const zero_tokenizer *tok, zero_bytes *out)
{
    json_t *root = json_pack("{s:o, s:o}", "bos_token_id", end_of_text(s, tok),
                             "eos_token_id", end_of_text(s, tok));
    return append(ZERO_HUGGING_FACE_GENERATION, root, out);
}

/* The class is the one that takes a tokenizer.json as it is: GPT2Tokenizer would cut text by
 * GPT-2's pattern whatever the file says. Cleaned-up blanks would not be the text's. Without its
 * inputs the class would give types of tokens, too, which GPT2LMHeadModel adds to the embedding. */
zero_status zero_hugging_face_write_tokenizer(const zero_gpt2_shape *s,
                                              const zero_tokenizer *tok, zero_bytes *out)
{
    json_t *root =
        json_pack("{s:s, s:I, s:b, s:[s, s]}", "tokenizer_class", "PreTrainedTokenizerFast",
                  "model_max_length", (json_int_t)s->seq, "clean_up_tokenization_spaces", 0,
                  "model_input_names", "input_ids", "attention_mask");
    if (root && tok->end_of_text >= 0) {
        size_t len;
        const unsigned char *text = zero_tokenizer_decode(tok, tok->end_of_text, &len);
        json_object_set_new(root, "bos_token", json_stringn((const char *)text, len));
        json_object_set_new(root, "eos_token", json_stringn((const char *)text, len));
    }
    return append(ZERO_HUGGING_FACE_TOKENIZER, root, out);
}
