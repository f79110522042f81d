// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Our frames to the AF_XDP socket of their receive queue, everything else to the stack. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#include "verdict.h"
#include "parse.h"
#include "match.h"

/* "LRSTAMP1"; a stamp is good for one frame identity only, for buffers are recycled. */
#define STAMP_MAGIC 0x4c525354414d5031ULL

struct queue_counters {
	__u64 frames[REASON_COUNT];
};

/* The 16 bytes before a frame. */
struct stamp {
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u64 check;   /* STAMP_MAGIC ^ identity */
};

const volatile __u8 stamp = 0;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, QUEUES_MAX + 1);
	__type(key, __u32);
	__type(value, struct queue_counters);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, QUEUES_MAX);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

/* put_stamp writes the receive time before the frame; 0 when there is no room. */
static __always_inline int put_stamp(struct xdp_md *ctx, __u64 identity)
{
	struct stamp *s;

	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(*s)))
		return 0;
	s = (void *)(long)ctx->data_meta;
	if ((void *)(s + 1) > (void *)(long)ctx->data)
		return 0;
	s->time_ns = bpf_ktime_get_ns();
	s->check = STAMP_MAGIC ^ identity;
	return 1;
}

static __always_inline int steer_frame(struct xdp_md *ctx)
{
	struct facts f = {};
	__u32 slot = counter_slot(ctx);
	struct queue_counters *c = bpf_map_lookup_elem(&counters, &slot);
	int reason = REASON_NO_TAG;

	if (!c) /* never: slot is within the map. The verifier cannot know. */
		return XDP_PASS;
	c->frames[REASON_SEEN]++;
	/* When all frames are taken only a stamp needs the tag. */
	if (!(match_flags & MATCH_ALL) || stamp)
		reason = parse(ctx, &f);
	if (!ours(ctx, &f, reason)) {
		/* 0 is a good tag, where other frames were asked for. */
		c->frames[reason ? reason : REASON_NOT_MATCHED]++;
		return XDP_PASS;
	}
	if (lose(&c->frames[REASON_SEEN]))
		return XDP_DROP;
	if (slot == queues) {
		c->frames[REASON_NO_QUEUE]++;
		return XDP_PASS;
	}
	if (stamp && !put_stamp(ctx, f.identity))
		c->frames[REASON_NO_META]++;
	if (bpf_redirect_map(&sockets, slot, XDP_PASS) != XDP_REDIRECT) {
		c->frames[REASON_NO_SOCKET]++;
		return XDP_PASS;
	}
	c->frames[REASON_REDIRECTED]++;
	return XDP_REDIRECT;
}

SEC("xdp")
int steer(struct xdp_md *ctx)
{
	return steer_frame(ctx);
}

/* For MTUs over one buffer: the tag may lie in a later one. */
SEC("xdp.frags")
int steer_frags(struct xdp_md *ctx)
{
	return steer_frame(ctx);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
