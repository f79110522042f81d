// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Counts our frames and drops them: the fastest receiver there is. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#include "verdict.h"
#include "parse.h"
#include "match.h"

#define FCS_BYTES 4 /* XDP never sees it */
#define STREAMS 4096

/* Frame length with FCS, as RFC 2819 (etherStats) divides it. */
enum size_class {
	SIZE_UNDER_64,
	SIZE_64,
	SIZE_65_127,
	SIZE_128_255,
	SIZE_256_511,
	SIZE_512_1023,
	SIZE_1024_1518,
	SIZE_OVER_1518,
	SIZE_COUNT,
};

enum protocol {
	PROTOCOL_OTHER,
	PROTOCOL_ARP,
	PROTOCOL_IPV4_UDP,
	PROTOCOL_IPV4_TCP,
	PROTOCOL_IPV4_OTHER,
	PROTOCOL_IPV6_UDP,
	PROTOCOL_IPV6_TCP,
	PROTOCOL_IPV6_OTHER,
	PROTOCOL_COUNT,
};

/* Keep the enums in the type information, for Go to read. */
const enum size_class *size_class_type __attribute__((unused));
const enum protocol *protocol_type __attribute__((unused));

/* bytes, sizes and protocols are of the frames under REASON_DROPPED. */
struct sink_counters {
	__u64 frames[REASON_COUNT];
	__u64 bytes; /* with FCS */
	__u64 sizes[SIZE_COUNT];
	__u64 protocols[PROTOCOL_COUNT];
};

struct stream_counters {
	__u64 frames;
	__u64 bytes; /* with FCS */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, QUEUES_MAX + 1);
	__type(key, __u32);
	__type(value, struct sink_counters);
} counters SEC(".maps");

/* By stream, over all workers and queues. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, STREAMS);
	__type(key, __u32);
	__type(value, struct stream_counters);
} streams SEC(".maps");

static __always_inline enum size_class size_class(__u32 len)
{
	if (len <= 64)
		return len < 64 ? SIZE_UNDER_64 : SIZE_64;
	if (len < 256)
		return len < 128 ? SIZE_65_127 : SIZE_128_255;
	if (len < 1024)
		return len < 512 ? SIZE_256_511 : SIZE_512_1023;
	return len <= 1518 ? SIZE_1024_1518 : SIZE_OVER_1518;
}

static __always_inline enum protocol protocol(const struct facts *f)
{
	if (f->l3 == 4)
		return f->l4 == PROTO_UDP   ? PROTOCOL_IPV4_UDP
		       : f->l4 == PROTO_TCP ? PROTOCOL_IPV4_TCP
					    : PROTOCOL_IPV4_OTHER;
	if (f->l3 == 6)
		return f->l4 == PROTO_UDP   ? PROTOCOL_IPV6_UDP
		       : f->l4 == PROTO_TCP ? PROTOCOL_IPV6_TCP
					    : PROTOCOL_IPV6_OTHER;
	return f->arp ? PROTOCOL_ARP : PROTOCOL_OTHER;
}

static __always_inline void count_stream(const struct facts *f, __u32 len)
{
	__u32 stream = f->identity & TAG_SHORT_IDENTITY ? (f->identity >> 32) & 0xf
							: (f->identity >> 40) & 0xfff;
	struct stream_counters *s = bpf_map_lookup_elem(&streams, &stream);

	if (!s) /* never: 12 bits are within the map */
		return;
	s->frames++;
	s->bytes += len;
}

static __always_inline int sink_frame(struct xdp_md *ctx)
{
	struct facts f = {};
	__u32 slot = counter_slot(ctx);
	struct sink_counters *c = bpf_map_lookup_elem(&counters, &slot);
	__u32 len;
	int reason;

	if (!c) /* never: slot is within the map. The verifier cannot know. */
		return XDP_PASS;
	c->frames[REASON_SEEN]++;
	reason = parse(ctx, &f);
	if (!ours(ctx, &f, reason)) {
		/* 0 is a good tag, where other frames were asked for. */
		c->frames[reason ? reason : REASON_NOT_MATCHED]++;
		return XDP_PASS;
	}
	if (lose(&c->frames[REASON_SEEN]))
		return XDP_DROP;
	len = bpf_xdp_get_buff_len(ctx) + FCS_BYTES;
	c->frames[REASON_DROPPED]++;
	c->bytes += len;
	c->sizes[size_class(len)]++;
	c->protocols[protocol(&f)]++;
	if (!reason)
		count_stream(&f, len);
	return XDP_DROP;
}

SEC("xdp")
int sink(struct xdp_md *ctx)
{
	return sink_frame(ctx);
}

SEC("xdp.frags")
int sink_frags(struct xdp_md *ctx)
{
	return sink_frame(ctx);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
