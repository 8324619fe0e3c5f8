/* clock.h - the only clock the program reads. */
#pragma once

/* Seconds since some fixed moment; never goes backwards. */
double zero_clock_seconds(void);
