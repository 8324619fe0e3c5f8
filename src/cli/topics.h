/* topics.h - the manual: the files of topics/, of which `zero help TOPIC` prints one. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* The text of a topic, whose first line is its title; NULL: there is none of that name. */
const char *zero_topic_text(const char *name);
/* Its name; NULL past the last one. */
const char *zero_topic_at(int i);

/* A line for each: name and title. */
void zero_topics_show(FILE *out);
/* The text, or a page of section 7 of the manual. */
void zero_topic_show(const char *name, bool man, FILE *out);
