/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What became of a frame: one counter per reason, the same set in every program. */
#ifndef LINERATE_VERDICT_H
#define LINERATE_VERDICT_H

/*
 * REASON_SEEN counts every frame at entry, before anything looks at it.
 * REASON_NO_META is informative. All others are verdicts: each frame ends in
 * exactly one, so they sum up to REASON_SEEN.
 * The Go names are these in lower case without the prefix; a test compares them.
 */
enum reason {
	REASON_SEEN,
	REASON_REDIRECTED,     /* handed to the AF_XDP socket of its queue */
	REASON_DROPPED,        /* ours, counted and dropped (sink) */
	REASON_NO_META,        /* redirected without a stamp: no room for metadata */
	REASON_TRUNCATED,      /* ends inside a header or before the tag */
	REASON_VLAN_DEPTH,     /* more than two VLAN tags */
	REASON_NOT_IP,         /* EtherType neither IPv4 nor IPv6 */
	REASON_BAD_IP,         /* IP version or header length impossible */
	REASON_FRAGMENT,       /* an IP fragment */
	REASON_EXT_CHAIN,      /* more IPv6 extension headers than are followed */
	REASON_NOT_UDP,        /* another transport protocol */
	REASON_BAD_UDP_LENGTH, /* UDP length below its own header */
	REASON_TOO_LONG,       /* UDP length over UDP_LEN_MAX */
	REASON_SHORT_PAYLOAD,  /* UDP payload too short for any tag */
	REASON_NO_TAG,         /* no magic where a tag would be */
	REASON_OTHER_RUN,      /* our tag, another run */
	REASON_NOT_MATCHED,    /* our tag, but not what was asked for */
	REASON_NO_QUEUE,       /* a receive queue we were not told of */
	REASON_NO_SOCKET,      /* no AF_XDP socket on its queue */
	REASON_COUNT,
};

/* Keeps the enum in the type information, for Go to read. */
const enum reason *reason_type __attribute__((unused));

#define QUEUES_MAX 128

/* Receive queues 0..queues-1 have a counter slot each, all others share the one after. */
const volatile __u32 queues = 1;

/*
 * For the frame budget's own test only: that many matching frames vanish before
 * or after being counted as seen, and are counted nowhere. Dead code when 0.
 */
const volatile __u32 lose_before_seen = 0;
const volatile __u32 lose_after_seen = 0;

__u64 lost_before_seen = 0;
__u64 lost_after_seen = 0;

static __always_inline __u32 counter_slot(struct xdp_md *ctx)
{
	__u32 queue = ctx->rx_queue_index;

	return queue < queues ? queue : queues;
}

/* lose says whether this matching frame is one of those to vanish. */
static __always_inline int lose(__u64 *seen)
{
	if (lose_before_seen &&
	    __sync_fetch_and_add(&lost_before_seen, 1) < lose_before_seen) {
		/* Taken back rather than counted late: matching needs the parse. */
		(*seen)--;
		return 1;
	}
	return lose_after_seen &&
	       __sync_fetch_and_add(&lost_after_seen, 1) < lose_after_seen;
}

#endif
