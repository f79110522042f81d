// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Verifies and accounts for our frames without a socket, and drops them. A frame
 * that is plainly good is counted here; any other of ours is shown to user space,
 * whose checker decides, so that there is one judge of what is wrong.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#include "verdict.h"
#include "parse.h"
#include "match.h"

#define FCS_BYTES 4
#define SPACES_MAX 4096
#define WINDOW_WORDS 2048 /* of 32 numbers and the epoch they belong to */
#define WINDOW_BITS 16
#define MAX_JUMP (1ULL << 20) /* as package frame has it */
#define MARK_TRIES 16
#define SAMPLE_SMALL 128
#define SAMPLE_BYTES 3520
#define LATENCY_CELLS (31 << 10)
#define FLAG_END 1
#define FLAG_STAMP 2

/* What byte b contributes to a tag's check when d bytes follow it, and the start value. */
const volatile __u16 crc_at[54][256] = {};
const volatile __u16 crc_start4 = 0;
const volatile __u16 crc_start6 = 0;
const volatile __u32 latency_mask = 63; /* stamped frames whose number has these bits 0 are timed */
const volatile __u32 spaces = 1;
/* For the frame budget's own test only: that many good frames are never entered. */
const volatile __u32 lose_dropped = 0;

/* The run taken when run_id is 0; 0 until user space has found one. */
__u32 adopted_run = 0;
/* Until it is set, frames go to the stack: those of before a trial are not its. */
__u32 armed = 0;
__u32 next_space = 0;
__u64 lost_dropped = 0;
__u64 unjudged = 0;     /* frames user space was too slow to look at */
__u64 no_space = 0;     /* good frames of sequence spaces beyond those there is room for */
__u64 contended = 0;    /* good frames that could not be entered: never seen */
__u64 backward = 0;     /* stamped later than received: the clocks differ */

struct verify_counters {
	__u64 frames[REASON_COUNT];
	__u64 bytes; /* with FCS, of the frames under REASON_DROPPED */
	__u64 good;
	__u64 good_bytes;
	__u64 judged; /* shown to user space */
	/* What the last tag check was made of: neighbours share most of it. */
	__u64 top; /* magic, run and space */
	__u64 late; /* time and flags */
	__u32 flow[9];
	__u16 flow_crc; /* of flow, with the start value */
	__u16 top_crc;
	__u16 late_crc;
	__u16 flow_v6;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, QUEUES_MAX + 1);
	__type(key, __u32);
	__type(value, struct verify_counters);
} counters SEC(".maps");

/* One queue's count of one sequence space. A queue is polled by one CPU at a time. */
struct view {
	__u64 next; /* newest number seen on this queue, + 1 */
	__u64 distinct;
	__u64 duplicate;
	__u64 reordered;
	__u64 between;
	__u64 late;
	__u64 implausible;
	__u64 lowest; /* + 1; 0: none */
	__u64 held;   /* number + 1 that waits for another near it */
	__u64 key;    /* of the space */
	__u64 reserved[6];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct view);
} views SEC(".maps");

struct window {
	__u64 next; /* newest number of all queues, + 1 */
	__u64 words[WINDOW_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct window);
} windows SEC(".maps");

/* Sequence space to its place in windows, + 1. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, __u32);
} places SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LATENCY_CELLS);
	__type(key, __u32);
	__type(value, __u64);
} latency SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} doubtful SEC(".maps");

struct sample {
	__u32 len;
	__u32 queue;
	__u8 data[SAMPLE_SMALL];
};

struct sample_long {
	__u32 len;
	__u32 queue;
	__u8 data[SAMPLE_BYTES];
};

struct good {
	__u64 seq;
	__u32 key;
	__u32 time;
	__u32 flags;
	__u32 len;
};

static __always_inline __u16 fold(__u64 s)
{
	s = (s & 0xffffffff) + (s >> 32);
	s = (s & 0xffff) + (s >> 16);
	s = (s & 0xffff) + (s >> 16);
	return (s & 0xffff) + (s >> 16);
}

/*
 * sum_from adds up the packet from an offset to its end. It is global so that
 * the verifier looks at its loop once.
 */
__noinline __u64 sum_from(struct xdp_md *ctx, __u32 off)
{
	void *end = (void *)(long)ctx->data_end;
	__u8 *at = (void *)(long)ctx->data;
	__u64 s = 0;

	if (off > 80)
		return 0;
	at += off;
	for (int i = 0; i < SAMPLE_BYTES / 16; i++) {
		if ((void *)(at + 16) > end)
			break;
		s += *(__u32 *)at;
		s += *(__u32 *)(at + 4);
		s += *(__u32 *)(at + 8);
		s += *(__u32 *)(at + 12);
		at += 16;
	}
	for (int i = 0; i < 8; i++) {
		if ((void *)(at + 2) > end)
			break;
		s += *(__u16 *)at;
		at += 2;
	}
	if ((void *)(at + 1) <= end)
		s += *at;
	return s;
}

/* check_flow remembers what addresses and ports contribute to the tag check. */
static __always_inline void check_flow(struct verify_counters *c, const __u8 *addr, const int v6)
{
	const int words = v6 ? 9 : 3, n = 4 * words;
	__u32 differ = c->flow_v6 != 1 + v6;
	__u16 crc = v6 ? crc_start6 : crc_start4;

#pragma unroll
	for (int i = 0; i < words; i++)
		differ |= c->flow[i] ^ ((__u32 *)addr)[i];
	if (!differ)
		return;
#pragma unroll
	for (int i = 0; i < words; i++)
		c->flow[i] = ((__u32 *)addr)[i];
#pragma unroll
	for (int i = 0; i < n; i++)
		crc ^= crc_at[18 + n - 1 - i][addr[i]];
	c->flow_crc = crc;
	c->flow_v6 = 1 + v6;
}

/* quick_tag checks the tag at the end of the frame. */
static __always_inline int quick_tag(struct verify_counters *c, __u8 *tag, struct good *g)
{
	__u64 w0 = bpf_be64_to_cpu(*(__u64 *)tag), w1 = bpf_be64_to_cpu(*(__u64 *)(tag + 8));
	__u64 late = w1 & 0xffffffffffULL;
	__u16 crc;

	if (w0 >> 16 != c->top) {
		__u32 run = run_id ? run_id : adopted_run;

		if (w0 >> 48 != TAG_LONG_MAGIC || (w0 >> 32 & 0xffff) != run || !run)
			return 0;
		crc = 0;
#pragma unroll
		for (int i = 0; i < 6; i++)
			crc ^= crc_at[17 - i][w0 >> (56 - 8 * i) & 0xff];
		c->top = w0 >> 16;
		c->top_crc = crc;
	}
	if (late != c->late) {
		crc = 0;
#pragma unroll
		for (int i = 3; i < 8; i++)
			crc ^= crc_at[9 - i][w1 >> (56 - 8 * i) & 0xff];
		c->late = late;
		c->late_crc = crc;
	}
	crc = c->flow_crc ^ c->top_crc ^ c->late_crc ^ crc_at[11][w0 >> 8 & 0xff] ^
	      crc_at[10][w0 & 0xff] ^ crc_at[9][w1 >> 56] ^ crc_at[8][w1 >> 48 & 0xff] ^
	      crc_at[7][w1 >> 40 & 0xff];
	g->key = w0 >> 16 & 0xffff;
	g->seq = (w0 & 0xffff) << 24 | w1 >> 40;
	g->time = w1 >> 8;
	g->flags = w1 & 0xff;
	return crc == bpf_ntohs(*(__u16 *)(tag + 16)) && !(g->flags & FLAG_END);
}

/* quick says whether a frame with its IP header at l3 is plainly good. */
static __always_inline int quick(struct xdp_md *ctx, struct verify_counters *c, const int l3,
				 const int v6, struct good *g)
{
	const int hl = v6 ? 40 : 20;
	__u8 *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	__u8 *ip = data + l3, *udp = ip + hl, *addr = v6 ? ip + 8 : ip + 12, *tag;
	__u32 len = end - (void *)data, off;
	__be16 udp_len;
	__u64 s = 0, addresses;

	if ((void *)(udp + 8 + TAG_LONG_BYTES) > end)
		return 0;
	udp_len = bpf_htons(len - l3 - hl);
	if (v6) {
		if (ip[0] >> 4 != 6 || ip[6] != PROTO_UDP || *(__be16 *)(ip + 4) != udp_len)
			return 0;
#pragma unroll
		for (int i = 8; i < 40; i += 4)
			s += *(__u32 *)(ip + i);
	} else {
		if (ip[0] != 0x45 || ip[9] != PROTO_UDP ||
		    *(__be16 *)(ip + 2) != bpf_htons(len - l3) ||
		    *(__be16 *)(ip + 6) & bpf_htons(0x3fff))
			return 0;
		s = (__u64) * (__u32 *)ip + *(__u32 *)(ip + 4) + *(__u32 *)(ip + 8);
		addresses = (__u64) * (__u32 *)(ip + 12) + *(__u32 *)(ip + 16);
		if (fold(s + addresses) != 0xffff)
			return 0;
		s = addresses;
	}
	if (*(__be16 *)(udp + 4) != udp_len || !*(__be16 *)(udp + 6))
		return 0;
	off = len - TAG_LONG_BYTES;
	if (off > SAMPLE_BYTES)
		return 0;
	KEEP_WHOLE(off);
	tag = data + off;
	if ((void *)(tag + TAG_LONG_BYTES) > end)
		return 0;
	check_flow(c, addr, v6);
	if (!quick_tag(c, tag, g))
		return 0;
	s += udp_len + bpf_htons(PROTO_UDP);
	s += *(__u32 *)udp;
	s += *(__u32 *)(udp + 4);
	if (tag == udp + 8) { /* the 64 byte frame */
		s += *(__u32 *)tag;
		s += *(__u32 *)(tag + 4);
		s += *(__u32 *)(tag + 8);
		s += *(__u32 *)(tag + 12);
		s += *(__u16 *)(tag + 16);
	} else {
		s += sum_from(ctx, l3 + hl + 8);
	}
	g->len = len + FCS_BYTES;
	return fold(s) == 0xffff;
}

/* plainly_good finds the IP header behind up to two VLAN tags. */
static __always_inline int plainly_good(struct xdp_md *ctx, struct verify_counters *c,
					struct good *g)
{
	__u8 *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	__be16 proto;

	if (!(match_flags & (MATCH_TAG | MATCH_ALL)))
		return 0;
	if ((void *)(data + 22) > end)
		return 0;
	proto = *(__be16 *)(data + 12);
	if (proto == bpf_htons(ETH_P_IP))
		return quick(ctx, c, 14, 0, g);
	if (proto == bpf_htons(ETH_P_IPV6))
		return quick(ctx, c, 14, 1, g);
	if (!is_vlan(proto) || proto == bpf_htons(ETH_P_QINQ1))
		return 0;
	proto = *(__be16 *)(data + 16);
	if (proto == bpf_htons(ETH_P_IP))
		return quick(ctx, c, 18, 0, g);
	if (proto == bpf_htons(ETH_P_IPV6))
		return quick(ctx, c, 18, 1, g);
	if (!is_vlan(proto) || proto == bpf_htons(ETH_P_QINQ1))
		return 0;
	proto = *(__be16 *)(data + 20);
	if (proto == bpf_htons(ETH_P_IP))
		return quick(ctx, c, 22, 0, g);
	if (proto == bpf_htons(ETH_P_IPV6))
		return quick(ctx, c, 22, 1, g);
	return 0;
}

/* place finds the index of a sequence space, or makes it; -1: no room. */
static __always_inline int place(__u32 key)
{
	__u32 *p = bpf_map_lookup_elem(&places, &key);
	__u32 mine, had;

	if (!p)
		return -1;
	if (*p)
		return *p - 1;
	mine = __sync_fetch_and_add(&next_space, 1);
	if (mine >= spaces) {
		__sync_fetch_and_add(&next_space, -1);
		return -1;
	}
	had = __sync_val_compare_and_swap(p, 0, mine + 1);
	return had ? had - 1 : mine;
}

enum mark { MARK_NEW, MARK_DUPLICATE, MARK_LATE, MARK_CONTENDED };

/* mark enters a number into the window. */
static __always_inline enum mark mark(struct window *w, __u64 seq)
{
	__u64 *word = &w->words[seq / 32 & (WINDOW_WORDS - 1)];
	__u64 epoch = seq >> WINDOW_BITS, bit = 1ULL << (seq & 31), old, new;

	for (int i = 0; i < MARK_TRIES; i++) {
		old = *(volatile __u64 *)word;
		if (old >> 32 > epoch)
			return MARK_LATE;
		new = bit;
		if (old >> 32 == epoch) {
			if (old & bit)
				return MARK_DUPLICATE;
			new = old | bit;
		}
		new |= epoch << 32;
		if (queues == 1) { /* nobody else writes */
			*(volatile __u64 *)word = new;
			return MARK_NEW;
		}
		if (__sync_val_compare_and_swap(word, old, new) == old)
			return MARK_NEW;
	}
	return MARK_CONTENDED;
}

static __always_inline void enter(struct view *v, struct window *w, __u64 seq)
{
	enum mark m = mark(w, seq);

	if (m == MARK_NEW) {
		v->distinct++;
		if (seq < v->next)
			v->reordered++;
		else if (seq + 1 < w->next)
			v->between++;
		if (!v->lowest || seq + 1 < v->lowest)
			v->lowest = seq + 1;
	} else if (m == MARK_DUPLICATE) {
		v->duplicate++;
	} else if (m == MARK_LATE) {
		v->late++;
	} else {
		__sync_fetch_and_add(&contended, 1);
	}
	if (seq >= v->next)
		v->next = seq + 1;
	if (seq >= w->next)
		w->next = seq + 1;
}

/* implausible holds a number far ahead until another near it bears it out. */
static __always_inline int implausible(struct view *v, struct window *w, __u64 seq)
{
	__u64 held = v->held - 1, apart = held > seq ? held - seq : seq - held;

	if (v->held && apart && apart < 1 << WINDOW_BITS) {
		v->held = 0;
		v->implausible--;
		enter(v, w, held);
		return 0;
	}
	if (!v->held || apart)
		v->held = seq + 1;
	v->implausible++;
	return 1;
}

static __always_inline void time_frame(const struct good *g)
{
	__u64 now = bpf_ktime_get_ns(), d, x;
	__u64 *c;
	__u32 shift = 0, key;

	d = (now - ((__u64)g->time << 6)) & ((1ULL << 38) - 1);
	if (d >> 37) {
		__sync_fetch_and_add(&backward, 1);
		return;
	}
	x = d >> 11;
	if (x >> 16) {
		shift += 16;
		x >>= 16;
	}
	if (x >> 8) {
		shift += 8;
		x >>= 8;
	}
	if (x >> 4) {
		shift += 4;
		x >>= 4;
	}
	if (x >> 2) {
		shift += 2;
		x >>= 2;
	}
	if (x >> 1) {
		shift += 1;
		x >>= 1;
	}
	shift += x;
	key = (shift << 10) + (d >> shift);
	c = bpf_map_lookup_elem(&latency, &key);
	if (!c)
		return;
	__sync_fetch_and_add(c, 1);
}

static __always_inline void account(const struct good *g, __u32 queue)
{
	int at = place(g->key);
	struct window *w;
	struct view *v;
	__u32 key;

	if (at < 0) {
		__sync_fetch_and_add(&no_space, 1);
		return;
	}
	key = at;
	w = bpf_map_lookup_elem(&windows, &key);
	key = at * queues + queue;
	v = bpf_map_lookup_elem(&views, &key);
	if (!w || !v) { /* never: both have room for all spaces and queues */
		__sync_fetch_and_add(&no_space, 1);
		return;
	}
	v->key = g->key;
	if (g->seq >= w->next + MAX_JUMP && implausible(v, w, g->seq))
		return;
	enter(v, w, g->seq);
	if (g->flags & FLAG_STAMP && !(g->seq & latency_mask))
		time_frame(g);
}

/* show gives the frame to user space. */
static __always_inline int show(struct xdp_md *ctx, __u32 queue)
{
	__u32 len = bpf_xdp_get_buff_len(ctx);
	__u32 n = len < SAMPLE_BYTES ? len : SAMPLE_BYTES;

	KEEP_WHOLE(n); /* or the verifier does not see its bounds */
	if (n < 14) /* shorter than Ethernet: the kernel passes none such on */
		return -1;
	if (n <= SAMPLE_SMALL) {
		struct sample *s = bpf_ringbuf_reserve(&doubtful, sizeof(*s), 0);

		if (!s)
			return -1;
		s->len = len;
		s->queue = queue;
		if (bpf_xdp_load_bytes(ctx, 0, s->data, n)) {
			bpf_ringbuf_discard(s, 0);
			return -1;
		}
		bpf_ringbuf_submit(s, 0);
	} else if (n <= SAMPLE_BYTES) {
		struct sample_long *s = bpf_ringbuf_reserve(&doubtful, sizeof(*s), 0);

		if (!s)
			return -1;
		s->len = len;
		s->queue = queue;
		if (bpf_xdp_load_bytes(ctx, 0, s->data, n)) {
			bpf_ringbuf_discard(s, 0);
			return -1;
		}
		bpf_ringbuf_submit(s, 0);
	}
	return 0;
}

SEC("xdp")
int verify(struct xdp_md *ctx)
{
	__u32 slot = counter_slot(ctx);
	struct verify_counters *c = bpf_map_lookup_elem(&counters, &slot);
	struct good g = {};
	struct facts f = {};
	int reason;

	if (!c)
		return XDP_PASS;
	c->frames[REASON_SEEN]++;
	if (armed && slot < queues && plainly_good(ctx, c, &g)) {
		if (lose(&c->frames[REASON_SEEN]))
			return XDP_DROP;
		c->frames[REASON_DROPPED]++;
		c->bytes += g.len;
		c->good++;
		c->good_bytes += g.len;
		if (!lose_dropped || __sync_fetch_and_add(&lost_dropped, 1) >= lose_dropped)
			account(&g, slot);
		return XDP_DROP;
	}
	reason = parse(ctx, &f);
	if (!ours(ctx, &f, reason)) {
		c->frames[reason ? reason : REASON_NOT_MATCHED]++;
		return XDP_PASS;
	}
	if (slot == queues || !armed) {
		c->frames[slot == queues ? REASON_NO_QUEUE : REASON_NO_SOCKET]++;
		return XDP_PASS;
	}
	if (lose(&c->frames[REASON_SEEN]))
		return XDP_DROP;
	c->frames[REASON_DROPPED]++;
	c->bytes += bpf_xdp_get_buff_len(ctx) + FCS_BYTES;
	if (show(ctx, slot))
		__sync_fetch_and_add(&unjudged, 1);
	else
		c->judged++;
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
