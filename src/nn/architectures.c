/* architectures.c - the architectures. Rows of a kind whose digests are published are
 * frozen: a tensor's number in the model is its stream of random numbers. New rows go to
 * the end of a kind, or into a new one. */
#include "nn/architecture.h"

#include "base/number.h"

/* clang-format off */
#define ONES   .init = ZERO_INIT_ONES
#define ZEROS  .init = ZERO_INIT_ZEROS
#define NORMAL .init = ZERO_INIT_NORMAL
#define ROWS   .cut = ZERO_CUT_ROWS
#define COLS   .cut = ZERO_CUT_COLS

/* ---- GPT-2 ---- */

static const zero_tensor_row gpt2_embedding[] = {
    {"wte.weight", ZERO_OF_WORDS, ZERO_OF_HIDDEN, NORMAL, ROWS},
    {"wpe.weight", ZERO_OF_SEQ, ZERO_OF_HIDDEN, NORMAL},
    {0}};

/* Megatron's layers (Shoeybi et al., arXiv:1909.08053, section 3): a rank has its outputs,
 * so also their biases, of the one kind (cut by columns), and its inputs of the other (by
 * rows). */
enum { LN1, LN1_BIAS, C_ATTN, C_ATTN_BIAS, PROJ, PROJ_BIAS, LN2, LN2_BIAS, FC, FC_BIAS,
       FCPROJ, FCPROJ_BIAS };
static const zero_tensor_row gpt2_block[] = {
    [LN1] = {"ln_1.weight", ZERO_OF_ONE, ZERO_OF_HIDDEN, ONES},
    [LN1_BIAS] = {"ln_1.bias", ZERO_OF_ONE, ZERO_OF_HIDDEN, ZEROS},
    [C_ATTN] = {"attn.c_attn.weight", ZERO_OF_HIDDEN, ZERO_OF_QKV, NORMAL, COLS, .cut_parts = 3},
    [C_ATTN_BIAS] = {"attn.c_attn.bias", ZERO_OF_ONE, ZERO_OF_QKV, ZEROS, COLS, .cut_parts = 3},
    [PROJ] = {"attn.c_proj.weight", ZERO_OF_HIDDEN, ZERO_OF_HIDDEN, NORMAL, ROWS, .leaves = true},
    [PROJ_BIAS] = {"attn.c_proj.bias", ZERO_OF_ONE, ZERO_OF_HIDDEN, ZEROS},
    [LN2] = {"ln_2.weight", ZERO_OF_ONE, ZERO_OF_HIDDEN, ONES},
    [LN2_BIAS] = {"ln_2.bias", ZERO_OF_ONE, ZERO_OF_HIDDEN, ZEROS},
    [FC] = {"mlp.c_fc.weight", ZERO_OF_HIDDEN, ZERO_OF_INNER, NORMAL, COLS},
    [FC_BIAS] = {"mlp.c_fc.bias", ZERO_OF_ONE, ZERO_OF_INNER, ZEROS, COLS},
    [FCPROJ] = {"mlp.c_proj.weight", ZERO_OF_INNER, ZERO_OF_HIDDEN, NORMAL, ROWS, .leaves = true},
    [FCPROJ_BIAS] = {"mlp.c_proj.bias", ZERO_OF_ONE, ZERO_OF_HIDDEN, ZEROS},
    {0}};

static const zero_tensor_row gpt2_final[] = {
    {"ln_f.weight", ZERO_OF_ONE, ZERO_OF_HIDDEN, ONES},
    {"ln_f.bias", ZERO_OF_ONE, ZERO_OF_HIDDEN, ZEROS},
    {0}};

enum { NORM1 = ZERO_FIRST_ARRAY, QKV, ATTENDED, MIDDLE, NORM2, INNER, GELU, GPT2_ARRAYS };
static const zero_layer gpt2_layers[] = {
    {.kind = ZERO_NORM, .in = ZERO_BLOCK_IN, .out = NORM1, .tensor = LN1, .bias = LN1_BIAS},
    {.kind = ZERO_LINEAR, .in = NORM1, .out = QKV, .tensor = C_ATTN, .bias = C_ATTN_BIAS},
    {.kind = ZERO_ATTEND, .in = QKV, .out = ATTENDED, .with = QKV, .drop = 0},
    {.kind = ZERO_LINEAR, .in = ATTENDED, .out = MIDDLE, .tensor = PROJ, .bias = PROJ_BIAS},
    {.kind = ZERO_ADD, .in = MIDDLE, .out = MIDDLE, .with = ZERO_BLOCK_IN, .drop = 1},
    {.kind = ZERO_NORM, .in = MIDDLE, .out = NORM2, .tensor = LN2, .bias = LN2_BIAS},
    {.kind = ZERO_LINEAR, .in = NORM2, .out = INNER, .tensor = FC, .bias = FC_BIAS},
    {.kind = ZERO_GELU, .in = INNER, .out = GELU},
    {.kind = ZERO_LINEAR, .in = GELU, .out = ZERO_BLOCK_OUT, .tensor = FCPROJ,
     .bias = FCPROJ_BIAS},
    {.kind = ZERO_ADD, .in = ZERO_BLOCK_OUT, .out = ZERO_BLOCK_OUT, .with = MIDDLE,
     .drop = 2},
};

static int64_t four_times(int64_t hidden)
{
    return 4 * hidden;
}

static const char *const gpt2_ignored[] = {".attn.bias", ".attn.masked_bias", NULL};
static const char *const gpt2_keys[] = {
    "n_layer", "n_embd", "n_head", NULL, NULL, "n_inner", "n_positions", "vocab_size", NULL,
    "layer_norm_epsilon", "tie_word_embeddings", NULL};

/* ---- Llama and what grew from it ---- */

#define QKV_BIAS .needs = ZERO_HAS_QKV_BIAS
#define QK_NORM  .needs = ZERO_HAS_QK_NORM
#define OUT_IN   .out_in = true

static const zero_tensor_row llama_embedding[] = {
    {"embed_tokens.weight", ZERO_OF_WORDS, ZERO_OF_HIDDEN, NORMAL, ROWS},
    {0}};

/* q|k|v and gate|up lie end to end: each is one product. */
enum { IN_NORM, Q, K, V, Q_BIAS, K_BIAS, V_BIAS, Q_NORM, K_NORM, O, POST_NORM, GATE, UP, DOWN };
static const zero_tensor_row llama_block[] = {
    [IN_NORM] = {"input_layernorm.weight", ZERO_OF_ONE, ZERO_OF_HIDDEN, ONES},
    [Q] = {"self_attn.q_proj.weight", ZERO_OF_QUERIES, ZERO_OF_HIDDEN, NORMAL, ROWS, OUT_IN},
    [K] = {"self_attn.k_proj.weight", ZERO_OF_KEYS, ZERO_OF_HIDDEN, NORMAL, ROWS, OUT_IN},
    [V] = {"self_attn.v_proj.weight", ZERO_OF_KEYS, ZERO_OF_HIDDEN, NORMAL, ROWS, OUT_IN},
    [Q_BIAS] = {"self_attn.q_proj.bias", ZERO_OF_ONE, ZERO_OF_QUERIES, ZEROS, COLS, QKV_BIAS},
    [K_BIAS] = {"self_attn.k_proj.bias", ZERO_OF_ONE, ZERO_OF_KEYS, ZEROS, COLS, QKV_BIAS},
    [V_BIAS] = {"self_attn.v_proj.bias", ZERO_OF_ONE, ZERO_OF_KEYS, ZEROS, COLS, QKV_BIAS},
    [Q_NORM] = {"self_attn.q_norm.weight", ZERO_OF_ONE, ZERO_OF_HEAD, ONES, QK_NORM},
    [K_NORM] = {"self_attn.k_norm.weight", ZERO_OF_ONE, ZERO_OF_HEAD, ONES, QK_NORM},
    [O] = {"self_attn.o_proj.weight", ZERO_OF_HIDDEN, ZERO_OF_QUERIES, NORMAL, COLS, OUT_IN,
           .leaves = true},
    [POST_NORM] = {"post_attention_layernorm.weight", ZERO_OF_ONE, ZERO_OF_HIDDEN, ONES},
    [GATE] = {"mlp.gate_proj.weight", ZERO_OF_INNER, ZERO_OF_HIDDEN, NORMAL, ROWS, OUT_IN},
    [UP] = {"mlp.up_proj.weight", ZERO_OF_INNER, ZERO_OF_HIDDEN, NORMAL, ROWS, OUT_IN},
    [DOWN] = {"mlp.down_proj.weight", ZERO_OF_HIDDEN, ZERO_OF_INNER, NORMAL, COLS, OUT_IN,
              .leaves = true},
    {0}};

static const zero_tensor_row llama_final[] = {
    {"norm.weight", ZERO_OF_ONE, ZERO_OF_HIDDEN, ONES},
    {"lm_head.weight", ZERO_OF_WORDS, ZERO_OF_HIDDEN, NORMAL, ROWS, .needs = ZERO_HAS_OWN_WORDS},
    {0}};

enum { L_NORM1 = ZERO_FIRST_ARRAY, L_QKV, L_TURNED, L_ATTENDED, L_MIDDLE, L_NORM2, L_GATED,
       L_INNER, LLAMA_ARRAYS };
static const zero_layer llama_layers[] = {
    {.kind = ZERO_NORM, .in = ZERO_BLOCK_IN, .out = L_NORM1, .tensor = IN_NORM},
    {.kind = ZERO_LINEAR, .in = L_NORM1, .out = L_QKV, .tensor = Q, .bias = Q_BIAS,
     .stacked = 3},
    {.kind = ZERO_TURN, .in = L_QKV, .out = L_TURNED, .tensor = Q_NORM},
    {.kind = ZERO_ATTEND, .in = L_TURNED, .out = L_ATTENDED, .with = L_QKV, .drop = 0},
    {.kind = ZERO_LINEAR, .in = L_ATTENDED, .out = L_MIDDLE, .tensor = O},
    {.kind = ZERO_ADD, .in = L_MIDDLE, .out = L_MIDDLE, .with = ZERO_BLOCK_IN, .drop = 1},
    {.kind = ZERO_NORM, .in = L_MIDDLE, .out = L_NORM2, .tensor = POST_NORM},
    {.kind = ZERO_LINEAR, .in = L_NORM2, .out = L_GATED, .tensor = GATE, .stacked = 2},
    {.kind = ZERO_GATE, .in = L_GATED, .out = L_INNER},
    {.kind = ZERO_LINEAR, .in = L_INNER, .out = ZERO_BLOCK_OUT, .tensor = DOWN},
    {.kind = ZERO_ADD, .in = ZERO_BLOCK_OUT, .out = ZERO_BLOCK_OUT, .with = L_MIDDLE,
     .drop = 2},
};

/* Two thirds of four times hidden, as three matrices have what two of GPT-2's had, in whole
 * cache lines. */
static int64_t gated(int64_t hidden)
{
    return zero_round_up(8 * hidden / 3, 64);
}

static const char *const llama_ignored[] = {".rotary_emb.inv_freq", NULL};
static const char *const llama_keys[] = {
    "num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads",
    "head_dim", "intermediate_size", "max_position_embeddings", "vocab_size", "rope_theta",
    "rms_norm_eps", "tie_word_embeddings", NULL};

/* ---- GPT-NeoX ---- */

static const zero_tensor_row neox_embedding[] = {
    {"embed_in.weight", ZERO_OF_WORDS, ZERO_OF_HIDDEN, NORMAL, ROWS},
    {0}};

enum { X_NORM1, X_NORM1_BIAS, X_QKV, X_QKV_BIAS, X_DENSE, X_DENSE_BIAS, X_NORM2, X_NORM2_BIAS,
       X_UP, X_UP_BIAS, X_DOWN, X_DOWN_BIAS };
static const zero_tensor_row neox_block[] = {
    [X_NORM1] = {"input_layernorm.weight", ZERO_OF_ONE, ZERO_OF_HIDDEN, ONES},
    [X_NORM1_BIAS] = {"input_layernorm.bias", ZERO_OF_ONE, ZERO_OF_HIDDEN, ZEROS},
    [X_QKV] = {"attention.query_key_value.weight", ZERO_OF_QKV, ZERO_OF_HIDDEN, NORMAL, ROWS, OUT_IN},
    [X_QKV_BIAS] = {"attention.query_key_value.bias", ZERO_OF_ONE, ZERO_OF_QKV, ZEROS, COLS},
    [X_DENSE] = {"attention.dense.weight", ZERO_OF_HIDDEN, ZERO_OF_HIDDEN, NORMAL, COLS, OUT_IN,
                 .leaves = true},
    [X_DENSE_BIAS] = {"attention.dense.bias", ZERO_OF_ONE, ZERO_OF_HIDDEN, ZEROS},
    [X_NORM2] = {"post_attention_layernorm.weight", ZERO_OF_ONE, ZERO_OF_HIDDEN, ONES},
    [X_NORM2_BIAS] = {"post_attention_layernorm.bias", ZERO_OF_ONE, ZERO_OF_HIDDEN, ZEROS},
    [X_UP] = {"mlp.dense_h_to_4h.weight", ZERO_OF_INNER, ZERO_OF_HIDDEN, NORMAL, ROWS, OUT_IN},
    [X_UP_BIAS] = {"mlp.dense_h_to_4h.bias", ZERO_OF_ONE, ZERO_OF_INNER, ZEROS, COLS},
    [X_DOWN] = {"mlp.dense_4h_to_h.weight", ZERO_OF_HIDDEN, ZERO_OF_INNER, NORMAL, COLS, OUT_IN,
                .leaves = true},
    [X_DOWN_BIAS] = {"mlp.dense_4h_to_h.bias", ZERO_OF_ONE, ZERO_OF_HIDDEN, ZEROS},
    {0}};

static const zero_tensor_row neox_final[] = {
    {"final_layer_norm.weight", ZERO_OF_ONE, ZERO_OF_HIDDEN, ONES},
    {"final_layer_norm.bias", ZERO_OF_ONE, ZERO_OF_HIDDEN, ZEROS},
    {"embed_out.weight", ZERO_OF_WORDS, ZERO_OF_HIDDEN, NORMAL, ROWS, .needs = ZERO_HAS_OWN_WORDS},
    {0}};

/* Both branches read `in`. */
enum { X_NORMED1 = ZERO_FIRST_ARRAY, X_HEADS, X_ATTENDED, X_MIDDLE, X_NORMED2, X_INNER, X_GELU,
       NEOX_ARRAYS };
static const zero_layer neox_layers[] = {
    {.kind = ZERO_NORM, .in = ZERO_BLOCK_IN, .out = X_NORMED1, .tensor = X_NORM1, .bias = X_NORM1_BIAS},
    {.kind = ZERO_LINEAR, .in = X_NORMED1, .out = X_HEADS, .tensor = X_QKV, .bias = X_QKV_BIAS},
    {.kind = ZERO_TURN, .in = X_HEADS, .out = X_HEADS},
    {.kind = ZERO_ATTEND, .in = X_HEADS, .out = X_ATTENDED, .with = X_HEADS, .drop = 0},
    {.kind = ZERO_LINEAR, .in = X_ATTENDED, .out = X_MIDDLE, .tensor = X_DENSE, .bias = X_DENSE_BIAS},
    {.kind = ZERO_ADD, .in = X_MIDDLE, .out = X_MIDDLE, .with = ZERO_BLOCK_IN, .drop = 1},
    {.kind = ZERO_NORM, .in = ZERO_BLOCK_IN, .out = X_NORMED2, .tensor = X_NORM2, .bias = X_NORM2_BIAS},
    {.kind = ZERO_LINEAR, .in = X_NORMED2, .out = X_INNER, .tensor = X_UP, .bias = X_UP_BIAS},
    {.kind = ZERO_GELU, .in = X_INNER, .out = X_GELU},
    {.kind = ZERO_LINEAR, .in = X_GELU, .out = ZERO_BLOCK_OUT, .tensor = X_DOWN, .bias = X_DOWN_BIAS},
    {.kind = ZERO_ADD, .in = ZERO_BLOCK_OUT, .out = ZERO_BLOCK_OUT, .with = X_MIDDLE, .drop = 2},
};

static const char *const neox_ignored[] = {".attention.bias", ".attention.masked_bias",
    ".rotary_emb.inv_freq", NULL};
static const char *const neox_keys[] = {
    "num_hidden_layers", "hidden_size", "num_attention_heads", NULL, NULL, "intermediate_size",
    "max_position_embeddings", "vocab_size", "rotary_emb_base", "layer_norm_eps",
    "tie_word_embeddings", "rotary_pct"};

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))
#define LLAMA(named, says, beside, hub, class, base, of_norms) \
    {.name = named, .about = says, .has = ZERO_HAS_ROTARY | ZERO_HAS_MORE | ZERO_HAS_RMS | ZERO_HAS_HEADS | (beside), \
     .embedding = llama_embedding, .block = llama_block, .final = llama_final, .n_final = COUNT(llama_final) - 1, \
     .layer = "layers.", .layers = llama_layers, .n_layers = COUNT(llama_layers), \
     .n_arrays = LLAMA_ARRAYS, .masks = 3, .inner = gated, .theta = base, .eps = of_norms, .rotary = 1, \
     .model_type = hub, .class_name = class, .prefix = "model.", .ignored = llama_ignored, \
     .keys = llama_keys}

const zero_architecture zero_architectures[ZERO_ARCHITECTURES] = {
    [ZERO_GPT2] = {.name = "gpt2", .about = "GPT-2", .has = ZERO_HAS_POSITIONS,
     .embedding = gpt2_embedding, .block = gpt2_block, .final = gpt2_final, .n_final = COUNT(gpt2_final) - 1, .layer = "h.",
     .layers = gpt2_layers, .n_layers = COUNT(gpt2_layers), .n_arrays = GPT2_ARRAYS,
     .masks = 3, .inner = four_times, .eps = 1e-5, .scales_leaving = true,
     .model_type = "gpt2", .class_name = "GPT2LMHeadModel", .prefix = "transformer.",
     .ignored = gpt2_ignored, .keys = gpt2_keys},
    [ZERO_LLAMA] = LLAMA("llama", "Llama, SmolLM2, TinyLlama", 0, "llama", "LlamaForCausalLM", 1e4, 1e-5),
    [ZERO_MISTRAL] = LLAMA("mistral", "Mistral", 0, "mistral", "MistralForCausalLM", 1e4, 1e-5),
    [ZERO_QWEN2] = LLAMA("qwen2", "Qwen2, Qwen2.5", ZERO_HAS_QKV_BIAS, "qwen2", "Qwen2ForCausalLM", 1e6, 1e-6),
    [ZERO_QWEN3] = LLAMA("qwen3", "Qwen3", ZERO_HAS_QK_NORM, "qwen3", "Qwen3ForCausalLM", 1e6, 1e-6),
    [ZERO_NEOX] = {.name = "gpt_neox", .about = "GPT-NeoX, Pythia",
     .has = ZERO_HAS_ROTARY | ZERO_HAS_MORE | ZERO_HAS_PART | ZERO_HAS_BY_HEAD | ZERO_HAS_ERF,
     .embedding = neox_embedding, .block = neox_block, .final = neox_final, .n_final = COUNT(neox_final) - 1,
     .layer = "layers.", .layers = neox_layers, .n_layers = COUNT(neox_layers), .n_arrays = NEOX_ARRAYS,
     .masks = 3, .inner = four_times, .theta = 1e4, .eps = 1e-5, .rotary = 0.25,
     .model_type = "gpt_neox", .class_name = "GPTNeoXForCausalLM", .prefix = "gpt_neox.",
     .ignored = neox_ignored, .keys = neox_keys},
};
/* clang-format on */
