#include "data/alphabet.h"

#include "base/utf8.h"

static void list_letters(uint32_t letters[256])
{
    uint32_t next = 0x100; /* for bytes that do not stand for themselves */
    for (uint32_t i = 0; i < 256; i++) {
        const bool is_own = (i >= 0x21 && i <= 0x7e) || (i >= 0xa1 && i != 0xad);
        letters[i] = is_own ? i : next++;
    }
}

void zero_alphabet_letter(unsigned char byte, char letter[ZERO_LETTER])
{
    uint32_t letters[256];
    list_letters(letters);
    letter[zero_utf8_write(letters[byte], (unsigned char *)letter)] = '\0';
}

bool zero_alphabet_bytes(const char *text, unsigned char *out, size_t *len)
{
    uint32_t letters[256], c = 0;
    const size_t all = strlen(text);
    list_letters(letters);
    *len = 0;
    for (size_t at = 0; at < all;) {
        int byte = 0;
        at += zero_utf8_read((const unsigned char *)text + at, all - at, &c);
        while (byte < 256 && letters[byte] != c) byte++;
        if (byte == 256) return false;
        out[(*len)++] = (unsigned char)byte;
    }
    return true;
}
