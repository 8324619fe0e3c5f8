/* architecture.h - what an architecture is: rows of tensors, and a block as a list of
 * layers. The build makes them of architectures/ and presets.txt; sizes, parts, memory,
 * flops and what tensor parallelism joins follow from the rows (model_build.c, block.c).
 *
 * L layers, C hidden channels, H query heads, K key heads, D channels of a head, F inner
 * channels, V words, T positions. */
#pragma once

#include "zero/shape.h"

/* What a shape has beside the common rows. */
enum {
    ZERO_HAS_POSITIONS = 1,  /* a table of them: sequences are as long as it is */
    ZERO_HAS_ROTARY = 2,     /* queries and keys turned by their positions */
    ZERO_HAS_QKV_BIAS = 4,   /* biases of q, k and v */
    ZERO_HAS_QK_NORM = 8,    /* a norm of each query and key, before it is turned */
    ZERO_HAS_OWN_WORDS = 16, /* a head whose words are not the embedding's */
    ZERO_HAS_MORE = 32,      /* more numbers of its own than GPT-2's five */
    ZERO_HAS_RMS = 64,       /* root mean square norms, without biases */
    ZERO_HAS_HEADS = 128,    /* fewer key heads than heads, and any size of heads */
    ZERO_HAS_PART = 256,     /* a part of a head's channels turns */
    ZERO_HAS_BY_HEAD = 512,  /* q, k and v of a head side by side, as Megatron has them */
    ZERO_HAS_ERF = 1024,     /* the exact GELU */
};

typedef enum {
    ZERO_OF_ONE,     /* a vector's rows */
    ZERO_OF_HIDDEN,  /* C */
    ZERO_OF_QUERIES, /* H D */
    ZERO_OF_KEYS,    /* K D */
    ZERO_OF_QKV,     /* (H + 2 K) D */
    ZERO_OF_HEAD,    /* D */
    ZERO_OF_INNER,   /* F */
    ZERO_OF_WORDS,   /* V */
    ZERO_OF_SEQ      /* T */
} zero_dimension;

typedef struct {
    const char *name; /* ours and Hugging Face's: behind the prefix, and in blocks behind
                         the layer's; NULL ends the rows */
    zero_dimension rows, cols;
    zero_init_kind init;
    bool leaves; /* it writes to the residual stream */
    bool out_in; /* zero_tensor.out_in */
    zero_cut cut;
    int cut_parts;
    int needs; /* rows of shapes that have all of these; 0: of all */
} zero_tensor_row;

/* Arrays of a block: `in`, `out`, and those that an architecture numbers from 2 on. */
enum {
    ZERO_BLOCK_IN,
    ZERO_BLOCK_OUT,
    ZERO_FIRST_ARRAY,
    ZERO_MOST_ARRAYS = 16,
    ZERO_MOST_ROWS = 16
};

/* Channels of a head that rotary positions turn, at most. */
enum { ZERO_MOST_TURNED = 256 };

typedef enum {
    ZERO_NORM,
    ZERO_LINEAR, /* by `stacked` tensors, end to end */
    ZERO_TURN, /* queries and keys normed, if there are gains, and turned; without gains in
                    place */
    ZERO_ATTEND,
    ZERO_GELU, /* of the linear layer before */
    ZERO_GATE, /* silu of the left half times the right one */
    ZERO_ADD   /* a branch ends: + the array `with` */
} zero_layer_kind;

typedef struct {
    zero_layer_kind kind;
    int in, out;      /* arrays */
    int tensor, bias; /* rows; 0, which is a norm's gain, stands for no bias */
    int stacked;      /* LINEAR: tensors; 0 counts as 1 */
    int with;         /* ADD: the residual; ATTEND: the array of the values */
    int drop;         /* ATTEND, ADD: the mask's number in the block */
} zero_layer;

/* How a member of Hugging Face's config.json, beside the numbers of the shape, is used. */
typedef enum {
    ZERO_CONFIG_EXPECTED, /* another value is another calculation; none is the first one */
    ZERO_CONFIG_WRITTEN,
    ZERO_CONFIG_TYPE, /* as the numbers: written, also in place of what a kept file has */
    ZERO_CONFIG_SEQ,  /* the same */
    ZERO_CONFIG_DROPOUT,
    ZERO_CONFIG_TOKEN, /* as the tokenizer's files name it */
} zero_config_use;

typedef struct {
    const char *key;
    zero_config_use use;
    int lacks;             /* what shapes with the member have not */
    const char *values[4]; /* JSON that means the same; NULL ends it */
} zero_config_member;

struct zero_architecture {
    const char *name; /* "qwen3": also the type in Hugging Face's files */
    const char *about;
    int has; /* always */
    /* Tensors by group; those of a block are for each layer. */
    const zero_tensor_row *embedding, *block, *final;
    int n_final;       /* the last may be the head's words */
    const char *layer; /* "layers.": before a layer's number in names */
    const zero_layer *layers;
    int n_layers, n_arrays; /* `in` and `out` among them */
    int masks;              /* of a block, if there is dropout */
    /* Usual numbers. */
    struct {
        int times, over, multiple; /* times / over of hidden, then up to a multiple */
    } inner;
    double theta, eps, rotary;
    bool scales_leaving; /* tensors that leave start as N(0, 0.02/sqrt(2 L)) */
    /* Hugging Face's files. */
    const char *class_name, *prefix; /* "Qwen3ForCausalLM", "model." */
    const char *const *ignored; /* ends of names that hold no parameters; NULL ends them */
    const zero_config_member *config; /* the last has no key */
    const char *const *keys; /* config.json's names of zero_shape_fields, in their order */
};

enum {
    ZERO_GPT2,
    ZERO_LLAMA,
    ZERO_MISTRAL,
    ZERO_QWEN2,
    ZERO_QWEN3,
    ZERO_NEOX,
    ZERO_ARCHITECTURES
};
extern const zero_architecture zero_architectures[ZERO_ARCHITECTURES];

/* The rows of presets.txt; the last one has no name. */
extern const zero_preset zero_presets[];

/* What a complete shape has. */
int zero_shape_has(const zero_shape *shape);

/* The place of row `index` in its group; -1: a complete shape does not have it. */
int zero_row_place(const zero_tensor_row *rows, int index, const zero_shape *shape);
