/* palette_stops: the colours of the palettes, as stops on a circle. Used by palette alone. */
#ifndef MQ_PALETTE_STOPS_H
#define MQ_PALETTE_STOPS_H

#include "src/job.h"

/* Oklab (Ottosson 2020): lightness, green to red, blue to yellow; at: place on the circle, 0 .. 1. */
struct mq_stop {
	double at;
	double lab[3];
};

struct mq_stops {
	unsigned count;             /* 0: gray, which has none */
	const struct mq_stop *stop; /* at rises from 0; the last one's neighbour is the first */
};

extern const struct mq_stops mq_palette_stops[MQ_PALETTE_COUNT];

#endif
